/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over many numbers that are no matrix products: optimizers, sums, ReLU backward.
 *
 * One implementation per instruction set, compiled from one source in plain C (loops_body.h).
 * No operation is contracted or reordered, so all give the same bits. */
#ifndef RP_NN_LOOPS_H
#define RP_NN_LOOPS_H

#include "reprise/rl/nn.h"

/* Factors of one step of an optimizer. */
typedef struct rp_step_factors {
    rp_real rate;         /* Adam: divided by the bias correction of the mean */
    rp_real mean, square; /* weights of the new gradient in the moments: 1 - beta */
    rp_real keep_square;  /* beta2 */
    rp_real by_root;      /* Adam: 1 / the square root of the bias correction of the square */
    rp_real epsilon, momentum;
} rp_step_factors;

/* The arrays of one step: `count` numbers each. Arrays that the optimizer does not use are
 * NULL. */
typedef struct rp_step {
    size_t count;
    rp_real *params;
    const rp_real *grads;
    rp_real *mean, *square, *velocity;
    rp_step_factors by;
} rp_step;

typedef struct rp_loops {
    const char *name;
    void (*adam)(const rp_step *s);
    void (*rmsprop)(const rp_step *s);
    void (*sgd)(const rp_step *s);
    /* The sum of squares, in float64: 16 partial sums, then their sum. */
    double (*square_sum)(const rp_real *x, size_t count);
    void (*scale)(rp_real *x, size_t count, rp_real factor);
    /* x += (y - x) * rate. */
    void (*blend)(rp_real *x, const rp_real *y, size_t count, rp_real rate);
    /* grad = 0 where y is not > 0. */
    void (*relu_backward)(const rp_real *y, rp_real *grad, size_t count);
    /* sums += x, for `count` numbers. */
    void (*add)(rp_real *sums, const rp_real *x, size_t count);
} rp_loops;

extern const rp_loops rp_loops_plain;
#if defined(__x86_64__) && !defined(RP_REAL_IS_DOUBLE)
#define RP_LOOPS_X86 1
extern const rp_loops rp_loops_avx2;
extern const rp_loops rp_loops_avx512;
#endif

/* The fastest implementation of this machine. */
const rp_loops *rp_loops_best(void);

#endif
