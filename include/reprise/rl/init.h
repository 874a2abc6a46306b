/* SPDX-License-Identifier: Apache-2.0 */
/* Initialises the parameters of a network (nn.h). */
#ifndef REPRISE_RL_INIT_H
#define REPRISE_RL_INIT_H

#include "reprise/rl/nn.h"
#include "reprise/rl/random.h"

RP_BEGIN_DECLS

typedef enum rp_init_kind {
    RP_INIT_TORCH = 0,  /* as PyTorch: weights and biases are uniform in +- 1 / sqrt(fan in), in
                           an LSTM in +- 1 / sqrt(units). Layer norms have gain 1 and bias 0 */
    RP_INIT_ORTHOGONAL, /* weights are orthogonal (Saxe et al. 2014), biases are 0, and the
                           gains of layer norms are 1 */
} rp_init_kind;

/* Writes initial values to `params`, which has rp_net_size() numbers. RP_INIT_ORTHOGONAL
 * multiplies the weights by a factor that depends on the activation of the layer: sqrt(2) for
 * ReLU and ELU, 5/3 for tanh, and 1 without an activation. Except for ELU, these are the values
 * of PyTorch's calculate_gain(), which has no value for ELU.
 * Errors: RP_NO_RESOURCE (RP_INIT_ORTHOGONAL needs scratch memory of the size of the largest
 * weight matrix). After this error the contents of `params` are unspecified. */
RP_API RP_NODISCARD rp_status rp_net_init(const rp_allocator *alloc, const rp_net *net,
                                          rp_init_kind kind, rp_pcg64 *rng, rp_real *params);

RP_END_DECLS

#endif
