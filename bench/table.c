/* SPDX-License-Identifier: Apache-2.0 */
/* Compares our table with a straightforward one (usual.h).
 *
 * Both have a million items, sample by priority^0.6 and evict the oldest, so that every insert
 * evicts one. The payloads were made just before by the same thread, as by a writer; making
 * them is not timed. An insert takes its payload, which is freed when the item is evicted a
 * million inserts later; this is timed. The payload of the other table is one block of 64
 * bytes. Ours is a trajectory over one row of a chunk that eight items share, as the items of a
 * writer do. For "alone", each item has its own chunk, which costs most. */
#include "reprise/store.h"

#include "bench.h"
#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "usual.h"

enum {
    ITEMS = 1000000,
    OPS = 1 << 13, /* operations in a round, which is short, to fit between two interruptions */
    GROUP = 1024,  /* inserts whose payloads are made together */
    INSERT_BATCH = 64,
    BATCH = 256,
    PAYLOAD_BYTES = 64,
};

static const double EXPONENT = 0.6;

typedef struct tables {
    rp_store *store;
    rp_table *ours;
    usual_table usual;
    uint64_t inserted; /* items inserted into each table; item i has the key key_of(i) */
    bench_rng rng;
} tables;

/* One round of work. */
typedef struct work {
    rp_chunk_builder *builder;
    size_t chunk_rows; /* items that share a chunk */
    rp_insert *inserts;
    usual_payload **payloads;
    rp_update *updates;
    rp_sample *samples;
    usual_sample *usual_samples;
} work;

static uint64_t key_of(uint64_t i)
{
    uint64_t x = i * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static double some_priority(bench_rng *rng)
{
    return 0.01 + bench_uniform(rng);
}

/* Makes a chunk of `rows` rows of PAYLOAD_BYTES bytes, for items from `first` on. An episode
 * has 1000 rows. */
static rp_chunk *make_chunk(rp_chunk_builder *builder, size_t rows, uint64_t first)
{
    uint8_t bytes[PAYLOAD_BYTES] = {1};
    rp_tensor row = {RP_UINT8, {.rank = 1, .dims = {PAYLOAD_BYTES}}, bytes};
    rp_chunk_origin origin = {
        .key = key_of(first), .episode = first / 1000, .last_step = (int32_t)rows - 1};
    rp_chunk *chunk;
    rp_error error;

    for (size_t i = 0; i < rows; i++)
        bench_check(rp_chunk_builder_append(builder, &row, &error), &error);
    bench_check(rp_chunk_builder_finish(builder, &origin, &chunk, &error), &error);
    return chunk;
}

static rp_trajectory *make_trajectory(rp_chunk *chunk, size_t row)
{
    rp_chunk_slice slice = {.chunk = chunk, .offset = (uint32_t)row, .length = 1};
    rp_slices column = {.slices = &slice, .slice_count = 1};
    rp_trajectory *trajectory;
    rp_error error;

    bench_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &trajectory, &error),
                &error);
    return trajectory;
}

static rp_chunk_builder *make_builder(void)
{
    rp_spec spec = {"x", RP_UINT8, {.rank = 1, .dims = {PAYLOAD_BYTES}}};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_chunk_builder *builder;
    rp_error error;

    bench_check(
        rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &options, &builder, &error),
        &error);
    return builder;
}

static void work_init(work *w, size_t chunk_rows)
{
    w->chunk_rows = chunk_rows;
    w->builder = make_builder();
    w->inserts = bench_array(GROUP, sizeof *w->inserts);
    w->payloads = bench_array(GROUP, sizeof *w->payloads);
    w->updates = bench_array(OPS, sizeof *w->updates);
    w->samples = bench_array(BATCH, sizeof *w->samples);
    w->usual_samples = bench_array(BATCH, sizeof *w->usual_samples);
}

static void work_deinit(work *w)
{
    rp_chunk_builder_free(w->builder);
    free(w->inserts);
    free(w->payloads);
    free(w->updates);
    free(w->samples);
    free(w->usual_samples);
}

static void prepare_ours(tables *t, work *w)
{
    for (size_t i = 0; i < GROUP; i += w->chunk_rows) {
        rp_chunk *chunk = make_chunk(w->builder, w->chunk_rows, t->inserted + i);

        for (size_t row = 0; row < w->chunk_rows; row++)
            w->inserts[i + row] = (rp_insert){.key = key_of(t->inserted + i + row),
                                              .priority = some_priority(&t->rng),
                                              .trajectory = make_trajectory(chunk, row),
                                              .flags = RP_INSERT_TAKE};
        rp_chunk_unref(chunk);
    }
}

static void prepare_usual(tables *t, work *w)
{
    for (size_t i = 0; i < GROUP; i++) w->payloads[i] = usual_payload_new(PAYLOAD_BYTES);
    t->inserted += GROUP;
}

/* Picks keys of items that are in the tables. */
static void prepare_updates(tables *t, work *w)
{
    uint64_t oldest = t->inserted - ITEMS;

    for (size_t i = 0; i < OPS; i++)
        w->updates[i] = (rp_update){.key = key_of(oldest + bench_below(&t->rng, ITEMS)),
                                    .priority = some_priority(&t->rng)};
}

static void insert_ours(tables *t, work *w)
{
    rp_error error;

    for (size_t i = 0; i < GROUP; i += INSERT_BATCH)
        bench_check(rp_table_insert(t->ours, w->inserts + i, INSERT_BATCH, rp_wait_none(), NULL,
                                    &error),
                    &error);
}

