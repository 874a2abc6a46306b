/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what the client costs, and whether it keeps a server busy. One process uses one
 * client through the public API. The servers run in other processes, on the other half of the
 * processors.
 *
 *   bench_client [--quick]          all of it
 *   bench_client PART [--quick]     local, insert, sample, append, tcp or shards only;
 *                                   eight shards need 16 processors */
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "h2_load.h"
#include "reprise/reprise.h"
#include "server_ours.h"
#include "server_process.h"
#include "yardstick.h"

enum {
    SMALL = 400,
    FLOATS = SMALL / 4,
    FRAME = 84 * 84,
    STACK = 4,
    BATCH = 512,
    FRAMES = 4096,
    KEPT_BYTES = 256 << 20,
    SMALL_LENGTH = 1, /* rows of a chunk, as in the Reverb paper's section 5 */
};

static const double insert_limit_us = 0.6, sample_limit_us = 0.4, append_limit_us = 5;

typedef struct session {
    server_cpus cpus;
    double seconds;
    int rounds;
} session;

static double own_cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static server_process run_ours(const session *s, size_t loops, int64_t max_size)
{
    server_ours_options options = {.table_count = 1, .max_size = max_size, .loops = loops};
    server_process process;

    server_process_start(&process, &s->cpus, server_ours_start, &options);
    return process;
}

static rp_client *connect_to(const server_process *servers, size_t count)
{
    rp_client_options options = {.seed = 1};
    char addresses[512] = "";
    size_t at = 0;
    rp_client *client;
    rp_error error;

    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(addresses + at, sizeof addresses - at, "%s127.0.0.1:%d",
                               i > 0 ? "," : "", servers[i].port);
    bench_check(rp_client_new(addresses, &options, &client, &error), &error);
    return client;
}

typedef struct writing {
    rp_client *client;
    double seconds; /* stop after this time, */
    uint64_t limit; /* or after this number of items; 0: no limit */
    size_t window;  /* items created and not confirmed, at most */
    bool timed;     /* measure the time of every append */
    float *payload;
    uint64_t items;
    double *appends; /* seconds, of the latest APPENDS */
    size_t append_count;
} writing;

enum { APPENDS = 1 << 16, LOOK = 256, WINDOW = 20000 };

static void append_one(writing *w, rp_trajectory_writer *writer)
{
    rp_value value = {.tensor = {.dtype = RP_FLOAT32, .shape = {.rank = 1, .dims = {FLOATS}}}};
    double started = w->timed ? bench_seconds() : 0;
    rp_error error;
    rp_ref ref;

    value.tensor.data = w->payload + w->items % 4096;
    bench_check(rp_trajectory_writer_append(writer, &value, 1, 0, &ref, &error), &error);
    if (w->timed) w->appends[w->append_count++ % APPENDS] = bench_seconds() - started;
    rp_item_column column = {.refs = &ref, .count = 1, .squeeze = true};
    bench_check(rp_trajectory_writer_create_item(writer, &(rp_new_item){"t0", 1.0, &column, 1},
                                                 rp_wait_forever(), NULL, &error),
                &error);
    w->items++;
}

static void write_items(writing *w)
{
    rp_trajectory_writer_options options = {
        .column = {.history = 10, .chunk_length = SMALL_LENGTH, .chunk = {RP_CODEC_NONE, 0, 0}},
        .max_items = w->window,
    };
    rp_trajectory_writer *writer;
    double end = bench_seconds() + w->seconds;
    rp_error error;

    bench_check(
        rp_trajectory_writer_new(w->client, &options, rp_wait_ms(5000), &writer, &error),
        &error);
    do append_one(w, writer);
    while (w->items % LOOK != 0 || bench_seconds() < end);
    bench_check(rp_trajectory_writer_flush(writer, 0, rp_wait_forever(), &error), &error);
    rp_trajectory_writer_free(writer);
}

static writing new_writing(const session *s, rp_client *client)
{
    writing w = {.client = client, .seconds = s->seconds, .window = WINDOW};
    bench_rng rng = {.state = 5};

    w.payload = bench_array(4096 + FLOATS, sizeof *w.payload);
    for (size_t i = 0; i < 4096 + FLOATS; i++) w.payload[i] = (float)bench_uniform(&rng);
    return w;
}

