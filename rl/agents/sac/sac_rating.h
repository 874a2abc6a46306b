/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of SAC, forward only: actions, their densities, and soft values.
 *
 * Observations are as the networks read them, actions from -1 to 1. Parameters are one array:
 * the policy's, those of both critics, the logarithm of the temperature. */
#ifndef RP_AGENTS_SAC_SAC_RATING_H
#define RP_AGENTS_SAC_SAC_RATING_H

#include "reprise/rl/nn.h"

enum { RP_SAC_CRITICS = 2 };

/* Where the parts of the parameters begin. */
typedef struct rp_sac_layout {
    size_t policy_size, critic_size;
    size_t critics[RP_SAC_CRITICS];
    size_t temperature; /* its logarithm */
    size_t count;       /* of all parameters */
} rp_sac_layout;

rp_sac_layout rp_sac_layout_of(const rp_net *policy, const rp_net *critic);

rp_real rp_sac_temperature(const rp_sac_layout *layout, const rp_real *params);

typedef struct rp_sac_rating rp_sac_rating;

/* Makes a rating for at most `rows` rows. Borrows both networks until it is freed. Returns
 * owned. RP_INVALID (networks that do not fit each other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sac_rating_new(const rp_allocator *alloc, const rp_net *policy,
                                         const rp_net *critic, size_t rows, rp_sac_rating **out,
                                         rp_error *err);
void rp_sac_rating_free(rp_sac_rating *rating); /* NULL is fine */

/* The numbers of an action. */
size_t rp_sac_action_count(const rp_sac_rating *rating);

/* Draws an action for each row. `noise` is standard normal, and may be `actions`. Returns the
 * logarithms of their densities, one a row. Valid until the next call. */
const rp_real *rp_sac_draw(rp_sac_rating *rating, const rp_real *params,
                           const rp_real *observations, const rp_real *noise, size_t rows,
                           rp_real *actions);

/* Writes Q(o, u) of each row, by one of the critics. */
void rp_sac_rate(rp_sac_rating *rating, const rp_real *params, size_t critic,
                 const rp_real *observations, const rp_real *actions, size_t rows,
                 rp_real *values);

/* Writes min Q'(o, u) - temperature log p(u | o) of each row, where u is drawn: policy and
 * temperature are of `params`, the critics Q' of `critic_params`. */
void rp_sac_soft_values(rp_sac_rating *rating, const rp_real *params,
                        const rp_real *critic_params, const rp_real *observations,
                        const rp_real *noise, size_t rows, rp_real *values);

#endif
