/* SPDX-License-Identifier: Apache-2.0 */
/* A store to test tables in, and trajectories to put into them.
 *
 *   rp_test_bed bed;
 *   rp_test_bed_init(&bed, NULL);
 *   rp_table *t = rp_test_bed_table(&bed, &options);
 *   rp_test_put(t, 7, 1.0, bed.plain);
 *   ...
 *   rp_test_bed_deinit(&bed);        // nothing may be left alive */
#ifndef RP_TEST_FIXTURE_H
#define RP_TEST_FIXTURE_H

#include "chunk/chunk_api.h"
#include "reprise/reprise.h"
#include "support/unit.h"

/* `count` times the scale, at least `least`. */
size_t rp_test_scaled(size_t count, size_t least);

/* A chunk of about `payload` bytes (>= 1), stored plainly. Returns owned, or NULL. */
rp_chunk *rp_test_try_blob(const rp_allocator *alloc, uint64_t key, uint64_t episode,
                           size_t payload);

/* A trajectory of one column that has all rows of `count` chunks. Returns owned, or NULL. */
rp_trajectory *rp_test_try_join(const rp_allocator *alloc, rp_chunk *const *chunks,
                                size_t count);

/* A trajectory with a chunk of its own. Returns owned. */
rp_trajectory *rp_test_blob_trajectory(const rp_allocator *alloc, uint64_t key,
                                       uint64_t episode, size_t payload);

typedef struct rp_test_bed {
    rp_test_oom oom;    /* what the store and its trajectories have allocated */
    rp_allocator alloc; /* from there */
    rp_store *store;
    rp_trajectory *plain; /* any item may have it */
    int64_t wall_ns;      /* what the store's wall clock says */
    rp_error err;
} rp_test_bed;

/* `options` may be NULL; the allocator and the clock are the bed's, the seed 7 if it is 0. */
void rp_test_bed_init(rp_test_bed *bed, const rp_store_options *options);

/* Frees the store. Nothing may be left alive. */
void rp_test_bed_deinit(rp_test_bed *bed);

rp_table *rp_test_bed_table(rp_test_bed *bed, const rp_table_options *options);

/* Options for a table that samples and removes like this; samples wait for one item. */
rp_table_options rp_test_options(const char *name, rp_selector_kind sampler,
                                 rp_selector_kind remover, int64_t max_size);

/* Inserts one item without waiting. */
rp_status rp_test_try_put(rp_table *t, uint64_t key, double priority, rp_trajectory *trajectory,
                          rp_error *err);
void rp_test_put(rp_table *t, uint64_t key, double priority, rp_trajectory *trajectory);

/* Draws one item without waiting and lets go of its trajectory. */
rp_sample rp_test_draw(rp_table *t);

/* Draws without waiting; the trajectories are let go. Returns how many. */
size_t rp_test_draw_many(rp_table *t, const rp_sample_options *options, rp_sample *out);

bool rp_test_has_key(rp_table *t, uint64_t key);
rp_table_info rp_test_info_of(rp_table *t);

/* The invariants hold, and everything countable is as `before` says. */
void rp_test_unchanged(rp_table *t, const rp_table_info *before, const char *file, int line);
#define assert_unchanged(table, before) rp_test_unchanged((table), (before), __FILE__, __LINE__)

#endif
