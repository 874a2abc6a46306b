/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what checkpoints cost.
 *
 *   durable.write       bytes a second of a first checkpoint, compared with a process that
 *                       writes the same number of bytes to a file and syncs it
 *   durable.increment   bytes of the checkpoint after 1 % of the items were replaced, divided
 *                       by those of the first
 *   durable.hold        the longest insert or sample while a checkpoint of a million items is
 *                       written, and their rate meanwhile, compared with the time before
 *   durable.tier        durable_tier.c
 *
 * The comparison with dm-reverb's checkpoints is in durable_pause.py. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bench.h"
#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "durable_tier.h"
#include "reprise/durable.h"
#include "reprise/reprise.h"

enum { ROUNDS = 3, BLOCK = 1 << 20, MAX_TIMES = 1 << 24, BATCH = 500 };

typedef struct data {
    char directory[PATH_MAX + 64];
    rp_store *store;
    rp_table *table;
    rp_durable *durable;
    size_t item_bytes;
    uint64_t next_key;
    rp_chunk_builder *builder;
    uint8_t *row;
    bench_rng rng;
} data;

/* Returns a path beside the program, so on the disk on which it was built. */
static void path_of(char out[PATH_MAX + 64], const char *name)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    if (length < 0) bench_check(RP_UNAVAILABLE, NULL);
    path[length] = '\0';
    snprintf(out, PATH_MAX + 64, "%s-%s-%ld", path, name, (long)getpid());
}

static void remove_all(const char *directory)
{
    char command[PATH_MAX + 96];

    snprintf(command, sizeof command, "rm -rf -- '%s'", directory);
    if (system(command) != 0) fprintf(stderr, "%s is left behind\n", directory);
}

static void open_data(data *d, const char *name, size_t items, size_t item_bytes,
                      rp_selector_kind remover)
{
    rp_spec spec = {"x", RP_UINT8, {.rank = 1, .dims = {(int64_t)item_bytes}}};
    rp_chunk_options plain = {.codec = RP_CODEC_NONE};
    rp_table_options table = {.name = "t",
                              .sampler = {RP_UNIFORM, 0},
                              .remover = {remover, 0},
                              .limiter = rp_limiter_min_size(1),
                              .max_size = (int64_t)items};
    rp_store_options store = {.seed = 7};
    rp_durable_options options = {.period_ns = RP_FOREVER, .keep = 2};
    rp_error err;

    *d = (data){.item_bytes = item_bytes, .rng = {.state = 9}};
    path_of(d->directory, name);
    options.directory = d->directory;
    bench_check(rp_store_new(&store, &d->store, &err), &err);
    bench_check(rp_store_add_table(d->store, &table, &d->table, &err), &err);
    bench_check(rp_durable_open(&options, d->store, &d->durable, &err), &err);
    bench_check(
        rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &plain, &d->builder, &err),
        &err);
    d->row = bench_array(item_bytes, 1);
    for (size_t i = 0; i < item_bytes; i++) d->row[i] = (uint8_t)bench_random(&d->rng);
}

static void close_data(data *d)
{
    rp_error err;

    bench_check(rp_durable_close(d->durable, &err), &err);
    rp_store_free(d->store);
    rp_chunk_builder_free(d->builder);
    free(d->row);
    remove_all(d->directory);
}

static rp_trajectory *make_item(data *d)
{
    rp_chunk_origin origin = {.key = ++d->next_key, .episode = d->next_key / 100};
    rp_tensor row = {RP_UINT8, {.rank = 1, .dims = {(int64_t)d->item_bytes}}, d->row};
    rp_chunk_slice slice = {.length = 1};
    rp_slices column = {.slices = &slice, .slice_count = 1};
    rp_trajectory *trajectory = NULL;
    rp_error err;

    memcpy(d->row, &d->next_key, sizeof d->next_key);
    bench_check(rp_chunk_builder_append(d->builder, &row, &err), &err);
    bench_check(rp_chunk_builder_finish(d->builder, &origin, &slice.chunk, &err), &err);
    bench_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &trajectory, &err), &err);
    rp_chunk_unref(slice.chunk);
    return trajectory;
}

