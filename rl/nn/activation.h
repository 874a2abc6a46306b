/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their gradients, in place. */
#ifndef RP_NN_ACTIVATION_H
#define RP_NN_ACTIVATION_H

#include "nn/loops.h"

/* Replaces each of `count` numbers by its activation. */
void rp_activate(rp_activation activation, rp_real *x, size_t count);

/* Multiplies each of `count` gradients by the derivative of the activation. The derivative
 * follows from the output `y` alone. */
void rp_activate_backward(const rp_loops *loops, rp_activation activation, const rp_real *y,
                          rp_real *grad, size_t count);

#endif
