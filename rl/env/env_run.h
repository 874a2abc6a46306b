/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an environment for the conformance test of env_check.c: an rp_env with all the buffers
 * that its calls use. Guard bytes around each buffer show whether a call wrote outside the
 * buffer. An rp_env steps one or more instances of the environment in parallel, called
 * copies. */
#ifndef RP_ENV_ENV_RUN_H
#define RP_ENV_ENV_RUN_H

#include "reprise/rl/env.h"
#include "reprise/rl/random.h"

typedef struct rp_env_run {
    rp_allocator alloc;
    rp_env *env;
    size_t copies, row_bytes, action_bytes, snapshot_bytes; /* the ..._bytes are those of one
                                                               copy */
    void *memory; /* holds all buffers and guard bytes */
    size_t memory_bytes;
    char *observations, *last, *spare, *snapshots, *actions; /* the buffers. The first three
                                                                hold observations */
    rp_env_buffers out; /* the buffers that a step writes; out.observations is `observations`,
                           and out.last_observations is `last` */
    rp_pcg64 rng;       /* chooses the actions */
    rp_error err;
} rp_env_run;

/* Makes the environment and the buffers. The caller must call rp_env_run_deinit() even if this
 * function fails. */
rp_status rp_env_run_init(rp_env_run *run, const rp_allocator *alloc,
                          const rp_env_class *env_class, const rp_env_options *options);
void rp_env_run_deinit(rp_env_run *run);

/* Resets each copy: copy i with the seed first + i. Seeds the choice of actions with
 * `first`. */
rp_status rp_env_run_reset(rp_env_run *run, uint64_t first);

/* Chooses a random action for each copy. */
void rp_env_run_choose(rp_env_run *run);

/* Steps all copies with the chosen actions. */
rp_status rp_env_run_step(rp_env_run *run);

/* Returns true if no guard byte has changed. */
bool rp_env_run_guards_hold(const rp_env_run *run);

/* Returns true if copy_a of run `a` and copy_b of run `b` have the same observation, reward,
 * and flags `terminated` and `truncated`. */
bool rp_env_run_same(const rp_env_run *a, size_t copy_a, const rp_env_run *b, size_t copy_b);

/* Returns the address of a copy's observation in `rows`, which is one of the three buffers of
 * observations. */
static inline char *rp_env_run_row(const rp_env_run *run, char *rows, size_t copy)
{
    return rows + copy * run->row_bytes;
}

#endif
