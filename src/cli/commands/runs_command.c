/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise runs`: the runs that training programs report to a server, and their export. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/text/json_tree.h"
#include "reprise/runs.h"

enum { FORMAT, OUTPUT, OPTIONS };

/* Bounds of a list. A run of a server of ours takes less than 256 KiB, and it has at most 256
 * of them. */
enum { MAX_LIST_RUNS = 4096, MAX_LIST_BYTES = 64 << 20, MAX_RUN_BYTES = 1 << 20 };

enum { NAME_COLUMNS = 40, SHOWN_SCALARS = 6 };

static const rp_option options[OPTIONS] = {
    [FORMAT] = {"format", "WORD", "of an export: csv or tfevents (csv)", false, NULL,
                "csv tfevents"},
    [OUTPUT] = {"output", "FILE", "write an export to FILE (standard output)", false, NULL,
                NULL},
};

static const char text[] = "list shows the runs of a server: name, last report, points and "
                           "scalars. export writes the\n"
                           "scalars of a run: as CSV with the columns name, step, time and "
                           "value, or as an event file\n"
                           "of TensorBoard. Of several servers the first one has the runs.\n";

static const char *const examples[] = {
    "reprise runs list",
    "reprise runs export dqn-cartpole-1 > run.csv",
    "reprise runs export dqn-cartpole-1 --format tfevents --output logs/events.out.tfevents.1",
    NULL,
};

static const char notes[] = "Programs report with reprise.log_scalars() in Python, `reprise "
                            "train --report ADDR`, or the\n"
                            "gRPC call LogScalars of reprise.v1.\n";

/* Writes an export as it arrives. */
typedef struct export_file {
    const rp_remote *remote;
    FILE *file;
    bool is_terminal; /* names are anybody's: a terminal gets them escaped */
    bool failed;
} export_file;

static bool write_escaped(FILE *file, const unsigned char *bytes, size_t size)
{
    bool ok = true;

    for (size_t i = 0; ok && i < size; i++) {
        bool is_plain = bytes[i] == '\n' || (bytes[i] >= 0x20 && bytes[i] < 0x7f);

        ok = is_plain ? putc(bytes[i], file) != EOF : fprintf(file, "\\x%02x", bytes[i]) > 0;
    }
    return ok;
}

static bool write_data(void *ctx, const void *data, size_t size)
{
    export_file *e = ctx;

    rp_remote_rest(e->remote);
    e->failed = e->is_terminal ? !write_escaped(e->file, data, size)
                               : fwrite(data, 1, size, e->file) != size;
    return !e->failed;
}

/* The end of the program reports a standard output that cannot be written. */
static int fail_file(const rp_remote *r, const char *path)
{
    rp_problem problem;

    if (path == NULL) return EXIT_FAILURE;
    (void)rp_problem_set(&problem, NULL, "%.300s: %s", path, strerror(errno));
    return rp_remote_problem(r, &problem);
}

static int export_run(rp_remote *r, const char *run)
{
    const char *path = rp_flags_get(r->flags, OUTPUT);
    const char *format = rp_flags_get(r->flags, FORMAT);
    export_file e = {.remote = r, .file = path != NULL ? fopen(path, "wbe") : stdout};
    bool is_events = format != NULL && strcmp(format, "tfevents") == 0;
    rp_runs_call call = {.action = is_events ? RP_RUNS_EVENTS : RP_RUNS_CSV,
                         .run = {run, strlen(run)},
                         .on_data = write_data,
                         .ctx = &e};
    rp_error err = {0};
    rp_status st;
    int status = 0;

    if (e.file == NULL) return fail_file(r, path);
    e.is_terminal = isatty(fileno(e.file)) == 1;
    st = rp_client_runs(r->client, &call, rp_remote_wait(r), &err);
    if (e.failed || fflush(e.file) != 0)
        status = fail_file(r, path);
    else if (st != RP_OK)
        status = rp_remote_fail(r, st, &err);
    if (path != NULL && fclose(e.file) != 0 && status == 0) status = fail_file(r, path);
    return status;
}

/* A list as it arrives: one JSON object a line. It comes from a server, which need not be ours:
 * each line is parsed, within the bounds, and what is printed is written anew. */
