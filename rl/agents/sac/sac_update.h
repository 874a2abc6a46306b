/* SPDX-License-Identifier: Apache-2.0 */
/* One update of SAC's parameters on a batch that the caller supplies.
 *
 * A batch has items (o, u, R, D, o'): an observation, an action, the sum of up to n discounted
 * rewards, the factor by which the target multiplies the value of o', and a later observation.
 * The policy draws an action a at o, and an action a' at o'. An update computes:
 *
 *   target  = R + D (min_k Qk'(o', a') - T log p(a' | o'))     Qk' are the target networks
 *   error_k = target - Qk(o, u)
 *   loss_k  = mean of weight * error_k^2 / 2                   Adam for both critics
 *   loss_p  = mean(T log p(a | o) - min_k Qk(o, a))            Adam for the policy
 *   loss_T  = -log T mean(log p(a | o) + H)                    Adam for log T
 *
 * T is the temperature, and H the target entropy. With the option `huber`, loss_k is a Huber
 * loss in place of the squared error. The gradient of loss_p treats the noise from which a is
 * drawn as a constant. All gradients are computed at the parameters before the update. All
 * parameters are in one array, with the layout of sac_rating.h.
 *
 * Several learner threads can work on one batch, each with an update object of its own. The
 * rows of one thread are its share. Only one of the update objects has optimizers; the others
 * are called helpers. */
#ifndef RP_AGENTS_SAC_SAC_UPDATE_H
#define RP_AGENTS_SAC_SAC_UPDATE_H

#include "agents/box/box_batch.h"
#include "agents/sac/sac_rating.h"
#include "reprise/rl/optimizer.h"

typedef struct rp_sac_update rp_sac_update;

typedef struct rp_sac_update_options {
    const rp_net *policy, *critic; /* borrowed until the update is freed */
    size_t rows;                   /* rows in the batch, or in this thread's share of it */
    size_t all_rows;               /* rows in the whole batch; 0: `rows` */
    bool is_helper;                /* true: make a helper, which has no optimizers */
    double rate, policy_rate, temperature_rate, adam_epsilon; /* learning rates of the critics,
                                                                 the policy and log T; epsilon
                                                                 of Adam */
    double max_norm;        /* gradients are clipped to this norm; 0: no clipping */
    double huber;           /* Huber loss threshold of rp_td_loss(); 0: squared error */
    double target_entropy;  /* entropy of a whole action, not per dimension */
    bool tunes_temperature; /* false: the gradient of log T is 0 */
} rp_sac_update_options;

/* The measurements of an update, at the parameters before it. */
typedef struct rp_sac_found {
    double loss;           /* mean of loss_k over both critics */
    double value;          /* mean of Qk(o, u) over rows and both critics */
    double entropy;        /* mean of -log p(a | o) */
    const rp_real *errors; /* for each row, the error_k with the larger magnitude. Borrowed,
                              valid until the next update */
} rp_sac_found;

/* Makes an update object. Returns owned. Errors: RP_INVALID (networks that do not fit each
 * other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sac_update_new(const rp_allocator *alloc,
                                         const rp_sac_update_options *options,
                                         rp_sac_update **out, rp_error *err);
void rp_sac_update_free(rp_sac_update *update); /* NULL is fine */

/* Computes the gradients of a batch and its measurements. The batch must have `noise` and
 * `next_noise`. If the batch is a share, sums are divided by `all_rows`, so the results of all
 * shares add up to those of the whole batch. `target_params` has the layout of `params`; only
 * the parameters of its critics are used. Returns the gradients, in the same layout. Borrowed,
 * valid until the next call. */
rp_real *rp_sac_gradients(rp_sac_update *update, const rp_real *params,
                          const rp_real *target_params, const rp_box_batch *batch,
                          rp_sac_found *found);

/* Returns the array of the gradients. The address of the array does not change until the update
 * object is freed. */
rp_real *rp_sac_grads(rp_sac_update *update);

/* The parts of the parameters, in their order. Each part has an optimizer of its own. */
enum { RP_SAC_POLICY, RP_SAC_BOTH_CRITICS, RP_SAC_TEMPERATURE, RP_SAC_PARTS };

/* Return the optimizer of a part (borrowed), and the number of its parameters. */
rp_optimizer *rp_sac_optimizer(rp_sac_update *update, size_t part);
size_t rp_sac_part_size(const rp_sac_layout *layout, size_t part);

/* Moves the optimizers of `from` to `update`, which must be a helper for the same networks.
 * After the call `from` is a helper. */
void rp_sac_take_optimizers(rp_sac_update *update, rp_sac_update *from);

/* Computes the gradients and measurements of a whole batch, and makes a step of all optimizers.
 * The update object must not be a helper. If a measurement is not finite, `params` can no
 * longer be used. */
void rp_sac_step(rp_sac_update *update, rp_real *params, const rp_real *target_params,
                 const rp_box_batch *batch, rp_sac_found *found);

#endif
