/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of a critic. A critic is a network with one output, Q(o, u). A row of its input
 * is an observation o followed by an action u, whose components are from -1 to 1.
 *
 * Several learner threads can work on one batch. The rows of one thread are its share of the
 * batch. */
#ifndef RP_AGENTS_BOX_CRITIC_H
#define RP_AGENTS_BOX_CRITIC_H

#include "agents/box/box_batch.h"
#include "reprise/status.h"

typedef struct rp_critic rp_critic;

typedef struct rp_critic_options {
    const rp_net *net;       /* borrowed until the critic is freed */
    size_t numbers, actions; /* elements of an observation; dimensions of an action */
    size_t rows;             /* rows in the batch, or in this thread's share of it */
    size_t all_rows;         /* rows in the whole batch */
    double huber;            /* Huber loss threshold of rp_td_loss(); 0: squared error */
} rp_critic_options;

/* The results of rp_critic_learn(). For a share of a batch, `loss` and `value` are the share's
 * sums divided by `all_rows`. The results of all shares therefore add up to the mean over the
 * batch. */
typedef struct rp_critic_found {
    double loss;           /* mean of weight * loss(target - Q(o, u)) */
    double value;          /* mean of Q(o, u) */
    const rp_real *errors; /* target - Q(o, u), one per row. Valid until the next call */
} rp_critic_found;

/* Makes a critic. Returns owned. Errors: RP_INVALID (as rp_critic_check()), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_critic_new(const rp_allocator *alloc,
                                     const rp_critic_options *options, rp_critic **out,
                                     rp_error *err);
void rp_critic_free(rp_critic *critic); /* NULL is fine */

/* Writes to `grads` the gradient of the mean of weight * loss(target - Q(o, u)) over the batch,
 * with respect to the parameters. If `batch` is a share, the mean has only the terms of the
 * share's rows, but is still divided by `all_rows`. The gradients of all shares therefore add
 * up to the gradient of the batch. */
rp_critic_found rp_critic_learn(rp_critic *critic, const rp_real *params,
                                const rp_box_batch *batch, const rp_real *target,
                                rp_real *grads);

/* Returns Q(o, u), one value per row, for as many rows as the option `rows`. Valid until the
 * next call. */
const rp_real *rp_critic_values(rp_critic *critic, const rp_real *params,
                                const rp_real *observations, const rp_real *actions);

/* Backpropagates through the critic to the actions. `by_value` is the gradient of a loss with
 * respect to the values that the last rp_critic_values() returned. Computes the gradient of
 * this loss with respect to the actions. If `adds` is true, adds the gradient to the numbers in
 * `by_action`; otherwise overwrites them with it. */
void rp_critic_slopes(rp_critic *critic, const rp_real *params, const rp_real *by_value,
                      bool adds, rp_real *by_action);

/* Writes `rows` rows of critic input to `out`: each is an observation of `numbers` elements,
 * then its action of `action_count` elements. */
void rp_critic_join(const rp_real *observations, size_t numbers, const rp_real *actions,
                    size_t action_count, size_t rows, rp_real *out);

/* Checks that `net` has `numbers` + `actions` inputs and one output. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_critic_check(const rp_net *net, size_t numbers, size_t actions,
                                       rp_error *err);

#endif
