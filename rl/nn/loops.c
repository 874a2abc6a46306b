/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the loops. */
#include "nn/loops.h"

#include <assert.h>

const rp_loops *rp_loops_best(void)
{
    const rp_loops *best = &rp_loops_plain;

#if defined(RP_LOOPS_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) best = &rp_loops_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        best = &rp_loops_avx512;
#endif
    assert(best->adam != NULL);
    return best;
}