/* Returns the rate that the load generator of bench_server gets from the same server. */
static double raw_rate(const session *s, const server_process *server, h2_kind kind)
{
    h2_load_options options = {.port = server->port,
                               .kind = kind,
                               .connections = 4 * s->cpus.load_count,
                               .threads = s->cpus.load_count,
                               .cpus = &s->cpus.load,
                               .seconds = s->seconds,
                               .server_cpu = server->cpu};
    h2_load_result r = h2_load_run(&options);

    return (double)r.items / r.seconds;
}

static void show(const char *what, double rate, double client_us, double server_us)
{
    printf("%-18s %10s   client %6.3f us   server %6.3f us an item\n", what,
           bench_scaled(rate, "/s").text, client_us, server_us);
}

static void limit_ratio(const char *name, double limit, double ours)
{
    printf("ratio %s %.2f (ours %.3f us vs limit %.3f us)\n", name, limit / ours, ours, limit);
}

static void fill_small(const session *s, const server_process *server)
{
    h2_load_options options = {.port = server->port,
                               .kind = H2_INSERT,
                               .cpus = &s->cpus.load,
                               .item_limit = KEPT_BYTES / SMALL};

    h2_load_run(&options);
}

static void measure_insert(const session *s)
{
    server_process server = run_ours(s, s->cpus.serve_count, KEPT_BYTES / SMALL);
    double best = 0, best_us = 0, best_server = 0, raw = 0;

    fill_small(s, &server);
    for (int round = 0; round < s->rounds; round++) {
        double rate = raw_rate(s, &server, H2_INSERT);
        if (rate > raw) raw = rate;
        rp_client *client = connect_to(&server, 1);
        writing w = new_writing(s, client);
        w.seconds = s->seconds / 4; /* a warm-up, in which it allocates its memory */
        write_items(&w);
        w.seconds = s->seconds;
        w.items = 0;
        double cpu = own_cpu(), theirs = server_process_cpu(&server), start = bench_seconds();
        write_items(&w);
        double items = (double)w.items, seconds = bench_seconds() - start;
        if (items / seconds > best) best = items / seconds;
        double us = (own_cpu() - cpu) / items * 1e6;
        if (best_us == 0 || us < best_us) best_us = us;
        us = (server_process_cpu(&server) - theirs) / items * 1e6;
        if (best_server == 0 || us < best_server) best_server = us;
        free(w.payload);
        rp_client_free(client);
    }
    show("insert 400 B", best, best_us, best_server);
    limit_ratio("client.insert.cpu", insert_limit_us, best_us);
    bench_ratio("client.insert", best, "bare load", raw, "/s");
    server_process_stop(&server);
}

/* Measures how long an append takes while chunks of 32 rows are compressed. */
static void measure_append(const session *s)
{
    server_process server = run_ours(s, s->cpus.serve_count, KEPT_BYTES / SMALL);
    rp_client *client = connect_to(&server, 1);
    writing w = new_writing(s, client);
    size_t count;

    w.timed = true;
    w.appends = bench_array(APPENDS, sizeof *w.appends);
    write_items(&w);
    count = w.append_count < APPENDS ? w.append_count : APPENDS;
    qsort(w.appends, count, sizeof *w.appends, bench_ascending);
    printf("append 100 floats  p50 %.2f us   p99 %.2f us   p99.9 %.2f us\n",
           w.appends[count / 2] * 1e6, w.appends[count - 1 - count / 100] * 1e6,
           w.appends[count - 1 - count / 1000] * 1e6);
    limit_ratio("client.append.p99", append_limit_us, w.appends[count - 1 - count / 100] * 1e6);
    free(w.appends);
    free(w.payload);
    rp_client_free(client);
    server_process_stop(&server);
}

static uint64_t sample_for(rp_client *client, double seconds)
{
    rp_sampler_options options = {
        .table = "t0", .max_in_flight = 4096, .rate_limiter_timeout_ms = -1};
    static rp_sample samples[BATCH];
    double end = bench_seconds() + seconds;
    rp_sampler *sampler;
    uint64_t total = 0;
    rp_error error;

    bench_check(rp_sampler_new(client, &options, &sampler, &error), &error);
    while (bench_seconds() < end) {
        size_t count;
        bench_check(rp_sampler_next(sampler, samples, BATCH, &count, rp_wait_forever(), &error),
                    &error);
        rp_samples_release(samples, count);
        total += count;
    }
    rp_sampler_free(sampler);
    return total;
}

