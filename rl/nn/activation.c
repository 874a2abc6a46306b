/* SPDX-License-Identifier: Apache-2.0 */
/* Activations: see activation.h. A NaN stays a NaN, so that a run that diverges is noticed. */
#include "nn/activation.h"

#include <assert.h>

#include "nn/real.h"

void rp_activate(rp_activation activation, rp_real *x, size_t count)
{
    assert(x != NULL || count == 0);
    switch (activation) {
    case RP_LINEAR: return;
    case RP_RELU:
        for (size_t i = 0; i < count; i++) x[i] = x[i] < 0 ? 0 : x[i];
        return;
    case RP_TANH:
        for (size_t i = 0; i < count; i++) x[i] = rp_tanh(x[i]);
        return;
    case RP_ELU:
        for (size_t i = 0; i < count; i++) x[i] = x[i] > 0 ? x[i] : rp_expm1(x[i]);
        return;
    }
    assert(activation == RP_LINEAR); /* rp_net_new() accepts no other */
}

void rp_activate_backward(const rp_loops *loops, rp_activation activation, const rp_real *y,
                          rp_real *grad, size_t count)
{
    assert((y != NULL && grad != NULL) || count == 0);
    switch (activation) {
    case RP_LINEAR: return;
    case RP_RELU: loops->relu_backward(y, grad, count); return;
    case RP_TANH:
        for (size_t i = 0; i < count; i++) grad[i] *= 1 - y[i] * y[i];
        return;
    case RP_ELU:
        for (size_t i = 0; i < count; i++) grad[i] *= y[i] > 0 ? 1 : y[i] + 1;
        return;
    }
    assert(activation == RP_LINEAR); /* rp_net_new() accepts no other */
}
