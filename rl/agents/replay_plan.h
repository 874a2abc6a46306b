/* SPDX-License-Identifier: Apache-2.0 */
/* What the adder and the table of an agent are made of: the settings that agents have in
 * common. */
#ifndef RP_AGENTS_REPLAY_PLAN_H
#define RP_AGENTS_REPLAY_PLAN_H

#include "reprise/rl/adder.h"
#include "reprise/rl/settings.h"
#include "reprise/store.h"

typedef struct rp_replay_plan {
    rp_env_spec spec;
    int64_t copies, n_step;
    double discount;
    int64_t batch, steps_per_update, start, capacity;
    bool prioritized;
    double priority_exponent;
    double evict_exponent; /* negative; 0: the oldest items are evicted */
} rp_replay_plan;

/* Takes a plan from the settings of an agent, by their names. An agent without "evict-exponent"
 * evicts the oldest items. */
rp_replay_plan rp_replay_plan_of(const rp_settings_table *table, const void *settings,
                                 const rp_env_spec *spec);

/* RP_INVALID: settings that are within their bounds do not fit each other: start is over the
 * capacity, or there are more learners than items of a batch. */
RP_NODISCARD rp_status rp_replay_check(const rp_settings_table *table, const void *settings,
                                       rp_error *err);

/* The adder of a plan, without its tables. */
rp_adder_options rp_replay_adder(const rp_replay_plan *plan);

/* Fills in the options of the table "replay": its rate limiter holds batch / steps_per_update
 * samples for each item, within the items of one step of the group and one batch, and `slack`
 * samples more. The name is static; the caller drops the signature with rp_signature_unref().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_replay_table(const rp_replay_plan *plan, double slack,
                                       rp_table_options *out, rp_error *err);

/* Finds the table "replay" of a store, or adds it. Returns a reference: drop it with
 * rp_table_unref(). A status of the store. */
RP_NODISCARD rp_status rp_replay_table_in(rp_store *store, const rp_replay_plan *plan,
                                          rp_table **out, rp_error *err);

#endif