static void insert(data *d, size_t count)
{
    rp_error err;

    while (count > 0) {
        rp_insert items[BATCH];
        size_t n = count < BATCH ? count : BATCH;

        for (size_t i = 0; i < n; i++) {
            rp_trajectory *trajectory = make_item(d);
            items[i] = (rp_insert){.key = d->next_key,
                                   .priority = 1,
                                   .trajectory = trajectory,
                                   .flags = RP_INSERT_TAKE};
        }
        bench_check(rp_table_insert(d->table, items, n, rp_wait_forever(), NULL, &err), &err);
        count -= n;
    }
}

/* Writes a checkpoint. Returns its bytes. */
static uint64_t checkpoint(data *d)
{
    rp_durable_info info;
    rp_error err;

    bench_check(rp_durable_checkpoint(d->durable, rp_wait_forever(), NULL, 0, &err), &err);
    rp_durable_get_info(d->durable, &info);
    return info.last_checkpoint_bytes;
}

/* Returns the processor time that this process has used. */
static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double write_plainly(uint64_t bytes)
{
    uint8_t *block = bench_array(BLOCK, 1);
    char path[PATH_MAX + 64];
    double began;
    int fd;

    path_of(path, "plain");
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) bench_check(RP_UNAVAILABLE, NULL);
    for (size_t i = 0; i < BLOCK; i++) block[i] = (uint8_t)(i * 31);
    began = bench_seconds();
    for (uint64_t done = 0; done < bytes;) {
        size_t n = bytes - done < BLOCK ? (size_t)(bytes - done) : BLOCK;
        ssize_t written = write(fd, block, n);

        if (written <= 0) bench_check(RP_NO_RESOURCE, NULL);
        done += (uint64_t)written;
    }
    if (fdatasync(fd) != 0) bench_check(RP_UNAVAILABLE, NULL);
    began = bench_seconds() - began;
    (void)close(fd);
    (void)unlink(path);
    free(block);
    return began;
}

static void measure_write(size_t items, size_t item_bytes, const char *name)
{
    bench_best ours = {0}, plain = {0}, ours_cpu = {0}, plain_cpu = {0};
    uint64_t bytes = 0;
    char text[48];

    for (int round = 0; round < ROUNDS; round++) {
        double began, cpu;
        data d;

        open_data(&d, "write", items, item_bytes, RP_FIFO);
        insert(&d, items);
        sync();
        began = bench_seconds();
        cpu = cpu_seconds();
        bytes = checkpoint(&d);
        bench_keep(&ours, began);
        bench_keep_seconds(&ours_cpu, cpu_seconds() - cpu);
        close_data(&d);
        sync();
        cpu = cpu_seconds();
        bench_keep_seconds(&plain, write_plainly(bytes));
        bench_keep_seconds(&plain_cpu, cpu_seconds() - cpu);
    }
    printf("# a checkpoint of %zu items of %zu B: %.0f MB, %.2f s; of the processors %.2f s, "
           "plain writes %.2f s\n",
           items, item_bytes, (double)bytes / 1e6, ours.seconds, ours_cpu.seconds,
           plain_cpu.seconds);
    snprintf(text, sizeof text, "durable.write%s", name);
    bench_ratio(text, (double)bytes / ours.seconds, "plain writes",
                (double)bytes / plain.seconds, "B/s");
}

static void measure_increment(size_t items, rp_selector_kind remover, const char *name)
{
    uint64_t first, second;
    double began;
    data d;

    open_data(&d, "increment", items, 400, remover);
    insert(&d, items);
    first = checkpoint(&d);
    insert(&d, items / 100);
    began = bench_seconds();
    second = checkpoint(&d);
    printf("# the second checkpoint, %s, took %.1f ms\n", name,
           (bench_seconds() - began) * 1e3);
    printf("ratio durable.increment%s %.4f (ours %s vs the first %s)\n", name,
           (double)second / (double)first, bench_scaled((double)second, "B").text,
           bench_scaled((double)first, "B").text);
    close_data(&d);
}

typedef struct load {
    data *d;
    atomic_bool stop;
    atomic_int phase; /* 0: before the checkpoint, 1: while it is written */
    float *times[2];  /* microseconds, of each operation */
    size_t counts[2];
    double seconds[2];
    double cpu[2]; /* seconds of processor time of the thread */
} load;

