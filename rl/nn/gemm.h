/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products (GEMM). There is one implementation per instruction set, and one that calls a
 * CBLAS library.
 *
 * A product is c = activation(a b + bias), or c += a b. In our own implementations, the order
 * in which the terms of an element of c are added depends only on n, k and the layout of a and
 * b. A row of c therefore does not depend on the number of rows. Results of different
 * implementations differ by rounding, because those for AVX2 and AVX-512 use fused
 * multiply-add.
 *
 * All functions are pure: they only use arrays of the caller. c must not overlap a, b or
 * bias. */
#ifndef RP_NN_GEMM_H
#define RP_NN_GEMM_H

#include "reprise/rl/nn.h"

typedef struct rp_gemm {
    size_t m, n, k; /* a is m x k, b is k x n, c is m x n; all >= 1 */

    /* Element (i, j) of a is a[i * a_row + j * a_col]. The same holds for b. One of the two
     * strides of a matrix must be 1: a_col if its rows are contiguous, a_row if it is stored
     * transposed, with contiguous columns. */
    const rp_real *a, *b;
    size_t a_row, a_col;
    size_t b_row, b_col;

    rp_real *c;
    size_t c_row; /* stride of the rows of c; the rows are contiguous */

    bool accumulate;          /* c += a b, without bias and activation */
    const rp_real *bias;      /* n numbers, added to each row of c; NULL: no bias */
    rp_activation activation; /* applied after the bias */
} rp_gemm;

typedef struct rp_gemm_ops {
    const char *name;
    void (*prepare)(void); /* called when the implementation is selected; may be NULL */
    void (*run)(const rp_gemm *g);
} rp_gemm_ops;

extern const rp_gemm_ops rp_gemm_plain;
#if defined(__x86_64__) && !defined(RP_REAL_IS_DOUBLE)
#define RP_GEMM_X86 1
extern const rp_gemm_ops rp_gemm_avx2;
extern const rp_gemm_ops rp_gemm_avx512;
#endif
#if defined(RP_HAVE_CBLAS)
extern const rp_gemm_ops rp_gemm_cblas;
#endif

/* Returns the fastest implementation that this machine supports. */
const rp_gemm_ops *rp_gemm_best(void);
/* Returns the implementation named `name`, or NULL if this machine or this build does not have
 * it. */
const rp_gemm_ops *rp_gemm_find(const char *name);

/* Adds the bias to c and applies the activation, for implementations whose product does
 * neither. */
void rp_gemm_finish(const rp_gemm *g);

/* Asserts that `g` meets the conditions stated above. */
void rp_gemm_check(const rp_gemm *g);

#endif
