/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/extension.h"

void rp_extension_discard(rp_extension *extension)
{
    if (extension == NULL) return;
    if (extension->free != NULL) extension->free(extension->ctx);
    *extension = (rp_extension){0};
}
