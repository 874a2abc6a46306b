/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what the server costs in addition to the network, with the benchmarks of section 5
 * of the Reverb paper (Cassirer et al. 2021). An item is one float32 tensor of random numbers,
 * with chunk and sequence length 1. Clients do nothing else.
 *
 * The peer is the yardstick (yardstick.h): nghttp2 without any table, in a process pinned to
 * the same processors, under the same load. Half of the processors run the server, half the
 * load generator.
 *
 *   bench_server [--quick]           compare
 *   bench_server overload [--quick]  only 1 to 200 clients, and 1 to 8 tables
 *   bench_server tables [--quick]    only 1 to 8 tables
 *   bench_server serve TABLES SIZE   runs our server: prints its port, ends with its input
 *   bench_server figures [--quick]   figures 5 to 7 of the paper, as CSV */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "h2_load.h"
#include "server_figures.h"
#include "server_idle.h"
#include "server_ours.h"
#include "server_process.h"
#include "yardstick.h"

enum {
    KEPT_BYTES = 256 << 20, /* kept in a table when inserts are measured */
    POOL_BYTES = 512 << 20, /* in a table when samples are measured */
    SMALL = 400,
    LARGE = 400000,
    CONNECTIONS = 4,      /* in comparisons */
    CLIENT_SAMPLES = 512, /* in a request, for any number of clients */
    IDLE = 10000,
    PATIENCE = 3, /* at most this many times the rounds, if other programs disturb them */
};

static const double disturbance = 0.15; /* processors for other programs in a quiet round */
static const double idle_bytes_limit = 32 << 10, idle_cpu_limit = 0.02;

typedef struct session {
    server_cpus cpus;
    double warm, seconds;
    int rounds;
    bool quick;
} session;

/* The best of one side of a comparison. */
typedef struct side {
    const char *name;
    int quiet; /* rounds that no other program disturbed */
    int rounds;
    double rate;      /* items a second */
    double server_us; /* of processor time, for one item */
    double load_us;
    double p50_us, p99_us;
} side;

static void keep_best(side *best, const h2_load_result *r)
{
    double items = (double)r->items, rate = items / r->seconds;

    best->rounds++;
    if (r->others < disturbance) best->quiet++;
    if (best->p50_us == 0 || (r->p50_us > 0 && r->p50_us < best->p50_us))
        best->p50_us = r->p50_us;
    if (best->p99_us == 0 || (r->p99_us > 0 && r->p99_us < best->p99_us))
        best->p99_us = r->p99_us;
    if (best->server_us == 0 || r->server_cpu / items * 1e6 < best->server_us)
        best->server_us = r->server_cpu / items * 1e6;
    if (rate <= best->rate) return;
    best->rate = rate;
    best->load_us = r->load_cpu / items * 1e6;
}

/* True if there were too few rounds, or too few quiet ones. */
static bool wants_round(const session *s, const side *a, const side *b)
{
    int quiet = a->quiet < b->quiet ? a->quiet : b->quiet;

    return a->rounds < s->rounds || (quiet < s->rounds && a->rounds < PATIENCE * s->rounds);
}

/* Runs both sides once and keeps results that are better than before. */
static void round_of(side *a, const h2_load_options *to_a, side *b, const h2_load_options *to_b)
{
    h2_load_result r = h2_load_run(to_a);

    keep_best(a, &r);
    r = h2_load_run(to_b);
    keep_best(b, &r);
}

static void show(const char *what, size_t payload, const side *s)
{
    printf("%-16s %-18s %10s %8.2f GB/s   server %8.3f us   load %8.3f us an item%s\n", what,
           s->name, bench_scaled(s->rate, "/s").text, s->rate * (double)payload * 1e-9,
           s->server_us, s->load_us, s->quiet == 0 ? " (disturbed)" : "");
}

static int start_yardstick(const void *options)
{
    return yardstick_start(options);
}

static server_process run_yardstick(const session *s, size_t payload, size_t samples)
{
    yardstick_options options = {
        .threads = s->cpus.serve_count,
        .payload_bytes = payload,
        .samples = samples,
        .pool_bytes = POOL_BYTES,
        .keep_bytes = KEPT_BYTES,
    };
    server_process process;

    server_process_start(&process, &s->cpus, start_yardstick, &options);
    return process;
}

