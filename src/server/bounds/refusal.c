/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/refusal.h"

const char *rp_refusal_name(rp_refusal refusal)
{
    switch (refusal) {
#define CASE(name, word)                                                                       \
    case RP_REFUSED_##name: return word;
        RP_REFUSALS(CASE)
#undef CASE
    case RP_REFUSAL_COUNT: break;
    }
    return "unknown";
}
