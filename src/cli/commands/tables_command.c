/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise tables`: each action is a function over one word, called for every word given. */
#include <assert.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/alter_report.h"
#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/commands/table_list.h"
#include "cli/serve/table_spec.h"
#include "cli/text/signature_spec.h"

enum { MAX_ITEMS = 1 << 30, MAX_LIMIT = INT32_MAX };

typedef enum option {
    COLUMN,
    MAX_SIZE,
    MAX_BYTES,
    MAX_TIMES_SAMPLED,
    SAMPLES_PER_INSERT,
    MIN_SIZE,
    ERROR_BUFFER,
    MIN_DIFF,
    MAX_DIFF,
    RECENTER,
    INSERTS,
    SAMPLES,
    OPTIONS,
} option;

static const rp_option options[OPTIONS] = {
    [COLUMN] = {"column", "NAME=SPEC", "a column, such as obs='float32 [?, 84]'", true,
                "create", NULL},
    [MAX_SIZE] = {"max-size", "N", "items, at most", false, "alter", NULL},
    [MAX_BYTES] = {"max-bytes", "SIZE", "memory of its items (0: no limit)", false, NULL, NULL},
    [MAX_TIMES_SAMPLED] = {"max-times-sampled", "N",
                           "remove an item after N samples (0: no limit)", false, NULL, NULL},
    [SAMPLES_PER_INSERT] = {"samples-per-insert", "X", "target of the rate limiter", false,
                            NULL, NULL},
    [MIN_SIZE] = {"min-size", "N", "items before the first sample", false, NULL, NULL},
    [ERROR_BUFFER] = {"error-buffer", "X", "deviation from the target, in samples", false, NULL,
                      NULL},
    [MIN_DIFF] = {"min-diff", "X", "inserts * samples-per-insert - samples, at least", false,
                  NULL, NULL},
    [MAX_DIFF] = {"max-diff", "X", "the same, at most", false, NULL, NULL},
    [RECENTER] = {"recenter", NULL, "reset the limiter to the middle of its bounds", false,
                  NULL, NULL},
    [INSERTS] = {"inserts", NULL, "inserts only", false, "pause and resume", NULL},
    [SAMPLES] = {"samples", NULL, "samples only", false, NULL, NULL},
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

/* Applies an action to one word and sets the name of its table; NULL: it has printed its result
 * itself. Returns 0, or prints an error and returns the exit status. */
typedef int (*action)(rp_remote *r, const char *word, const char **table);

static rp_status parse_columns(rp_remote *r, rp_signature **out, rp_problem *problem)
{
    rp_spec *columns = NULL;
    size_t count = 0, capacity = 0;
    rp_error err = {0};
    char why[256];

    for (size_t i = 0; i < r->flags->count; i++) {
        const char *value = r->flags->list[i].value, *equals;
        rp_spec spec;

        if (r->flags->list[i].option != COLUMN) continue;
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
            status = rp_remote_fail(r, st, &err);
        }
    }
    rp_signature_unref(settings.signature);
    return status;
}

/* Parses the number of an option, if it was given; then `*given` becomes true. */
static rp_status take_number(rp_remote *r, option o, double low, double high, double *out,
                             bool *given, rp_problem *problem)
{
    rp_setting value;

    assert(o < OPTIONS && low <= high);
    if (!rp_remote_setting(r, o, &value)) return RP_OK;
    *given = true;
    return rp_setting_number(&value, low, high, out, problem);
}

static rp_status take_bounds(rp_remote *r, rp_table_alteration *c, rp_problem *problem)
{
    int64_t times = 0;
    rp_setting value;
    rp_status st = RP_OK;

    if (rp_remote_setting(r, MAX_SIZE, &value)) {
        c->which |= RP_ALTER_MAX_SIZE;
        st = rp_setting_integer(&value, 1, MAX_ITEMS, &c->max_size, problem);
    }
    if (st == RP_OK && rp_remote_setting(r, MAX_BYTES, &value)) {
        c->which |= RP_ALTER_MAX_BYTES;
        st = rp_setting_size(&value, 0, &c->max_bytes, problem);
    }
    if (st == RP_OK && rp_remote_setting(r, MAX_TIMES_SAMPLED, &value)) {
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
        take_number(r, SAMPLES_PER_INSERT, RP_MIN_SAMPLES_PER_INSERT, RP_MAX_SAMPLES_PER_INSERT,
                    &c->limiter.samples_per_insert, &ratio, problem);
    if (st == RP_OK)
        st = take_number(r, ERROR_BUFFER, 0, DBL_MAX, &error_buffer, &buffer, problem);
    if (st == RP_OK && rp_remote_setting(r, MIN_SIZE, &value)) {
        any = true;
        st = rp_setting_integer(&value, 1, INT64_MAX, &c->limiter.min_size, problem);
    }
    if (st == RP_OK && buffer)
        c->limiter =
            rp_limiter_ratio(c->limiter.samples_per_insert, c->limiter.min_size, error_buffer);
    if (st == RP_OK)
        st = take_number(r, MIN_DIFF, -DBL_MAX, DBL_MAX, &c->limiter.min_diff, &any, problem);
    if (st == RP_OK)
        st = take_number(r, MAX_DIFF, -DBL_MAX, DBL_MAX, &c->limiter.max_diff, &any, problem);
    if (st != RP_OK) return st;
    if (any || ratio || buffer) c->which |= RP_ALTER_LIMITER;
    if (rp_remote_switch(r, RECENTER)) c->which |= RP_ALTER_RECENTER;
    if ((c->which & (RP_ALTER_LIMITER | RP_ALTER_RECENTER)) == RP_ALTER_RECENTER)
        c->which |= RP_ALTER_LIMITER; /* with its current values */
    if (c->which == 0)
        return rp_problem_set(problem, NULL,
                              "nothing to change; give --max-size N or another "
                              "option of alter, --help lists them");
    return RP_OK;
}

/* Fetches all tables. RP_NOT_FOUND if none has that name. */
static rp_status fetch_named(const rp_remote *r, const char *name, rp_table_list *list,
                             rp_error *err)
{
    rp_status st = rp_table_list_fetch(list, r->client, rp_remote_wait(r), err);

    if (st == RP_OK && rp_table_list_find(list, name) == NULL)
        st = rp_table_list_missing(list, name, err);
    return st;
}

/* Writes the table's name, and its shard if there are several. */
static void put_table(rp_text_buffer *out, const rp_table_list *list, const rp_client_table *t)
{
    rp_text_buffer_put_safe(out, t->info.name, strlen(t->info.name));
    if (list->view.shard_count > 1 && t->shard < list->view.shard_count)
        rp_text_buffer_format(out, " on %s", list->view.shards[t->shard]);
}

static uint32_t given_options(const rp_remote *r)
{
    static const struct {
        option option;
        uint32_t bit;
    } bits[] = {
        {MAX_SIZE, RP_ALTERED_MAX_SIZE},
        {MAX_BYTES, RP_ALTERED_MAX_BYTES},
        {MAX_TIMES_SAMPLED, RP_ALTERED_MAX_TIMES_SAMPLED},
        {SAMPLES_PER_INSERT, RP_ALTERED_SAMPLES_PER_INSERT},
        {MIN_SIZE, RP_ALTERED_MIN_SIZE},
        {ERROR_BUFFER, RP_ALTERED_ERROR_BUFFER},
        {MIN_DIFF, RP_ALTERED_MIN_DIFF},
        {MAX_DIFF, RP_ALTERED_MAX_DIFF},
    };
    uint32_t given = rp_remote_switch(r, RECENTER) ? (uint32_t)RP_ALTERED_RECENTER : 0;

    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        if (rp_flags_get(r->flags, bits[i].option) != NULL) given |= bits[i].bit;
    return given;
}

/* Prints each line of the text as a warning on standard error. */
static void print_warnings(rp_remote *r, const rp_text_buffer *warnings)
{
    const char *at = rp_text_buffer_text(warnings);

    (void)fflush(stdout);
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");

        (void)fprintf(stderr, "reprise %s: warning: %.*s\n", r->command->name, (int)length, at);
        at += length + (at[length] == '\n');
    }
}

static void put_json_lines(rp_text_buffer *out, const rp_text_buffer *lines)
{
    const char *at = rp_text_buffer_text(lines);

    rp_json_key(out, "warnings");
    rp_json_open(out, '[');
    while (*at != '\0') {
        size_t length = strcspn(at, "\n");

        rp_json_put_string(out, at, length);
        at += length + (at[length] == '\n');
    }
    rp_json_close(out, ']');
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
        put_json_lines(&buffer, &warnings);
        rp_unreachable_json(&buffer, r->change.list, r->change.count);
        rp_json_close(&buffer, '}');
        rp_text_buffer_put(&buffer, "\n");
    } else if (!rp_alter_is_same(&report)) { /* else a warning says so */
        rp_text_buffer_put(&buffer, "altered ");
        put_table(&buffer, list, now);
        rp_text_buffer_put(&buffer, "\n");
        rp_alter_changes(&buffer, &report);
    }
    status = rp_remote_print(r, &buffer);
    if (!r->json) print_warnings(r, &warnings);
    rp_text_buffer_deinit(&buffer);
    rp_text_buffer_deinit(&warnings);
    return status;
}

/* Prints what an alteration has changed in the table of each shard. */
static int report_alterations(rp_remote *r, const rp_table_list *before, const char *name)
{
    rp_table_list now = {0};
    rp_error err = {0};
    rp_status st = fetch_named(r, name, &now, &err);
    int status = st == RP_OK ? 0 : rp_remote_fail(r, st, &err);

    for (size_t i = 0; i < now.view.count && status == 0; i++) {
        const rp_client_table *t = &now.view.tables[i], *old;

        if (strcmp(t->info.name, name) != 0) continue;
        old = rp_table_list_on_shard(before, name, t->shard);
        status = report_alteration(r, &now, t, old != NULL ? &old->info : &t->info);
    }
    rp_table_list_deinit(&now);
    return status;
}

static int alter(rp_remote *r, const char *word, const char **table)
{
    rp_table_alteration change = {0};
    const rp_client_table *found;
    rp_table_list list = {0};
    rp_problem problem;
    rp_error err = {0};
    rp_status st = fetch_named(r, word, &list, &err);
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
        status = st == RP_OK ? report_alterations(r, &list, word) : rp_remote_fail(r, st, &err);
    }
    rp_table_list_deinit(&list);
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
    return st == RP_OK ? 0 : rp_remote_fail(r, st, &err);
}

static int reset(rp_remote *r, const char *word, const char **table)
{
    rp_error err = {0};
    rp_status st;

    rp_remote_begin_change(r);
    st = rp_client_reset(r->client, word, rp_remote_wait(r), &err);
    rp_remote_end_change(r);
    *table = word;
    return st == RP_OK ? 0 : rp_remote_fail(r, st, &err);
}

static uint32_t sides(const rp_remote *r)
{
    uint32_t given = (rp_remote_switch(r, INSERTS) ? (uint32_t)RP_SIDE_INSERTS : 0) |
                     (rp_remote_switch(r, SAMPLES) ? (uint32_t)RP_SIDE_SAMPLES : 0);

    return given != 0 ? given : RP_SIDE_INSERTS | RP_SIDE_SAMPLES;
}

/* Prints what pausing or resuming has changed: whether the sides were so already, and, after a
 * resume, what they still wait for. */
static int report_sides(rp_remote *r, const rp_table_list *before, const char *name,
                        bool resumed)
{
    rp_text_buffer buffer = {0};
    rp_table_list now = {0};
    rp_error err = {0};
    rp_status st = fetch_named(r, name, &now, &err);
    int status = 0;

    for (size_t i = 0; i < now.view.count && st == RP_OK; i++) {
        const rp_client_table *t = &now.view.tables[i], *old;

        if (strcmp(t->info.name, name) != 0) continue;
        old = rp_table_list_on_shard(before, name, t->shard);
        rp_text_buffer_put(&buffer, resumed ? "resumed " : "paused ");
        put_table(&buffer, &now, t);
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
    rp_status st = fetch_named(r, name, &before, &err);
    int status = 0;

    *table = r->json ? name : NULL;
    rp_remote_begin_change(r);
    if (st == RP_OK && resume)
        st = rp_client_resume_table(r->client, name, sides(r), rp_remote_wait(r), &err);
    else if (st == RP_OK)
        st = rp_client_pause_table(r->client, name, sides(r), rp_remote_wait(r), &err);
    rp_remote_end_change(r);
    if (st != RP_OK)
        status = rp_remote_fail(r, st, &err);
    else if (!r->json)
        status = report_sides(r, &before, name, resume);
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
    {"create", "created", create, 1U << COLUMN},
    {"drop", "dropped", drop, 0},
    {"alter", "altered", alter,
     1U << MAX_SIZE | 1U << MAX_BYTES | 1U << MAX_TIMES_SAMPLED | 1U << SAMPLES_PER_INSERT |
         1U << MIN_SIZE | 1U << ERROR_BUFFER | 1U << MIN_DIFF | 1U << MAX_DIFF |
         1U << RECENTER},
    {"reset", "reset", reset, 0},
    {"pause", "paused", pause_table, 1U << INSERTS | 1U << SAMPLES},
    {"resume", "resumed", resume, 1U << INSERTS | 1U << SAMPLES},
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

static rp_status check(const rp_remote *r, size_t a, rp_problem *problem)
{
    size_t words = r->flags->word_count - 1;

    static_assert(OPTIONS <= 32, "`takes` has a bit for each option");
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

        if (o < OPTIONS && (actions[a].takes >> o & 1) == 0)
            return rp_problem_set(problem, NULL, "--%s has no effect on %s", options[o].name,
                                  actions[a].name);
    }
    return RP_OK;
}

/* Checks all words before the first change: the tables to create, or that the named tables
 * exist on a server. Returns 0, or prints an error and returns the exit status. */
static int check_words(rp_remote *r, size_t a)
{
    rp_table_list list = {0};
    rp_problem problem;
    rp_error err = {0};
    rp_status st = RP_OK;
    int status = 0;

    for (size_t i = 1; i < r->flags->word_count && status == 0; i++) {
        rp_table_settings settings = {0};
        const char *word = r->flags->words[i];

        if (actions[a].act == create) {
            if (parse_table(r, word, &settings, &problem) != RP_OK)
                status = rp_remote_misuse(r, &problem);
            rp_signature_unref(settings.signature);
            continue;
        }
        if (i == 1) st = rp_table_list_fetch(&list, r->client, rp_remote_wait(r), &err);
        if (st == RP_OK && rp_table_list_find(&list, word) == NULL)
            st = rp_table_list_missing(&list, word, &err);
        if (st != RP_OK) status = rp_remote_fail(r, st, &err);
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
    .option_count = OPTIONS,
    .shared = &rp_remote_options,
    .min_words = 1,
    .max_words = RP_MAX_WORDS,
    .first_table = 2,
    .last_table = RP_MAX_WORDS,
    .run = run,
};
