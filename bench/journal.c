/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what a journal costs. One thread or two insert items of 400 bytes in batches of 128:
 * without a journal, with a journal that is written to the kernel, and with one that is synced.
 * The journal is in the current directory. Every call returns when its items are as safe as the
 * mode says.
 *
 * The items are made in advance, so that only the table and the journal are measured. */
#include <ftw.h>
#include <pthread.h>
#include <unistd.h>

#include "bench.h"
#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "reprise/reprise.h"

enum { BATCH = 128, ITEM_BYTES = 400, MOST_THREADS = 2 };

typedef struct worker {
    rp_table *table;
    rp_trajectory **items;
    size_t count;
    uint64_t first_key;
    pthread_t thread;
} worker;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static rp_trajectory *make_item(rp_chunk_builder *builder, uint64_t key)
{
    uint8_t row[ITEM_BYTES];
    rp_chunk_origin origin = {.key = key, .episode = key / 100};
    rp_tensor tensor = {RP_UINT8, {.rank = 1, .dims = {ITEM_BYTES}}, row};
    rp_chunk_slice slice = {.length = 1};
    rp_slices column = {.slices = &slice, .slice_count = 1};
    rp_trajectory *trajectory = NULL;
    rp_error err;

    for (size_t i = 0; i < ITEM_BYTES; i++) row[i] = (uint8_t)(key * 31 + i * key);
    bench_check(rp_chunk_builder_append(builder, &tensor, &err), &err);
    bench_check(rp_chunk_builder_finish(builder, &origin, &slice.chunk, &err), &err);
    bench_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &trajectory, &err), &err);
    rp_chunk_unref(slice.chunk);
    return trajectory;
}

static void *insert(void *arg)
{
    worker *w = arg;

    for (size_t i = 0; i < w->count; i += BATCH) {
        rp_insert items[BATCH];
        size_t inserted;
        rp_error err;

        for (size_t k = 0; k < BATCH; k++)
            items[k] = (rp_insert){.key = w->first_key + i + k,
                                   .priority = 1,
                                   .trajectory = w->items[i + k],
                                   .flags = RP_INSERT_TAKE};
        bench_check(rp_table_insert(w->table, items, BATCH, rp_wait_forever(), &inserted, &err),
                    &err);
    }
    return NULL;
}

/* Returns the seconds in which each of `threads` threads inserts `count` items. mode < 0:
 * without a journal. */
static double run(int mode, size_t threads, size_t count)
{
    rp_spec spec = {"x", RP_UINT8, {.rank = 1, .dims = {ITEM_BYTES}}};
    rp_chunk_options plain = {.codec = RP_CODEC_NONE};
    rp_table_options table = {.name = "t",
                              .sampler = {RP_UNIFORM, 0},
                              .remover = {RP_FIFO, 0},
                              .limiter = rp_limiter_min_size(1),
                              .max_size = 20000};
    rp_durable_options options = {.directory = "bench-journal-data", .period_ns = RP_FOREVER};
    worker workers[MOST_THREADS];
    rp_chunk_builder *builder;
    rp_durable *durable = NULL;
    rp_store *store;
    double started, took;
    rp_error err;

    (void)nftw(options.directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    options.mode = (rp_durability)(mode < 0 ? 0 : mode);
    bench_check(rp_store_new(&(rp_store_options){.seed = 7}, &store, &err), &err);
    bench_check(rp_store_add_table(store, &table, &workers[0].table, &err), &err);
    bench_check(rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &plain, &builder, &err),
                &err);
    for (size_t t = 0; t < threads; t++) {
        workers[t] = (worker){.table = workers[0].table,
                              .items = bench_array(count, sizeof(rp_trajectory *)),
                              .count = count,
                              .first_key = 1 + t * count};
        for (size_t i = 0; i < count; i++)
            workers[t].items[i] = make_item(builder, workers[t].first_key + i);
    }
    if (mode >= 0) bench_check(rp_durable_open(&options, store, &durable, &err), &err);
    started = bench_seconds();
    for (size_t t = 0; t < threads; t++)
        if (pthread_create(&workers[t].thread, NULL, insert, &workers[t]) != 0) exit(1);
    for (size_t t = 0; t < threads; t++) (void)pthread_join(workers[t].thread, NULL);
    took = bench_seconds() - started;
    bench_check(rp_durable_close(durable, &err), &err);
    rp_store_free(store);
    rp_chunk_builder_free(builder);
    for (size_t t = 0; t < threads; t++) free(workers[t].items);
    (void)nftw(options.directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return took;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int mode;
    } modes[] = {
        {"no journal", -1}, {"interval", RP_DURABLE_INTERVAL}, {"sync", RP_DURABLE_SYNC}};
    bench_options options = bench_parse(argc, argv, "inserts with a journal");
    size_t count = options.quick ? 128 * 200 : 128 * 1000;
    int rounds = options.quick ? 2 : 4;

    for (size_t threads = 1; threads <= MOST_THREADS; threads++) {
        bench_best best[3] = {{0}};

        for (int round = 0; round < rounds; round++)
            for (size_t m = 0; m < 3; m++)
                bench_keep_seconds(&best[m], run(modes[m].mode, threads, count));
        for (size_t m = 0; m < 3; m++)
            printf("%zu thread%s, %-10s  %s, %.3g us a batch\n", threads,
                   threads > 1 ? "s" : " ", modes[m].name,
                   bench_scaled((double)(threads * count) / best[m].seconds, "items/s").text,
                   best[m].seconds * 1e6 / (double)(count / BATCH));
    }
    return 0;
}
