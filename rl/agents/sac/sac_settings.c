/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of SAC as a table, and the values for our own environments that are not the
 * defaults. */
#include <assert.h>

#include "agents/replay_plan.h"
#include "reprise/rl/sac.h"

#define ROW(...) RP_SETTING_ROW(rp_sac_settings, __VA_ARGS__)
static const rp_setting_info rows[] = {RP_SAC_SETTING_LIST(ROW)};
static_assert(sizeof rows / sizeof rows[0] == RP_SAC_SETTINGS, "every setting is a row");

/* Values that solve an environment and are not the defaults (docs/agents/sac.md). */
static const rp_setting_preset presets[] = {
    {"mountain_car_continuous", "n-step", 5},
    {"mountain_car_continuous", "noise-memory", 0.9},
};

static rp_status check(const void *settings, rp_error *err)
{
    return rp_replay_check(rp_sac_settings_table(), settings, err);
}

static const rp_settings_table table = {
    .agent = "sac",
    .size = sizeof(rp_sac_settings),
    .list = rows,
    .count = RP_SAC_SETTINGS,
    .presets = presets,
    .preset_count = sizeof presets / sizeof presets[0],
    .check = check,
};

const rp_settings_table *rp_sac_settings_table(void)
{
    return &table;
}

void rp_sac_settings_init(rp_sac_settings *settings, const char *env_name)
{
    rp_settings_init(&table, settings, env_name);
}

rp_status rp_sac_settings_check(const rp_sac_settings *settings, rp_error *err)
{
    return rp_settings_check(&table, settings, err);
}
