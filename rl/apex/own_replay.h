/* SPDX-License-Identifier: Apache-2.0 */
/* How DQN, DPG and SAC, the algorithms that this library's Ape-X supports, use the replay
 * table. */
#ifndef RP_APEX_OWN_REPLAY_H
#define RP_APEX_OWN_REPLAY_H

#include "reprise/rl/apex.h"
#include "reprise/rl/settings.h"

enum {
    RP_OWN_IN_FLIGHT = 64, /* an actor waits while its environments have, on average, more
                              unconfirmed items (not yet accepted by the table) */
    RP_OWN_MUTATE_FOR = 4, /* the learner sends the new priorities of this many updates in one
                              request */
};

/* Returns the `slack` of rp_replay_table() (rl/agents/replay_plan.h): how many samples the rate
 * limiter must tolerate in addition to those that it tolerates for a single actor. The result
 * is the sum of two parts: the samples for the most items that all actors but one can add in
 * one step (n_step for each environment), and the samples that the learner's sampler
 * prefetches. */
double rp_own_slack(const rp_apex_making *making, const rp_settings_table *table);

/* Returns the number of parallel environments of one actor. */
size_t rp_own_copies(const rp_settings_table *table, const void *settings);

#endif
