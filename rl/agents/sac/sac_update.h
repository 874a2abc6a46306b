/* SPDX-License-Identifier: Apache-2.0 */
/* One update of SAC on a batch, without a replay.
 *
 * A batch has items (o, u, R, D, o'). R is the sum of up to n discounted rewards, and D the
 * factor of the value of o'. The policy draws an action a at o, and a' at o'. Then:
 *
 *   target  = R + D (min_k Qk'(o', a') - T log p(a' | o'))     Qk' are the target networks
 *   error_k = target - Qk(o, u)
 *   loss_k  = mean of weight * error_k^2 / 2                   Adam for both critics
 *   loss_p  = mean(T log p(a | o) - min_k Qk(o, a))            Adam for the policy
 *   loss_T  = -log T mean(log p(a | o) + H)                    Adam for log T
 *
 * T is the temperature, and H the target entropy. For the gradient of loss_p, the noise from
 * which a is drawn is constant. All gradients are those at the parameters before the update.
 *
 * Parameters are one array: sac_rating.h has its layout. */
#ifndef RP_AGENTS_SAC_SAC_UPDATE_H
#define RP_AGENTS_SAC_SAC_UPDATE_H

#include "agents/box/box_batch.h"
#include "agents/sac/sac_rating.h"
#include "reprise/rl/optimizer.h"

typedef struct rp_sac_update rp_sac_update;

typedef struct rp_sac_update_options {
    const rp_net *policy, *critic; /* borrowed until the update is freed */
    size_t rows;                   /* of a batch, or of one learner's share of it */
    size_t all_rows;               /* of the batch; 0: `rows` */
    bool is_helper;                /* has no optimizers: another learner has them */
    double rate, policy_rate, temperature_rate, adam_epsilon;
    double max_norm;        /* of gradients, which are clipped to it; 0: no bound */
    double huber;           /* 0: the square */
    double target_entropy;  /* of a whole action */
    bool tunes_temperature; /* otherwise its gradient is 0 */
} rp_sac_update_options;

/* The measurements of an update, at the parameters before it. */
typedef struct rp_sac_found {
    double loss;           /* of the critics, the mean of both */
    double value;          /* mean Qk(o, u), of both */
    double entropy;        /* mean -log p(a | o) */
    const rp_real *errors; /* for each row, the error_k that is larger in magnitude. Borrowed,
                              valid until the next update */
} rp_sac_found;

/* Returns owned. RP_INVALID (networks that do not fit each other), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sac_update_new(const rp_allocator *alloc,
                                         const rp_sac_update_options *options,
                                         rp_sac_update **out, rp_error *err);
void rp_sac_update_free(rp_sac_update *update); /* NULL is fine */

/* Computes the gradients of a batch, and its measurements. The batch must have noise. If it is
 * one learner's share of a larger batch, sums are divided by the rows of the larger one, so the
 * results of all shares add up to those of the larger batch. `target_params` has the layout of
 * `params`; only its critics are used. Returns the gradients, in the same layout. Borrowed,
 * valid until the next call. */
rp_real *rp_sac_gradients(rp_sac_update *update, const rp_real *params,
                          const rp_real *target_params, const rp_box_batch *batch,
                          rp_sac_found *found);

/* Returns the array of the gradients. It is the same array for the life of the update. */
rp_real *rp_sac_grads(rp_sac_update *update);

/* The parts of the parameters that have an optimizer of their own, in order. */
enum { RP_SAC_POLICY, RP_SAC_BOTH_CRITICS, RP_SAC_TEMPERATURE, RP_SAC_PARTS };

/* The optimizer of a part, and its parameters. Borrowed. */
rp_optimizer *rp_sac_optimizer(rp_sac_update *update, size_t part);
size_t rp_sac_part_size(const rp_sac_layout *layout, size_t part);

/* Moves the optimizers of another update to this one, a helper of the same networks. Then the
 * other one is a helper. */
void rp_sac_take_optimizers(rp_sac_update *update, rp_sac_update *from);

/* Computes the gradients of a whole batch, and makes a step of all optimizers. If a measurement
 * is not finite, `params` are of no use any more. */
void rp_sac_step(rp_sac_update *update, rp_real *params, const rp_real *target_params,
                 const rp_box_batch *batch, rp_sac_found *found);

#endif
