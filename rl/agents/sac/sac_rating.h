/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes of SAC's networks, without gradients. For observations o and actions u they
 * compute actions drawn from the policy, their probability densities p(u | o), values of the
 * critics Q(o, u), and soft values. A rating (rp_sac_rating) is the object that makes these
 * passes.
 *
 * Observations and actions are scaled as rp_box_to_unit() writes them (agents/box/box.h), so
 * actions are from -1 to 1. All parameters are in one array: the policy's, those of both
 * critics, and the logarithm of the temperature. */
#ifndef RP_AGENTS_SAC_SAC_RATING_H
#define RP_AGENTS_SAC_SAC_RATING_H

#include "reprise/rl/nn.h"

enum { RP_SAC_CRITICS = 2 };

/* The parts of the array of parameters. */
typedef struct rp_sac_layout {
    size_t policy_size, critic_size; /* parameters of the policy, and of one critic */
    size_t critics[RP_SAC_CRITICS];  /* index of the first parameter of each critic */
    size_t temperature;              /* index of the logarithm of the temperature */
    size_t count;                    /* number of all parameters */
} rp_sac_layout;

rp_sac_layout rp_sac_layout_of(const rp_net *policy, const rp_net *critic);

/* Returns the temperature, not its logarithm. */
rp_real rp_sac_temperature(const rp_sac_layout *layout, const rp_real *params);

typedef struct rp_sac_rating rp_sac_rating;

/* Makes a rating for at most `rows` rows. Borrows both networks until the rating is freed.
 * Returns owned. RP_INVALID (networks that do not fit each other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sac_rating_new(const rp_allocator *alloc, const rp_net *policy,
                                         const rp_net *critic, size_t rows, rp_sac_rating **out,
                                         rp_error *err);
void rp_sac_rating_free(rp_sac_rating *rating); /* NULL is fine */

/* Returns the number of dimensions of an action. */
size_t rp_sac_action_count(const rp_sac_rating *rating);

/* Draws an action for each row from `noise`, which holds standard normal numbers in the shape
 * of `actions`. `noise` and `actions` may be the same array. Returns log p(u | o) of each row.
 * Valid until the next call. */
const rp_real *rp_sac_draw(rp_sac_rating *rating, const rp_real *params,
                           const rp_real *observations, const rp_real *noise, size_t rows,
                           rp_real *actions);

/* Writes Q(o, u) of each row, computed by critic number `critic`. */
void rp_sac_rate(rp_sac_rating *rating, const rp_real *params, size_t critic,
                 const rp_real *observations, const rp_real *actions, size_t rows,
                 rp_real *values);

/* Writes the soft value of each row: min_k Qk'(o, u) - temperature * log p(u | o). The policy
 * draws the action u from `noise`. The policy and the temperature are read from `params`, and
 * the critics Qk' from `critic_params`, which has the same layout. */
void rp_sac_soft_values(rp_sac_rating *rating, const rp_real *params,
                        const rp_real *critic_params, const rp_real *observations,
                        const rp_real *noise, size_t rows, rp_real *values);

#endif
