/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of loops.h. Each file that includes this header defines NAME, such as "plain",
 * and is compiled for one instruction set. The compiler vectorises these loops. */
#ifndef RP_NN_LOOPS_BODY_H
#define RP_NN_LOOPS_BODY_H

#include <assert.h>

#include "nn/loops.h"
#include "nn/real.h"

/* Returns 0 for a subnormal number, and any other number unchanged. Without this function, Adam
 * would be slow: if a unit of the network gets no gradient any more, its moments become smaller
 * with each step until they are subnormal, and processors compute many times slower with
 * subnormal numbers. */
static inline rp_real normal(rp_real x)
{
    return x < RP_SMALLEST && x > -RP_SMALLEST ? 0 : x;
}

/* Adam (Kingma and Ba 2015), with operations in PyTorch's order. One step differs: the root is
 * multiplied by the reciprocal of its bias correction instead of being divided by the
 * correction, which saves a division. */
static void adam(const rp_step *s)
{
    rp_real *restrict p = s->params, *restrict m = s->mean, *restrict v = s->square;
    const rp_real *restrict g = s->grads;
    rp_step_factors by = s->by;

    assert(m != NULL && v != NULL);
    for (size_t i = 0; i < s->count; i++) {
        m[i] = normal(m[i] + by.mean * (g[i] - m[i]));
        v[i] = normal(v[i] * by.keep_square + by.square * g[i] * g[i]);
        p[i] -= by.rate * (m[i] / (rp_sqrt(v[i]) * by.by_root + by.epsilon));
    }
}

/* RMSProp. It is centred if s->mean is not NULL, and has momentum if s->velocity is not
 * NULL. */
static void rmsprop(const rp_step *s)
{
    rp_step_factors by = s->by;

    assert(s->square != NULL);
    for (size_t i = 0; i < s->count; i++) {
        rp_real g = s->grads[i], spread, move;

        s->square[i] = s->square[i] * by.keep_square + by.square * g * g;
        spread = s->square[i];
        if (s->mean != NULL) {
            s->mean[i] += by.square * (g - s->mean[i]);
            spread -= s->mean[i] * s->mean[i];
            if (spread < 0) spread = 0; /* rounding can make the difference negative */
        }
        move = g / (rp_sqrt(spread) + by.epsilon);
        if (s->velocity != NULL) {
            s->velocity[i] = s->velocity[i] * by.momentum + move;
            move = s->velocity[i];
        }
        s->params[i] -= by.rate * move;
    }
}

static void sgd(const rp_step *s)
{
    for (size_t i = 0; i < s->count; i++) {
        rp_real move = s->grads[i];

        if (s->velocity != NULL) {
            s->velocity[i] = s->velocity[i] * s->by.momentum + move;
            move = s->velocity[i];
        }
        s->params[i] -= s->by.rate * move;
    }
}

static double square_sum(const rp_real *x, size_t count)
{
    enum { PARTS = 16 };
    double parts[PARTS] = {0}, sum = 0;
    size_t i = 0;

    for (; i + PARTS <= count; i += PARTS)
        for (size_t j = 0; j < PARTS; j++) parts[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t j = 0; j < PARTS; j++) sum += parts[j];
    for (; i < count; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static void scale(rp_real *x, size_t count, rp_real factor)
{
    for (size_t i = 0; i < count; i++) x[i] *= factor;
}

static void blend(rp_real *restrict x, const rp_real *restrict y, size_t count, rp_real rate)
{
    for (size_t i = 0; i < count; i++) x[i] += (y[i] - x[i]) * rate;
}

static void relu_backward(const rp_real *restrict y, rp_real *restrict grad, size_t count)
{
    for (size_t i = 0; i < count; i++) grad[i] = y[i] > 0 ? grad[i] : 0;
}

static void add(rp_real *restrict sums, const rp_real *restrict x, size_t count)
{
    for (size_t i = 0; i < count; i++) sums[i] += x[i];
}

#define LOOPS                                                                                  \
    {                                                                                          \
        NAME, adam, rmsprop, sgd, square_sum, scale, blend, relu_backward, add                 \
    }

#endif
