/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over long arrays, other than matrix products: the steps of optimizers, sums, and the
 * backward pass of ReLU.
 *
 * There is one implementation for each instruction set. All are compiled from the same C source
 * (loops_body.h). The compiler neither contracts operations (to fused multiply-adds) nor
 * reorders them, so all implementations give the same bits. */
#ifndef RP_NN_LOOPS_H
#define RP_NN_LOOPS_H

#include "reprise/rl/nn.h"

/* The factors of one step of an optimizer. */
typedef struct rp_step_factors {
    rp_real rate;         /* learning rate; Adam: divided by the bias correction of the first
                             moment */
    rp_real mean, square; /* Adam: weights of the new gradient in the moments, 1 - beta1 and 1 -
                             beta2. RMSProp uses `square` for both of its averages */
    rp_real keep_square;  /* beta2 */
    rp_real by_root;      /* Adam: 1 / sqrt(bias correction of the second moment) */
    rp_real epsilon, momentum;
} rp_step_factors;

/* The arrays of one step, with `count` numbers each. An array that the optimizer does not use
 * is NULL. */
typedef struct rp_step {
    size_t count;
    rp_real *params;
    const rp_real *grads;
    rp_real *mean, *square, *velocity; /* first moment, second moment, momentum */
    rp_step_factors by;
} rp_step;

typedef struct rp_loops {
    const char *name;
    void (*adam)(const rp_step *s);
    void (*rmsprop)(const rp_step *s);
    void (*sgd)(const rp_step *s);
    /* Returns the sum of squares. It is computed in float64: 16 partial sums are made first,
     * and then added to each other. */
    double (*square_sum)(const rp_real *x, size_t count);
    void (*scale)(rp_real *x, size_t count, rp_real factor);
    /* Computes x += (y - x) * rate, for `count` numbers. */
    void (*blend)(rp_real *x, const rp_real *y, size_t count, rp_real rate);
    /* Sets grad[i] to 0 wherever y[i] > 0 is false. */
    void (*relu_backward)(const rp_real *y, rp_real *grad, size_t count);
    /* Computes sums += x, for `count` numbers. */
    void (*add)(rp_real *sums, const rp_real *x, size_t count);
} rp_loops;

extern const rp_loops rp_loops_plain;
#if defined(__x86_64__) && !defined(RP_REAL_IS_DOUBLE)
#define RP_LOOPS_X86 1
extern const rp_loops rp_loops_avx2;
extern const rp_loops rp_loops_avx512;
#endif

/* Returns the fastest implementation that this machine supports. */
const rp_loops *rp_loops_best(void);

#endif
