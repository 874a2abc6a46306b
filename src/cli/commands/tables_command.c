/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise tables`: each action is a function over one word, called for every word given. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/alter_report.h"
#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/commands/tables_inside.h"
#include "cli/serve/table_spec.h"
#include "cli/text/signature_spec.h"
#include "cli/text/units.h"
#include "reprise/printable.h"

static const rp_option options[RP_TABLES_OPTIONS] = {
    [RP_TABLES_COLUMN] = {"column", "NAME=SPEC", "a column, such as obs='float32 [?, 84]'",
                          true, "create", NULL},
    [RP_TABLES_MAX_SIZE] = {"max-size", "N", "items, at most", false, "alter", NULL},
    [RP_TABLES_MAX_BYTES] = {"max-bytes", "SIZE", "memory of its items (0: no limit)", false,
                             NULL, NULL},
    [RP_TABLES_MAX_TIMES_SAMPLED] = {"max-times-sampled", "N",
                                     "remove an item after N samples (0: no limit)", false,
                                     NULL, NULL},
    [RP_TABLES_SAMPLES_PER_INSERT] = {"samples-per-insert", "X", "target of the rate limiter",
                                      false, NULL, NULL},
    [RP_TABLES_MIN_SIZE] = {"min-size", "N", "items before the first sample", false, NULL,
                            NULL},
    [RP_TABLES_ERROR_BUFFER] = {"error-buffer", "X", "deviation from the target, in samples",
                                false, NULL, NULL},
    [RP_TABLES_MIN_DIFF] = {"min-diff", "X", "inserts * samples-per-insert - samples, at least",
                            false, NULL, NULL},
    [RP_TABLES_MAX_DIFF] = {"max-diff", "X", "the same, at most", false, NULL, NULL},
    [RP_TABLES_RECENTER] = {"recenter", NULL, "reset the limiter to the middle of its bounds",
                            false, NULL, NULL},
    [RP_TABLES_INSERTS] = {"inserts", NULL, "inserts only", false, "pause and resume", NULL},
    [RP_TABLES_SAMPLES] = {"samples", NULL, "samples only", false, NULL, NULL},
};

static const char text[] =
    "Actions:\n"
    "  list                  print the names of the tables\n"
    "  create SPEC...        NAME:SAMPLER[:MAX_SIZE][,key=value...], as reprise serve --table\n"
    "  drop TABLE...         remove tables and their items\n"
    "  alter TABLE...        change bounds and rate limiter of a table in use, and say what "
    "follows\n"
    "  reset TABLE...        remove all items and reset all counters\n"
    "  pause TABLE...        make inserts, samples or both wait\n"
    "  resume TABLE...       let them continue\n"
    "With several servers, an action applies to all of them.\n";

static const char *const examples[] = {
    "reprise tables list",
    "reprise tables create scratch:fifo:100 --column 'obs=float32 [4]' --column done=bool",
    "reprise tables create both:prioritized:100000,samples_per_insert=4,min_size=100",
    "reprise tables alter scratch --max-size 500",
    "reprise tables alter both --samples-per-insert 8 --error-buffer 200 --recenter",
    "reprise tables pause scratch --samples",
    "reprise tables resume scratch",
    "reprise tables reset scratch",
    "reprise tables drop scratch both",
    NULL,
};

/* Functions as rp_tables_alter(). */
typedef int (*action)(rp_remote *r, const char *word, const char **table);

int rp_tables_fail(rp_remote *r, const char *name, const char *done, bool json, rp_status st,
                   const rp_error *err)
{
    rp_text_buffer line = {0};
    int status;

    if (!rp_done_partly(err)) return rp_remote_fail(r, st, err);
    if (json) {
        rp_json_open(&line, '{');
        rp_json_key(&line, "table");
        rp_json_put_text(&line, name);
        rp_json_key(&line, "done");
        rp_json_put_text(&line, done);
        rp_json_key(&line, "error");
        rp_json_put_text(&line, err->text);
        rp_unreachable_json(&line, r->change.list, r->change.count);
        rp_json_close(&line, '}');
        rp_text_buffer_put(&line, "\n");
        (void)rp_remote_print(r, &line);
        rp_text_buffer_clear(&line);
    }
    rp_text_buffer_format(&line, "%s ", r->flags->words[0]);
    rp_text_buffer_put_safe(&line, name, strlen(name));
    status = rp_remote_fail_after(r, rp_text_buffer_text(&line), st, err);
    rp_text_buffer_deinit(&line);
    return status == EXIT_FAILURE ? RP_TABLES_PARTLY
                                  : status; /* else a signal ends the command */
}

static rp_status parse_columns(rp_remote *r, rp_signature **out, rp_problem *problem)
{
    rp_spec *columns = NULL;
    size_t count = 0, capacity = 0;
    rp_error err = {0};
    char why[256];

    for (size_t i = 0; i < r->flags->count; i++) {
        const char *value = r->flags->list[i].value, *equals;
        rp_spec spec;

        if (r->flags->list[i].option != RP_TABLES_COLUMN) continue;
        equals = strchr(value, '=');
        if (equals == NULL || equals == value)
            return rp_problem_set(problem, NULL, "--column %.100s: expected NAME=SPEC", value);
        if (rp_spec_parse(equals + 1, &spec, why, sizeof why) != RP_OK)
            return rp_problem_set(problem, NULL, "--column %.100s: %s", value, why);
        spec.name = rp_arena_text(&r->arena, value, (size_t)(equals - value));
        columns = rp_arena_grow(&r->arena, columns, count, &capacity, sizeof *columns);
        if (columns == NULL || spec.name == NULL) return rp_problem_memory(problem);
        columns[count++] = spec;
    }
    if (count == 0) return RP_OK;
    if (rp_signature_flat(rp_allocator_default(), columns, count, out, &err) == RP_OK)
        return RP_OK;
    return rp_problem_set(problem, NULL, "--column: %s", err.text);
}

/* Reads the table that a word and --column describe. The caller drops the signature. */
static rp_status parse_table(rp_remote *r, const char *word, rp_table_settings *settings,
                             rp_problem *problem)
{
    rp_status st = rp_table_spec_parse(settings, &r->arena, "create", word, 0, problem);

    if (st == RP_OK) st = parse_columns(r, &settings->signature, problem);
    return st == RP_OK ? rp_table_settings_finish(settings, problem) : st;
}

/* The fewest bytes that an item takes: 248 of the item, 8 for its column, 8 for its chunk, 24
 * for the slice, and 352 of the chunk beside its data (docs/operations.md, "Memory"). */
enum { LEAST_ITEM_BYTES = 640 };

/* Warns if no item fits into the new table. */
static void warn_if_too_small(const rp_remote *r, const rp_table_options *made)
{
    char bound[40], item[40];

    if (made->max_bytes == 0 || made->max_bytes >= LEAST_ITEM_BYTES) return;
    (void)fflush(stdout);
    (void)fprintf(stderr,
                  "reprise %s: warning: table '%.255s': max_bytes %s is less than the smallest "
                  "item takes, %s: the table keeps none\n",
                  r->command->name, made->name,
                  rp_size_text(made->max_bytes, bound, sizeof bound),
                  rp_size_text(LEAST_ITEM_BYTES, item, sizeof item));
}

static int create(rp_remote *r, const char *word, const char **table)
{
    rp_table_settings settings = {0};
    char room[RP_TABLE_HINT_BYTES];
    rp_table_options made;
    rp_problem problem;
    rp_error err = {0};
    rp_status st;
    int status = 0;

    if (parse_table(r, word, &settings, &problem) != RP_OK) {
        status = rp_remote_misuse(r, &problem);
    } else {
        made = rp_table_settings_options(&settings);
        *table = settings.name;
        rp_remote_begin_change(r);
        st = rp_client_create_table(r->client, &made, rp_remote_wait(r), &err);
        rp_remote_end_change(r);
        if (st != RP_OK) {
            size_t used = strlen(err.text);
            const char *hint = rp_table_settings_hint(&settings, &err, room, sizeof room);

            (void)snprintf(err.text + used, sizeof err.text - used, "%s", hint);
            status = rp_tables_fail(r, *table, "created", r->json, st, &err);
        } else {
            warn_if_too_small(r, &made);
        }
    }
    rp_signature_unref(settings.signature);
    return status;
}

static int drop(rp_remote *r, const char *word, const char **table)
{
    rp_error err = {0};
    rp_status st;

    rp_remote_begin_change(r);
    st = rp_client_drop_table(r->client, word, rp_remote_wait(r), &err);
    rp_remote_end_change(r);
    *table = word;
    return st == RP_OK ? 0 : rp_tables_fail(r, word, "dropped", r->json, st, &err);
}

static int reset(rp_remote *r, const char *word, const char **table)
{
    rp_error err = {0};
    rp_status st;

    rp_remote_begin_change(r);
    st = rp_client_reset(r->client, word, rp_remote_wait(r), &err);
    rp_remote_end_change(r);
    *table = word;
    return st == RP_OK ? 0 : rp_tables_fail(r, word, "reset", r->json, st, &err);
}

static uint32_t sides(const rp_remote *r)
{
    uint32_t given = (rp_remote_switch(r, RP_TABLES_INSERTS) ? (uint32_t)RP_SIDE_INSERTS : 0) |
                     (rp_remote_switch(r, RP_TABLES_SAMPLES) ? (uint32_t)RP_SIDE_SAMPLES : 0);

    return given != 0 ? given : RP_SIDE_INSERTS | RP_SIDE_SAMPLES;
}

/* Prints what pausing or resuming has changed: whether the sides were so already, and, after a
 * resume, what they still wait for. */
static int report_sides(rp_remote *r, const rp_table_list *before, const char *name,
                        bool resumed, const rp_error *result)
{
    rp_text_buffer buffer = {0};
    rp_table_list now = {0};
    rp_error err = {0};
    rp_status st = rp_table_list_fetch_named(&now, r->client, name, rp_remote_wait(r), &err);
    int status = 0;

    for (size_t i = 0; i < now.view.count && st == RP_OK; i++) {
        const rp_client_table *t = &now.view.tables[i], *old;

        if (strcmp(t->info.name, name) != 0 || !rp_table_list_done_on(&now, t, result))
            continue;
        old = rp_table_list_on_shard(before, name, t->shard);
        rp_text_buffer_put(&buffer, resumed ? "resumed " : "paused ");
        rp_table_list_put(&buffer, &now, t);
        if (old != NULL && old->info.paused == t->info.paused)
            rp_text_buffer_put(&buffer, resumed ? ", which was not paused" : " already");
        rp_text_buffer_put(&buffer, "\n");
        if (resumed) rp_limiter_waits(&buffer, &t->info);
    }
    status = st == RP_OK ? rp_remote_print(r, &buffer) : rp_remote_fail(r, st, &err);
    rp_text_buffer_deinit(&buffer);
    rp_table_list_deinit(&now);
    return status;
}

static int set_sides(rp_remote *r, const char *name, bool resume, const char **table)
{
    rp_table_list before = {0};
    rp_error err = {0};
    rp_status st = rp_table_list_fetch_named(&before, r->client, name, rp_remote_wait(r), &err);
    int status = 0;

    *table = r->json ? name : NULL;
    rp_remote_begin_change(r);
    if (st == RP_OK && resume)
        st = rp_client_resume_table(r->client, name, sides(r), rp_remote_wait(r), &err);
    else if (st == RP_OK)
        st = rp_client_pause_table(r->client, name, sides(r), rp_remote_wait(r), &err);
    rp_remote_end_change(r);
    if (!r->json && (st == RP_OK || rp_done_partly(&err)))
        status = report_sides(r, &before, name, resume, &err);
    if (st != RP_OK)
        status = rp_tables_fail(r, name, resume ? "resumed" : "paused", r->json, st, &err);
    rp_table_list_deinit(&before);
    return status;
}

static int pause_table(rp_remote *r, const char *word, const char **table)
{
    return set_sides(r, word, false, table);
}

static int resume(rp_remote *r, const char *word, const char **table)
{
    return set_sides(r, word, true, table);
}

static int list_names(rp_remote *r)
{
    rp_table_list list = {0};
    rp_text_buffer buffer = {0};
    rp_error err = {0};
    rp_status st = rp_table_list_fetch(&list, r->client, rp_remote_wait(r), &err);
    int status = 0;

    if (st != RP_OK) {
        status = rp_remote_fail(r, st, &err);
    } else {
        if (r->json) rp_json_open(&buffer, '[');
        for (size_t i = 0; i < list.view.count; i++) {
            const char *name = list.view.tables[i].info.name;

            /* A table of several shards is listed once. */
            if (rp_table_list_find(&list, name) != &list.view.tables[i]) continue;
            if (r->json) {
                rp_json_put_text(&buffer, name);
            } else {
                rp_text_buffer_put_safe(&buffer, name, strlen(name));
                rp_text_buffer_put(&buffer, "\n");
            }
        }
        if (r->json) rp_text_buffer_put(&buffer, "]\n");
        status = rp_remote_print(r, &buffer);
    }
    rp_text_buffer_deinit(&buffer);
    rp_table_list_deinit(&list);
    return status;
}

static const struct {
    const char *name, *done;
    action act;
    uint32_t takes; /* a bit for each allowed option */
} actions[] = {
    {"list", "", NULL, 0},
    {"create", "created", create, 1U << RP_TABLES_COLUMN},
    {"drop", "dropped", drop, 0},
    {"alter", "altered", rp_tables_alter,
     1U << RP_TABLES_MAX_SIZE | 1U << RP_TABLES_MAX_BYTES | 1U << RP_TABLES_MAX_TIMES_SAMPLED |
         1U << RP_TABLES_SAMPLES_PER_INSERT | 1U << RP_TABLES_MIN_SIZE |
         1U << RP_TABLES_ERROR_BUFFER | 1U << RP_TABLES_MIN_DIFF | 1U << RP_TABLES_MAX_DIFF |
         1U << RP_TABLES_RECENTER},
    {"reset", "reset", reset, 0},
    {"pause", "paused", pause_table, 1U << RP_TABLES_INSERTS | 1U << RP_TABLES_SAMPLES},
    {"resume", "resumed", resume, 1U << RP_TABLES_INSERTS | 1U << RP_TABLES_SAMPLES},
};

enum { ACTIONS = sizeof actions / sizeof actions[0] };

/* Returns the index of an action. The parser has checked that it exists. */
static size_t find_action(const char *name)
{
    size_t i = 0;

    while (strcmp(actions[i].name, name) != 0) {
        i++;
        assert(i < ACTIONS);
    }
    return i;
}

/* An option that the action does not take. */
static rp_status refuse_option(size_t a, size_t o, rp_problem *problem)
{
    char key[32];

    assert(o < RP_TABLES_OPTIONS);
    (void)snprintf(key, sizeof key, "%s", options[o].name);
    for (char *at = key; *at != '\0'; at++)
        if (*at == '-') *at = '_';
    if (actions[a].act == create && o == RP_TABLES_MAX_SIZE)
        return rp_problem_set(problem, NULL,
                              "--%s has no effect on create: its argument has it: "
                              "NAME:SAMPLER:MAX_SIZE",
                              options[o].name);
    if (actions[a].act == create && o > RP_TABLES_MAX_SIZE && o < RP_TABLES_RECENTER)
        return rp_problem_set(problem, NULL,
                              "--%s has no effect on create: its argument has it: "
                              "NAME:SAMPLER:MAX_SIZE,%s=%s",
                              options[o].name, key, options[o].argument);
    return rp_problem_set(problem, NULL, "--%s has no effect on %s", options[o].name,
                          actions[a].name);
}

static rp_status check(const rp_remote *r, size_t a, rp_problem *problem)
{
    size_t words = r->flags->word_count - 1;

    static_assert(RP_TABLES_OPTIONS <= 32, "`takes` has a bit for each option");
    assert(a < ACTIONS && r->flags->word_count >= 1);
    if (actions[a].act == NULL && words > 0)
        return rp_problem_set(problem, NULL, "'%.100s' is not expected here",
                              r->flags->words[1]);
    if (actions[a].act != NULL && words == 0)
        return rp_problem_set(problem, NULL, "%s: needs %s; --help explains it",
                              actions[a].name,
                              actions[a].act == create ? "NAME:SAMPLER:MAX_SIZE" : "a table");
    for (size_t i = 0; i < r->flags->count; i++) {
        size_t o = r->flags->list[i].option;

        if (o < RP_TABLES_OPTIONS && (actions[a].takes >> o & 1) == 0)
            return refuse_option(a, o, problem);
    }
    return RP_OK;
}

/* Refuses a name that an earlier word has. */
static rp_status check_new(const char *const *names, size_t i, const char *what,
                           rp_problem *problem)
{
    for (size_t k = 1; k < i; k++)
        if (strcmp(names[k], names[i]) == 0)
            return rp_problem_set(problem, NULL, "%s: '%.100s' is given twice", what, names[i]);
    return RP_OK;
}

/* Checks the descriptions of the tables to create, without a server. Sets names[i] to the name
 * in word i. Returns 0, or prints an error and returns the exit status. */
static int check_create(rp_remote *r, const char **names)
{
    rp_problem problem;
    rp_status st = RP_OK;

    for (size_t i = 1; i < r->flags->word_count && st == RP_OK; i++) {
        rp_table_settings settings = {0};

        st = parse_table(r, r->flags->words[i], &settings, &problem);
        names[i] = settings.name; /* in the arena */
        rp_signature_unref(settings.signature);
        if (st == RP_OK) st = check_new(names, i, "create", &problem);
    }
    return st == RP_OK ? 0 : rp_remote_misuse(r, &problem);
}

/* Checks all words before the first change: that the tables to create do not exist, or that the
 * named tables exist on a server. Returns 0, or prints an error and returns the exit status. */
static int check_words(rp_remote *r, size_t a)
{
    const char *names[RP_MAX_WORDS] = {NULL}; /* of tables to create */
    bool is_create = actions[a].act == create, is_only = r->flags->word_count == 2;
    rp_table_list list = {0};
    rp_error err = {0};
    rp_status st = RP_OK;
    rp_problem problem;
    int status = is_create ? check_create(r, names) : 0;

    for (size_t i = 1; i < r->flags->word_count && actions[a].act == drop && status == 0; i++)
        if (check_new(r->flags->words, i, "drop", &problem) != RP_OK)
            status = rp_remote_misuse(r, &problem);
    if (status == 0) st = rp_table_list_fetch(&list, r->client, rp_remote_wait(r), &err);
    if (st != RP_OK) status = rp_remote_fail(r, st, &err);
    for (size_t i = 1; i < r->flags->word_count && status == 0; i++) {
        const char *word = r->flags->words[i];

        if (is_create)
            st = rp_table_list_check_absent(&list, names[i], &err);
        else if (rp_table_list_find(&list, word) == NULL)
            st = rp_table_list_missing(&list, word, &err);
        if (st != RP_OK)
            status = rp_remote_fail_after(
                r, is_create && !is_only ? "nothing is created" : NULL, st, &err);
    }
    rp_table_list_deinit(&list);
    return status;
}

static int report(rp_remote *r, const char *done, const char *table)
{
    rp_text_buffer buffer = {0};
    int status;

    if (r->json) {
        rp_json_open(&buffer, '{');
        rp_json_key(&buffer, "table");
        rp_json_put_text(&buffer, table);
        rp_json_key(&buffer, "done");
        rp_json_put_text(&buffer, done);
        rp_unreachable_json(&buffer, r->change.list, r->change.count);
        rp_json_close(&buffer, '}');
    } else {
        rp_text_buffer_format(&buffer, "%s ", done);
        rp_text_buffer_put_safe(&buffer, table, strlen(table));
    }
    rp_text_buffer_put(&buffer, "\n");
    status = rp_remote_print(r, &buffer);
    rp_text_buffer_deinit(&buffer);
    return status;
}

/* Prints which servers an action has changed and which it has not reached. Returns 1. */
static int fail_partly(rp_remote *r, const char *done, const char *table)
{
    rp_text_buffer what = {0};
    int status;

    rp_text_buffer_put_safe(&what, table, strlen(table));
    rp_text_buffer_format(&what, " is %s", done);
    status = rp_remote_fail_partly(r, rp_text_buffer_text(&what));
    rp_text_buffer_deinit(&what);
    return status;
}

static int run(const rp_flags *flags)
{
    size_t a = find_action(flags->words[0]);
    const char *table = "";
    rp_problem problem;
    rp_remote r;
    int partly = 0, status = rp_remote_open(&r, &rp_tables_command, flags);

    if (status == 0 && check(&r, a, &problem) != RP_OK) status = rp_remote_misuse(&r, &problem);
    if (status == 0) status = rp_remote_connect(&r);
    if (status == 0) status = actions[a].act == NULL ? list_names(&r) : check_words(&r, a);
    for (size_t i = 1; i < flags->word_count && status == 0; i++) {
        status = actions[a].act(&r, flags->words[i], &table);
        if (status == RP_TABLES_PARTLY) { /* the other tables are changed all the same */
            partly = EXIT_FAILURE;
            status = 0;
            continue;
        }
        if (status == 0 && table != NULL) status = report(&r, actions[a].done, table);
        if (status != 0 || r.change.count == 0) continue;
        partly = fail_partly(&r, actions[a].done, table != NULL ? table : flags->words[i]);
    }
    if (status == 0) status = partly;
    rp_remote_close(&r);
    return status;
}

const rp_command rp_tables_command = {
    .name = "tables",
    .summary = "Creates, changes and removes tables while servers run.",
    .usage = "ACTION [OPTION...] [TABLE...]",
    .text = text,
    .examples = examples,
    .actions = "list create drop alter reset pause resume",
    .options = options,
    .option_count = RP_TABLES_OPTIONS,
    .shared = &rp_remote_options,
    .min_words = 1,
    .max_words = RP_MAX_WORDS,
    .first_table = 2,
    .last_table = RP_MAX_WORDS,
    .run = run,
};
