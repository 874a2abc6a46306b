/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of DQN as a table, and the values for our own environments that are not the
 * defaults.
 *
 * Invariants:
 *   S1  the table describes every field of rp_dqn_settings once, in their order;
 *   S2  low <= initial <= high. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/rl/dqn.h"

#define ROW(kind, field, name, initial, low, high, about)                                      \
    {name, RP_SETTING_##kind, offsetof(rp_dqn_settings, field), initial, low, high, about},
static const rp_setting_info table[] = {RP_DQN_SETTING_LIST(ROW)};
static_assert(sizeof table / sizeof table[0] == RP_DQN_SETTINGS, "S1");

/* Values that solve an environment and are not the defaults (docs/agents/dqn.md). */
typedef struct preset {
    const char *env, *name;
    double value;
} preset;

static const preset presets[] = {
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

const rp_setting_info *rp_dqn_setting_at(size_t index)
{
    assert(index < RP_DQN_SETTINGS);
    assert(table[index].low <= table[index].initial); /* S2 */
    assert(table[index].initial <= table[index].high);
    return &table[index];
}

double rp_dqn_setting_get(const rp_dqn_settings *settings, size_t index)
{
    const rp_setting_info *info = rp_dqn_setting_at(index);
    const void *field = (const char *)settings + info->offset;

    switch (info->kind) {
    case RP_SETTING_INTEGER: return (double)*(const int64_t *)field;
    case RP_SETTING_NUMBER: return *(const double *)field;
    case RP_SETTING_SWITCH: return *(const bool *)field ? 1 : 0;
    }
    assert(false);
    return 0;
}

void rp_dqn_setting_set(rp_dqn_settings *settings, size_t index, double value)
{
    const rp_setting_info *info = rp_dqn_setting_at(index);
    void *field = (char *)settings + info->offset;

    switch (info->kind) {
    case RP_SETTING_INTEGER: *(int64_t *)field = (int64_t)value; break;
    case RP_SETTING_NUMBER: *(double *)field = value; break;
    case RP_SETTING_SWITCH: *(bool *)field = value != 0; break;
    }
}

static size_t find(const char *name)
{
    size_t i = 0;

    while (strcmp(table[i].name, name) != 0) i++;
    assert(i < RP_DQN_SETTINGS);
    return i;
}

void rp_dqn_settings_init(rp_dqn_settings *settings, const char *env_name)
{
    memset(settings, 0, sizeof *settings);
    for (size_t i = 0; i < RP_DQN_SETTINGS; i++)
        rp_dqn_setting_set(settings, i, table[i].initial);
    for (size_t i = 0; env_name != NULL && i < sizeof presets / sizeof presets[0]; i++)
        if (strcmp(presets[i].env, env_name) == 0)
            rp_dqn_setting_set(settings, find(presets[i].name), presets[i].value);
}

rp_status rp_dqn_settings_check(const rp_dqn_settings *settings, rp_error *err)
{
    for (size_t i = 0; i < RP_DQN_SETTINGS; i++) {
        double value = rp_dqn_setting_get(settings, i);

        if (!(value >= table[i].low && value <= table[i].high))
            return rp_rl_fail(err, RP_INVALID, "dqn: %s must be from %g to %g, got %g",
                              table[i].name, table[i].low, table[i].high, value);
    }
    if (settings->start > settings->capacity)
        return rp_rl_fail(err, RP_INVALID, "dqn: start must be <= capacity, %lld, got %lld",
                          (long long)settings->capacity, (long long)settings->start);
    return RP_OK;
}
