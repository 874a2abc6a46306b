/* SPDX-License-Identifier: Apache-2.0 */
/* Powers for AVX-512. */
#if defined(__x86_64__)

#define POWER rp_power_avx512
#include "table/selector/power_kernel.h"

#endif
