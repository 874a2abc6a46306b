/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that consists of an actor (actor.h) and a learner (learner.h), its two halves. Both
 * use one store and run on the caller's thread, so runs with the same settings, seed and
 * observations give the same bits. */
#ifndef RP_AGENTS_HALVES_H
#define RP_AGENTS_HALVES_H

#include "agents/replay_plan.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/learner.h"

typedef struct rp_halves {
    rp_agent agent;      /* must be the first field; agent.type points to `type` */
    rp_agent_class type; /* the class of the agent, with the name of the agent */
    rp_allocator alloc;
    int64_t batch;       /* items in a batch */
    int64_t update_ms;   /* longest wait of the learner for a batch, in ms; 0: no limit. If
                            other threads also draw from the table, they possibly draw the
                            samples for which the learner waits. In this case make() must set a
                            limit, and the run is not reproducible */
    rp_table *table;     /* a counted reference */
    rp_actor *actor;     /* owned */
    rp_learner *learner; /* owned */
} rp_halves;

/* The arguments of rp_halves_new(). Borrowed for the call. */
typedef struct rp_halves_options {
    const char *name; /* name of the agent; static */
    rp_store *store;  /* the table "replay" is added if the store does not have it */
    const rp_replay_plan *plan;
    /* Makes the learner and the actor and sets them in `halves`. The table exists when make()
     * is called. If make() fails, rp_halves_new() frees everything that make() has set. */
    rp_status (*make)(rp_halves *halves, const void *options, rp_error *err);
    const void *options; /* passed to make() */
} rp_halves_options;

/* Makes an agent whose actor uses the parameters of its learner. `alloc` NULL means
 * rp_allocator_default(). Returns owned.
 * Errors: RP_NO_RESOURCE, or a status of the store or of make(). */
RP_NODISCARD rp_status rp_halves_new(const rp_allocator *alloc,
                                     const rp_halves_options *options, rp_agent **out,
                                     rp_error *err);

#endif
