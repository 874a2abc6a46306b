/* SPDX-License-Identifier: Apache-2.0 */
/* An agent of continuous actions: both halves on one store, on the caller's thread. */
#ifndef RP_AGENTS_BOX_BOX_AGENT_H
#define RP_AGENTS_BOX_BOX_AGENT_H

#include "agents/box/box_actor.h"
#include "agents/box/box_learner.h"

/* What an agent works with. All of it is borrowed and must outlive the agent. */
typedef struct rp_box_agent_options {
    const rp_box_acting *acting;
    const rp_box_learning *learning;
    const void *settings; /* copied */
    const rp_env_spec *spec;
    rp_store *store; /* gets the table "replay", or has it */
    rp_client *client;
    uint64_t seed;
    double noise; /* deviation of the actor's noise */
} rp_box_agent_options;

/* Makes an agent, and its table if the store has none. Returns owned. RP_INVALID (a setting; an
 * environment that it cannot learn), RP_NO_RESOURCE, or a status of the store. */
RP_NODISCARD rp_status rp_box_agent_new(const rp_allocator *alloc,
                                        const rp_box_agent_options *options, rp_agent **out,
                                        rp_error *err);

/* Fills in the options of the table "replay", as rp_replay_table() does (replay_plan.h). */
RP_NODISCARD rp_status rp_box_table(const rp_box_making *making, double slack,
                                    rp_table_options *out, rp_error *err);

#endif
