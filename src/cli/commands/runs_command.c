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

enum { NAME_COLUMNS = 40, SHOWN_SCALARS = 6, MAX_LIST_BYTES = 64 << 20 };

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

static const char notes[] =
    "Programs report with reprise.log_scalars(), `reprise train --report` or LogScalars of\n"
    "reprise.v1: docs/runs.md.\n";

/* Writes an export as it arrives. */
typedef struct export_file {
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
    export_file e = {.file = path != NULL ? fopen(path, "wbe") : stdout};
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

static bool keep_data(void *ctx, const void *data, size_t size)
{
    rp_text_buffer *buffer = ctx;

    if (size > MAX_LIST_BYTES - buffer->size) return false;
    rp_text_buffer_add(buffer, data, size);
    return !buffer->failed;
}

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

/* Prints lines of JSON as a grid. */
static rp_status print_lines(rp_remote *r, const rp_text_buffer *lines, rp_text_buffer *out)
{
    double now_s = (double)time(NULL);
    const char *at = rp_text_buffer_text(lines), *end;
    rp_status st = RP_OK;
    rp_grid grid;

    rp_grid_init(&grid, 4, 1u << 2);
    rp_grid_cell(&grid, "run");
    rp_grid_cell(&grid, "last report");
    rp_grid_cell(&grid, "points");
    rp_grid_cell(&grid, "scalars");
    for (; st == RP_OK && (end = strchr(at, '\n')) != NULL; at = end + 1) {
        rp_json_error error;
        rp_json *run;

        st = rp_json_parse(&r->arena, at, (size_t)(end - at), &run, &error);
        if (st != RP_OK) break;
        put_cell(&grid, rp_json_find(run, "name"));
        put_age(&grid, now_s - number_of(run, "last_seen"));
        rp_grid_cell(&grid, "%.0f", number_of(run, "points"));
        put_scalars(&grid, rp_json_find(run, "scalars"));
    }
    rp_grid_write(&grid, out);
    rp_grid_deinit(&grid);
    return st;
}

static void print_json(const rp_text_buffer *lines, rp_text_buffer *out)
{
    const char *at = rp_text_buffer_text(lines), *end;

    rp_text_buffer_put(out, "[");
    for (bool is_first = true; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        if (!is_first) rp_text_buffer_put(out, ",");
        is_first = false;
        rp_text_buffer_add(out, at, (size_t)(end - at));
    }
    rp_text_buffer_put(out, "]\n");
}

static int list_runs(rp_remote *r)
{
    rp_text_buffer lines = {0}, out = {0};
    rp_runs_call call = {.action = RP_RUNS_LIST, .on_data = keep_data, .ctx = &lines};
    rp_error err = {0};
    rp_status st = rp_client_runs(r->client, &call, rp_remote_wait(r), &err);
    rp_problem problem;
    int status;

    if (st != RP_OK) {
        status = rp_remote_fail(r, st, &err);
    } else if (r->json) {
        print_json(&lines, &out);
        status = rp_remote_print(r, &out);
    } else if (lines.size == 0) {
        rp_text_buffer_put(&out, "no runs; docs/runs.md shows how programs report them\n");
        status = rp_remote_print(r, &out);
    } else if (print_lines(r, &lines, &out) == RP_OK) {
        status = rp_remote_print(r, &out);
    } else {
        (void)rp_problem_set(&problem, NULL, "the server's list of runs is malformed");
        status = rp_remote_problem(r, &problem);
    }
    rp_text_buffer_deinit(&lines);
    rp_text_buffer_deinit(&out);
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