static server_process run_ours(const session *s, size_t tables, size_t bytes, size_t payload)
{
    server_ours_options options = {
        .table_count = tables,
        .max_size = (int64_t)(bytes / payload),
        .loops = s->cpus.serve_count,
    };
    server_process process;

    server_process_start(&process, &s->cpus, server_ours_start, &options);
    return process;
}

static h2_load_options load_of(const session *s, const server_process *process, h2_kind kind,
                               size_t payload)
{
    return (h2_load_options){
        .port = process->port,
        .kind = kind,
        .payload_bytes = payload,
        .connections = CONNECTIONS * s->cpus.load_count,
        .threads = s->cpus.load_count,
        .cpus = &s->cpus.load,
        .warm_seconds = s->warm,
        .seconds = s->seconds,
        .server_cpu = process->cpu,
    };
}

/* Inserts `bytes` bytes of items into `tables` tables of our server. */
static void fill(const session *s, const server_process *process, size_t tables, size_t payload,
                 size_t bytes)
{
    h2_load_options options = load_of(s, process, H2_INSERT, payload);

    options.table_count = tables;
    options.item_limit = bytes / payload;
    h2_load_run(&options);
}

/* Compares both servers under one kind of load, in turn. */
static void compare(const session *s, const char *what, const char *ratio, h2_kind kind,
                    size_t payload, const server_process *yard, size_t yard_items,
                    const server_process *ours)
{
    side theirs = {.name =
                       yard_items == 1 && payload == SMALL ? "yardstick, single" : "yardstick"};
    side mine = {.name = "ours"};
    h2_load_options to_yard = load_of(s, yard, kind, payload);
    h2_load_options to_ours = load_of(s, ours, kind, payload);

    to_yard.yardstick = true;
    to_yard.items = yard_items;
    while (wants_round(s, &theirs, &mine)) round_of(&theirs, &to_yard, &mine, &to_ours);
    show(what, payload, &theirs);
    show(what, payload, &mine);
    bench_ratio(ratio, mine.rate, theirs.name, theirs.rate, "/s");
}

static void compare_roundtrip(const session *s, const server_process *yard,
                              const server_process *ours)
{
    side theirs = {0}, mine = {0};
    h2_load_options to_yard = load_of(s, yard, H2_ROUNDTRIP, SMALL);
    h2_load_options to_ours = load_of(s, ours, H2_ROUNDTRIP, SMALL);

    to_yard.connections = to_ours.connections = 1;
    to_yard.yardstick = true;
    while (wants_round(s, &theirs, &mine)) round_of(&theirs, &to_yard, &mine, &to_ours);
    printf("roundtrip        server %.2f us (yardstick %.2f us) of processor time\n",
           mine.server_us, theirs.server_us);
    printf("ratio server.roundtrip %.2f (ours %.1f us vs yardstick %.1f us)\n",
           theirs.p50_us / mine.p50_us, mine.p50_us, theirs.p50_us);
    printf("ratio server.roundtrip.p99 %.2f (ours %.1f us vs yardstick %.1f us)\n",
           theirs.p99_us / mine.p99_us, mine.p99_us, theirs.p99_us);
}

static void compare_small(const session *s)
{
    size_t items = h2_load_default_items(SMALL);
    server_process yard = run_yardstick(s, SMALL, items), ours;

    ours = run_ours(s, 1, KEPT_BYTES, SMALL);
    compare_roundtrip(s, &yard, &ours);
    fill(s, &ours, 1, SMALL, KEPT_BYTES);
    compare(s, "insert 400 B", "server.insert.400B.batched", H2_INSERT, SMALL, &yard, items,
            &ours);
    server_process_stop(&ours);

    ours = run_ours(s, 1, POOL_BYTES, SMALL);
    fill(s, &ours, 1, SMALL, POOL_BYTES);
    compare(s, "sample 400 B", "server.sample.400B.batched", H2_SAMPLE, SMALL, &yard, items,
            &ours);
    server_process_stop(&yard);

    yard = run_yardstick(s, SMALL, 1);
    compare(s, "sample 400 B", "server.sample.400B", H2_SAMPLE, SMALL, &yard, 1, &ours);
    compare(s, "insert 400 B", "server.insert.400B", H2_INSERT, SMALL, &yard, 1, &ours);
    server_process_stop(&yard);
    server_process_stop(&ours);
}

