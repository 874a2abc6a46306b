/* SPDX-License-Identifier: Apache-2.0 */
/* The environment loop: an agent acts in a group of environments, sees what happens, learns.
 *
 * Not thread-safe: the owner serialises the calls on one loop. */
#ifndef REPRISE_RL_ENV_LOOP_H
#define REPRISE_RL_ENV_LOOP_H

#include "reprise/rl/agent.h"

RP_BEGIN_DECLS

typedef struct rp_env_loop rp_env_loop;

/* Means are over the last 100 finished episodes of training, which explore; NaN before the
 * first. */
typedef struct rp_env_loop_counts {
    int64_t steps; /* of all copies together */
    int64_t episodes;
    double mean_return, mean_length;
} rp_env_loop_counts;

/* Makes a loop. Borrows the environment and the agent until it is freed. Returns owned.
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_loop_new(const rp_allocator *alloc, rp_env *env,
                                              rp_agent *agent, rp_env_loop **out,
                                              rp_error *err);
RP_API void rp_env_loop_free(rp_env_loop *loop); /* NULL is fine */

/* Starts the episodes of all copies; `seed` makes a seed for each. Before the first step, and
 * not after a restore. The statuses are those of the environment and the agent. */
RP_API RP_NODISCARD rp_status rp_env_loop_begin(rp_env_loop *loop, uint64_t seed,
                                                rp_error *err);

/* One step of every copy: acts, steps, observes, learns. The statuses are those of the
 * environment and the agent; after a failure the loop cannot go on. */
RP_API RP_NODISCARD rp_status rp_env_loop_step(rp_env_loop *loop, rp_error *err);

RP_API rp_env_loop_counts rp_env_loop_get_counts(const rp_env_loop *loop);

/* The most parts of a loop and its agent. */
enum { RP_ENV_LOOP_MAX_PARTS = RP_AGENT_MAX_PARTS + 4 };

/* Describes the state of the loop, the environments and the agent, as get_state() of an agent
 * does, and returns the number of parts. The bytes are those of this moment: call it again to
 * save a later one. */
RP_API size_t rp_env_loop_get_state(rp_env_loop *loop, rp_state_part *parts);

/* Takes the state that was written to the parts. RP_CORRUPT, RP_INVALID (of another
 * environment). */
RP_API RP_NODISCARD rp_status rp_env_loop_restored(rp_env_loop *loop, rp_error *err);

RP_END_DECLS

#endif
