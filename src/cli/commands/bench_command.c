/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise bench`: measures the figures of the paper, one curve after the other. Each curve has
 * tables of its own, which are dropped afterwards. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/bench_load.h"
#include "cli/commands/bench_plot.h"
#include "cli/commands/bench_server.h"
#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/text/units.h"

enum {
    MAX_LIST = 16,
    MAX_TABLES = 16,
    NAME_BYTES = 40,
    LEAST_MS = 10, /* of a point: in less time its rate is chance */
    MAX_SECONDS = 3600,
    SETUP_CLIENTS = 4,
    DROP_MS = 5000,           /* to drop the tables of a curve, at most */
    LOAD_CALL_MS = 60 * 1000, /* timeout of a call of the load, without --timeout */
};

typedef enum option {
    FIGURE,
    CLIENTS,
    PAYLOADS,
    TABLES,
    SECONDS,
    FILL,
    QUICK,
    CSV,
    SVG,
    OPTIONS,
} option;

static const rp_option options[OPTIONS] = {
    [FIGURE] = {"figure", "N", "5: inserts, 6: samples, 7: several tables (all three)", true,
                "Measurements", "5 6 7"},
    [CLIENTS] = {"clients", "N,N,...", "numbers of clients (1,2,5,10,25,50,100,150,200)", false,
                 NULL, NULL},
    [PAYLOADS] = {"payloads", "N,N,...", "bytes of an item (400,4000,40000,400000)", false,
                  NULL, NULL},
    [TABLES] = {"tables", "N,N,...", "numbers of tables of figure 7 (1,2,4,8)", false, NULL,
                NULL},
    [SECONDS] = {"seconds", "X", "time to measure each point, at least 0.01 (1)", false, NULL,
                 NULL},
    [FILL] = {"fill", "SIZE", "bytes that the tables hold (512MiB)", false, NULL, NULL},
    [QUICK] = {"quick", NULL, "fewer and shorter points, for a first look", false, NULL, NULL},
    [CSV] = {"csv", "FILE", "write the rows to FILE, not to standard output", false, NULL,
             NULL},
    [SVG] = {"svg", "FILE", "draw the rows as curves", false, NULL, NULL},
};

static const char text[] =
    "Figures 5, 6 and 7 of the Reverb paper (Cassirer et al. 2021): items and bytes a second\n"
    "over the number of clients. Without --server it starts a server of its own on this\n"
    "machine, not that of localhost:8000 or REPRISE_SERVER; with --server it creates tables\n"
    "there and drops them afterwards. The values in parentheses are the defaults: 108 points,\n"
    "in about three minutes. --quick has 18 points of 0.2 s: 1, 5 and 20 clients, payloads of\n"
    "400 and 40000 bytes, 1 and 4 tables, 16MiB.\n";

static const char *const examples[] = {
    "reprise bench --quick --csv figures.csv --svg figures.svg",
    "reprise bench --figure 6 --clients 1,4 --payloads 400 --seconds 0.2 --fill 1MiB",
    "reprise bench --figure 5 --clients 2 --payloads 4000 --seconds 0.2 --server "
    "localhost:8000",
    NULL,
};

typedef struct list {
    int64_t values[MAX_LIST];
    size_t count;
} list;

typedef struct bench {
    rp_remote r;
    bool figures[8];
    list clients, payloads, tables;
    int64_t measure_ms;
    uint64_t fill;
    rp_bench_server server;
    FILE *csv; /* NULL: standard output */
    FILE *svg;
    const char *csv_path, *svg_path;
    rp_bench_row *rows; /* in the arena */
    size_t row_count, row_capacity;
    size_t made; /* tables of the curve that were made: only these are dropped */
    char names[MAX_TABLES][NAME_BYTES];
    const char *name_list[MAX_TABLES];
} bench;

static rp_status take_list(bench *b, option o, int64_t high, list *out, rp_problem *problem)
{
    rp_setting value, one;
    const char *at;

    if (!rp_remote_setting(&b->r, o, &value)) return RP_OK;
    out->count = 0;
    for (at = value.text;; at++) {
        size_t length = strcspn(at, ",");
        rp_status st;

        assert(out->count <= MAX_LIST);
        if (out->count == MAX_LIST)
            return rp_problem_set(problem, NULL, "%s: more than %d numbers", value.key,
                                  MAX_LIST);
        one = (rp_setting){.key = value.key, .text = rp_arena_text(&b->r.arena, at, length)};
        if (one.text == NULL) return rp_problem_memory(problem);
        st = rp_setting_integer(&one, 1, high, &out->values[out->count++], problem);
        if (st != RP_OK) return st;
        at += length;
        if (*at == '\0') return RP_OK;
    }
}

static rp_status take_figures(bench *b, rp_problem *problem)
{
    bool any = false;

    for (size_t i = 0; i < b->r.flags->count; i++) {
        const char *value = b->r.flags->list[i].value;

        if (b->r.flags->list[i].option != FIGURE) continue;
        if (strcmp(value, "5") != 0 && strcmp(value, "6") != 0 && strcmp(value, "7") != 0)
            return rp_problem_set(problem, NULL, "--figure: expected 5, 6 or 7, got '%.100s'",
                                  value);
        b->figures[value[0] - '0'] = any = true;
    }
    if (!any) b->figures[5] = b->figures[6] = b->figures[7] = true;
    return RP_OK;
}

static rp_status read_options(bench *b, rp_problem *problem)
{
    bool quick = rp_remote_switch(&b->r, QUICK);
    rp_setting value;
    rp_status st;

    b->clients =
        quick ? (list){{1, 5, 20}, 3} : (list){{1, 2, 5, 10, 25, 50, 100, 150, 200}, 9};
    b->payloads = quick ? (list){{400, 40000}, 2} : (list){{400, 4000, 40000, 400000}, 4};
    b->tables = quick ? (list){{1, 4}, 2} : (list){{1, 2, 4, 8}, 4};
    b->measure_ms = quick ? 200 : 1000;
    b->fill = quick ? 16 << 20 : 512 << 20;
    b->csv_path = rp_flags_get(b->r.flags, CSV);
    b->svg_path = rp_flags_get(b->r.flags, SVG);
    st = take_figures(b, problem);
    if (st == RP_OK) st = take_list(b, CLIENTS, RP_LOAD_MAX_CLIENTS, &b->clients, problem);
    if (st == RP_OK) st = take_list(b, PAYLOADS, RP_LOAD_MAX_PAYLOAD, &b->payloads, problem);
    if (st == RP_OK) st = take_list(b, TABLES, MAX_TABLES, &b->tables, problem);
    if (st == RP_OK && rp_remote_setting(&b->r, SECONDS, &value))
        st = rp_setting_duration(&value, 1000, MAX_SECONDS * 1000, &b->measure_ms, problem);
    if (st == RP_OK && rp_remote_setting(&b->r, FILL, &value))
        st = rp_setting_size(&value, 0, &b->fill, problem);
    if (st == RP_OK && b->measure_ms < LEAST_MS)
        st = rp_problem_set(problem, NULL,
                            "--seconds: expected at least %g, got '%.40s': a rate that is "
                            "measured in less time means nothing",
                            LEAST_MS / 1000.0, rp_flags_get(b->r.flags, SECONDS));
    for (size_t i = 0; i < b->payloads.count && st == RP_OK; i++)
        if (b->payloads.values[i] % 4 != 0)
            st = rp_problem_set(problem, NULL, "--payloads: expected multiples of 4, got %lld",
                                (long long)b->payloads.values[i]);
    return st;
}

static rp_status make_tables(bench *b, size_t count, size_t payload, rp_error *err)
{
    rp_status st = RP_OK;

    assert(count >= 1 && count <= MAX_TABLES && payload > 0);
    b->made = 0;
    for (size_t i = 0; i < count && st == RP_OK; i++) {
        rp_table_options o = {
            .name = b->names[i],
            .sampler = {RP_UNIFORM, 0},
            .remover = {RP_FIFO, 0},
            .limiter = rp_limiter_min_size(1),
            .max_size = (int64_t)(b->fill / payload / count) + 1,
        };

        (void)snprintf(b->names[i], sizeof b->names[i], "reprise-bench-%zu", i);
        b->name_list[i] = b->names[i];
        st = rp_client_create_table(b->r.client, &o, rp_remote_wait(&b->r), err);
        b->made += st == RP_OK;
    }
    rp_remote_rest(&b->r);
    return st;
}

/* Drops the tables of the curve, all within the timeout of one call. */
static void drop_tables(bench *b)
{
    bool is_short = b->r.timeout_ms > 0 && b->r.timeout_ms < DROP_MS;
    /* Without the cancel token, since this runs after Ctrl-C too. */
    const rp_wait wait = rp_wait_ms(is_short ? b->r.timeout_ms : DROP_MS);
    size_t dropped = 0;
    rp_error err = {0};

    for (size_t i = 0; i < b->made; i++)
        dropped += rp_client_drop_table(b->r.client, b->names[i], wait, &err) == RP_OK;
    if (dropped == b->made) return;
    (void)fflush(stdout);
    (void)fprintf(stderr,
                  "reprise bench: warning: %zu of its table%s %s not dropped: %s; reprise "
                  "tables drop drops %s, the names begin with reprise-bench-\n",
                  b->made - dropped, rp_plural(b->made),
                  b->made - dropped == 1 ? "was" : "were", err.text,
                  b->made - dropped == 1 ? "it" : "them");
}

static int put_row(bench *b, const rp_bench_row *row)
{
    rp_text_buffer buffer = {0};
    rp_problem problem;
    int status = 0;

    if (b->r.json)
        rp_bench_json(&buffer, row);
    else
        rp_bench_csv(&buffer, row);
    if (b->csv != NULL && !buffer.failed)
        (void)fwrite(rp_text_buffer_text(&buffer), 1, buffer.size, b->csv);
    else
        status = rp_remote_print(&b->r, &buffer);
    (void)fflush(b->csv != NULL ? b->csv : stdout);
    rp_text_buffer_deinit(&buffer);
    b->rows =
        rp_arena_grow(&b->r.arena, b->rows, b->row_count, &b->row_capacity, sizeof *b->rows);
    if (b->rows == NULL) {
        b->row_count = 0;
        (void)rp_problem_memory(&problem);
        return rp_remote_problem(&b->r, &problem);
    }
    assert(b->row_count < b->row_capacity);
    b->rows[b->row_count++] = *row;
    return status;
}

static void warn_nothing(const bench *b, int figure, size_t payload, size_t clients)
{
    (void)fflush(stdout);
    (void)fprintf(
        stderr,
        "reprise bench: warning: figure %d with %zu bytes and %zu client%s: no item was "
        "confirmed in %g s, so the rate is not known and not drawn; --seconds X measures "
        "longer\n",
        figure, payload, clients, rp_plural(clients), (double)b->measure_ms / 1000);
}

/* Measures one curve: a figure, a payload and a number of tables, over all numbers of clients.
 */
static int curve(bench *b, int figure, size_t payload, size_t tables)
{
    rp_load_options o = {
        .addresses = b->r.addresses,
        .client = &b->r.options,
        .tables = b->name_list,
        .table_count = tables,
        .payload = payload,
        .clients = SETUP_CLIENTS,
        .call_ms = rp_flags_get(b->r.flags, b->r.own + RP_REMOTE_TIMEOUT) != NULL
                       ? b->r.timeout_ms
                       : LOAD_CALL_MS,
        .most = (int64_t)(b->fill / payload) + 1,
        .interrupted = &b->r.interrupts.number,
    };
    rp_error err = {0};
    double rate = 0;
    rp_status st = make_tables(b, tables, payload, &err);
    int status = 0;

    assert(figure >= 5 && figure <= 7);
    if (st == RP_OK && figure == 6) st = rp_load_run(&o, &rate, &err); /* fill the tables */
    o.most = 0;
    o.sample = figure == 6;
    o.measure_ms = b->measure_ms;
    o.warm_ms = b->measure_ms / 4;
    for (size_t i = 0; i < b->clients.count && st == RP_OK && status == 0; i++) {
        o.clients = (size_t)b->clients.values[i];
        st = rp_load_run(&o, &rate, &err);
        if (st == RP_OK && rate <= 0) warn_nothing(b, figure, payload, o.clients);
        if (st == RP_OK)
            status = put_row(b, &(rp_bench_row){figure, payload, tables, o.clients, rate});
    }
    if (st != RP_OK) status = rp_remote_fail(&b->r, st, &err);
    drop_tables(b);
    return status;
}

static int curves(bench *b)
{
    int status = 0;

    assert(b->payloads.count > 0 && b->clients.count > 0 && b->tables.count > 0);
    for (int figure = 5; figure <= 6; figure++)
        for (size_t i = 0; i < b->payloads.count && status == 0 && b->figures[figure]; i++)
            status = curve(b, figure, (size_t)b->payloads.values[i], 1);
    for (size_t i = 0; i < b->tables.count && status == 0 && b->figures[7]; i++)
        status = curve(b, 7, (size_t)b->payloads.values[0], (size_t)b->tables.values[i]);
    return status;
}

static int file_failed(bench *b, const char *path)
{
    rp_problem problem;

    (void)rp_problem_set(&problem, NULL, "%.500s: %s", path, strerror(errno));
    return rp_remote_problem(&b->r, &problem);
}

/* Says what will be measured, as the rows go to a file. */
static void tell_points(const bench *b)
{
    size_t curves_given =
        ((b->figures[5] ? 1u : 0u) + (b->figures[6] ? 1u : 0u)) * b->payloads.count +
        (b->figures[7] ? b->tables.count : 0);
    size_t points = curves_given * b->clients.count;

    (void)fprintf(stderr, "reprise bench: note: measures %zu point%s of %g s, into %s\n",
                  points, rp_plural(points), (double)b->measure_ms / 1000, b->csv_path);
}

static int begin_rows(bench *b)
{
    rp_text_buffer head = {0};
    int status = 0;

    if (b->csv_path != NULL) {
        b->csv = fopen(b->csv_path, "we");
        if (b->csv == NULL) return file_failed(b, b->csv_path);
    }
    if (b->svg_path != NULL) {
        b->svg = fopen(b->svg_path, "we");
        if (b->svg == NULL) return file_failed(b, b->svg_path);
    }
    if (b->csv != NULL) tell_points(b);
    if (b->r.json) return 0;
    rp_bench_csv_head(&head);
    if (b->csv != NULL)
        (void)fputs(rp_text_buffer_text(&head), b->csv);
    else
        status = rp_remote_print(&b->r, &head);
    rp_text_buffer_deinit(&head);
    return status;
}

static int draw(bench *b)
{
    rp_text_buffer buffer = {0};
    bool bad;

    if (b->svg == NULL) return 0;
    rp_bench_svg(&buffer, b->rows, b->row_count);
    if (!buffer.failed) (void)fputs(rp_text_buffer_text(&buffer), b->svg);
    rp_text_buffer_deinit(&buffer);
    bad = fflush(b->svg) != 0 || ferror(b->svg) != 0;
    return bad ? file_failed(b, b->svg_path) : 0;
}

static int measure(bench *b)
{
    rp_problem problem;
    int status;

    if (rp_flags_get(b->r.flags, b->r.own + RP_REMOTE_SERVER) == NULL) {
        if (rp_bench_server_start(&b->server, &problem) != RP_OK)
            return rp_remote_problem(&b->r, &problem);
        b->r.addresses = b->server.address;
        b->r.options = (rp_client_options){0};
    }
    status = begin_rows(b);
    if (status == 0) status = rp_remote_connect(&b->r);
    if (status == 0) status = curves(b);
    if (status == 0) status = draw(b);
    if (b->svg != NULL && fclose(b->svg) != 0 && status == 0)
        status = file_failed(b, b->svg_path);
    if (b->csv != NULL) {
        bool bad = ferror(b->csv) != 0;

        if ((fclose(b->csv) != 0 || bad) && status == 0) status = file_failed(b, b->csv_path);
    }
    return status;
}

static int run(const rp_flags *flags)
{
    static bench b = {.server = {.fd = -1}}; /* too large for a stack */
    rp_problem problem;
    int status = rp_remote_open(&b.r, &rp_bench_command, flags);

    if (status == 0 && read_options(&b, &problem) != RP_OK)
        status = rp_remote_misuse(&b.r, &problem);
    if (status == 0) status = measure(&b);
    rp_remote_close(&b.r);
    rp_bench_server_stop(&b.server);
    return status;
}

const rp_command rp_bench_command = {
    .name = "bench",
    .summary = "Measures a server as the Reverb paper does, as a CSV and a plot.",
    .usage = "[OPTION...]",
    .text = text,
    .examples = examples,
    .options = options,
    .option_count = OPTIONS,
    .shared = &rp_remote_bench_options,
    .run = run,
};
