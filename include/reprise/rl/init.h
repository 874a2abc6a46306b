/* SPDX-License-Identifier: Apache-2.0 */
/* Initial parameters of networks. */
#ifndef REPRISE_RL_INIT_H
#define REPRISE_RL_INIT_H

#include "reprise/rl/nn.h"
#include "reprise/rl/random.h"

RP_BEGIN_DECLS

typedef enum rp_init_kind {
    RP_INIT_TORCH = 0,  /* as PyTorch: weights and biases uniform in +- 1 / sqrt(fan in); LSTM
                           uniform in +- 1 / sqrt(units); gains 1, biases of norms 0 */
    RP_INIT_ORTHOGONAL, /* weights orthogonal (Saxe et al. 2014), biases 0, gains 1 */
} rp_init_kind;

/* Writes initial values to `params`, of rp_net_size() numbers. The weights of the orthogonal
 * kind are multiplied by sqrt(2) before ReLU, 5/3 before tanh and 1 elsewhere, as PyTorch's
 * calculate_gain() recommends. Before ELU, for which calculate_gain() has no value, the factor
 * is sqrt(2).
 * RP_NO_RESOURCE: the orthogonal kind needs scratch memory as large as the largest weight
 * matrix; `params` is then unspecified. */
RP_API RP_NODISCARD rp_status rp_net_init(const rp_allocator *alloc, const rp_net *net,
                                          rp_init_kind kind, rp_pcg64 *rng, rp_real *params);

RP_END_DECLS

#endif
