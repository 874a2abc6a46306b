/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of DQN's loss over some rows of a batch.
 *
 * Several learner threads can train one agent. They share a master (rp_dqn_master): settings,
 * network, parameters and optimizer. Each thread has an rp_dqn_rows of its own, which computes
 * the gradient of the rows that the thread works on: its share of a batch. */
#ifndef RP_AGENTS_DQN_ROWS_H
#define RP_AGENTS_DQN_ROWS_H

#include "agents/team_update.h"
#include "reprise/rl/dqn.h"

/* What all learner threads of one agent share. */
typedef struct rp_dqn_master {
    rp_dqn_settings set;
    rp_env_spec spec;
    rp_net *net;
    rp_optimizer *optimizer;
    rp_learning learning; /* parameters, target parameters and counts of updates (learning.h) */
} rp_dqn_master;

typedef struct rp_dqn_rows rp_dqn_rows;

/* Makes the tapes (objects that run the network, reprise/rl/nn.h) and arrays of one thread, for
 * shares of at most `rows` rows. Borrows `master` until rp_dqn_rows_free(). Returns owned.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_dqn_rows_new(const rp_allocator *alloc, const rp_dqn_master *master,
                                       size_t rows, rp_dqn_rows **out, rp_error *err);
void rp_dqn_rows_free(rp_dqn_rows *rows); /* NULL is fine */

/* A share of a batch, and the parameters at which its gradient is computed. */
typedef struct rp_dqn_share {
    const rp_replay_batch *batch; /* `discounts` must include the discount of the settings */
    size_t first, rows, all;      /* the share is rows first .. first + rows - 1 of `all` */
    const rp_real *params, *target_params;
    rp_real *errors; /* receives the TD errors of the share: `rows` numbers */
} rp_dqn_share;

/* Makes the forward passes. Writes the TD errors to share->errors. Returns the share's part of
 * the mean loss and of the mean value over all rows of the batch. */
rp_update_found rp_dqn_rows_forward(rp_dqn_rows *rows, const rp_dqn_share *share);

/* Makes the backward pass for the latest forward pass. Returns the share's part of the gradient
 * of the mean loss over all rows: rp_net_size() numbers, valid until the next call. The caller
 * is allowed to change them. */
rp_real *rp_dqn_rows_backward(rp_dqn_rows *rows, const rp_dqn_share *share);

/* Returns the array to which rp_dqn_rows_backward() writes the gradient. Its address does not
 * change until `rows` is freed. */
rp_real *rp_dqn_rows_grads(rp_dqn_rows *rows);

#endif
