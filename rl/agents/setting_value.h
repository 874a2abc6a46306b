/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a setting by its name, for code that several agents share. */
#ifndef RP_AGENTS_SETTING_VALUE_H
#define RP_AGENTS_SETTING_VALUE_H

#include "reprise/rl/settings.h"

/* Returns the value of the setting `name`, or 0 if the agent has no such setting. */
static inline double rp_setting_value(const rp_settings_table *table, const void *settings,
                                      const char *name)
{
    size_t i = rp_settings_find(table, name);

    return i < table->count ? rp_settings_get(table, settings, i) : 0;
}

#endif