static void compare_large(const session *s)
{
    server_process yard = run_yardstick(s, LARGE, 1), ours = run_ours(s, 1, KEPT_BYTES, LARGE);

    fill(s, &ours, 1, LARGE, KEPT_BYTES);
    compare(s, "insert 400 kB", "server.insert.400kB", H2_INSERT, LARGE, &yard, 1, &ours);
    server_process_stop(&ours);
    ours = run_ours(s, 1, POOL_BYTES, LARGE);
    fill(s, &ours, 1, LARGE, POOL_BYTES);
    compare(s, "sample 400 kB", "server.sample.400kB", H2_SAMPLE, LARGE, &yard, 1, &ours);
    server_process_stop(&ours);
    server_process_stop(&yard);
}

enum { LANES = 5, MAX_TURNS = 48 };

/* One number of clients, or of tables. */
typedef struct lane {
    size_t number;
    h2_load_options options;
    side best;
    double rates[MAX_TURNS];
} lane;

/* Rounds in which all lanes take turns. */
typedef struct contest {
    const char *what, *unit;
    lane *lanes;
    size_t count;
    int turns;
    double warm, seconds; /* of a round */
} contest;

/* The rate of the last lane divided by that of the best, and the rate of the best. */
typedef struct outcome {
    double part, best;
} outcome;

/* Returns the median of a lane's rates in every second turn from `first` on. If `by` is not
 * NULL, each rate is divided by that of `by` in the same turn: if the machine is slower for a
 * while, it is slower for both. */
static double median_rate(const contest *c, const lane *of, const lane *by, int first)
{
    double rates[MAX_TURNS];
    size_t count = 0;

    for (int turn = first; turn < c->turns; turn += 2)
        rates[count++] = of->rates[turn] / (by != NULL ? by->rates[turn] : 1);
    qsort(rates, count, sizeof *rates, bench_ascending);
    return (rates[(count - 1) / 2] + rates[count / 2]) / 2;
}

/* Runs the lanes in order, then in reverse, so that a machine that becomes slower or faster
 * favours no lane.
 *
 * Half of the rounds choose the best lane, and the others measure it: the largest of several
 * noisy numbers is too large, so it must not be measured by the rounds that chose it. */
static outcome take_turns(const contest *c)
{
    lane *last = &c->lanes[c->count - 1], *best = c->lanes;

    assert(c->turns % 4 == 0 && c->turns <= MAX_TURNS);
    for (int turn = 0; turn < c->turns; turn++)
        for (size_t i = 0; i < c->count; i++) {
            lane *at = &c->lanes[turn / 2 % 2 == 0 ? i : c->count - 1 - i];
            h2_load_options options = at->options;
            h2_load_result r;

            options.warm_seconds = c->warm;
            options.seconds = c->seconds;
            r = h2_load_run(&options);
            keep_best(&at->best, &r);
            at->rates[turn] = (double)r.items / r.seconds;
        }
    for (lane *at = c->lanes; at <= last; at++) {
        if (median_rate(c, at, NULL, 0) > median_rate(c, best, NULL, 0)) best = at;
        printf("%s 400 B, %3zu %s %10s in half of the rounds", c->what, at->number, c->unit,
               bench_scaled(median_rate(c, at, NULL, 1), "/s").text);
        printf(", %10s at best; server %6.3f us an item at best\n",
               bench_scaled(at->best.rate, "/s").text, at->best.server_us);
    }
    return (outcome){median_rate(c, last, best, 1), median_rate(c, best, NULL, 1)};
}

/* Prints the rate of the last lane relative to the median of the best. */
static void show_outcome(const char *name, const outcome *o, const char *peer)
{
    bench_ratio(name, o->part * o->best, peer, o->best, "/s");
}

/* The data that 200 clients may send before the first response takes a large part of a second
 * to arrive, and the system has to allocate memory for it. So the warm-up is long enough that
 * only the overload itself is measured. */
static void measure_overload(const session *s)
{
    static const size_t counts[LANES] = {1, 5, 20, 50, 200};
    static const char *const names[] = {"insert", "sample"};
    server_process ours = run_ours(s, 1, KEPT_BYTES, SMALL);
    outcome found[2], *worst;

    fill(s, &ours, 1, SMALL, KEPT_BYTES);
    for (h2_kind kind = H2_INSERT; kind <= H2_SAMPLE; kind++) {
        lane lanes[LANES] = {0};

        for (size_t i = 0; i < LANES; i++) {
            lanes[i].number = counts[i];
            lanes[i].options = load_of(s, &ours, kind, SMALL);
            lanes[i].options.connections = counts[i];
            lanes[i].options.samples = CLIENT_SAMPLES;
        }
        found[kind] = take_turns(&(contest){.what = names[kind],
                                            .unit = "clients",
                                            .lanes = lanes,
                                            .count = LANES,
                                            .turns = s->quick ? 8 : 20,
                                            .warm = 0.6,
                                            .seconds = 0.4});
    }
    worst = &found[found[1].part < found[0].part];
    show_outcome("server.overload", worst, "best of 1 to 200");
    server_process_stop(&ours);
}

