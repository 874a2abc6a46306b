/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of an agent's gradients against finite differences, in float64: smooth networks,
 * numbers to fill arrays with, and the differences. */
#ifndef RP_TEST_UPDATE_GRADIENTS_H
#define RP_TEST_UPDATE_GRADIENTS_H

#include <math.h>

#include "reprise/rl/init.h"
#include "support/unit.h"

/* A network of two hidden layers, without the kinks of ReLU. */
static inline rp_net *rp_test_smooth_net(size_t in, size_t out, rp_activation last)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = 8, .activation = RP_ELU},
        {.kind = RP_NET_DENSE, .out = 8, .activation = RP_TANH},
        {.kind = RP_NET_DENSE, .out = out, .activation = last},
    };
    rp_net *net = NULL;
    rp_error err;

    assert_ok(
        rp_net_new(rp_allocator_default(), (rp_net_shape){1, 1, in}, layers, 3, &net, &err));
    return net;
}

static inline void rp_test_fill(rp_pcg64 *rng, double *numbers, size_t count, double size)
{
    for (size_t i = 0; i < count; i++) numbers[i] = rp_pcg64_uniform(rng, -size, size);
}

typedef double rp_test_loss(void *ctx);

/* The derivative of a loss by the number at `at`. */
static inline double rp_test_difference(rp_test_loss *loss, void *ctx, double *at)
{
    const double step = 1e-6;
    double before = *at, high, low;

    *at = before + step;
    high = loss(ctx);
    *at = before - step;
    low = loss(ctx);
    *at = before;
    return (high - low) / (2 * step);
}

/* Compares gradients with the differences of a loss by `params`. */
static inline void rp_test_expect_gradients(rp_test_loss *loss, void *ctx, double *params,
                                            const double *grads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double expected = rp_test_difference(loss, ctx, &params[i]);

        if (!(fabs(grads[i] - expected) <= 1e-8 * (1 + fabs(expected))))
            fail_msg("parameter %zu: %.9g, by differences %.9g", i, grads[i], expected);
    }
}

#endif
