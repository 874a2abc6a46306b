/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of a critic: a network that reads an observation and an action from -1 to 1,
 * side by side, and has one output, Q(o, u). */
#ifndef RP_AGENTS_BOX_CRITIC_H
#define RP_AGENTS_BOX_CRITIC_H

#include "agents/box/box_batch.h"
#include "reprise/status.h"

typedef struct rp_critic rp_critic;

typedef struct rp_critic_options {
    const rp_net *net;       /* borrowed until the critic is freed */
    size_t numbers, actions; /* how many numbers an observation has, and an action */
    size_t rows;             /* of a batch, or of one learner's share of it */
    size_t all_rows;         /* of the batch */
    double huber;            /* 0: the square */
} rp_critic_options;

/* What rp_critic_learn() has computed, at the parameters that it was given. If several learners
 * share a batch, `loss` and `value` are parts: the sum of the parts of all learners is the mean
 * over the batch. */
typedef struct rp_critic_found {
    double loss;           /* mean of weight * loss(target - Q(o, u)) */
    double value;          /* mean of Q(o, u) */
    const rp_real *errors; /* target - Q(o, u), one a row. Valid until the next call */
} rp_critic_found;

/* Returns owned. RP_INVALID (as rp_critic_check()), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_critic_new(const rp_allocator *alloc,
                                     const rp_critic_options *options, rp_critic **out,
                                     rp_error *err);
void rp_critic_free(rp_critic *critic); /* NULL is fine */

/* Writes the gradient, with respect to the parameters, of the mean of weight * loss(target -
 * Q(o, u)) over the batch. If `batch` is one learner's share, writes only the part of the
 * gradient that these rows cause: the parts of all learners add up to the gradient. */
rp_critic_found rp_critic_learn(rp_critic *critic, const rp_real *params,
                                const rp_box_batch *batch, const rp_real *target,
                                rp_real *grads);

/* The values of actions, one a row. Valid until the next call. */
const rp_real *rp_critic_values(rp_critic *critic, const rp_real *params,
                                const rp_real *observations, const rp_real *actions);

/* Backpropagates through the critic to the actions. `by_value` is the gradient of a loss with
 * respect to the values that the last rp_critic_values() returned. Writes the gradient of that
 * loss with respect to the actions to `by_action`, or adds it to `by_action` if `adds`. */
void rp_critic_slopes(rp_critic *critic, const rp_real *params, const rp_real *by_value,
                      bool adds, rp_real *by_action);

/* Writes `rows` rows of observation and action, side by side. */
void rp_critic_join(const rp_real *observations, size_t numbers, const rp_real *actions,
                    size_t action_count, size_t rows, rp_real *out);

/* Checks that `net` reads `numbers` + `actions` numbers and has one output. RP_INVALID. */
RP_NODISCARD rp_status rp_critic_check(const rp_net *net, size_t numbers, size_t actions,
                                       rp_error *err);

#endif
