/* SPDX-License-Identifier: Apache-2.0 */
/* A table of four times max_memory, sampled uniformly by four threads in batches, compared with
 * threads that only call pread() at random offsets. There are as many of these as the disk tier
 * has.
 *
 * Both read the same files in pieces of the same size. Both read through the page cache, since
 * records begin at any offset and O_DIRECT needs multiples of a sector. Meanwhile a thread
 * drops these files from the page cache, so that the disk is read. For our side only the bytes
 * that the tier reads from disk count, not those that it has in memory. The two take turns, and
 * the best of each counts. */
#include "durable_tier.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "reprise/durable.h"
#include "reprise/reprise.h"

enum {
    ITEM_BYTES = 16 << 10,
    SAMPLERS = 4,
    BATCH = 64,
    READERS = 16, /* as many as the tier has */
    MAX_FILES = 64,
    DROP_EVERY_NS = 20000000,
};

typedef struct tier_bench {
    const char *directory;
    rp_store *store;
    rp_table *table;
    rp_durable *durable;
    size_t item_count;
    int files[MAX_FILES];
    uint64_t bytes[MAX_FILES];
    size_t file_count;
    double seconds;
    atomic_bool stop;
    atomic_ullong read_bytes;
    atomic_uint seed;
} tier_bench;

static rp_trajectory *make_item(uint64_t key, bench_rng *rng)
{
    static uint64_t data[ITEM_BYTES / sizeof(uint64_t)];
    static rp_chunk_builder *builder;
    rp_spec spec = {"x", RP_UINT8, {.rank = 1, .dims = {ITEM_BYTES}}};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_chunk_origin origin = {.key = key, .episode = key / 100};
    rp_tensor row = {RP_UINT8, spec.shape, data};
    rp_chunk_slice slice = {.length = 1};
    rp_slices column = {.slices = &slice, .slice_count = 1};
    rp_trajectory *trajectory = NULL;
    rp_error err;

    for (size_t i = 0; i < ITEM_BYTES / sizeof(uint64_t); i++) data[i] = bench_random(rng);
    if (builder == NULL)
        bench_check(
            rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &options, &builder, &err),
            &err);
    bench_check(rp_chunk_builder_append(builder, &row, &err), &err);
    bench_check(rp_chunk_builder_finish(builder, &origin, &slice.chunk, &err), &err);
    bench_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &trajectory, &err), &err);
    rp_chunk_unref(slice.chunk);
    return trajectory;
}

static void fill(tier_bench *b, uint64_t max_memory)
{
    rp_table_options options = {.name = "t",
                                .sampler = {.kind = RP_UNIFORM},
                                .remover = {.kind = RP_FIFO},
                                .max_size = 1 << 30,
                                .limiter = rp_limiter_min_size(1)};
    rp_durable_options durable = {
        .directory = b->directory, .max_memory = max_memory, .period_ns = RP_FOREVER};
    bench_rng rng = {.state = 42};
    double started = bench_seconds();
    rp_error err;

    bench_check(rp_store_new(NULL, &b->store, &err), &err);
    bench_check(rp_store_add_table(b->store, &options, &b->table, &err), &err);
    bench_check(rp_durable_open(&durable, b->store, &b->durable, &err), &err);
    for (size_t i = 0; i < b->item_count; i++) {
        rp_insert item = {.key = i + 1,
                          .priority = 1,
                          .trajectory = make_item(i + 1, &rng),
                          .flags = RP_INSERT_TAKE};
        bench_check(rp_table_insert(b->table, &item, 1, rp_wait_forever(), NULL, &err), &err);
    }
    printf("%zu items of %d KiB in %.1f s, max_memory %llu MiB\n", b->item_count,
           ITEM_BYTES >> 10, bench_seconds() - started, (unsigned long long)max_memory >> 20);
}

static void open_files(tier_bench *b)
{
    char path[4096];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof path, "%s/seg", b->directory);
    folder = opendir(path);
    if (folder == NULL) bench_check(RP_UNAVAILABLE, NULL);
    while ((entry = readdir(folder)) != NULL && b->file_count < MAX_FILES) {
        struct stat st;
        int fd = openat(dirfd(folder), entry->d_name, O_RDONLY);

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
            st.st_size > 64 * ITEM_BYTES) {
            b->files[b->file_count] = fd;
            b->bytes[b->file_count++] = (uint64_t)st.st_size;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    closedir(folder);
}

