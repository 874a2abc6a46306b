/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of DQN as a table, and the values for our own environments that are not the
 * defaults. */
#include <assert.h>

#include "agents/dqn_net.h"

#define ROW(...) RP_SETTING_ROW(rp_dqn_settings, __VA_ARGS__)
static const rp_setting_info rows[] = {RP_DQN_SETTING_LIST(ROW)};
static_assert(sizeof rows / sizeof rows[0] == RP_DQN_SETTINGS, "every setting is a row");

/* Values that solve an environment and are not the defaults (docs/agents/dqn.md). */
static const rp_setting_preset presets[] = {
    {"catch", "start", 500},
    {"lunarlander", "copies", 16},
    {"lunarlander", "n-step", 3},
    {"lunarlander", "reward-scale", 0.1},
    {"lunarlander", "rate", 1e-3},
    {"lunarlander", "batch", 64},
    {"lunarlander", "start", 5000},
    {"lunarlander", "capacity", 100000},
    {"lunarlander", "target-every", 500},
    {"mountain_car", "copies", 16},
    {"mountain_car", "target-every", 200},
    {"mountain_car", "start", 2000},
};

static rp_status check(const void *settings, rp_error *err)
{
    return rp_replay_check(rp_dqn_settings_table(), settings, err);
}

static const rp_settings_table table = {
    .agent = "dqn",
    .size = sizeof(rp_dqn_settings),
    .list = rows,
    .count = RP_DQN_SETTINGS,
    .presets = presets,
    .preset_count = sizeof presets / sizeof presets[0],
    .check = check,
};

const rp_settings_table *rp_dqn_settings_table(void)
{
    return &table;
}

void rp_dqn_settings_init(rp_dqn_settings *settings, const char *env_name)
{
    rp_settings_init(&table, settings, env_name);
}

rp_status rp_dqn_settings_check(const rp_dqn_settings *settings, rp_error *err)
{
    return rp_settings_check(&table, settings, err);
}

rp_replay_plan rp_dqn_plan(const rp_dqn_settings *settings, const rp_env_spec *spec)
{
    return rp_replay_plan_of(&table, settings, spec);
}
