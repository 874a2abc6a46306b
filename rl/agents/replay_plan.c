/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of replays: see replay_plan.h. */
#include "agents/replay_plan.h"

#include <assert.h>

#include "agents/setting_value.h"
#include "error/fail.h"

enum { IN_FLIGHT = 1000 }; /* items of a copy that may be unconfirmed */

rp_replay_plan rp_replay_plan_of(const rp_settings_table *table, const void *settings,
                                 const rp_env_spec *spec)
{
    return (rp_replay_plan){
        .spec = *spec,
        .copies = (int64_t)rp_setting_value(table, settings, "copies"),
        .n_step = (int64_t)rp_setting_value(table, settings, "n-step"),
        .discount = rp_setting_value(table, settings, "discount"),
        .batch = (int64_t)rp_setting_value(table, settings, "batch"),
        .steps_per_update = (int64_t)rp_setting_value(table, settings, "steps-per-update"),
        .start = (int64_t)rp_setting_value(table, settings, "start"),
        .capacity = (int64_t)rp_setting_value(table, settings, "capacity"),
        .prioritized = rp_setting_value(table, settings, "prioritized") != 0,
        .priority_exponent = rp_setting_value(table, settings, "priority-exponent"),
        .evict_exponent = rp_setting_value(table, settings, "evict-exponent"),
    };
}

rp_status rp_replay_check(const rp_settings_table *table, const void *settings, rp_error *err)
{
    static const struct {
        const char *less, *more;
    } pairs[] = {{"start", "capacity"}, {"learners", "batch"}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        double less = rp_setting_value(table, settings, pairs[i].less);
        double more = rp_setting_value(table, settings, pairs[i].more);

        if (less > more)
            return rp_rl_fail(err, RP_INVALID, "%s: %s must be <= %s, %lld, got %lld",
                              table->agent, pairs[i].less, pairs[i].more, (long long)more,
                              (long long)less);
    }
    return RP_OK;
}

rp_adder_options rp_replay_adder(const rp_replay_plan *plan)
{
    const rp_env_spec *spec = &plan->spec;
    bool discrete = spec->action_kind == RP_ACTION_DISCRETE;

    assert(plan->copies >= 1 && plan->n_step >= 1);
    return (rp_adder_options){
        .kind = RP_ADDER_N_STEP,
        .copies = (size_t)plan->copies,
        .observation = {NULL, spec->observation_dtype, spec->observation_shape},
        .action = {.dtype = discrete ? RP_INT32 : RP_FLOAT32,
                   .shape = {discrete ? 0 : 1, {discrete ? 0 : (int64_t)spec->action_size}}},
        .n = (int32_t)plan->n_step,
        .discount = (float)plan->discount,
        .max_in_flight = IN_FLIGHT,
    };
}

rp_status rp_replay_table(const rp_replay_plan *plan, double slack, rp_table_options *out,
                          rp_error *err)
{
    const rp_adder_table to = {.name = RP_REPLAY_TABLE};
    double per_insert = (double)plan->batch / (double)plan->steps_per_update;
    double room =
        per_insert * (double)plan->copies * (double)plan->n_step + (double)plan->batch;
    rp_adder_options adder = rp_replay_adder(plan);

    assert(plan->evict_exponent <= 0);
    adder.tables = &to;
    adder.table_count = 1;
    *out = (rp_table_options){
        .name = RP_REPLAY_TABLE,
        .sampler = {.kind = RP_UNIFORM},
        .remover = {.kind = RP_FIFO},
        .limiter = rp_limiter_ratio(per_insert, plan->start, room + slack),
        .max_size = plan->capacity,
    };
    if (plan->prioritized)
        out->sampler = (rp_selector_options){RP_PRIORITIZED, plan->priority_exponent};
    if (plan->evict_exponent < 0)
        out->remover = (rp_selector_options){RP_PRIORITIZED, plan->evict_exponent};
    return rp_adder_signature(&adder, &out->signature, err);
}

rp_status rp_replay_table_in(rp_store *store, const rp_replay_plan *plan, rp_table **out,
                             rp_error *err)
{
    const rp_string name = {RP_REPLAY_TABLE, sizeof RP_REPLAY_TABLE - 1};
    rp_table_options table;
    rp_status st;

    *out = rp_store_find_table(store, name); /* from a snapshot */
    if (*out != NULL) return RP_OK;
    st = rp_replay_table(plan, 0, &table, err);
    if (st != RP_OK) return st;
    st = rp_store_add_table(store, &table, NULL, err);
    rp_signature_unref(table.signature);
    if (st == RP_OK) *out = rp_store_find_table(store, name);
    assert(st != RP_OK || *out != NULL);
    return st;
}
