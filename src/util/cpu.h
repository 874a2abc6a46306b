/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that say which instruction sets this processor has, beyond those for which the
 * library is compiled. */
#ifndef RP_UTIL_CPU_H
#define RP_UTIL_CPU_H

#include <stdbool.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* Each function returns false on architectures that do not have its instruction set. */
static inline bool rp_cpu_has_avx2(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* The parts F, DQ and VL of AVX-512. */
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

/* The instructions for CRC-32C (SSE 4.2) and for carry-less multiplication. */
static inline bool rp_cpu_has_sse42_and_clmul(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
#else
    return false;
#endif
}

/* The instructions of ARM for CRC-32 and CRC-32C. */
static inline bool rp_cpu_has_arm_crc32(void)
{
#if defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
    return false;
#endif
}

#endif
