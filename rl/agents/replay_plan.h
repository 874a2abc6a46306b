/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a replay: the settings that determine the adder (adder.h) and the table "replay"
 * of an agent. All kinds of agents have these settings. */
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
    /* Numbers of items: in a batch; inserted for each update; in the table before the first
     * update; in the table at most. */
    int64_t batch, steps_per_update, start, capacity;
    bool prioritized;
    double priority_exponent;
    double evict_exponent; /* below 0: a full table evicts items with a probability proportional
                              to priority ^ evict_exponent; 0: it evicts the oldest items */
} rp_replay_plan;

/* Makes a plan from the settings of an agent, which it finds by their names in `table`. If the
 * agent has no setting "evict-exponent", evict_exponent is 0. */
rp_replay_plan rp_replay_plan_of(const rp_settings_table *table, const void *settings,
                                 const rp_env_spec *spec);

/* Checks that settings fit each other. Returns RP_INVALID if "start" is larger than "capacity",
 * or "learners" is larger than "batch". */
RP_NODISCARD rp_status rp_replay_check(const rp_settings_table *table, const void *settings,
                                       rp_error *err);

/* Returns the options of the adder of a plan. The caller must set the fields `tables` and
 * `table_count`. */
rp_adder_options rp_replay_adder(const rp_replay_plan *plan);

/* Fills in the options of the table "replay". Its rate limiter keeps the number of samples near
 * batch / steps_per_update times the number of inserts after the first `start`. The limiter
 * tolerates a difference of `slack` samples, plus one batch, plus the samples for copies *
 * n_step inserts. The name in the options is static. The caller must release the signature with
 * rp_signature_unref().
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_replay_table(const rp_replay_plan *plan, double slack,
                                       rp_table_options *out, rp_error *err);

/* Finds the table "replay" of a store, or adds the table with a `slack` of 0. Returns a counted
 * reference, which the caller must release with rp_table_unref(). Fails with a status of
 * rp_replay_table() or of the store. */
RP_NODISCARD rp_status rp_replay_table_in(rp_store *store, const rp_replay_plan *plan,
                                          rp_table **out, rp_error *err);

#endif
