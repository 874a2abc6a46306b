/* SPDX-License-Identifier: Apache-2.0 */
/* Forward passes of DPG's networks, without gradients. A rating (rp_dpg_rating) is the object
 * that makes them. For observations o and actions u it computes the policy's actions p(o) and
 * the critic's values Q(o, u). Its results are used to act, to compute targets, and to compute
 * the priorities of new items.
 *
 * Observations and actions are scaled as rp_box_to_unit() writes them (agents/box/box.h), so
 * actions are from -1 to 1. All parameters are in one array: the policy's, then the
 * critic's. */
#ifndef RP_AGENTS_DPG_DPG_RATING_H
#define RP_AGENTS_DPG_DPG_RATING_H

#include "reprise/rl/nn.h"

typedef struct rp_dpg_rating rp_dpg_rating;

/* Makes a rating for at most `rows` rows. Borrows both networks until the rating is freed.
 * Returns owned. Errors: RP_INVALID (networks that do not fit each other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_dpg_rating_new(const rp_allocator *alloc, const rp_net *policy,
                                         const rp_net *critic, size_t rows, rp_dpg_rating **out,
                                         rp_error *err);
void rp_dpg_rating_free(rp_dpg_rating *rating); /* NULL is fine */

/* Writes Q(o, u) of each row. If `actions` is NULL, u is the policy's action p(o). */
void rp_dpg_rate(rp_dpg_rating *rating, const rp_real *params, const rp_real *observations,
                 const rp_real *actions, size_t rows, rp_real *values);

/* Returns the policy's actions: `rows` rows of rp_dpg_action_count() numbers. Valid until the
 * next call of this function, or of rp_dpg_rate() with `actions` NULL. */
const rp_real *rp_dpg_choose(rp_dpg_rating *rating, const rp_real *params,
                             const rp_real *observations, size_t rows);

/* Returns the number of dimensions of an action. */
size_t rp_dpg_action_count(const rp_dpg_rating *rating);

#endif
