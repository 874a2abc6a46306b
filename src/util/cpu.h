/* SPDX-License-Identifier: Apache-2.0 */
/* What this processor can do beyond what we compile for. */
#ifndef RP_UTIL_CPU_H
#define RP_UTIL_CPU_H

#include <stdbool.h>

/* Always false where the question makes no sense. */
static inline bool rp_cpu_has_avx2(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* The foundation with the 64-bit and the short-vector parts. */
static inline bool rp_cpu_has_avx512(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

#endif
