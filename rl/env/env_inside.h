/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of an environment, shared by env.c, env_new.c and env_state.c. */
#ifndef RP_ENV_ENV_INSIDE_H
#define RP_ENV_ENV_INSIDE_H

#include "reprise/rl/env.h"

/* The record that rp_env keeps of each copy. */
typedef struct rp_env_copy {
    int64_t steps;   /* of the current episode */
    uint32_t seeded; /* 0 or 1: has a random stream */
    uint32_t begun;  /* 0 or 1: has been reset */
} rp_env_copy;

struct rp_env {
    rp_allocator alloc;
    const rp_env_class *class;
    rp_env_spec spec;
    rp_env_context ctx;
    double settings[RP_ENV_MAX_SETTINGS];
    size_t copies;
    size_t elements;          /* of one observation */
    size_t observation_bytes; /* of one row */
    size_t waiting;           /* copies that need a reset before the next step */
    bool keep_ended, clip_actions;
    rp_env_copy *copy; /* one for each copy */
    void *states;      /* state_bytes for each copy */
    void *shared;
};

static inline void *rp_env_state(const rp_env *env, size_t copy)
{
    return (char *)env->states + copy * env->spec.state_bytes;
}

#endif
