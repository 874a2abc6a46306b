/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of settings, for programs that read, print and check the settings of any agent.
 *
 * The settings of an agent are a plain struct (dqn.h, dpg.h, sac.h). A table
 * (rp_settings_table) describes the fields of this struct by name, kind, offset, default and
 * bounds. The functions below take the struct as `void *`. */
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
    const char *name; /* name of the field, with '-' in place of '_' */
    rp_setting_kind kind;
    size_t offset;             /* bytes from the start of the struct to the field */
    double initial, low, high; /* default value, lower bound, upper bound */
    const char *about;         /* description in one line, lower case */
} rp_setting_info;

/* A preset: the value that the setting `name` has for the environment `env` in place of the
 * default. With all presets of an environment, the agent solves this environment. */
typedef struct rp_setting_preset {
    const char *env, *name;
    double value;
} rp_setting_preset;

/* The settings of an agent. Static. */
typedef struct rp_settings_table {
    const char *agent; /* name of the agent, for example "dqn" */
    size_t size;       /* bytes of the struct */
    const rp_setting_info *list;
    size_t count; /* number of settings in `list` */
    const rp_setting_preset *presets;
    size_t preset_count;
    /* Checks that settings, each of which is within its bounds, fit each other. May be NULL.
     * Errors: RP_INVALID. */
    rp_status (*check)(const void *settings, rp_error *err);
} rp_settings_table;

/* Read and write setting number `index`, which must be less than table->count, as a number. A
 * switch is 0 or 1. */
RP_API double rp_settings_get(const rp_settings_table *table, const void *settings,
                              size_t index);
RP_API void rp_settings_set(const rp_settings_table *table, void *settings, size_t index,
                            double value);

/* Returns the index of the setting `name`, or table->count if there is none. */
RP_API size_t rp_settings_find(const rp_settings_table *table, const char *name);

/* Fills in the defaults, then the presets for the environment `env_name`. `env_name` may be
 * NULL. */
RP_API void rp_settings_init(const rp_settings_table *table, void *settings,
                             const char *env_name);

/* Checks that every setting is within its bounds, and that the settings fit each other.
 * Errors: RP_INVALID (the text of the error names the first setting that is out of its bounds
 * or does not fit). */
RP_API RP_NODISCARD rp_status rp_settings_check(const rp_settings_table *table,
                                                const void *settings, rp_error *err);

/* Expands one entry of a list of settings, such as RP_DQN_SETTING_LIST in dqn_settings.h, to an
 * initialiser of a rp_setting_info. `type` is the struct of the settings. */
#define RP_SETTING_ROW(type, kind, field, name, initial, low, high, about)                     \
    {name, RP_SETTING_##kind, offsetof(type, field), initial, low, high, about},

RP_END_DECLS

#endif