typedef struct run_list {
    rp_text_buffer line; /* the beginning of a line whose end is not there yet */
    rp_text_buffer out;  /* with --json: the list so far */
    rp_grid grid;        /* without */
    double now_s;
    size_t runs, bytes;
    bool is_json;
    const char *wrong; /* why the list is not accepted; NULL: it is */
} run_list;

/* A text of the server, escaped and cut to fit a column. */
static void put_cell(rp_grid *grid, const rp_json *value)
{
    rp_text_buffer cell = {0};

    if (value != NULL && value->kind == RP_JSON_STRING)
        rp_text_buffer_put_safe(&cell, value->u.string.text, value->u.string.size);
    rp_grid_cell(grid, "%.*s",
                 (int)rp_text_fit(rp_text_buffer_text(&cell), cell.size, NAME_COLUMNS),
                 rp_text_buffer_text(&cell));
    rp_text_buffer_deinit(&cell);
}

static double number_of(const rp_json *object, const char *key)
{
    const rp_json *value = rp_json_find(object, key);

    if (value != NULL && value->kind == RP_JSON_INTEGER) return (double)value->u.integer;
    return value != NULL && value->kind == RP_JSON_NUMBER ? value->u.number : 0;
}

static void put_age(rp_grid *grid, double seconds)
{
    if (seconds < 1)
        rp_grid_cell(grid, "now");
    else if (seconds < 120)
        rp_grid_cell(grid, "%.0f s ago", seconds);
    else if (seconds < 7200)
        rp_grid_cell(grid, "%.0f min ago", seconds / 60);
    else if (seconds < 172800)
        rp_grid_cell(grid, "%.0f h ago", seconds / 3600);
    else
        rp_grid_cell(grid, "%.0f days ago", seconds / 86400);
}

static void put_scalars(rp_grid *grid, const rp_json *list)
{
    rp_text_buffer cell = {0};
    size_t shown = 0;

    for (const rp_json *s = list != NULL && list->kind == RP_JSON_ARRAY ? list->child : NULL;
         s != NULL && shown < SHOWN_SCALARS; s = s->next, shown++) {
        if (s->kind != RP_JSON_STRING) continue;
        if (shown > 0) rp_text_buffer_put(&cell, ", ");
        rp_text_buffer_put_safe(&cell, s->u.string.text, s->u.string.size);
    }
    if (list != NULL && list->kind == RP_JSON_ARRAY && list->u.count > shown)
        rp_text_buffer_format(&cell, " and %zu more", list->u.count - shown);
    rp_grid_cell(grid, "%s", rp_text_buffer_text(&cell));
    rp_text_buffer_deinit(&cell);
}

static void put_run(rp_grid *grid, const rp_json *run, double now_s)
{
    put_cell(grid, rp_json_find(run, "name"));
    put_age(grid, now_s - number_of(run, "last_seen"));
    rp_grid_cell(grid, "%.0f", number_of(run, "points"));
    put_scalars(grid, rp_json_find(run, "scalars"));
}

static void take_line(run_list *list, const char *line, size_t size)
{
    rp_json_error error;
    rp_arena arena;
    rp_json *run;

    rp_arena_init(&arena, NULL);
    if (size > MAX_RUN_BYTES)
        list->wrong = "describes a run with more than 1 MiB";
    else if (list->runs == MAX_LIST_RUNS)
        list->wrong = "has more than 4096 runs";
    else if (rp_json_parse(&arena, line, size, &run, &error) != RP_OK ||
             run->kind != RP_JSON_OBJECT)
        list->wrong = "is malformed";
    else if (list->is_json)
        rp_json_put_tree(&list->out, run);
    else
        put_run(&list->grid, run, list->now_s);
    list->runs++;
    rp_arena_deinit(&arena);
}

