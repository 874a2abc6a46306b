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
    size_t numbers, actions; /* of an observation, and of an action */
    size_t rows;             /* of a batch, or of one learner's share of it */
    size_t all_rows;         /* of the batch */
    double huber;            /* 0: the square */
} rp_critic_options;

/* What a critic's part of the means over the batch is, at the parameters before the update. */
typedef struct rp_critic_found {
    double loss, value;    /* value: of Q(o, u) */
    const rp_real *errors; /* target - Q(o, u), one a row. Valid until the next call */
} rp_critic_found;

/* Returns owned. RP_INVALID (the network reads other rows), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_critic_new(const rp_allocator *alloc,
                                     const rp_critic_options *options, rp_critic **out,
                                     rp_error *err);
void rp_critic_free(rp_critic *critic); /* NULL is fine */

/* Writes the gradient of the mean of weight * loss(target - Q(o, u)) by the parameters. Of a
 * share, it is the share's part of the mean over the batch. */
rp_critic_found rp_critic_learn(rp_critic *critic, const rp_real *params,
                                const rp_box_batch *batch, const rp_real *target,
                                rp_real *grads);

/* The values of actions, one a row. Valid until the next call. */
const rp_real *rp_critic_values(rp_critic *critic, const rp_real *params,
                                const rp_real *observations, const rp_real *actions);

/* After rp_critic_values(): writes the gradient by the actions of a loss whose gradient by the
 * values is `by_value`; `adds` adds it to what is there. */
void rp_critic_slopes(rp_critic *critic, const rp_real *params, const rp_real *by_value,
                      bool adds, rp_real *by_action);

/* Writes `rows` rows of observation and action, side by side. */
void rp_critic_join(const rp_real *observations, size_t numbers, const rp_real *actions,
                    size_t action_count, size_t rows, rp_real *out);

/* RP_INVALID: `net` is no critic of such rows. */
RP_NODISCARD rp_status rp_critic_check(const rp_net *net, size_t numbers, size_t actions,
                                       rp_error *err);

#endif
