/* SPDX-License-Identifier: Apache-2.0 */
/* A store with a disk tier on a simulated disk, or on the system's, and items whose bytes
 * follow from their keys. */
#ifndef RP_TEST_TIER_RIG_H
#define RP_TEST_TIER_RIG_H

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "durable/tier/tier.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "util/rng.h"

typedef struct rp_tier_rig {
    rp_test_bed bed;
    rp_sim *disk;
    rp_files *files;
    rp_segments *segments;
    rp_tier *tier; /* NULL: none */
    rp_table *table;
    atomic_int troubles, recoveries;
} rp_tier_rig;

static inline void rp_tier_rig_event(void *ctx, bool degraded, const char *text)
{
    rp_tier_rig *rig = ctx;

    assert_non_null(text);
    atomic_fetch_add(degraded ? &rig->troubles : &rig->recoveries, 1);
}

static inline void rp_tier_rig_init(rp_tier_rig *rig, const rp_store_options *store,
                                    const rp_table_options *table, uint64_t max_memory,
                                    uint64_t cache_bytes)
{
    rp_tier_options options = {.max_memory = max_memory,
                               .cache_bytes = cache_bytes,
                               .readers = 4,
                               .on_event = rp_tier_rig_event,
                               .ctx = rig};
    rp_segments_options segments = {
        .alloc = rp_allocator_default(), .segment_bytes = 1 << 20, .next_number = 1};

    memset(rig, 0, sizeof *rig);
    rp_test_bed_init(&rig->bed, store);
    rig->disk = rp_sim_new();
    rig->files = segments.files = rp_sim_mount(rig->disk);
    assert_ok(rp_segments_new(&segments, &rig->segments, &rig->bed.err));
    options.store = rig->bed.store;
    options.segments = rig->segments;
    if (max_memory > 0) assert_ok(rp_tier_new(&options, &rig->tier, &rig->bed.err));
    rig->table = rp_test_bed_table(&rig->bed, table);
}

static inline void rp_tier_rig_deinit(rp_tier_rig *rig)
{
    if (rig->tier != NULL) assert_true(rp_tier_check(rig->tier));
    rp_tier_free(rig->tier);
    rp_segments_free(rig->segments); /* it may have chunks in its queue */
    rp_test_bed_deinit(&rig->bed);
    rig->files->ops->free(rig->files);
    assert_int_equal(rp_sim_open_handles(rig->disk), 0);
    rp_sim_free(rig->disk);
}

/* Writes the bytes of the item with this key: noise with the key as its seed, which repeats
 * after a number of bytes that divides no page. */
static inline void rp_tier_rig_fill(uint64_t key, uint8_t *data, size_t size)
{
    enum { PERIOD = 1000 };
    size_t done = size < PERIOD ? size : PERIOD;
    rp_rng rng;

    rp_rng_init(&rng, key);
    for (size_t i = 0; i < done; i += sizeof(uint64_t)) {
        uint64_t word = rp_rng_next(&rng);

        memcpy(data + i, &word, done - i < sizeof word ? done - i : sizeof word);
    }
    for (size_t n; done < size; done += n) {
        n = size - done < done ? size - done : done;
        memcpy(data + done, data, n);
    }
}

/* Makes a chunk of two rows of `row` bytes. Returns owned. */
static inline rp_chunk *rp_tier_rig_chunk(const rp_allocator *alloc, uint64_t key, size_t row)
{
    rp_spec spec = {"x", RP_UINT8, {.rank = 1, .dims = {(int64_t)row}}};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_chunk_origin origin = {.key = key, .episode = 1, .last_step = 1};
    rp_chunk_builder *builder = NULL;
    uint8_t *data = malloc(2 * row);
    rp_chunk *chunk = NULL;

    assert_non_null(data);
    rp_tier_rig_fill(key, data, 2 * row);
    assert_ok(rp_chunk_builder_new(alloc, &spec, 1, &options, &builder, NULL));
    for (size_t i = 0; i < 2; i++) {
        rp_tensor tensor = {RP_UINT8, spec.shape, data + i * row};
        assert_ok(rp_chunk_builder_append(builder, &tensor, NULL));
    }
    assert_ok(rp_chunk_builder_finish(builder, &origin, &chunk, NULL));
    rp_chunk_builder_free(builder);
    free(data);
    return chunk;
}

/* Makes a trajectory with a column for all rows of each chunk. Takes the references. */
static inline rp_trajectory *rp_tier_rig_join(const rp_allocator *alloc, rp_chunk **chunks,
                                              size_t count)
{
    rp_chunk_slice slices[32];
    rp_slices column = {.slices = slices, .slice_count = count};
    rp_trajectory *trajectory = NULL;

    assert_true(count <= 32);
    for (size_t i = 0; i < count; i++)
        slices[i] = (rp_chunk_slice){.chunk = chunks[i], .length = 2};
    assert_ok(rp_trajectory_new(alloc, &column, 1, &trajectory, NULL));
    for (size_t i = 0; i < count; i++) rp_chunk_unref(chunks[i]);
    return trajectory;
}

static inline rp_trajectory *rp_tier_rig_item(const rp_allocator *alloc, uint64_t key,
                                              size_t row)
{
    rp_chunk *chunk = rp_tier_rig_chunk(alloc, key, row);

    return rp_tier_rig_join(alloc, &chunk, 1);
}

static inline rp_status rp_tier_rig_put(rp_tier_rig *rig, uint64_t key, size_t row,
                                        int64_t wait_ms)
{
    rp_trajectory *trajectory = rp_tier_rig_item(&rig->bed.alloc, key, row);
    rp_insert item = {.key = key, .priority = 1, .trajectory = trajectory};
    rp_status st = rp_table_insert(rig->table, &item, 1,
                                   wait_ms == 0 ? rp_wait_none() : rp_wait_ms(wait_ms), NULL,
                                   &rig->bed.err);

    rp_trajectory_unref(trajectory);
    return st;
}

/* Checks that the trajectory has the bytes of the chunks with these keys. */
static inline void rp_tier_rig_assert(const rp_trajectory *trajectory, const uint64_t *keys,
                                      size_t count, size_t row)
{
    size_t size = 2 * row * count;
    uint8_t *got = malloc(size), *want = malloc(size);
    rp_decoder *decoder = NULL;

    assert_non_null(got);
    assert_non_null(want);
    for (size_t i = 0; i < count; i++) rp_tier_rig_fill(keys[i], want + 2 * row * i, 2 * row);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_decoder_stack(decoder, &trajectory, 1, 0, got, size, NULL));
    assert_int_equal(memcmp(got, want, size), 0);
    rp_decoder_free(decoder);
    free(got);
    free(want);
}

static inline rp_tier_info rp_tier_rig_info(rp_tier_rig *rig)
{
    rp_tier_info info;

    rp_tier_get_info(rig->tier, &info);
    return info;
}

static inline void rp_tier_rig_nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Waits until the condition holds, for 20 seconds at most. */
#define rp_tier_rig_await(condition)                                                           \
    do {                                                                                       \
        for (int tries = 0; !(condition) && tries < 20000; tries++) rp_tier_rig_nap();         \
        assert_true(condition);                                                                \
    } while (0)

#endif
