/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, one implementation per instruction set, and one over any CBLAS.
 *
 * A product is c = activation(a b + bias), or c += a b. In the implementations of this folder
 * the order in which a number of c is summed depends on n, k and the layout alone. So a row of
 * c does not depend on the number of rows. The implementations differ from each other by
 * rounding: those for AVX2 and AVX-512 fuse multiplication and addition.
 *
 * Pure functions over arrays of the caller. c must not overlap a, b or bias. */
#ifndef RP_NN_GEMM_H
#define RP_NN_GEMM_H

#include "reprise/rl/nn.h"

typedef struct rp_gemm {
    size_t m, n, k; /* a is m x k, b is k x n, c is m x n; all >= 1 */

    /* Element (i, j) of a is at a[i * a_row + j * a_col]; b likewise. One of the two steps is
     * 1: the other is the length of a row, or of a column if the matrix is transposed. */
    const rp_real *a, *b;
    size_t a_row, a_col;
    size_t b_row, b_col;

    rp_real *c;
    size_t c_row;

    bool accumulate;          /* c += a b; without bias and activation */
    const rp_real *bias;      /* n numbers, or NULL */
    rp_activation activation; /* applied last */
} rp_gemm;

typedef struct rp_gemm_ops {
    const char *name;
    void (*prepare)(void); /* called when it is selected; may be NULL */
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

/* The fastest implementation of this machine. */
const rp_gemm_ops *rp_gemm_best(void);
/* The implementation of that name, or NULL if this machine or this build does not have it. */
const rp_gemm_ops *rp_gemm_find(const char *name);

/* Adds the bias to c and applies the activation. For implementations that do not do it on the
 * way. */
void rp_gemm_finish(const rp_gemm *g);

/* Asserts what the comments above say. */
void rp_gemm_check(const rp_gemm *g);

#endif
