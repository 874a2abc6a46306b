/* SPDX-License-Identifier: Apache-2.0 */
/* How DQN, DPG and SAC, the algorithms that this library's Ape-X supports, use the replay
 * table. */
#ifndef RP_APEX_OWN_REPLAY_H
#define RP_APEX_OWN_REPLAY_H

#include "reprise/rl/apex.h"
#include "reprise/rl/settings.h"

enum {
    RP_OWN_IN_FLIGHT = 64, /* the most unconfirmed items per environment of an actor */
    RP_OWN_MUTATE_FOR = 4, /* updates of the learner between requests with new priorities */
};

/* Returns the `slack` of rp_replay_table() (rl/agents/replay_plan.h): how many samples the rate
 * limiter must tolerate beyond the bounds for a single actor. The result is the sum of two
 * parts: the samples due for the items that all actors but one add in a step, and the samples
 * that the learner's sampler has fetched ahead. */
double rp_own_slack(const rp_apex_making *making, const rp_settings_table *table);

/* The number of parallel environments of one actor. */
size_t rp_own_copies(const rp_settings_table *table, const void *settings);

#endif
