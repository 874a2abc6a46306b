/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise tables alter`. */
#include <assert.h>
#include <float.h>
#include <string.h>

#include "cli/commands/alter_report.h"
#include "cli/commands/table_list.h"
#include "cli/commands/tables_inside.h"

enum { MAX_ITEMS = 1 << 30, MAX_LIMIT = INT32_MAX };

/* Parses the number of an option, if it was given; then `*given` becomes true. */
static rp_status take_number(rp_remote *r, rp_tables_option o, double low, double high,
                             double *out, bool *given, rp_problem *problem)
{
    rp_setting value;

    assert(o < RP_TABLES_OPTIONS && low <= high);
    if (!rp_remote_setting(r, o, &value)) return RP_OK;
    *given = true;
    return rp_setting_number(&value, low, high, out, problem);
}

static rp_status take_bounds(rp_remote *r, rp_table_alteration *c, rp_problem *problem)
{
    int64_t times = 0;
    rp_setting value;
    rp_status st = RP_OK;

    if (rp_remote_setting(r, RP_TABLES_MAX_SIZE, &value)) {
        c->which |= RP_ALTER_MAX_SIZE;
        st = rp_setting_integer(&value, 1, MAX_ITEMS, &c->max_size, problem);
    }
    if (st == RP_OK && rp_remote_setting(r, RP_TABLES_MAX_BYTES, &value)) {
        c->which |= RP_ALTER_MAX_BYTES;
        st = rp_setting_size(&value, 0, &c->max_bytes, problem);
    }
    if (st == RP_OK && rp_remote_setting(r, RP_TABLES_MAX_TIMES_SAMPLED, &value)) {
        c->which |= RP_ALTER_MAX_TIMES_SAMPLED;
        st = rp_setting_integer(&value, 0, MAX_LIMIT, &times, problem);
        c->max_times_sampled = (int32_t)times;
    }
    return st;
}

/* Starts with the current limiter and replaces the values that were given. */
static rp_status take_limiter(rp_remote *r, const rp_limiter_options *now,
                              rp_table_alteration *c, rp_problem *problem)
{
    bool any = false, ratio = false, buffer = false;
    double error_buffer = 0;
    rp_setting value;
    rp_status st;

    c->limiter = *now;
    st =
        take_number(r, RP_TABLES_SAMPLES_PER_INSERT, RP_MIN_SAMPLES_PER_INSERT,
                    RP_MAX_SAMPLES_PER_INSERT, &c->limiter.samples_per_insert, &ratio, problem);
    if (st == RP_OK)
        st =
            take_number(r, RP_TABLES_ERROR_BUFFER, 0, DBL_MAX, &error_buffer, &buffer, problem);
    if (st == RP_OK && rp_remote_setting(r, RP_TABLES_MIN_SIZE, &value)) {
        any = true;
        st = rp_setting_integer(&value, 1, INT64_MAX, &c->limiter.min_size, problem);
    }
    if (st == RP_OK && buffer)
        c->limiter =
            rp_limiter_ratio(c->limiter.samples_per_insert, c->limiter.min_size, error_buffer);
    if (st == RP_OK)
        st = take_number(r, RP_TABLES_MIN_DIFF, -DBL_MAX, DBL_MAX, &c->limiter.min_diff, &any,
                         problem);
    if (st == RP_OK)
        st = take_number(r, RP_TABLES_MAX_DIFF, -DBL_MAX, DBL_MAX, &c->limiter.max_diff, &any,
                         problem);
    if (st != RP_OK) return st;
    if (any || ratio || buffer) c->which |= RP_ALTER_LIMITER;
    if (rp_remote_switch(r, RP_TABLES_RECENTER)) c->which |= RP_ALTER_RECENTER;
    if ((c->which & (RP_ALTER_LIMITER | RP_ALTER_RECENTER)) == RP_ALTER_RECENTER)
        c->which |= RP_ALTER_LIMITER; /* with its current values */
    if (c->which == 0)
        return rp_problem_set(problem, NULL,
                              "nothing to change; give --max-size N or another "
                              "option of alter, --help lists them");
    return RP_OK;
}

static uint32_t given_options(const rp_remote *r)
{
    static const struct {
        rp_tables_option option;
        uint32_t bit;
    } bits[] = {
        {RP_TABLES_MAX_SIZE, RP_ALTERED_MAX_SIZE},
        {RP_TABLES_MAX_BYTES, RP_ALTERED_MAX_BYTES},
        {RP_TABLES_MAX_TIMES_SAMPLED, RP_ALTERED_MAX_TIMES_SAMPLED},
        {RP_TABLES_SAMPLES_PER_INSERT, RP_ALTERED_SAMPLES_PER_INSERT},
        {RP_TABLES_MIN_SIZE, RP_ALTERED_MIN_SIZE},
        {RP_TABLES_ERROR_BUFFER, RP_ALTERED_ERROR_BUFFER},
        {RP_TABLES_MIN_DIFF, RP_ALTERED_MIN_DIFF},
        {RP_TABLES_MAX_DIFF, RP_ALTERED_MAX_DIFF},
    };
    uint32_t given =
        rp_remote_switch(r, RP_TABLES_RECENTER) ? (uint32_t)RP_ALTERED_RECENTER : 0;

    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        if (rp_flags_get(r->flags, bits[i].option) != NULL) given |= bits[i].bit;
    return given;
}

/* Prints what an alteration has changed in one table. */
static int report_alteration(rp_remote *r, const rp_table_list *list,
                             const rp_client_table *now, const rp_table_info *before)
{
    const rp_alter_report report = {before, &now->info, given_options(r)};
    rp_text_buffer buffer = {0}, warnings = {0};
    int status;

    rp_alter_warnings(&warnings, &report);
    if (r->json) {
        rp_json_open(&buffer, '{');
        rp_json_key(&buffer, "table");
        rp_json_put_text(&buffer, now->info.name);
        rp_json_key(&buffer, "done");
        rp_json_put_text(&buffer, "altered");
        rp_json_key(&buffer, "shard");
        rp_json_put_text(&buffer, now->shard < list->view.shard_count
                                      ? list->view.shards[now->shard]
                                      : NULL);
        rp_alter_changes_json(&buffer, &report);
        rp_alter_warnings_json(&buffer, &warnings);
        rp_unreachable_json(&buffer, r->change.list, r->change.count);
        rp_json_close(&buffer, '}');
        rp_text_buffer_put(&buffer, "\n");
    } else if (!rp_alter_is_same(&report)) { /* else a warning says so */
        rp_text_buffer_put(&buffer, "altered ");
        rp_table_list_put(&buffer, list, now);
        rp_text_buffer_put(&buffer, "\n");
        rp_alter_changes(&buffer, &report);
    }
    status = rp_remote_print(r, &buffer);
    if (!r->json) rp_alter_warnings_print(&warnings, r->command->name);
    rp_text_buffer_deinit(&buffer);
    rp_text_buffer_deinit(&warnings);
    return status;
}

/* Prints what an alteration has changed in the table of each shard that has done it. */
static int report_alterations(rp_remote *r, const rp_table_list *before, const char *name,
                              const rp_error *result)
{
    rp_table_list now = {0};
    rp_error err = {0};
    rp_status st = rp_table_list_fetch_named(&now, r->client, name, rp_remote_wait(r), &err);
    int status = st == RP_OK ? 0 : rp_remote_fail(r, st, &err);

    for (size_t i = 0; i < now.view.count && status == 0; i++) {
        const rp_client_table *t = &now.view.tables[i], *old;

        if (strcmp(t->info.name, name) != 0 || !rp_table_list_done_on(&now, t, result))
            continue;
        old = rp_table_list_on_shard(before, name, t->shard);
        status = report_alteration(r, &now, t, old != NULL ? &old->info : &t->info);
    }
    rp_table_list_deinit(&now);
    return status;
}

int rp_tables_alter(rp_remote *r, const char *word, const char **table)
{
    rp_table_alteration change = {0};
    const rp_client_table *found;
    rp_table_list list = {0};
    rp_problem problem;
    rp_error err = {0};
    rp_status st = rp_table_list_fetch_named(&list, r->client, word, rp_remote_wait(r), &err);
    int status = 0;

    *table = NULL;
    found = st == RP_OK ? rp_table_list_find(&list, word) : NULL;
    if (found == NULL) {
        status = rp_remote_fail(r, st, &err);
    } else if (take_bounds(r, &change, &problem) != RP_OK ||
               take_limiter(r, &found->info.limiter, &change, &problem) != RP_OK) {
        status = rp_remote_misuse(r, &problem);
    } else {
        rp_remote_begin_change(r);
        st = rp_client_alter_table(r->client, word, &change, rp_remote_wait(r), &err);
        rp_remote_end_change(r);
        if (st == RP_OK || rp_done_partly(&err))
            status = report_alterations(r, &list, word, &err);
        if (st != RP_OK) status = rp_tables_fail(r, word, "altered", false, st, &err);
    }
    rp_table_list_deinit(&list);
    return status;
}
