/* SPDX-License-Identifier: Apache-2.0 */
/* What learners of DQN share, and what each of several learners has of its own: the gradient of
 * some rows of a batch. */
#ifndef RP_AGENTS_DQN_ROWS_H
#define RP_AGENTS_DQN_ROWS_H

#include "agents/team_update.h"
#include "reprise/rl/dqn.h"

/* What all learners of one agent share. */
typedef struct rp_dqn_master {
    rp_dqn_settings set;
    rp_env_spec spec;
    rp_net *net;
    rp_optimizer *optimizer;
    rp_learning learning; /* with the parameters */
} rp_dqn_master;

typedef struct rp_dqn_rows rp_dqn_rows;

/* Makes what a learner needs for at most `rows` rows; borrows `master` until it is freed.
 * Returns owned. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_dqn_rows_new(const rp_allocator *alloc, const rp_dqn_master *master,
                                       size_t rows, rp_dqn_rows **out, rp_error *err);
void rp_dqn_rows_free(rp_dqn_rows *rows); /* NULL is fine */

/* Some rows of a batch, and the parameters to rate them with. */
typedef struct rp_dqn_share {
    const rp_replay_batch *batch; /* its discounts are multiplied by that of the settings */
    size_t first, rows, all;      /* `rows` rows from `first` on, of `all` */
    const rp_real *params, *target_params;
    rp_real *errors; /* receives the TD errors: `rows` numbers */
} rp_dqn_share;

/* Finds errors, loss and values: the forward passes. */
rp_update_found rp_dqn_rows_forward(rp_dqn_rows *rows, const rp_dqn_share *share);

/* The gradient of the latest forward pass: these rows' part of the mean over all rows. Returns
 * rp_net_size() numbers, valid until the next call; the caller may write to them. */
rp_real *rp_dqn_rows_backward(rp_dqn_rows *rows, const rp_dqn_share *share);

/* The array of the gradients, always the same one. */
rp_real *rp_dqn_rows_grads(rp_dqn_rows *rows);

#endif
