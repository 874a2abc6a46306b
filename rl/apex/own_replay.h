/* SPDX-License-Identifier: Apache-2.0 */
/* How DQN, DPG and SAC, the algorithms that Ape-X comes with, use the replay. */
#ifndef RP_APEX_OWN_REPLAY_H
#define RP_APEX_OWN_REPLAY_H

#include "reprise/rl/apex.h"
#include "reprise/rl/settings.h"

enum {
    RP_OWN_IN_FLIGHT = 64, /* unconfirmed items of one environment of an actor */
    RP_OWN_MUTATE_FOR = 4, /* updates whose priorities are sent together */
};

/* The slack of the rate limiter, in samples: those for the items of one step of every actor but
 * one (the table's own bound has room for that one), and those that the learner's sampler has
 * drawn and the learner has not used yet. */
double rp_own_slack(const rp_apex_making *making, const rp_settings_table *table);

/* The environments of one actor. */
size_t rp_own_copies(const rp_settings_table *table, const void *settings);

#endif
