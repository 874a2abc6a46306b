/* SPDX-License-Identifier: Apache-2.0 */
/* One update of DPG's parameters on a batch that the caller supplies.
 *
 * A batch has items (o, u, R, D, o'): an observation, an action, the sum of up to n discounted
 * rewards, the factor by which the target multiplies the value of o', and a later observation.
 * The policy's action at o is p(o), and the critic's value of u is Q(o, u). An update computes:
 *
 *   target = R + D Q'(o', p'(o'))                   p', Q' are the target networks
 *   error  = target - Q(o, u)
 *   loss   = mean of weight * error^2 / 2           Adam for the critic
 *   slope  = dQ(o, p(o)) / du, each number clipped
 *   loss_p = -mean(slope . p(o)), slope constant    Adam for the policy
 *
 * Both gradients are computed at the parameters before the update. With the option `huber`, the
 * critic's loss is a Huber loss in place of the squared error. All parameters are in one array:
 * the policy's, then the critic's.
 *
 * Several learner threads can work on one batch, each with an update object of its own. The
 * rows of one thread are its share. Only one of the update objects has optimizers; the others
 * are called helpers. */
#ifndef RP_AGENTS_DPG_DPG_UPDATE_H
#define RP_AGENTS_DPG_DPG_UPDATE_H

#include "agents/box/box_batch.h"
#include "reprise/rl/optimizer.h"

typedef struct rp_dpg_update rp_dpg_update;

typedef struct rp_dpg_update_options {
    const rp_net *policy, *critic; /* borrowed until the update is freed */
    size_t rows;                   /* rows in the batch, or in this thread's share of it */
    size_t all_rows;               /* rows in the whole batch; 0: `rows` */
    bool is_helper;                /* true: make a helper, which has no optimizers */
    double rate, policy_rate, adam_epsilon; /* learning rates of the critic and the policy;
                                               epsilon of Adam */
    double max_norm;  /* gradients are clipped to this norm; 0: no clipping */
    double max_slope; /* each number of the slope is clipped to +-max_slope; 0: no clipping */
    double huber;     /* Huber loss threshold of rp_td_loss(); 0: squared error */
} rp_dpg_update_options;

/* The measurements of an update, at the parameters before it. */
typedef struct rp_dpg_found {
    double loss;           /* loss of the critic */
    double value;          /* mean Q(o, u) */
    double norm;           /* norm of the critic's gradient before clipping; 0 if max_norm is
                              0 */
    double policy_norm;    /* norm of the policy's gradient before clipping; 0 if max_norm is
                              0 */
    const rp_real *errors; /* the error of each row. Borrowed, valid until the next update */
} rp_dpg_found;

/* Makes an update object. Returns owned. Errors: RP_INVALID (networks that do not fit each
 * other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_dpg_update_new(const rp_allocator *alloc,
                                         const rp_dpg_update_options *options,
                                         rp_dpg_update **out, rp_error *err);
void rp_dpg_update_free(rp_dpg_update *update); /* NULL is fine */

/* Computes the gradients of a batch and the measurements, except the norms, which it sets to 0.
 * If the batch is a share, sums are divided by `all_rows`, so the results of all shares add up
 * to those of the whole batch. `target_params` are the parameters of the target networks, in
 * the layout of `params`. Returns the gradients, in the same layout. Borrowed, valid until the
 * next call. */
rp_real *rp_dpg_gradients(rp_dpg_update *update, const rp_real *params,
                          const rp_real *target_params, const rp_box_batch *batch,
                          rp_dpg_found *found);

/* Returns the array of the gradients. The address of the array does not change until the update
 * object is freed. */
rp_real *rp_dpg_grads(rp_dpg_update *update);

/* Computes the gradients and measurements of a whole batch, including the norms, and makes a
 * step of both optimizers. The update object must not be a helper. If a norm is not finite,
 * `params` can no longer be used. */
void rp_dpg_step(rp_dpg_update *update, rp_real *params, const rp_real *target_params,
                 const rp_box_batch *batch, rp_dpg_found *found);

/* Moves the optimizers of `from` to `update`, which must be a helper for the same networks.
 * After the call `from` is a helper. */
void rp_dpg_take_optimizers(rp_dpg_update *update, rp_dpg_update *from);

/* Return the optimizers, whose state the caller can save. Borrowed. */
rp_optimizer *rp_dpg_policy_optimizer(rp_dpg_update *update);
rp_optimizer *rp_dpg_critic_optimizer(rp_dpg_update *update);

#endif
