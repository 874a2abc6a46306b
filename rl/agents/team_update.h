/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of an agent's parameters by one learner thread, or by several that work on the same
 * batch. The share of a learner thread is the range of the batch's rows for which it computes
 * gradients.
 *
 * Each kind of agent supplies a function that computes the gradients of a share. The other
 * steps of an update are the same for all agents:
 *
 *   draw a batch
 *   each learner: compute the gradients of its share, in an array of its own
 *   each learner: for its slice of the parameters (team.h), add up the gradients of all
 *     learners, make the optimizer's step, and move the target parameters if they are due
 *   write the priorities of all items of the batch
 *
 * A single learner does all of this on the caller's thread, without a team. */
#ifndef RP_AGENTS_TEAM_UPDATE_H
#define RP_AGENTS_TEAM_UPDATE_H

#include "agents/learning.h"
#include "agents/replay.h"
#include "reprise/rl/team.h"

typedef struct rp_team_update rp_team_update;

/* A share's part of the mean loss and mean value of a batch: sums over the rows of the share,
 * divided by all rows of the batch. */
typedef struct rp_update_found {
    double loss, value;
} rp_update_found;

/* Computes the gradients of a share of the batch at the agent's parameters, and writes them to
 * the array of learner number `learner`. Like the result, these gradients are the share's part
 * of the mean over the batch. Writes the TD errors of the share's rows to `errors`. Called on
 * the learner's thread. */
typedef rp_update_found rp_update_find(void *ctx, size_t learner, rp_slice share,
                                       rp_real *errors);

typedef struct rp_team_update_options {
    rp_learning *learning; /* its parameters must be set already. Borrowed until the update
                              object is freed */
    const rp_replay_options *replay; /* borrowed for rp_team_update_new() */
    size_t learners; /* 1 to RP_TEAM_MAX_SIZE, and at most the rows of a batch */
    double discount; /* discount per step, by which the discounts of a batch are multiplied */
    double huber;    /* argument `delta` of rp_td_loss(), with which find() computes its loss */
    bool is_clipped; /* true: the optimizers have a max_norm; false: the norm in the metrics is
                        0 */
    bool sets_priorities;  /* true: write priorities to the replay after each update */
    int64_t target_every;  /* updates between two moves of the target parameters */
    double target_rate;    /* argument `rate` of rp_polyak() in a move of the target
                              parameters */
    rp_real *const *grads; /* for each learner, an array for its gradients in the layout of the
                              parameters. Borrowed. The owner is allowed to change the entries
                              when it changes the number of learners */
    /* Called on the caller's thread after each batch is drawn. NULL: no call. */
    void (*prepare)(void *ctx);
    rp_update_find *find;
    void *ctx;
} rp_team_update_options;

/* Makes an update object, with its replay (replay.h) and team (team.h). Returns owned.
 * Errors: RP_NO_RESOURCE, RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_team_update_new(const rp_allocator *alloc,
                                          const rp_team_update_options *options,
                                          rp_team_update **out, rp_error *err);
void rp_team_update_free(rp_team_update *update); /* NULL is fine */

/* Returns the share of learner `i` in a batch of `rows` rows. The shares of all learners are
 * disjoint and cover the batch. */
rp_slice rp_share_of(size_t rows, size_t learners, size_t i);

/* Returns the current batch. When find() is called, the discounts of the batch are already
 * multiplied by the option `discount`. */
const rp_replay_batch *rp_team_update_batch(const rp_team_update *update);

/* Makes one update, as update() of a learner (learner.h) does. */
RP_NODISCARD rp_status rp_team_update_run(rp_team_update *update, rp_wait wait, rp_error *err);

/* Changes the number of learners between two updates. Results with another number of learners
 * differ only by the order in which numbers are added. Errors: RP_INVALID, RP_NO_RESOURCE.
 * After an error nothing has changed. */
RP_NODISCARD rp_status rp_team_update_set_learners(rp_team_update *update, size_t learners,
                                                   rp_error *err);

/* Fills in the metrics of options.learning, and the fields bad_items and bad_item of the
 * replay. */
void rp_team_update_metrics(rp_team_update *update, rp_agent_metrics *out);

#endif
