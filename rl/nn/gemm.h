/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products (GEMM). There is one implementation for each instruction set, and one that
 * calls a CBLAS library.
 *
 * A product is c = activation(a b + bias), or c += a b. In all implementations except CBLAS,
 * the order in which the terms of an element of c are added depends only on n, k and the layout
 * of a and b. A row of c therefore does not depend on the number of rows. Results of different
 * implementations differ by rounding, because the implementations for AVX2 and AVX-512 use
 * fused multiply-add.
 *
 * A product uses only the arrays of the caller. c must not overlap a, b or bias. */
#ifndef RP_NN_GEMM_H
#define RP_NN_GEMM_H

#include "reprise/rl/nn.h"

typedef struct rp_gemm {
    size_t m, n, k; /* a is m x k, b is k x n, c is m x n; all >= 1 */

    /* Element (i, j) of a is a[i * a_row + j * a_col], and element (i, j) of b is b[i * b_row +
     * j * b_col]. One of the two strides of a matrix must be 1: a_col if the rows of a are
     * contiguous; a_row if a is stored transposed, that is, with contiguous columns. */
    const rp_real *a, *b;
    size_t a_row, a_col;
    size_t b_row, b_col;

    rp_real *c;
    size_t c_row; /* numbers from the start of one row of c to the start of the next; each row
                     is contiguous */

    bool accumulate;          /* true: c += a b. `bias` must be NULL, and `activation`
                                 RP_LINEAR */
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

/* Asserts that `g` meets the conditions in the comments of rp_gemm. */
void rp_gemm_check(const rp_gemm *g);

#endif