static void remove_files(tier_bench *b)
{
    char path[4096];

    for (size_t i = 0; i < b->file_count; i++) close(b->files[i]);
    snprintf(path, sizeof path, "rm -rf -- '%s'", b->directory);
    if (system(path) != 0) fprintf(stderr, "%s is left behind\n", b->directory);
}

static void *drop_pages(void *arg)
{
    tier_bench *b = arg;

    while (!atomic_load(&b->stop)) {
        for (size_t i = 0; i < b->file_count; i++)
            (void)posix_fadvise(b->files[i], 0, 0, POSIX_FADV_DONTNEED);
        (void)nanosleep(&(struct timespec){.tv_nsec = DROP_EVERY_NS}, NULL);
    }
    return NULL;
}

static void *sample(void *arg)
{
    tier_bench *b = arg;
    rp_sample_options options = {.count = BATCH};
    rp_sample samples[BATCH];
    size_t drawn;
    rp_error err;

    while (!atomic_load(&b->stop)) {
        bench_check(
            rp_table_sample(b->table, &options, samples, &drawn, rp_wait_forever(), &err),
            &err);
        rp_samples_release(samples, drawn);
    }
    return NULL;
}

static void *read_at_random(void *arg)
{
    tier_bench *b = arg;
    bench_rng rng = {.state = 1 + atomic_fetch_add(&b->seed, 1)};
    uint8_t *data = bench_array(ITEM_BYTES, 1);

    while (!atomic_load(&b->stop)) {
        size_t file = bench_below(&rng, b->file_count);
        uint64_t at = bench_below(&rng, b->bytes[file] - ITEM_BYTES);
        ssize_t got = pread(b->files[file], data, ITEM_BYTES, (off_t)at);

        if (got > 0) atomic_fetch_add(&b->read_bytes, (unsigned long long)got);
    }
    free(data);
    return NULL;
}

/* Returns bytes a second while `count` threads run `run`, and one thread drops pages. */
static double measure(tier_bench *b, void *(*run)(void *arg), size_t count)
{
    pthread_t threads[READERS + 1];
    rp_durable_info before, after;
    double started;

    atomic_store(&b->stop, false);
    atomic_store(&b->read_bytes, 0);
    rp_durable_get_info(b->durable, &before);
    started = bench_seconds();
    for (size_t i = 0; i <= count; i++)
        if (pthread_create(&threads[i], NULL, i < count ? run : drop_pages, b) != 0)
            bench_check(RP_NO_RESOURCE, NULL);
    (void)nanosleep(
        &(struct timespec){.tv_sec = (time_t)b->seconds,
                           .tv_nsec = (long)((b->seconds - (double)(time_t)b->seconds) * 1e9)},
        NULL);
    rp_durable_get_info(b->durable, &after);
    started = bench_seconds() - started;
    atomic_store(&b->stop, true);
    for (size_t i = 0; i <= count; i++) pthread_join(threads[i], NULL);
    if (run == sample) return (double)(after.load_bytes - before.load_bytes) / started;
    return (double)atomic_load(&b->read_bytes) / started;
}

void bench_durable_tier(const char *directory, bool quick)
{
    uint64_t max_memory = (uint64_t)(quick ? 64 : 256) << 20;
    tier_bench b = {.directory = directory,
                    .item_count = 4 * max_memory / ITEM_BYTES,
                    .seconds = quick ? 0.5 : 2};
    double ours = 0, disk = 0;
    rp_error err;

    fill(&b, max_memory);
    open_files(&b);
    for (int round = 0; round < (quick ? 3 : 5); round++) {
        double x = measure(&b, sample, SAMPLERS), y = measure(&b, read_at_random, READERS);

        if (x > ours) ours = x;
        if (y > disk) disk = y;
    }
    printf("ratio durable.tier %.2f (ours %.0f MB/s vs disk %.0f MB/s)\n", ours / disk,
           ours / 1e6, disk / 1e6);
    bench_check(rp_durable_close(b.durable, &err), &err);
    rp_store_free(b.store);
    remove_files(&b);
}
