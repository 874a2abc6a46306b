/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a golden store: make_store <directory> [moved]. The stores of the first version of the
 * format are in tests/data/stores/v1 and v1_moved, and are never written again;
 * tests/unit/durable/test_golden.c reads them. The program prints the digests that the test
 * expects.
 *
 * A store has two checkpoints, and a journal after the second: tables with every kind of state,
 * chunks that items share, several codecs, strings, squeezed columns, a signature, free slots.
 * With "moved", most items are deleted between the checkpoints and the other chunks are moved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "reprise/durable.h"
#include "reprise/reprise.h"
#include "table/snapshot/cut.h"
#include "util/rng.h"

static void check(rp_status st, const rp_error *err)
{
    if (st == RP_OK) return;
    (void)fprintf(stderr, "%s: %s\n", rp_status_name(st), err->text);
    exit(1);
}

static int64_t wall_ns(void *ctx)
{
    return *(int64_t *)ctx += 1000;
}

/* A chunk of four rows of two columns. */
static rp_chunk *make_chunk(uint64_t key)
{
    static const rp_spec specs[] = {{"n", RP_INT32, {.rank = 1, .dims = {3}}},
                                    {"s", RP_STRING, {.rank = 0}}};
    rp_chunk_options options = {.codec = (rp_codec)(key % 4), .delta = key % 2 == 0};
    rp_chunk_origin origin = {.key = key, .episode = key / 3, .last_step = 3};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;
    rp_error err;

    check(rp_chunk_builder_new(rp_allocator_default(), specs, 2, &options, &builder, &err),
          &err);
    for (int row = 0; row < 4; row++) {
        int32_t numbers[3] = {(int32_t)key, row, (int32_t)key * row};
        rp_string text = {"abcdefgh", 1 + (key + (uint64_t)row) % 8};
        rp_tensor tensors[2] = {{RP_INT32, specs[0].shape, numbers},
                                {RP_STRING, specs[1].shape, &text}};
        check(rp_chunk_builder_append(builder, tensors, &err), &err);
    }
    check(rp_chunk_builder_finish(builder, &origin, &chunk, &err), &err);
    rp_chunk_builder_free(builder);
    return chunk;
}

/* Inserts an item over two chunks: three rows of numbers, and one squeezed string. */
static void put(rp_table *t, uint64_t key, double priority, rp_chunk *a, rp_chunk *b)
{
    rp_chunk_slice numbers[2] = {{a, 0, 2, 2}, {b, 0, 0, 1}}, text = {b, 1, 3, 1};
    rp_slices columns[2] = {{numbers, 2, false}, {&text, 1, true}};
    rp_insert item = {.key = key, .priority = priority};
    rp_error err;

    check(rp_trajectory_new(rp_allocator_default(), columns, 2, &item.trajectory, &err), &err);
    check(rp_table_insert(t, &item, 1, rp_wait_none(), NULL, &err), &err);
    rp_trajectory_unref(item.trajectory);
}

static void draw(rp_table *t, size_t count)
{
    rp_sample_options options = {.count = count, .at_least = 1};
    rp_sample samples[8];
    size_t drawn = 0;
    rp_error err;

    check(rp_table_sample(t, &options, samples, &drawn, rp_wait_none(), &err), &err);
    rp_samples_release(samples, drawn);
}

static rp_table *add(rp_store *store, const char *name, rp_selector_kind sampler,
                     rp_selector_kind remover, rp_limiter_options limiter)
{
    static const rp_spec columns[] = {{"n", RP_INT32, {.rank = 2, .dims = {-1, 3}}},
                                      {"s", RP_STRING, {.rank = 0}}};
    rp_table_options o = {.name = name,
                          .sampler = {sampler, 0.6},
                          .remover = {remover, 1},
                          .limiter = limiter,
                          .max_size = 300};
    rp_table *t = NULL;
    rp_error err;

    if (sampler == RP_PRIORITIZED)
        check(rp_signature_flat(rp_allocator_default(), columns, 2, &o.signature, &err), &err);
    check(rp_store_add_table(store, &o, &t, &err), &err);
    rp_signature_unref(o.signature);
    return t;
}

enum { TABLES = 4 };