static void measure_sample(const session *s)
{
    server_process server = run_ours(s, s->cpus.serve_count, KEPT_BYTES / SMALL);
    double best = 0, best_us = 0, best_server = 0, raw = 0;

    fill_small(s, &server);
    for (int round = 0; round < s->rounds; round++) {
        double rate = raw_rate(s, &server, H2_SAMPLE);
        if (rate > raw) raw = rate;
        rp_client *client = connect_to(&server, 1);
        (void)sample_for(client, s->seconds / 4);
        double cpu = own_cpu(), theirs = server_process_cpu(&server), start = bench_seconds();
        double items = (double)sample_for(client, s->seconds);
        double seconds = bench_seconds() - start;
        if (items / seconds > best) best = items / seconds;
        double us = (own_cpu() - cpu) / items * 1e6;
        if (best_us == 0 || us < best_us) best_us = us;
        us = (server_process_cpu(&server) - theirs) / items * 1e6;
        if (best_server == 0 || us < best_server) best_server = us;
        rp_client_free(client);
    }
    show("sample 400 B", best, best_us, best_server);
    limit_ratio("client.sample.cpu", sample_limit_us, best_us);
    bench_ratio("client.sample", best, "bare load", raw, "/s");
    server_process_stop(&server);
}

/* Writes frames, and an item for every STACK consecutive frames. */
static void fill_frames(rp_client *client)
{
    rp_trajectory_writer_options options = {
        .column = {.history = 16, .chunk_length = STACK, .chunk = {RP_CODEC_NONE, 0, 0}}};
    uint8_t *frame = bench_array(FRAME, 1);
    rp_trajectory_writer *writer;
    bench_rng rng = {.state = 3};
    rp_error error;

    bench_check(rp_trajectory_writer_new(client, &options, rp_wait_ms(5000), &writer, &error),
                &error);
    for (int i = 0; i < FRAMES; i++) {
        rp_value value = {
            .tensor = {RP_UINT8, {.rank = 2, .dims = {84, 84}}, frame},
        };
        rp_ref refs[STACK];
        rp_item_column column = {.refs = refs, .count = STACK};
        for (size_t j = 0; j < FRAME; j++) frame[j] = (uint8_t)bench_random(&rng);
        bench_check(rp_trajectory_writer_append(writer, &value, 1, 0, NULL, &error), &error);
        if (i % STACK != STACK - 1) continue;
        for (int j = 0; j < STACK; j++)
            if (!rp_trajectory_writer_find(writer, 0, j - STACK, &refs[j])) exit(1);
        bench_check(rp_trajectory_writer_create_item(writer,
                                                     &(rp_new_item){"t0", 1.0, &column, 1},
                                                     rp_wait_forever(), NULL, &error),
                    &error);
    }
    bench_check(rp_trajectory_writer_flush(writer, 0, rp_wait_forever(), &error), &error);
    rp_trajectory_writer_free(writer);
    free(frame);
}

/* How batches are stacked into the caller's memory. */
typedef enum way {
    AS_THEY_COME, /* each sample when it arrives */
    AT_ONCE,      /* when all samples have arrived */
} way;

static void stack_batch(rp_sampler *sampler, way how, void *place)
{
    size_t bytes = (size_t)BATCH * STACK * FRAME, count;
    rp_stack_place coming = {place, (size_t)STACK * FRAME};
    rp_sample samples[BATCH];
    rp_batch *batch;
    rp_error error;

    if (how == AS_THEY_COME) {
        bench_check(rp_sampler_stack(sampler, &(rp_stack){&coming, 1, samples, BATCH}, &count,
                                     rp_wait_forever(), &error),
                    &error);
        return;
    }
    bench_check(rp_sampler_batch(sampler, BATCH, RP_RAGGED_REFUSE, true, rp_wait_forever(),
                                 &batch, &error),
                &error);
    bench_check(rp_batch_decode(batch, &place, &bytes, &error), &error);
    rp_batch_free(batch);
}

/* Returns bytes a second of batches that are stacked into the same memory. */
static double stack_for(rp_client *client, way how, double seconds)
{
    rp_sampler_options options = {.table = "t0",
                                  .max_in_flight = how == AT_ONCE ? 2 * BATCH : BATCH / 2,
                                  .rate_limiter_timeout_ms = -1};
    size_t bytes = (size_t)BATCH * STACK * FRAME, batches = 0;
    void *place = bench_memory(malloc(bytes));
    double start = bench_seconds();
    rp_sampler *sampler;
    rp_error error;

    bench_check(rp_sampler_new(client, &options, &sampler, &error), &error);
    for (; bench_seconds() < start + seconds; batches++) stack_batch(sampler, how, place);
    seconds = bench_seconds() - start;
    rp_sampler_free(sampler);
    free(place);
    return (double)batches * (double)bytes / seconds;
}

