/* SPDX-License-Identifier: Apache-2.0 */
/* Initial parameters of networks, and the generator that draws them. */
#ifndef REPRISE_RL_INIT_H
#define REPRISE_RL_INIT_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

/* A generator of random numbers, xoshiro256++ (Blackman and Vigna, 2019). A plain value: the
 * same seed gives the same numbers on every machine. */
typedef struct rp_init_rng {
    uint64_t s[4];
} rp_init_rng;

/* Seeds the generator. Any seed is fine. */
RP_API void rp_init_rng_seed(rp_init_rng *rng, uint64_t seed);
/* Draws a number in [0, 1), a multiple of 2^-53. */
RP_API double rp_init_rng_unit(rp_init_rng *rng);
/* Draws a number of the standard normal distribution (Box and Muller, 1958). */
RP_API double rp_init_rng_normal(rp_init_rng *rng);

typedef enum rp_init_kind {
    RP_INIT_TORCH = 0,  /* as PyTorch: weights and biases uniform in +- 1 / sqrt(fan in); LSTM
                           uniform in +- 1 / sqrt(units); gains 1, biases of norms 0 */
    RP_INIT_ORTHOGONAL, /* weights orthogonal (Saxe et al. 2014), biases 0, gains 1 */
} rp_init_kind;

/* Writes initial values to `params`, of rp_net_size() numbers. The weights of the orthogonal
 * kind are multiplied by sqrt(2) before ReLU and ELU, 5/3 before tanh and 1 elsewhere, as
 * PyTorch's calculate_gain() recommends.
 * RP_NO_RESOURCE: the orthogonal kind needs scratch memory as large as the largest weight;
 * `params` is then unspecified. */
RP_API RP_NODISCARD rp_status rp_net_init(const rp_allocator *alloc, const rp_net *net,
                                          rp_init_kind kind, rp_init_rng *rng, rp_real *params);

RP_END_DECLS

#endif
