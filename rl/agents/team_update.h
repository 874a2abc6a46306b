/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of an agent by one learner, or by several that share each batch.
 *
 * An agent says how a learner finds the gradients of its share of a batch; the rest is the same
 * for all agents:
 *
 *   draw a batch
 *   each learner: the gradients of its share of the rows, in an array of its own
 *   each learner: sums, steps of the optimizers and targets, in slices (team.h)
 *   write the priorities of all items
 *
 * One learner does all of it on the caller's thread, without a team. */
#ifndef RP_AGENTS_TEAM_UPDATE_H
#define RP_AGENTS_TEAM_UPDATE_H

#include "agents/learning.h"
#include "agents/replay.h"
#include "reprise/rl/team.h"

typedef struct rp_team_update rp_team_update;

/* What rows add to the means of a batch. */
typedef struct rp_update_found {
    double loss, value;
} rp_update_found;

/* Computes the gradients of a share of the batch, at the parameters of the agent, in the array
 * of this learner, and writes the TD errors of its rows. Loss, value and gradients are the
 * share's part of the means over the batch. On the learner's thread. */
typedef rp_update_found rp_update_find(void *ctx, size_t learner, rp_slice share,
                                       rp_real *errors);

typedef struct rp_team_update_options {
    rp_learning *learning; /* borrowed until the update is freed; with parameters */
    const rp_replay_options *replay;
    size_t learners; /* 1 to RP_TEAM_MAX_SIZE, and at most the rows of a batch */
    double discount; /* of rewards a step later */
    double huber;    /* of the loss, as rp_td_loss() has it */
    bool is_clipped; /* the optimizers have a max_norm. Without, norms are not told */
    bool sets_priorities;
    int64_t target_every;
    double target_rate;
    rp_real *const *grads; /* an array for each learner, as `params` of `learning`. Borrowed;
                              the list may change with the number of learners */
    /* Called once a batch that was drawn, on the caller's thread; NULL: not. */
    void (*prepare)(void *ctx);
    rp_update_find *find;
    void *ctx;
} rp_team_update_options;

/* Makes the replay and the team. Returns owned. RP_NO_RESOURCE, RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_team_update_new(const rp_allocator *alloc,
                                          const rp_team_update_options *options,
                                          rp_team_update **out, rp_error *err);
void rp_team_update_free(rp_team_update *update); /* NULL is fine */

/* The rows of learner `i`: the shares of all learners are disjoint, and cover the batch. */
rp_slice rp_share_of(size_t rows, size_t learners, size_t i);

/* The batch that find() has a share of; its discounts include that of the agent. */
const rp_replay_batch *rp_team_update_batch(const rp_team_update *update);

/* Makes one update, as update() of a learner (learner.h) does. */
RP_NODISCARD rp_status rp_team_update_run(rp_team_update *update, rp_wait wait, rp_error *err);

/* Changes the number of learners between two updates. Only the order of additions depends on
 * it. RP_INVALID, RP_NO_RESOURCE: nothing has changed. */
RP_NODISCARD rp_status rp_team_update_set_learners(rp_team_update *update, size_t learners,
                                                   rp_error *err);

/* The metrics of `learning`, and the bad items of the replay. */
void rp_team_update_metrics(rp_team_update *update, rp_agent_metrics *out);

#endif