/* Returns bytes a second of one thread that copies the same bytes from random addresses. */
static double copy_for(double seconds)
{
    size_t item = (size_t)STACK * FRAME, bytes = (size_t)BATCH * item, batches = 0;
    uint8_t *pool = bench_array(FRAMES / STACK, item), *place = bench_memory(malloc(bytes));
    bench_rng rng = {.state = 9};
    double start = bench_seconds();

    memset(pool, 1, (size_t)FRAMES / STACK * item);
    start = bench_seconds();
    while (bench_seconds() < start + seconds) {
        for (size_t i = 0; i < BATCH; i++)
            memcpy(place + i * item, pool + bench_below(&rng, FRAMES / STACK) * item, item);
        batches++;
    }
    seconds = bench_seconds() - start;
    free(pool);
    free(place);
    return (double)batches * (double)bytes / seconds;
}

static void measure_stack_local(const session *s)
{
    rp_table_options table = {.name = "t0",
                              .sampler = {RP_UNIFORM, 0},
                              .limiter = rp_limiter_min_size(1),
                              .max_size = FRAMES};
    double ours = 0, copied = 0;
    rp_client *client;
    rp_store *store;
    rp_error error;

    bench_check(rp_store_new(NULL, &store, &error), &error);
    bench_check(rp_store_add_table(store, &table, NULL, &error), &error);
    bench_check(rp_client_local(store, NULL, &client, &error), &error);
    fill_frames(client);
    for (int round = 0; round < s->rounds; round++) {
        double rate = copy_for(s->seconds / 2);
        if (rate > copied) copied = rate;
        rate = stack_for(client, AT_ONCE, s->seconds);
        if (rate > ours) ours = rate;
    }
    bench_ratio("client.stack.local", ours, "memcpy", copied, "B/s");
    rp_client_free(client);
    rp_store_free(store);
}

static int start_yardstick(const void *options)
{
    return yardstick_start(options);
}

static void measure_stack_tcp(const session *s)
{
    size_t item = (size_t)STACK * FRAME;
    yardstick_options options = {.threads = s->cpus.serve_count,
                                 .payload_bytes = item,
                                 .samples = 1,
                                 .pool_bytes = (size_t)FRAMES / STACK * item};
    server_process yard, server = run_ours(s, s->cpus.serve_count, FRAMES);
    double ours = 0, at_once = 0, theirs = 0;

    server_process_start(&yard, &s->cpus, start_yardstick, &options);
    rp_client *client = connect_to(&server, 1);
    fill_frames(client);
    for (int round = 0; round < s->rounds; round++) {
        h2_load_options load = {.port = yard.port,
                                .kind = H2_SAMPLE,
                                .payload_bytes = item,
                                .items = 1,
                                .connections = 1,
                                .threads = 1,
                                .cpus = &s->cpus.load,
                                .seconds = s->seconds,
                                .yardstick = true};
        h2_load_result r = h2_load_run(&load);
        double rate = (double)r.items * (double)item / r.seconds;
        if (rate > theirs) theirs = rate;
        rate = stack_for(client, AS_THEY_COME, s->seconds);
        if (rate > ours) ours = rate;
        rate = stack_for(client, AT_ONCE, s->seconds);
        if (rate > at_once) at_once = rate;
    }
    bench_ratio("client.stack.tcp", ours, "yardstick", theirs, "B/s");
    bench_ratio("client.batch.tcp", at_once, "yardstick", theirs, "B/s");
    rp_client_free(client);
    server_process_stop(&server);
    server_process_stop(&yard);
}

enum { SHARDS = 8 };

/* Returns a set with only the `index`-th processor of `set`. */
static cpu_set_t only_cpu(const cpu_set_t *set, size_t index)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, set) && index-- == 0) CPU_SET(i, &one);
    return one;
}

/* Runs in a process that writes to all shards. Reports on `tell` when it is ready, waits until
 * `hear` is closed, writes, and then reports its rate. */