/* Returns the processor time that this thread has used. */
static double thread_cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Inserts and samples in turn, one item at a time. */
static void *work(void *ctx)
{
    load *l = ctx;
    double before = bench_seconds(), cpu_before = thread_cpu_seconds();
    int phase = 0;
    rp_error err;

    while (!atomic_load(&l->stop)) {
        int next = atomic_load(&l->phase);
        rp_insert item = {.priority = 1, .flags = RP_INSERT_TAKE};
        rp_sample_options one = {.count = 1};
        rp_sample sample;
        size_t drawn;
        double now;

        if (next != phase) {
            now = thread_cpu_seconds();
            l->cpu[phase] += now - cpu_before;
            cpu_before = now;
            phase = next;
        }
        item.trajectory = make_item(l->d);
        item.key = l->d->next_key;
        now = bench_seconds();
        l->seconds[phase] += now - before;
        before = now;
        bench_check(rp_table_insert(l->d->table, &item, 1, rp_wait_forever(), NULL, &err),
                    &err);
        now = bench_seconds();
        l->seconds[phase] += now - before;
        if (l->counts[phase] < MAX_TIMES)
            l->times[phase][l->counts[phase]++] = (float)((now - before) * 1e6);
        before = now;
        bench_check(
            rp_table_sample(l->d->table, &one, &sample, &drawn, rp_wait_forever(), &err), &err);
        rp_samples_release(&sample, drawn);
        now = bench_seconds();
        l->seconds[phase] += now - before;
        if (l->counts[phase] < MAX_TIMES)
            l->times[phase][l->counts[phase]++] = (float)((now - before) * 1e6);
        before = now;
    }
    l->cpu[phase] += thread_cpu_seconds() - cpu_before;
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static double at_share(const load *l, int phase, double share)
{
    size_t count = l->counts[phase];

    return count == 0 ? 0 : (double)l->times[phase][(size_t)(share * (double)(count - 1))];
}

static void measure_hold(size_t items)
{
    static const char *const names[] = {"before", "while it is written"};
    load l = {0};
    double pause_us = 0, rates[2];
    rp_durable_info info;
    pthread_t thread;
    data d;

    open_data(&d, "hold", items, 400, RP_FIFO);
    insert(&d, items);
    l.d = &d;
    for (int i = 0; i < 2; i++) l.times[i] = bench_array(MAX_TIMES, sizeof(float));
    if (pthread_create(&thread, NULL, work, &l) != 0) bench_check(RP_NO_RESOURCE, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        (void)usleep(700000);
        atomic_store(&l.phase, 1);
        (void)checkpoint(&d);
        atomic_store(&l.phase, 0);
        rp_durable_get_info(d.durable, &info);
        if ((double)info.last_pause_ns / 1e3 > pause_us)
            pause_us = (double)info.last_pause_ns / 1e3;
    }
    atomic_store(&l.stop, true);
    (void)pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        qsort(l.times[i], l.counts[i], sizeof(float), by_size);
        rates[i] = (double)l.counts[i] / l.seconds[i];
        printf("# %zu items, %s: %s, median %.2f us, p99.9 %.1f us, at most %.0f us; "
               "processor time %.3f us\n",
               items, names[i], bench_scaled(rates[i], "/s").text, at_share(&l, i, 0.5),
               at_share(&l, i, 0.999), at_share(&l, i, 1),
               l.counts[i] == 0 ? 0 : l.cpu[i] * 1e6 / (double)l.counts[i]);
    }
    printf("# all tables stood still for %.0f us at most\n", pause_us);
    printf("ratio durable.hold.throughput %.2f (ours %s vs without a checkpoint %s)\n",
           rates[1] / rates[0], bench_scaled(rates[1], "/s").text,
           bench_scaled(rates[0], "/s").text);
    for (int i = 0; i < 2; i++) free(l.times[i]);
    close_data(&d);
}

int main(int argc, char **argv)
{
    bench_options options = bench_parse(argc, argv, "checkpoints");
    size_t share = options.quick ? 10 : 1;
    char folder[PATH_MAX + 64];

    measure_write(100000 / share, 4000, "");
    measure_write(1000000 / share, 400, ".small");
    measure_increment(200000 / share, RP_FIFO, "");
    measure_increment(200000 / share, RP_UNIFORM, ".anywhere");
    measure_hold(1000000 / share);
    path_of(folder, "tier");
    bench_durable_tier(folder, options.quick);
    return 0;
}
