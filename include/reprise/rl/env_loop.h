/* SPDX-License-Identifier: Apache-2.0 */
/* The environment loop: in each step the agent chooses an action for every parallel environment
 * of an rp_env (env.h), the environments step, and the agent observes the results and learns.
 *
 * Not thread-safe: the owner serialises the calls on one loop. */
#ifndef REPRISE_RL_ENV_LOOP_H
#define REPRISE_RL_ENV_LOOP_H

#include "reprise/rl/agent.h"

RP_BEGIN_DECLS

typedef struct rp_env_loop rp_env_loop;

/* The counts of a loop. Means are over the last 100 episodes that have ended in this loop; they
 * are NaN before an episode has ended. The agent explores in all these episodes, so the means
 * are not those of a greedy policy. */
typedef struct rp_env_loop_counts {
    int64_t steps; /* steps of all environments together */
    int64_t episodes;
    double mean_return, mean_length;
} rp_env_loop_counts;

/* Makes a loop. Borrows `env` and `agent` until the loop is freed. Returns owned.
 * Errors: RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_env_loop_new(const rp_allocator *alloc, rp_env *env,
                                              rp_agent *agent, rp_env_loop **out,
                                              rp_error *err);
RP_API void rp_env_loop_free(rp_env_loop *loop); /* NULL is fine */

/* Starts an episode in every environment. The seeds of the environments are derived from
 * `seed`. The caller must call this function before the first step, but not if it restores the
 * loop from a snapshot. The errors are those of the environment and the agent. */
RP_API RP_NODISCARD rp_status rp_env_loop_begin(rp_env_loop *loop, uint64_t seed,
                                                rp_error *err);

/* Makes one step of every environment: calls act() of the agent, rp_env_step(), then observe()
 * and learn() of the agent. The errors are those of the environment and the agent. After a
 * failure the loop cannot continue. */
RP_API RP_NODISCARD rp_status rp_env_loop_step(rp_env_loop *loop, rp_error *err);

/* Returns the current counts. */
RP_API rp_env_loop_counts rp_env_loop_get_counts(const rp_env_loop *loop);

/* The largest number of parts of the state of a loop and its agent. */
enum { RP_ENV_LOOP_MAX_PARTS = RP_AGENT_MAX_PARTS + 4 };

/* Describes the state of the loop, the environments and the agent as parts, as get_state() of
 * an agent does (agent.h). Returns the number of parts. The bytes of the parts are the state at
 * the time of this call. To save a later state, the caller must call this function again. */
RP_API size_t rp_env_loop_get_state(rp_env_loop *loop, rp_state_part *parts);

/* Completes a restore. Before this call, the caller must write a saved state to the bytes of
 * the parts. Errors: RP_CORRUPT, RP_INVALID (the state is of another environment). */
RP_API RP_NODISCARD rp_status rp_env_loop_restored(rp_env_loop *loop, rp_error *err);

RP_END_DECLS

#endif