static void measure_tables(const session *s)
{
    enum { COUNTS = 4 };
    server_process servers[COUNTS];
    lane lanes[COUNTS] = {0};
    outcome found;

    for (size_t i = 0; i < COUNTS; i++) {
        lanes[i].number = (size_t)1 << i;
        servers[i] = run_ours(s, lanes[i].number, KEPT_BYTES, SMALL);
        lanes[i].options = load_of(s, &servers[i], H2_INSERT, SMALL);
        lanes[i].options.table_count = lanes[i].number;
        fill(s, &servers[i], lanes[i].number, SMALL, KEPT_BYTES);
    }
    found = take_turns(&(contest){.what = "insert",
                                  .unit = "tables",
                                  .lanes = lanes,
                                  .count = COUNTS,
                                  .turns = s->quick ? 8 : MAX_TURNS,
                                  .warm = 0.1,
                                  .seconds = 0.2});
    show_outcome("server.tables", &found, "best of 1 to 8");
    for (size_t i = 0; i < COUNTS; i++) server_process_stop(&servers[i]);
}

static void measure_idle(const session *s)
{
    for (int call = 0; call < 2; call++) {
        server_process ours = run_ours(s, 1, KEPT_BYTES, SMALL);
        fill(s, &ours, 1, SMALL, SMALL * 1000);
        server_idle idle = server_idle_measure(&ours, IDLE, call == 1, s->quick ? 1.5 : 5);
        const char *name = call == 1 ? "idle_with_call" : "idle";
        printf("%zu idle connections%s\n", idle.connections,
               idle.connections < IDLE ? " (the limit of open files forbids more)" : "");
        printf("ratio server.%s.bytes %.2f (ours %.0f B vs limit %.0f B)\n", name,
               idle_bytes_limit / idle.bytes, idle.bytes, idle_bytes_limit);
        printf("ratio server.%s.cpu %.2f (ours %.3f %% vs limit %.0f %%)\n", name,
               idle_cpu_limit / (idle.cpu > 1e-5 ? idle.cpu : 1e-5), idle.cpu * 100,
               idle_cpu_limit * 100);
        server_process_stop(&ours);
    }
}

static int serve_alone(const char *tables, const char *size, const char *port)
{
    server_ours_options options = {
        .table_count = strtoul(tables, NULL, 10),
        .max_size = strtol(size, NULL, 10),
        .port = port != NULL ? (int)strtol(port, NULL, 10) : 0,
    };
    char byte;

    if (options.table_count == 0 || options.max_size <= 0) return 2;
    printf("%d\n", server_ours_start(&options));
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "serve") == 0)
        return serve_alone(argv[2], argv[3], argc > 4 ? argv[4] : NULL);
    server_idle_raise_limit();
    if (argc >= 2 && strcmp(argv[1], "figures") == 0) return server_figures(argc > 2);

    bool overload = argc >= 2 && strcmp(argv[1], "overload") == 0;
    bool tables = argc >= 2 && strcmp(argv[1], "tables") == 0;
    int skipped = overload || tables ? 1 : 0;
    bench_options options =
        bench_parse(argc - skipped, argv + skipped, "a server against raw nghttp2");
    session s = {
        .cpus = server_cpus_get(),
        .quick = options.quick,
        .warm = options.quick ? 0.1 : 0.2,
        .seconds = options.quick ? 0.3 : 0.8,
        .rounds = options.quick ? 3 : 5,
    };
    printf("%zu processors serve, %zu make the load; %zu connections, %zu items of 400 B in a "
           "request\n",
           s.cpus.serve_count, s.cpus.load_count, CONNECTIONS * s.cpus.load_count,
           h2_load_default_items(SMALL));
    if (overload) measure_overload(&s);
    if (overload || tables) {
        measure_tables(&s);
        return 0;
    }
    compare_small(&s);
    compare_large(&s);
    s.rounds = options.quick ? 1 : 3;
    measure_overload(&s);
    measure_tables(&s);
    measure_idle(&s);
    return 0;
}
