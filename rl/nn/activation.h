/* SPDX-License-Identifier: Apache-2.0 */
/* Activation functions and their gradients. Both functions below work in place. */
#ifndef RP_NN_ACTIVATION_H
#define RP_NN_ACTIVATION_H

#include "nn/loops.h"

/* Applies the activation function to each of the `count` numbers of `x`. */
void rp_activate(rp_activation activation, rp_real *x, size_t count);

/* Multiplies each of the `count` gradients in `grad` by the derivative of the activation
 * function. `y` holds the outputs of the function. The derivative is computed from these
 * outputs. */
void rp_activate_backward(const rp_loops *loops, rp_activation activation, const rp_real *y,
                          rp_real *grad, size_t count);

#endif
