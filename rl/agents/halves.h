/* SPDX-License-Identifier: Apache-2.0 */
/* An agent of an actor and a learner on one store, on the caller's thread: bit by bit
 * reproducible. */
#ifndef RP_AGENTS_HALVES_H
#define RP_AGENTS_HALVES_H

#include "agents/replay_plan.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/learner.h"

typedef struct rp_halves {
    rp_agent agent;      /* first; its class is `type` */
    rp_agent_class type; /* with the name of the agent */
    rp_allocator alloc;
    int64_t batch;
    int64_t update_ms;   /* set by make(). The longest wait for a batch; 0: no limit. Not 0 if
                            learners on other threads draw from the table, too: they may draw
                            the items that this wait is for, and runs are not reproducible */
    rp_table *table;     /* a reference */
    rp_actor *actor;     /* owned */
    rp_learner *learner; /* owned */
} rp_halves;

/* Borrowed for one call. */
typedef struct rp_halves_options {
    const char *name; /* of the agent; static */
    rp_store *store;  /* gets the table "replay", or has it */
    const rp_replay_plan *plan;
    /* Sets the learner and the actor of `halves`, whose table exists. If it fails,
     * rp_halves_new() frees what it has set. */
    rp_status (*make)(rp_halves *halves, const void *options, rp_error *err);
    const void *options; /* of make() */
} rp_halves_options;

/* Makes an agent, and gives the parameters of its learner to its actor. `alloc` NULL is
 * rp_allocator_default(). Returns owned. RP_NO_RESOURCE, or a status of the store or of
 * make(). */
RP_NODISCARD rp_status rp_halves_new(const rp_allocator *alloc,
                                     const rp_halves_options *options, rp_agent **out,
                                     rp_error *err);

#endif
