/* SPDX-License-Identifier: Apache-2.0 */
/* A fixture with a sampler that returns the items of the test, in order.
 *
 *   add_ints(7, 2, 3);                  // an item
 *   open_sampler(NULL);
 *   rp_test_give(&sources, 0, 1);       // the sampler gets it
 *
 * tear_down() frees everything. */
#ifndef RP_TEST_BATCH_BED_H
#define RP_TEST_BATCH_BED_H

#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "support/sources.h"

enum { MOST = 64 };

static rp_test_bed bed;
static rp_runtime *runtime;
static rp_test_sources sources;
static rp_sampler *sampler;
static rp_error err;
static rp_trajectory *items[MOST];
static size_t item_count;
static size_t batch_bytes; /* the limit of a batch; 0: none */

static inline int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    assert_ok_err(rp_runtime_get(&runtime, &err), &err);
    rp_test_sources_init(&sources, 1, bed.plain);
    sources.trajectories = items;
    item_count = batch_bytes = 0;
    sampler = NULL;
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    rp_sampler_free(sampler);
    for (size_t i = 0; i < item_count; i++) rp_trajectory_unref(items[i]);
    rp_runtime_put(runtime);
    rp_test_bed_deinit(&bed);
    return 0;
}

/* Adds an item of `count` columns, each with all rows of a chunk, and releases the chunks. */
static inline void add_item(rp_chunk **chunks, size_t count, bool squeeze)
{
    rp_chunk_slice slices[4];
    rp_slices columns[4];

    assert_true(count <= 4 && item_count < MOST);
    for (size_t i = 0; i < count; i++) {
        uint32_t rows = (uint32_t)rp_chunk_get_column(chunks[i], 0)->shape.dims[0];

        slices[i] = (rp_chunk_slice){chunks[i], 0, 0, rows};
        columns[i] = (rp_slices){&slices[i], 1, squeeze};
    }
    assert_ok_err(
        rp_trajectory_new(rp_allocator_default(), columns, count, &items[item_count++], &err),
        &err);
    for (size_t i = 0; i < count; i++) rp_chunk_unref(chunks[i]);
}

/* Adds an item of one column of `rows` rows of `cols` int32, which count up from 1000 * key. */
static inline void add_ints(uint64_t key, size_t rows, size_t cols)
{
    rp_chunk *chunk = rp_test_ints(key, key % 2 ? RP_CODEC_NONE : RP_CODEC_SNAPPY, rows, cols);

    add_item(&chunk, 1, false);
}

static inline void open_sampler(const rp_sampler_options *options)
{
    rp_sampler_feed feed = rp_test_sources_feed(&sources, 5);
    rp_sampler_options o = options != NULL ? *options : (rp_sampler_options){0};

    feed.batch_bytes = batch_bytes;
    sources.trajectory_count = item_count;
    o.table = "t";
    o.rate_limiter_timeout_ms = -1;
    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), &err);
}

/* Adds items that are so large that helper threads decode them. */
static inline void add_large(void)
{
    for (uint64_t i = 0; i < 16; i++) {
        rp_chunk *chunks[2] = {rp_test_ints(i, RP_CODEC_SNAPPY, 8, 4096),
                               rp_test_ints(100 + i, RP_CODEC_NONE, 1, 100)};
        add_item(chunks, 2, false);
    }
}

static inline void expect_large(const int32_t *got, size_t items_got)
{
    for (size_t i = 0; i < items_got; i++)
        for (size_t j = 0; j < 8 * 4096; j++)
            if (got[i * 8 * 4096 + j] != (int32_t)(1000 * i + j)) fail();
}

#endif