static void work(rp_table **tables, rp_rng *rng, uint64_t first, uint64_t count)
{
    rp_chunk *before = make_chunk(first), *chunk;
    rp_error err;

    for (uint64_t key = first + 1; key <= first + count; key++) {
        rp_update update = {1 + rp_rng_below(rng, key), (double)rp_rng_below(rng, 9) / 4};
        uint64_t gone = 1 + rp_rng_below(rng, key);

        chunk = make_chunk(key);
        put(tables[key % TABLES], key, rp_rng_unit(rng), before, chunk);
        if (key % 3 == 0) put(tables[(key + 1) % TABLES], key + 100000, 0, before, chunk);
        rp_chunk_unref(before);
        before = chunk;
        check(rp_table_update(tables[0], &update, 1, NULL, &err), &err);
        if (key % 5 == 0) check(rp_table_delete(tables[1], &gone, 1, NULL, &err), &err);
        if (key % 4 == 0 && rp_table_can_sample(tables[key / 4 % TABLES], 1))
            draw(tables[key / 4 % TABLES], 3);
    }
    rp_chunk_unref(before);
}

/* Keeps only the items that were inserted last, and two of the first chunks, which are moved.
 */
static void move(rp_table **tables, rp_durable *durable, rp_chunk *a, rp_chunk *b)
{
    rp_error err;

    put(tables[3], 900001, 100, a, b);
    check(rp_durable_checkpoint(durable, rp_wait_forever(), NULL, 0, &err), &err);
    for (uint64_t key = 1; key < 1000; key++)
        for (size_t i = 0; i < TABLES; i++) {
            uint64_t keys[2] = {key, key + 100000};

            check(rp_table_delete(tables[i], keys, 2, NULL, &err), &err);
        }
    for (int i = 0; i < 2; i++)
        check(rp_durable_checkpoint(durable, rp_wait_forever(), NULL, 0, &err), &err);
    put(tables[3], 900002, 100, a, b);
}

int main(int argc, char **argv)
{
    static const char *const names[TABLES] = {"prioritized", "uniform", "queue", "heap"};
    int64_t clock = 1000000;
    rp_store_options store_options = {.seed = 42, .wall_ns = wall_ns, .wall_ctx = &clock};
    /* Few syncs, since each fills a sector. */
    rp_durable_options options = {.mode = RP_DURABLE_INTERVAL,
                                  .interval_ns = INT64_C(60000000000),
                                  .period_ns = RP_FOREVER,
                                  .segment_bytes = 16384};
    rp_store *store = NULL;
    rp_durable *durable = NULL;
    rp_table *tables[TABLES];
    rp_chunk *a = make_chunk(5000), *b = make_chunk(5001);
    rp_rng rng;
    rp_error err;

    if (argc < 2) return 2;
    options.directory = argv[1];
    rp_rng_init(&rng, 7);
    check(rp_store_new(&store_options, &store, &err), &err);
    tables[0] = add(store, names[0], RP_PRIORITIZED, RP_FIFO, rp_limiter_min_size(1));
    tables[1] = add(store, names[1], RP_UNIFORM, RP_LIFO, rp_limiter_ratio(1, 5, 500));
    tables[2] = add(store, names[2], RP_FIFO, RP_FIFO, rp_limiter_queue(1000));
    tables[3] = add(store, names[3], RP_MAX_HEAP, RP_MIN_HEAP, rp_limiter_min_size(1));
    check(rp_durable_open(&options, store, &durable, &err), &err);
    if (argc > 2) put(tables[3], 900000, 100, a, b);
    work(tables, &rng, 0, 250);
    check(rp_durable_checkpoint(durable, rp_wait_forever(), NULL, 0, &err), &err);
    work(tables, &rng, 1000, 40);
    check(rp_table_pause(tables[3], RP_SIDE_SAMPLES, &err), &err);
    check(rp_durable_checkpoint(durable, rp_wait_forever(), NULL, 0, &err), &err);
    work(tables, &rng, 2000, 40);
    if (argc > 2) move(tables, durable, a, b);
    for (size_t i = 0; i < TABLES; i++) {
        rp_table_info info;

        rp_table_get_info(tables[i], &info);
        (void)printf("{\"%s\", %lld, %lld, %lld, 0x%016llx},\n", names[i], (long long)info.size,
                     (long long)info.inserts, (long long)info.samples,
                     (unsigned long long)rp_table_digest(tables[i]));
    }
    rp_chunk_unref(a);
    rp_chunk_unref(b);
    check(rp_durable_close(durable, &err), &err);
    rp_store_free(store);
    return 0;
}
