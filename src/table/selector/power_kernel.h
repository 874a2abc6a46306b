/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a power function (power.h). A .c file defines POWER as the name of the function
 * and includes this file. There is one .c file for each instruction set. The loop has no
 * branches, so compilers vectorise it.
 *
 * x^a = 2^(a log2 x).
 *
 * The logarithm: x = 2^e m with m in [sqrt(1/2), sqrt(2)). Let s = (m - 1) / (m + 1). Then log2
 * m is 2 / ln 2 times the series s + s^3/3 + s^5/5 + .... As |s| < 0.172, eleven terms bring
 * the relative error below 2^-56.
 *
 * The power: y = a log2 x is n + r with an integer n and |r| <= 1/2. 2^r is the exponential
 * series of r ln 2, of which fourteen terms reach 2^-56. 2^n is applied as two factors, each
 * made from its exponent bits, so that results near the ends of the range of float64 are right.
 */
#ifndef RP_TABLE_SELECTOR_POWER_KERNEL_H
#define RP_TABLE_SELECTOR_POWER_KERNEL_H

#include <stdint.h>
#include <string.h>

#include "table/selector/power.h"

/* Adding this to a float64 below 2^51 leaves the nearest integer in its low bits. */
static const double rounder = 0x1.8p52;

static inline uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double log2_of(double x)
{
    /* 1 if x is denormal: x is then scaled up by 2^54 */
    double tiny = x < 0x1p-1022 ? 1.0 : 0.0;
    uint64_t bits = bits_of(x < 0x1p-1022 ? x * 0x1p54 : x);
    /* 0x433... is the float64 2^52. With the exponent bits of x as its low bits, this number
     * becomes 2^52 + the exponent. */
    double e = from_bits(bits >> 52 | 0x4330000000000000u) - (0x1p52 + 1023) - 54 * tiny;
    double m = from_bits((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
    double high = m > 1.41421356237309504880 ? 1.0 : 0.0;
    double s, z, series;

    m = high > 0 ? m * 0.5 : m;
    s = (m - 1) / (m + 1);
    z = s * s;
    series = 1.0 / 21;
    series = series * z + 1.0 / 19;
    series = series * z + 1.0 / 17;
    series = series * z + 1.0 / 15;
    series = series * z + 1.0 / 13;
    series = series * z + 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    series = series * z;
    return e + high + 2.8853900817779268147198 * (s + s * series);
}

/* Returns 2^n. `n` must be an integer with |n| <= 1022. */
static inline double two_to(double n)
{
    return from_bits((bits_of(n + rounder) + 1023) << 52);
}

static inline double exp2_of(double y)
{
    double n, half, t, series;

    y = y > 1100 ? 1100 : y;
    y = y < -1200 ? -1200 : y;
    n = (y + rounder) - rounder;
    half = (n * 0.5 + rounder) - rounder;
    t = (y - n) * 0.69314718055994530942;
    series = 1.0 / 6227020800;
    series = series * t + 1.0 / 479001600;
    series = series * t + 1.0 / 39916800;
    series = series * t + 1.0 / 3628800;
    series = series * t + 1.0 / 362880;
    series = series * t + 1.0 / 40320;
    series = series * t + 1.0 / 5040;
    series = series * t + 1.0 / 720;
    series = series * t + 1.0 / 120;
    series = series * t + 1.0 / 24;
    series = series * t + 1.0 / 6;
    series = series * t + 0.5;
    series = series * t + 1;
    series = series * t + 1;
    return series * two_to(half) * two_to(n - half);
}

void POWER(const double *restrict x, double exponent, double *restrict out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double power = exp2_of(exponent * log2_of(x[i]));
        out[i] = x[i] == 0 ? 0 : power;
    }
}

#endif
