/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous learners of DQN: each draws batches of its own, computes gradients at the
 * parameters that it read last, and applies them to the shared ones when they are ready.
 *
 * Learner 0 is the thread that calls rp_dqn_async_update(); the others are a crew (crew.h) that
 * works from the first update on, until it is paused. A pause waits for the turns that are
 * under way: for a gradient, for a batch at most 20 ms, for a replay that does not take
 * priorities at most 5 s. */
#ifndef RP_AGENTS_DQN_ASYNC_H
#define RP_AGENTS_DQN_ASYNC_H

#include "agents/dqn_rows.h"

typedef struct rp_dqn_async rp_dqn_async;

/* Makes `count` learners, at least 2. `master` is borrowed until they are freed; others may use
 * it only while they are paused. Each learner has a replay of these options. Returns owned.
 * RP_NO_RESOURCE, RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_dqn_async_new(const rp_allocator *alloc, rp_dqn_master *master,
                                        const rp_replay_options *replay, size_t count,
                                        rp_dqn_async **out, rp_error *err);
/* Waits for the turns that are under way. NULL is fine. */
void rp_dqn_async_free(rp_dqn_async *async);

/* Resumes the other learners, makes one update, and refreshes the parameters that are shown and
 * `*largest`, the largest priority so far. As update() of a learner (learner.h); a status may
 * be that of another learner. */
RP_NODISCARD rp_status rp_dqn_async_update(rp_dqn_async *async, rp_wait wait, double *largest,
                                           rp_error *err);

/* The latest parameters at the last update, or those that were written since
 * rp_dqn_async_open(). */
const rp_real *rp_dqn_async_parameters(rp_dqn_async *async);

/* The updates that all learners have made. */
int64_t rp_dqn_async_updates(rp_dqn_async *async);

void rp_dqn_async_metrics(rp_dqn_async *async, rp_agent_metrics *out);

/* Opens the master for others, who may write to it until they next call a function of this
 * file: waits for the turns that are under way, and pauses the other learners until the next
 * update. */
void rp_dqn_async_open(rp_dqn_async *async);

#endif
