/* SPDX-License-Identifier: Apache-2.0 */
/* The struct rp_env, for env.c, env_new.c and env_state.c. An rp_env steps N environments of
 * one task in parallel; its code calls each of them a copy. */
#ifndef RP_ENV_ENV_INSIDE_H
#define RP_ENV_ENV_INSIDE_H

#include "reprise/rl/env.h"

/* The data that rp_env keeps for each copy besides its state. */
typedef struct rp_env_copy {
    int64_t steps;   /* number of steps in the current episode */
    uint32_t seeded; /* 0 or 1: the copy has a random stream */
    uint32_t begun;  /* 0 or 1: the copy has been reset */
} rp_env_copy;

struct rp_env {
    rp_allocator alloc;
    const rp_env_class *class;
    rp_env_spec spec;
    rp_env_context ctx;
    double settings[RP_ENV_MAX_SETTINGS];
    size_t copies;
    size_t elements;               /* number of elements in the observation of one copy */
    size_t observation_bytes;      /* bytes of the observation of one copy */
    size_t waiting;                /* number of copies that need a reset before the next step */
    bool keep_ended, clip_actions; /* see rp_env_options */
    rp_env_copy *copy;             /* array with an entry for each copy */
    void *states;                  /* spec.state_bytes bytes for each copy */
    void *shared;                  /* read-only data of the class */
};

/* Returns the address of the state of a copy. */
static inline void *rp_env_state(const rp_env *env, size_t copy)
{
    return (char *)env->states + copy * env->spec.state_bytes;
}

#endif
