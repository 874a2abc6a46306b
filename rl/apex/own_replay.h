/* SPDX-License-Identifier: Apache-2.0 */
/* How our own agents use the replay of Ape-X. */
#ifndef RP_APEX_OWN_REPLAY_H
#define RP_APEX_OWN_REPLAY_H

#include "reprise/rl/apex.h"
#include "reprise/rl/settings.h"

enum {
    RP_OWN_IN_FLIGHT = 64, /* unconfirmed items of a copy */
    RP_OWN_MUTATE_FOR = 4, /* updates whose priorities are sent together */
};

/* The samples that the rate limiter has to leave room for: those of a step of every actor, and
 * what the learner's sampler has drawn and not used. */
double rp_own_slack(const rp_apex_making *making, const rp_settings_table *table);

/* The environments of one actor. */
size_t rp_own_copies(const rp_settings_table *table, const void *settings);

#endif
