/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of DQN: names, defaults and bounds in one table, and the values for our own
 * environments that differ from the defaults.
 *
 * Invariants:
 *   S1  the table describes every field of rp_dqn_settings once, in their order;
 *   S2  low <= initial <= high. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"
#include "reprise/rl/dqn.h"

#define FIELD(name) offsetof(rp_dqn_settings, name)

static const rp_setting_info table[] = {
    {"copies", RP_SETTING_INTEGER, FIELD(copies), 8, 1, 4096,
     "environments stepped as one group"},
    {"hidden", RP_SETTING_INTEGER, FIELD(hidden), 64, 1, 65536, "units of a hidden layer"},
    {"layers", RP_SETTING_INTEGER, FIELD(layers), 2, 0, 16, "hidden layers"},
    {"dueling", RP_SETTING_SWITCH, FIELD(dueling), 1, 0, 1,
     "separate streams for value and advantages"},
    {"double-q", RP_SETTING_SWITCH, FIELD(double_q), 1, 0, 1,
     "the online network picks the next action"},
    {"n-step", RP_SETTING_INTEGER, FIELD(n_step), 3, 1, 64, "rewards in a target"},
    {"discount", RP_SETTING_NUMBER, FIELD(discount), 0.99, 0, 1,
     "discount of a reward one step later"},
    {"reward-scale", RP_SETTING_NUMBER, FIELD(reward_scale), 1, 1e-9, 1e9,
     "factor of all rewards"},
    {"rate", RP_SETTING_NUMBER, FIELD(rate), 1e-3, 1e-12, 1e12, "learning rate of Adam"},
    {"adam-epsilon", RP_SETTING_NUMBER, FIELD(adam_epsilon), 1e-8, 1e-12, 1, "epsilon of Adam"},
    {"max-norm", RP_SETTING_NUMBER, FIELD(max_norm), 10, 0, 1e9,
     "norm to which gradients are clipped; 0: never"},
    {"huber", RP_SETTING_NUMBER, FIELD(huber), 1, 0, 1e9,
     "error beyond which the loss is linear; 0: square"},
    {"batch", RP_SETTING_INTEGER, FIELD(batch), 64, 1, 65536, "items of an update"},
    {"steps-per-update", RP_SETTING_INTEGER, FIELD(steps_per_update), 4, 1, 1000000,
     "items written per update"},
    {"start", RP_SETTING_INTEGER, FIELD(start), 1000, 1, 1000000000,
     "items in the replay before the first update"},
    {"capacity", RP_SETTING_INTEGER, FIELD(capacity), 100000, 1, 1000000000,
     "items in the replay"},
    {"prioritized", RP_SETTING_SWITCH, FIELD(prioritized), 1, 0, 1, "sample by TD error"},
    {"priority-exponent", RP_SETTING_NUMBER, FIELD(priority_exponent), 0.6, 0, 10,
     "exponent of priorities (alpha)"},
    {"weight-exponent", RP_SETTING_NUMBER, FIELD(weight_exponent), 0.4, 0, 10,
     "exponent of importance weights (beta)"},
    {"target-every", RP_SETTING_INTEGER, FIELD(target_every), 100, 1, 1000000000,
     "updates between changes of the target network"},
    {"target-rate", RP_SETTING_NUMBER, FIELD(target_rate), 1, 1e-9, 1,
     "share of such a change; 1: copy"},
    {"ladder", RP_SETTING_SWITCH, FIELD(ladder), 1, 0, 1,
     "a constant epsilon for each copy, from .4 down"},
    {"epsilon-first", RP_SETTING_NUMBER, FIELD(epsilon_first), 1, 0, 1,
     "without the ladder: epsilon at the start"},
    {"epsilon-last", RP_SETTING_NUMBER, FIELD(epsilon_last), 0.05, 0, 1,
     "without the ladder: epsilon at the end"},
    {"epsilon-steps", RP_SETTING_INTEGER, FIELD(epsilon_steps), 10000, 1, 1000000000000,
     "without the ladder: steps from first to last"},
    {"max-loss", RP_SETTING_NUMBER, FIELD(max_loss), 1e6, 1e-9, 1e30,
     "loss at which the run counts as diverged"},
};
static_assert(sizeof table / sizeof table[0] == RP_DQN_SETTINGS, "S1");

/* Values that solve an environment and are not the defaults (docs/agents/dqn.md). */
typedef struct preset {
    const char *env, *name;
    double value;
} preset;

static const preset presets[] = {
    {"catch", "start", 500},         {"mountain_car", "copies", 16},
    {"mountain_car", "n-step", 5},   {"mountain_car", "target-every", 200},
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
