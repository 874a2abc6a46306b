/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out which instruction sets this processor has in addition to those that the library is
 * compiled for. */
#ifndef RP_UTIL_CPU_H
#define RP_UTIL_CPU_H

#include <stdbool.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* Each function returns false on other architectures. */
static inline bool rp_cpu_has_avx2(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

/* AVX-512 F, DQ and VL. */
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

/* The CRC-32C and the carry-less multiplication instructions. */
static inline bool rp_cpu_has_sse42_and_clmul(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
#else
    return false;
#endif
}

/* The CRC-32 and CRC-32C instructions. */
static inline bool rp_cpu_has_arm_crc32(void)
{
#if defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
    return false;
#endif
}

#endif
