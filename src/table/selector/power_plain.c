/* SPDX-License-Identifier: Apache-2.0 */
/* Powers for any processor. */
#define POWER rp_power_plain
#include "table/selector/power_kernel.h"
#include "util/cpu.h"

rp_power_fn *rp_power_best(void)
{
#if defined(__x86_64__)
    if (rp_cpu_has_avx512()) return rp_power_avx512;
    if (rp_cpu_has_avx2()) return rp_power_avx2;
#endif
    return rp_power_plain;
}
