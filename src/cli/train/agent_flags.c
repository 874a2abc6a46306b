/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/agent_flags.h"

#include <assert.h>
#include <string.h>

/* Settings are numbers in settings.txt and in reports, so a switch may be 0 or 1 as well. */
static bool is_digit_of_switch(const char *text)
{
    return strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
}

/* Takes one setting from its text. */
static rp_status take(const rp_setting *value, const rp_settings_table *table, size_t i,
                      void *settings, rp_problem *problem)
{
    const rp_setting_info *info = &table->list[i];
    double number = 0;
    int64_t whole = 0;
    bool on = false;
    rp_status st = RP_OK;

    if (info->kind == RP_SETTING_SWITCH && is_digit_of_switch(value->text))
        on = value->text[0] == '1';
    else if (info->kind == RP_SETTING_SWITCH)
        st = rp_setting_boolean(value, &on, problem);
    else if (info->kind == RP_SETTING_INTEGER)
        st =
            rp_setting_integer(value, (int64_t)info->low, (int64_t)info->high, &whole, problem);
    else
        st = rp_setting_number(value, info->low, info->high, &number, problem);
    if (st != RP_OK) return st;
    rp_settings_set(table, settings, i,
                    info->kind == RP_SETTING_SWITCH    ? (double)on
                    : info->kind == RP_SETTING_INTEGER ? (double)whole
                                                       : number);
    return RP_OK;
}

/* Fails for a setting that the agent does not have, and names those that have it. */
static rp_status not_of(const rp_settings_table *table, const char *name, rp_problem *problem)
{
    const rp_agent_kind *kind;
    char others[80] = "";

    for (size_t i = 0; (kind = rp_agent_kind_at(i)) != NULL; i++) {
        size_t used = strlen(others);

        if (rp_settings_find(kind->settings(), name) < kind->settings()->count)
            (void)snprintf(others + used, sizeof others - used, "%s%s",
                           used > 0 ? ", " : "; it is a setting of ", kind->name);
    }
    return rp_problem_set(problem, NULL, "--%s: %s has no such setting%s", name, table->agent,
                          others);
}

rp_status rp_agent_flags_take(const rp_command *command, const rp_flags *flags, size_t first,
                              bool is_fixed, const rp_settings_table *table, void *settings,
                              rp_problem *problem)
{
    rp_error err;

    assert(first + RP_AGENT_FLAGS <= rp_command_option_count(command));
    for (size_t o = first; o < first + RP_AGENT_FLAGS; o++) {
        const char *name = rp_command_option(command, o)->name;
        size_t i = rp_settings_find(table, name);
        char key[64];
        const rp_setting value = {.key = key, .text = rp_flags_get(flags, o)};
        rp_status st;

        if (value.text == NULL) continue;
        (void)snprintf(key, sizeof key, "--%s", name);
        if (i == table->count) return not_of(table, name, problem);
        if (strcmp(name, "learners") == 0 && strcmp(value.text, "auto") == 0) continue;
        if (is_fixed)
            return rp_problem_set(problem, NULL, "%s: a resumed run keeps its settings", key);
        st = take(&value, table, i, settings, problem);
        if (st != RP_OK) return st;
    }
    if (rp_settings_check(table, settings, &err) != RP_OK)
        return rp_problem_set(problem, NULL, "%s", err.text);
    return RP_OK;
}
