/* SPDX-License-Identifier: Apache-2.0 */
/* A run of an environment under test: one object with its buffers, each between guard bytes. */
#ifndef RP_ENV_ENV_RUN_H
#define RP_ENV_ENV_RUN_H

#include "reprise/rl/env.h"
#include "reprise/rl/random.h"

typedef struct rp_env_run {
    rp_allocator alloc;
    rp_env *env;
    size_t copies, row_bytes, action_bytes, snapshot_bytes;
    void *memory; /* all buffers */
    size_t memory_bytes;
    char *observations, *last, *spare, *snapshots, *actions;
    rp_env_buffers out;
    rp_pcg64 rng; /* of the actions */
    rp_error err;
} rp_env_run;

/* Makes the environment and the buffers. Deinit it in any case. */
rp_status rp_env_run_init(rp_env_run *run, const rp_allocator *alloc,
                          const rp_env_class *env_class, const rp_env_options *options);
void rp_env_run_deinit(rp_env_run *run);

/* Resets copy i with seed first + i, and starts the stream of actions with `first` as well. */
rp_status rp_env_run_reset(rp_env_run *run, uint64_t first);

/* Draws an action for each copy. */
void rp_env_run_choose(rp_env_run *run);

/* Steps with the actions. */
rp_status rp_env_run_step(rp_env_run *run);

/* True if the guard bytes around the buffers are as they were. */
bool rp_env_run_guards_hold(const rp_env_run *run);

/* True if a copy of one run has the same row, reward and flags as a copy of the other. */
bool rp_env_run_same(const rp_env_run *a, size_t copy_a, const rp_env_run *b, size_t copy_b);

/* The row of a copy in one of the buffers of observations. */
static inline char *rp_env_run_row(const rp_env_run *run, char *rows, size_t copy)
{
    return rows + copy * run->row_bytes;
}

#endif
