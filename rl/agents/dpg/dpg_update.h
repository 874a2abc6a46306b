/* SPDX-License-Identifier: Apache-2.0 */
/* One update of DPG on a batch, without a replay.
 *
 * For a batch of items (o, u, R, D, o'), where R is the sum of up to n discounted rewards and D
 * what the value of o' is multiplied by:
 *
 *   target = R + D Q'(o', p'(o'))                   p', Q' are the target networks
 *   error  = target - Q(o, u)
 *   loss   = mean of weight * error^2 / 2           Adam for the critic
 *   slope  = dQ(o, p(o)) / du, each number clipped
 *   the gradient of the policy is that of -mean(slope . p(o)), with the slope constant: ascent
 *                                                   Adam for the policy
 *
 * Both gradients are those at the parameters before the update.
 *
 * Parameters are one array: the policy's, then the critic's. */
#ifndef RP_AGENTS_DPG_DPG_UPDATE_H
#define RP_AGENTS_DPG_DPG_UPDATE_H

#include "agents/box/box_batch.h"
#include "reprise/rl/optimizer.h"

typedef struct rp_dpg_update rp_dpg_update;

typedef struct rp_dpg_update_options {
    const rp_net *policy, *critic; /* borrowed until the update is freed */
    size_t rows;                   /* of a batch, or of one learner's share of it */
    size_t all_rows;               /* of the batch; 0: `rows` */
    bool is_helper;                /* has no optimizers: another learner has them */
    double rate, policy_rate, adam_epsilon;
    double max_norm;  /* 0: never */
    double max_slope; /* 0: never */
    double huber;     /* 0: the square */
} rp_dpg_update_options;

/* What an update found, at the parameters before it. */
typedef struct rp_dpg_found {
    double loss;           /* of the critic */
    double value;          /* mean Q(o, u) */
    double norm;           /* of the critic's gradient, before clipping; 0 without max_norm */
    double policy_norm;    /* the same of the policy's */
    const rp_real *errors; /* one a row. Borrowed, valid until the next update */
} rp_dpg_found;

/* Returns owned. RP_INVALID (networks that do not fit each other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_dpg_update_new(const rp_allocator *alloc,
                                         const rp_dpg_update_options *options,
                                         rp_dpg_update **out, rp_error *err);
void rp_dpg_update_free(rp_dpg_update *update); /* NULL is fine */

/* Computes the gradients of a batch, and what is found; norms are 0. Of a share, these are its
 * parts of the means over the batch: those of all shares add up to those of the batch.
 * `target_params` has the layout of `params`. Returns the gradients, in the same layout.
 * Borrowed, valid until the next call. */
rp_real *rp_dpg_gradients(rp_dpg_update *update, const rp_real *params,
                          const rp_real *target_params, const rp_box_batch *batch,
                          rp_dpg_found *found);

/* The array of the gradients, always the same one. */
rp_real *rp_dpg_grads(rp_dpg_update *update);

/* Computes the gradients of a whole batch, makes a step of both optimizers, and sets the norms.
 * If a norm is not finite, `params` are no longer of use. */
void rp_dpg_step(rp_dpg_update *update, rp_real *params, const rp_real *target_params,
                 const rp_box_batch *batch, rp_dpg_found *found);

/* Moves the optimizers of another update to this one, a helper of the same networks. Then the
 * other one is a helper. */
void rp_dpg_take_optimizers(rp_dpg_update *update, rp_dpg_update *from);

/* The optimizers, to save their state. Borrowed. */
rp_optimizer *rp_dpg_policy_optimizer(rp_dpg_update *update);
rp_optimizer *rp_dpg_critic_optimizer(rp_dpg_update *update);

#endif
