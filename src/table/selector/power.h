/* SPDX-License-Identifier: Apache-2.0 */
/* Raises many priorities at once to the power of an exponent, for prioritized replay.
 *
 * These functions use only additions, multiplications, divisions, comparisons and bit
 * operations, always in the same order. So every machine, compiler and instruction set computes
 * the same bits. pow() of the C library does not promise this. The relative error is below
 * 2^-51 * (1 + |exponent * log2(x)|). */
#ifndef RP_TABLE_SELECTOR_POWER_H
#define RP_TABLE_SELECTOR_POWER_H

#include <stddef.h>

/* Sets out[i] to x[i]^exponent. The exponent must be finite. Each x[i] must be finite and >= 0;
 * for x[i] = 0 the result is 0. Results outside the range of float64 become 0 or infinity.
 * `out` must not overlap `x`. */
typedef void rp_power_fn(const double *restrict x, double exponent, double *restrict out,
                         size_t count);

extern rp_power_fn rp_power_plain;
#if defined(__x86_64__)
extern rp_power_fn rp_power_avx2;
extern rp_power_fn rp_power_avx512;
#endif

/* Returns the fastest of the functions above that this processor can run. */
rp_power_fn *rp_power_best(void);

#endif