static void insert_usual(tables *t, work *w)
{
    for (size_t i = 0; i < GROUP; i++)
        usual_insert(&t->usual, w->inserts[i].key, w->inserts[i].priority, w->payloads[i]);
}

static void sample_ours(tables *t, work *w)
{
    rp_sample_options options = {.count = BATCH};
    rp_error error;
    size_t drawn;

    for (size_t i = 0; i < OPS; i += BATCH) {
        bench_check(
            rp_table_sample(t->ours, &options, w->samples, &drawn, rp_wait_none(), &error),
            &error);
        rp_samples_release(w->samples, drawn);
    }
}

static void sample_usual(tables *t, work *w)
{
    for (size_t i = 0; i < OPS; i += BATCH) {
        for (size_t j = 0; j < BATCH; j++) usual_sample_one(&t->usual, &w->usual_samples[j]);
        for (size_t j = 0; j < BATCH; j++) usual_payload_unref(w->usual_samples[j].payload);
    }
}

static void update_ours(tables *t, work *w)
{
    rp_error error;
    size_t found;

    for (size_t i = 0; i < OPS; i += BATCH) {
        bench_check(rp_table_update(t->ours, w->updates + i, BATCH, &found, &error), &error);
        if (found != BATCH) bench_check(RP_NOT_FOUND, NULL);
    }
}

static void update_usual(tables *t, work *w)
{
    for (size_t i = 0; i < OPS; i++)
        usual_update(&t->usual, w->updates[i].key, w->updates[i].priority);
}

static void tables_init(tables *t, work *w)
{
    rp_store_options store_options = {.seed = 1};
    rp_table_options options = {
        .name = "replay",
        .sampler = {RP_PRIORITIZED, EXPONENT},
        .remover = {RP_FIFO, 0},
        .limiter = rp_limiter_min_size(1),
        .max_size = ITEMS,
    };
    rp_error error;

    *t = (tables){.rng = {.state = 11}};
    bench_check(rp_store_new(&store_options, &t->store, &error), &error);
    bench_check(rp_store_add_table(t->store, &options, &t->ours, &error), &error);
    usual_init(&t->usual, ITEMS, EXPONENT);
    while (t->inserted < ITEMS + ITEMS / 8) {
        prepare_ours(t, w);
        insert_ours(t, w);
        prepare_usual(t, w);
        insert_usual(t, w);
    }
}

static void report(const char *name, bench_best ours, bench_best usual)
{
    printf("%-19s %8.0f   %8.0f\n", name, bench_ns(ours, OPS), bench_ns(usual, OPS));
    bench_ratio_time(name, ours, "usual", usual, OPS);
}

static void compare_inserts(tables *t, work *w, int rounds, const char *name)
{
    bench_best best_ours = {0}, best_usual = {0};

    for (int round = 0; round < rounds; round++) {
        double ours = 0, usual = 0, start;

        for (size_t i = 0; i < OPS; i += GROUP) {
            prepare_ours(t, w);
            start = bench_seconds();
            insert_ours(t, w);
            ours += bench_seconds() - start;
            prepare_usual(t, w);
            start = bench_seconds();
            insert_usual(t, w);
            usual += bench_seconds() - start;
        }
        bench_keep_seconds(&best_ours, ours);
        bench_keep_seconds(&best_usual, usual);
    }
    report(name, best_ours, best_usual);
}

static void tables_deinit(tables *t)
{
    usual_deinit(&t->usual);
    rp_store_free(t->store);
}

typedef void action(tables *t, work *w);

static void compare(tables *t, work *w, int rounds, const char *name, action *ours,
                    action *usual)
{
    bench_best best_ours = {0}, best_usual = {0};
    double start;

    for (int round = 0; round < rounds; round++) {
        prepare_updates(t, w);
        start = bench_seconds();
        ours(t, w);
        bench_keep(&best_ours, start);
        start = bench_seconds();
        usual(t, w);
        bench_keep(&best_usual, start);
    }
    report(name, best_ours, best_usual);
}

static void describe(const tables *t, size_t chunk_rows)
{
    rp_table_info info;

    rp_table_get_info(t->ours, &info);
    printf("\n# %lld items, %zu to a chunk, %.0f bytes each\n"
           "ns an item              ours      usual\n",
           (long long)info.size, chunk_rows, (double)info.bytes / (double)info.size);
}

/* An item of a replay table is typically drawn about eight times. This draws each item about
 * twice before the timed part, so that most timed draws are not the first of their item. */
static void warm_up(tables *t, work *w)
{
    for (size_t drawn = 0; drawn < 2 * ITEMS; drawn += OPS) {
        sample_ours(t, w);
        sample_usual(t, w);
    }
}

int main(int argc, char **argv)
{
    bench_options options = bench_parse(argc, argv, "a table against one as usually written");
    int rounds = options.quick ? 150 : 600;

    printf("memory latency %.0f ns\n", bench_memory_latency_ns());
    for (size_t chunk_rows = 1; chunk_rows <= 8; chunk_rows *= 8) {
        bool alone = chunk_rows == 1;
        tables t;
        work w;

        work_init(&w, chunk_rows);
        tables_init(&t, &w);
        describe(&t, chunk_rows);
        compare_inserts(&t, &w, rounds, alone ? "table.insert_alone" : "table.insert");
        warm_up(&t, &w);
        compare(&t, &w, rounds, alone ? "table.sample_alone" : "table.sample", sample_ours,
                sample_usual);
        compare(&t, &w, rounds, alone ? "table.update_alone" : "table.update", update_ours,
                update_usual);
        tables_deinit(&t);
        work_deinit(&w);
    }
    return 0;
}
