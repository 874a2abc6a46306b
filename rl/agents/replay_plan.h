/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a replay: those settings that all agents have, and from which the adder (adder.h)
 * and the table "replay" of an agent are made. */
#ifndef RP_AGENTS_REPLAY_PLAN_H
#define RP_AGENTS_REPLAY_PLAN_H

#include "reprise/rl/adder.h"
#include "reprise/rl/settings.h"
#include "reprise/store.h"

/* The name of the table that every agent uses. */
#define RP_REPLAY_TABLE "replay"

typedef struct rp_replay_plan {
    rp_env_spec spec;
    int64_t copies, n_step; /* parallel environments; n of the n-step transitions */
    double discount;
    /* Items in a batch, new items per update, items in the table before the first update, and
     * the maximum of items in the table. */
    int64_t batch, steps_per_update, start, capacity;
    bool prioritized;
    double priority_exponent;
    double evict_exponent; /* below 0: items are evicted with a probability proportional to
                              priority ^ evict_exponent; 0: the oldest items are evicted */
} rp_replay_plan;

/* Reads a plan from the settings of an agent by their names. If an agent has no setting
 * "evict-exponent", the oldest items are evicted. */
rp_replay_plan rp_replay_plan_of(const rp_settings_table *table, const void *settings,
                                 const rp_env_spec *spec);

/* Checks that settings fit each other. Returns RP_INVALID if "start" is larger than "capacity",
 * or "learners" is larger than "batch". */
RP_NODISCARD rp_status rp_replay_check(const rp_settings_table *table, const void *settings,
                                       rp_error *err);

/* Returns the options of the adder of a plan. The caller must add the tables. */
rp_adder_options rp_replay_adder(const rp_replay_plan *plan);

/* Fills in the options of the table "replay". Its rate limiter keeps the ratio of samples to
 * inserts at batch / steps_per_update. The number of samples may deviate from this ratio by one
 * batch, plus the samples that are due for copies * n_step inserts, plus `slack` samples. The
 * name in the options is static. The caller must release the signature with
 * rp_signature_unref().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_replay_table(const rp_replay_plan *plan, double slack,
                                       rp_table_options *out, rp_error *err);

/* Finds the table "replay" of a store, or adds the table with a `slack` of 0. Returns a counted
 * reference, which the caller must release with rp_table_unref(). Fails with a status of
 * rp_replay_table() or of the store. */
RP_NODISCARD rp_status rp_replay_table_in(rp_store *store, const rp_replay_plan *plan,
                                          rp_table **out, rp_error *err);

#endif
