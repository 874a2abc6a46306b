/* SPDX-License-Identifier: Apache-2.0 */
/* An agent for continuous actions in one process: an actor (box_actor.h) and a learner
 * (box_learner.h) that share one store and run on the caller's thread. */
#ifndef RP_AGENTS_BOX_BOX_AGENT_H
#define RP_AGENTS_BOX_BOX_AGENT_H

#include "agents/box/box_actor.h"
#include "agents/box/box_learner.h"

/* The arguments of rp_box_agent_new(). `settings` and `spec` are borrowed for the call. The
 * other objects, and the arrays of bounds in `spec`, must outlive the agent. */
typedef struct rp_box_agent_options {
    const rp_box_acting *acting;
    const rp_box_learning *learning;
    const void *settings; /* the agent's settings struct */
    const rp_env_spec *spec;
    rp_store *store;   /* the table "replay" is added if the store does not have it */
    rp_client *client; /* a client of `store` */
    uint64_t seed;     /* seed of the initial parameters and of the actor's noise */
    double noise;      /* standard deviation of the actor's noise */
} rp_box_agent_options;

/* Makes an agent. Returns owned.
 * Errors: RP_INVALID (a bad setting, or an environment that the agent cannot learn: see
 * rp_box_new_policy_net()), RP_NO_RESOURCE, or a status of the store. */
RP_NODISCARD rp_status rp_box_agent_new(const rp_allocator *alloc,
                                        const rp_box_agent_options *options, rp_agent **out,
                                        rp_error *err);

/* Fills in the options of the table "replay", as rp_replay_table() does. replay_plan.h explains
 * `slack`. */
RP_NODISCARD rp_status rp_box_table(const rp_box_making *making, double slack,
                                    rp_table_options *out, rp_error *err);

#endif
