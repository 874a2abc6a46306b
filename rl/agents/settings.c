/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of settings.
 *
 * Invariants of a table, which every function that uses one asserts for the rows it reads:
 *   S1  a field lies within the struct;
 *   S2  low <= initial <= high. */
#include "reprise/rl/settings.h"

#include <assert.h>
#include <string.h>

#include "error/fail.h"

static const rp_setting_info *row_at(const rp_settings_table *table, size_t index)
{
    const rp_setting_info *info = &table->list[index];

    assert(index < table->count);
    assert(info->offset < table->size);                                /* S1 */
    assert(info->low <= info->initial && info->initial <= info->high); /* S2 */
    return info;
}

double rp_settings_get(const rp_settings_table *table, const void *settings, size_t index)
{
    const rp_setting_info *info = row_at(table, index);
    const void *field = (const char *)settings + info->offset;

    switch (info->kind) {
    case RP_SETTING_INTEGER: return (double)*(const int64_t *)field;
    case RP_SETTING_NUMBER: return *(const double *)field;
    case RP_SETTING_SWITCH: return *(const bool *)field ? 1 : 0;
    }
    assert(false);
    return 0;
}

void rp_settings_set(const rp_settings_table *table, void *settings, size_t index, double value)
{
    const rp_setting_info *info = row_at(table, index);
    void *field = (char *)settings + info->offset;

    switch (info->kind) {
    case RP_SETTING_INTEGER: *(int64_t *)field = (int64_t)value; break;
    case RP_SETTING_NUMBER: *(double *)field = value; break;
    case RP_SETTING_SWITCH: *(bool *)field = value != 0; break;
    }
}

size_t rp_settings_find(const rp_settings_table *table, const char *name)
{
    size_t i = 0;

    while (i < table->count && strcmp(table->list[i].name, name) != 0) i++;
    return i;
}

void rp_settings_init(const rp_settings_table *table, void *settings, const char *env_name)
{
    memset(settings, 0, table->size);
    for (size_t i = 0; i < table->count; i++)
        rp_settings_set(table, settings, i, table->list[i].initial);
    for (size_t i = 0; env_name != NULL && i < table->preset_count; i++)
        if (strcmp(table->presets[i].env, env_name) == 0)
            rp_settings_set(table, settings, rp_settings_find(table, table->presets[i].name),
                            table->presets[i].value);
}

rp_status rp_settings_check(const rp_settings_table *table, const void *settings, rp_error *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const rp_setting_info *info = row_at(table, i);
        double value = rp_settings_get(table, settings, i);

        if (!(value >= info->low && value <= info->high))
            return rp_rl_fail(err, RP_INVALID, "%s: %s must be from %g to %g, got %g",
                              table->agent, info->name, info->low, info->high, value);
    }
    return table->check != NULL ? table->check(settings, err) : RP_OK;
}
