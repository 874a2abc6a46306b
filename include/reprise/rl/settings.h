/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of agents as tables: names, kinds, defaults and bounds, for programs that read,
 * print and check settings without knowing the agent.
 *
 * The settings of an agent are a plain struct (dqn.h, dpg.h). A table (rp_settings_table) says
 * where each field is and what it may be. Its functions take the struct as `void *`. */
#ifndef REPRISE_RL_SETTINGS_H
#define REPRISE_RL_SETTINGS_H

#include "reprise/status.h"

RP_BEGIN_DECLS

typedef enum rp_setting_kind {
    RP_SETTING_INTEGER = 0, /* int64_t */
    RP_SETTING_NUMBER,      /* double */
    RP_SETTING_SWITCH,      /* bool */
} rp_setting_kind;

/* One setting. */
typedef struct rp_setting_info {
    const char *name; /* as in the struct, with '-' for '_' */
    rp_setting_kind kind;
    size_t offset;             /* in the struct */
    double initial, low, high; /* the default, and the bounds */
    const char *about;         /* one line, lower case */
} rp_setting_info;

/* A value that solves an environment and is not the default. */
typedef struct rp_setting_preset {
    const char *env, *name;
    double value;
} rp_setting_preset;

/* The settings of an agent. Static. */
typedef struct rp_settings_table {
    const char *agent; /* "dqn" */
    size_t size;       /* bytes of the struct */
    const rp_setting_info *list;
    size_t count;
    const rp_setting_preset *presets;
    size_t preset_count;
    /* Checks that settings within their bounds fit each other; may be NULL. RP_INVALID. */
    rp_status (*check)(const void *settings, rp_error *err);
} rp_settings_table;

/* Reads or writes the setting with this index, which is below `count`, as a number; a switch is
 * 0 or 1. */
RP_API double rp_settings_get(const rp_settings_table *table, const void *settings,
                              size_t index);
RP_API void rp_settings_set(const rp_settings_table *table, void *settings, size_t index,
                            double value);

/* Returns the index of the setting of this name; `count` if there is none. */
RP_API size_t rp_settings_find(const rp_settings_table *table, const char *name);

/* Fills in the defaults, then the values for the environment of this name, if it has other
 * ones. `env_name` may be NULL. */
RP_API void rp_settings_init(const rp_settings_table *table, void *settings,
                             const char *env_name);

/* RP_INVALID: names the first setting that is out of its bounds, or does not fit another. */
RP_API RP_NODISCARD rp_status rp_settings_check(const rp_settings_table *table,
                                                const void *settings, rp_error *err);

/* A row of a table, for the lists of settings (dqn_settings.h): `type` is the struct. */
#define RP_SETTING_ROW(type, kind, field, name, initial, low, high, about)                     \
    {name, RP_SETTING_##kind, offsetof(type, field), initial, low, high, about},

RP_END_DECLS

#endif
