/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous learner threads of DQN. In each turn a thread draws a batch of its own and
 * copies the latest shared parameters. It computes the gradient at this copy, and then applies
 * the gradient to the shared parameters. Other threads can change the shared parameters between
 * the copy and this step.
 *
 * Learner 0 is the thread that calls rp_dqn_async_update(). The other learners are a crew
 * (crew.h): threads that repeat turns from the first update until they are paused. A pause
 * waits until each thread has ended its turn. A turn of the crew waits at most 20 ms for a
 * batch, and at most 5 s for the replay to accept priorities. The wait of learner 0 for a batch
 * is limited by the argument `wait` of rp_dqn_async_update(). */
#ifndef RP_AGENTS_DQN_ASYNC_H
#define RP_AGENTS_DQN_ASYNC_H

#include "agents/dqn_rows.h"

typedef struct rp_dqn_async rp_dqn_async;

/* Makes `count` learners, at least 2. Each has a replay object (replay.h) with the options
 * `replay`. `master` (rp_dqn_master in dqn_rows.h) holds the shared parameters and their
 * optimizer, and is borrowed until the learners are freed. Other code is allowed to use
 * `master` only after rp_dqn_async_open(). Returns owned.
 * Errors: RP_NO_RESOURCE, RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_dqn_async_new(const rp_allocator *alloc, rp_dqn_master *master,
                                        const rp_replay_options *replay, size_t count,
                                        rp_dqn_async **out, rp_error *err);
/* Frees the learners. Waits until each thread has ended its turn. NULL is fine. */
void rp_dqn_async_free(rp_dqn_async *async);

/* Makes one update on the caller's thread, as update() of a learner does (learner.h), and
 * resumes the other learners. If another learner has failed, makes no update and returns its
 * status; the next call tries again. Sets `*largest` to the largest priority that a learner has
 * set so far. After this call rp_dqn_async_parameters() returns the latest parameters. */
RP_NODISCARD rp_status rp_dqn_async_update(rp_dqn_async *async, rp_wait wait, double *largest,
                                           rp_error *err);

/* Returns the parameters as they were at the end of the last rp_dqn_async_update(). If
 * rp_dqn_async_open() was called after that update, returns the parameters that `master` has
 * now. */
const rp_real *rp_dqn_async_parameters(rp_dqn_async *async);

/* Returns the number of updates that all learners together have made. */
int64_t rp_dqn_async_updates(rp_dqn_async *async);

/* Fills in the metrics of all learners together, as rp_learning_metrics() does (learning.h).
 * Also fills in bad_items, the number of samples that all learners left out because the items
 * were bad (replay.h), and bad_item, the latest of them. */
void rp_dqn_async_metrics(rp_dqn_async *async, rp_agent_metrics *out);

/* Gives the caller exclusive access to `master`, for example to restore a snapshot: pauses the
 * other learners until the next rp_dqn_async_update(). The caller is allowed to write to
 * `master` until it calls rp_dqn_async_update() or rp_dqn_async_parameters(). These functions
 * publish the parameters of `master` to the learners; a later write would not be published. */
void rp_dqn_async_open(rp_dqn_async *async);

#endif
