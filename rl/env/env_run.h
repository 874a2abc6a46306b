/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an environment in a test: an rp_env with all the buffers that its calls use. Guard bytes
 * around each buffer show whether a call wrote outside it. An rp_env has one or more copies of
 * the environment, which it steps in parallel. */
#ifndef RP_ENV_ENV_RUN_H
#define RP_ENV_ENV_RUN_H

#include "reprise/rl/env.h"
#include "reprise/rl/random.h"

typedef struct rp_env_run {
    rp_allocator alloc;
    rp_env *env;
    size_t copies, row_bytes, action_bytes, snapshot_bytes; /* ..._bytes: for one copy */
    void *memory; /* holds all buffers and guard bytes */
    size_t memory_bytes;
    char *observations, *last, *spare, *snapshots, *actions; /* the first three: observations */
    rp_env_buffers out; /* the buffers that a step writes; its observations and
                           last_observations are `observations` and `last` */
    rp_pcg64 rng;       /* chooses the actions */
    rp_error err;
} rp_env_run;

/* Makes the environment and the buffers. The caller must call rp_env_run_deinit() even if this
 * fails. */
rp_status rp_env_run_init(rp_env_run *run, const rp_allocator *alloc,
                          const rp_env_class *env_class, const rp_env_options *options);
void rp_env_run_deinit(rp_env_run *run);

/* Resets copy i with seed first + i. Seeds the choice of actions with `first`. */
rp_status rp_env_run_reset(rp_env_run *run, uint64_t first);

/* Chooses a random action for each copy. */
void rp_env_run_choose(rp_env_run *run);

/* Steps all copies with the chosen actions. */
rp_status rp_env_run_step(rp_env_run *run);

/* True if no guard byte has changed. */
bool rp_env_run_guards_hold(const rp_env_run *run);

/* True if copy_a of run `a` and copy_b of run `b` have the same observation, reward and
 * flags. */
bool rp_env_run_same(const rp_env_run *a, size_t copy_a, const rp_env_run *b, size_t copy_b);

/* The observation of a copy in `rows`, one of the three buffers of observations. */
static inline char *rp_env_run_row(const rp_env_run *run, char *rows, size_t copy)
{
    return rows + copy * run->row_bytes;
}

#endif