/* Takes the lines that end in `data`, and keeps the beginning of the next one. */
static bool take_data(void *ctx, const void *data, size_t size)
{
    run_list *list = ctx;
    const char *at = data, *end, *stop = at + size;

    list->bytes += size;
    if (list->bytes > MAX_LIST_BYTES) list->wrong = "has more than 64 MiB";
    while (list->wrong == NULL && (end = memchr(at, '\n', (size_t)(stop - at))) != NULL) {
        if (list->line.size > 0) {
            rp_text_buffer_add(&list->line, at, (size_t)(end - at));
            take_line(list, rp_text_buffer_text(&list->line), list->line.size);
            rp_text_buffer_clear(&list->line);
        } else {
            take_line(list, at, (size_t)(end - at));
        }
        at = end + 1;
    }
    if (list->wrong != NULL) return false;
    if ((size_t)(stop - at) > MAX_RUN_BYTES - list->line.size) {
        list->wrong = "describes a run with more than 1 MiB";
        return false;
    }
    rp_text_buffer_add(&list->line, at, (size_t)(stop - at));
    return !list->line.failed;
}

static int print_list(rp_remote *r, run_list *list)
{
    if (list->is_json) {
        rp_json_close(&list->out, ']');
        rp_text_buffer_put(&list->out, "\n");
    } else if (list->runs == 0) {
        rp_text_buffer_put(&list->out,
                           "no runs; programs report them with reprise.log_scalars() or "
                           "reprise train --report\n");
    } else {
        rp_grid_write(&list->grid, &list->out);
    }
    return rp_remote_print(r, &list->out);
}

static int list_runs(rp_remote *r)
{
    static const char *const titles[] = {"run", "last report", "points", "scalars"};
    run_list list = {.is_json = r->json, .now_s = (double)time(NULL)};
    rp_runs_call call = {.action = RP_RUNS_LIST, .on_data = take_data, .ctx = &list};
    rp_error err = {0};
    rp_problem problem;
    rp_status st;
    int status;

    rp_grid_init(&list.grid, 4, 1u << 2);
    for (size_t i = 0; i < 4; i++) rp_grid_cell(&list.grid, "%s", titles[i]);
    if (list.is_json) rp_json_open(&list.out, '[');
    st = rp_client_runs(r->client, &call, rp_remote_wait(r), &err);
    if (st == RP_OK && list.line.size > 0) list.wrong = "ends within a line";
    if (list.wrong != NULL) {
        (void)rp_problem_set(&problem, NULL,
                             "the server's list of runs %s; is it a reprise server?",
                             list.wrong);
        status = rp_remote_problem(r, &problem);
    } else if (st != RP_OK) {
        status = rp_remote_fail(r, st, &err);
    } else {
        status = print_list(r, &list);
    }
    rp_text_buffer_deinit(&list.line);
    rp_text_buffer_deinit(&list.out);
    rp_grid_deinit(&list.grid);
    return status;
}

static rp_status check(const rp_flags *flags, bool exports, rp_problem *problem)
{
    const char *format = rp_flags_get(flags, FORMAT);

    if (format != NULL && strcmp(format, "csv") != 0 && strcmp(format, "tfevents") != 0)
        return rp_problem_set(problem, NULL, "--format: must be csv or tfevents, got '%.100s'",
                              format);
    if (exports && flags->word_count < 2)
        return rp_problem_set(problem, NULL,
                              "export: needs the name of a run; list shows them");
    if (!exports && flags->word_count > 1)
        return rp_problem_set(problem, NULL, "'%.100s' is not expected here", flags->words[1]);
    for (size_t i = 0; i < flags->count && !exports; i++)
        if (flags->list[i].option < OPTIONS)
            return rp_problem_set(problem, NULL, "--%s has no effect on list",
                                  options[flags->list[i].option].name);
    return RP_OK;
}

static int run(const rp_flags *flags)
{
    bool exports = strcmp(flags->words[0], "export") == 0;
    rp_problem problem;
    rp_remote r;
    int status = rp_remote_open(&r, &rp_runs_command, flags);

    if (status == 0 && check(flags, exports, &problem) != RP_OK)
        status = rp_remote_misuse(&r, &problem);
    if (status == 0) status = rp_remote_connect(&r);
    if (status == 0) status = exports ? export_run(&r, flags->words[1]) : list_runs(&r);
    rp_remote_close(&r);
    return status;
}

const rp_command rp_runs_command = {
    .name = "runs",
    .summary = "Lists and exports what training programs report.",
    .usage = "ACTION [OPTION...] [RUN]",
    .text = text,
    .examples = examples,
    .notes = notes,
    .actions = "list export",
    .options = options,
    .option_count = OPTIONS,
    .shared = &rp_remote_options,
    .min_words = 1,
    .max_words = 2,
    .run = run,
};