static void be_writer(const session *s, const server_process *servers, size_t shards,
                      size_t window, int tell, int hear)
{
    session warming = {.cpus = s->cpus, .seconds = s->seconds / 4};
    rp_client *client = connect_to(servers, shards);
    writing w = new_writing(&warming, client);
    double start, rate;
    char byte = 0;

    w.window = window;
    write_items(&w);
    w.seconds = s->seconds;
    w.items = 0;
    if (write(tell, &byte, 1) != 1 || read(hear, &byte, 1) != 0) _exit(1);
    start = bench_seconds();
    write_items(&w);
    rate = (double)w.items / (bench_seconds() - start);
    _exit(write(tell, &rate, sizeof rate) == sizeof rate ? 0 : 1);
}

/* Returns inserts a second with `shards` servers, each of one loop on its own processor, and as
 * many processes that write to all servers, each with `window` unconfirmed items. The processor
 * next to a server's is a writer's. If two processors share one core, as in most virtual
 * machines, each shard with its writer has one core, whatever the number of shards. */
static double shards_rate(const session *s, size_t shards, size_t window)
{
    server_process servers[SHARDS];
    int tell[2], hear[2];
    double sum = 0, rate;
    pid_t pids[SHARDS];
    cpu_set_t all;
    char byte;

    CPU_OR(&all, &s->cpus.serve, &s->cpus.load);
    for (size_t i = 0; i < shards; i++) {
        session alone = *s;
        alone.cpus.serve = only_cpu(&all, 2 * i);
        servers[i] = run_ours(&alone, 1, KEPT_BYTES / SMALL / SHARDS);
    }
    if (pipe(tell) != 0 || pipe(hear) != 0) exit(1);
    for (size_t i = 0; i < shards; i++) {
        pids[i] = fork();
        if (pids[i] < 0) exit(1);
        if (pids[i] > 0) continue;
        cpu_set_t own = only_cpu(&all, 2 * i + 1);
        sched_setaffinity(0, sizeof own, &own);
        close(hear[1]);
        be_writer(s, servers, shards, window, tell[1], hear[0]);
    }
    for (size_t i = 0; i < shards; i++)
        if (read(tell[0], &byte, 1) != 1) exit(1);
    close(hear[1]); /* all begin */
    for (size_t i = 0; i < shards; i++) {
        if (read(tell[0], &rate, sizeof rate) != sizeof rate) exit(1);
        sum += rate;
    }
    for (size_t i = 0; i < shards; i++) waitpid(pids[i], NULL, 0);
    close(hear[0]);
    close(tell[0]);
    close(tell[1]);
    for (size_t i = 0; i < shards; i++) server_process_stop(&servers[i]);
    return sum;
}

/* One shard needs many unconfirmed items to be busy, but the unconfirmed items of many writers
 * exceed the machine's caches. So each number of shards is measured with many and with few, and
 * the better rate counts. */
static void measure_shards(const session *s)
{
    enum { COUNTS = 4, WINDOWS = 2 };
    static const size_t counts[COUNTS] = {1, 2, 4, SHARDS}, windows[WINDOWS] = {WINDOW, 4000};
    double best[COUNTS] = {0};

    for (int round = 0; round < s->rounds && s->cpus.load_count > 1; round++)
        for (size_t i = 0; i < COUNTS; i++) {
            double rate = 0;
            if (s->cpus.load_count >= counts[i])
                rate = shards_rate(s, counts[i], windows[round % WINDOWS]);
            if (rate > best[i]) best[i] = rate;
        }
    for (size_t i = 1; i < COUNTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "client.shards.%zu", counts[i]);
        if (best[i] > 0)
            bench_ratio(name, best[i], "one shard", best[0], "/s");
        else
            printf("%zu shards want %zu processors\n", counts[i], 2 * counts[i]);
    }
}

typedef struct part {
    const char *name;
    void (*measure)(const session *s);
} part;

int main(int argc, char **argv)
{
    static const part parts[] = {
        {"local", measure_stack_local}, {"insert", measure_insert}, {"sample", measure_sample},
        {"append", measure_append},     {"tcp", measure_stack_tcp}, {"shards", measure_shards},
    };
    const char *only = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    int skipped = only != NULL ? 1 : 0;
    bench_options options =
        bench_parse(argc - skipped, argv + skipped, "a client and its servers");
    session s = {.cpus = server_cpus_get(), .seconds = 0.5, .rounds = options.quick ? 2 : 15};

    sched_setaffinity(0, sizeof s.cpus.load, &s.cpus.load);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (only == NULL || strcmp(only, parts[i].name) == 0) parts[i].measure(&s);
    return 0;
}
