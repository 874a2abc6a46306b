/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/version.h"

const char *rp_version(void)
{
    return RP_VERSION;
}
