/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes of SAC's networks, without gradients. A rating (rp_sac_rating) is the object
 * that makes them. For observations o it draws actions u from the policy. It computes the
 * logarithms of their probability densities p(u | o), the values of the critics Q(o, u), and
 * soft values (values that include the entropy, see rp_sac_soft_values()).
 *
 * Observations and actions are scaled as rp_box_to_unit() writes them (agents/box/box.h), so
 * actions are from -1 to 1. All parameters are in one array: first the policy's, then those of
 * both critics, then the logarithm of the temperature. */
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
 * Returns owned. Errors: RP_INVALID (networks that do not fit each other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sac_rating_new(const rp_allocator *alloc, const rp_net *policy,
                                         const rp_net *critic, size_t rows, rp_sac_rating **out,
                                         rp_error *err);
void rp_sac_rating_free(rp_sac_rating *rating); /* NULL is fine */

/* Returns the number of dimensions of an action. */
size_t rp_sac_action_count(const rp_sac_rating *rating);

/* Draws an action for each row with the help of `noise`, which holds as many standard normal
 * numbers as `actions`. `noise` and `actions` can be the same array. Returns log p(u | o) of
 * each row. Valid until the next call of this function or of rp_sac_soft_values(). */
const rp_real *rp_sac_draw(rp_sac_rating *rating, const rp_real *params,
                           const rp_real *observations, const rp_real *noise, size_t rows,
                           rp_real *actions);

/* Writes Q(o, u) of each row, computed by critic number `critic`. */
void rp_sac_rate(rp_sac_rating *rating, const rp_real *params, size_t critic,
                 const rp_real *observations, const rp_real *actions, size_t rows,
                 rp_real *values);

/* Writes the soft value of each row: min_k Qk'(o, u) - temperature * log p(u | o). The policy
 * draws the action u, as rp_sac_draw() does. The parameters of the policy and the temperature
 * are those in `params`; the parameters of the critics Qk' are those in `critic_params`, which
 * has the same layout. */
void rp_sac_soft_values(rp_sac_rating *rating, const rp_real *params,
                        const rp_real *critic_params, const rp_real *observations,
                        const rp_real *noise, size_t rows, rp_real *values);

#endif
