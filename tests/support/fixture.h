/* SPDX-License-Identifier: Apache-2.0 */
/* A fixture for tests of tables: a store, and trajectories for items.
 *
 *   rp_test_bed bed;
 *   rp_test_bed_init(&bed, NULL);
 *   rp_table *t = rp_test_bed_table(&bed, &options);
 *   rp_test_put(t, 7, 1.0, bed.plain);
 *   ...
 *   rp_test_bed_deinit(&bed);        // fails if memory was not freed */
#ifndef RP_TEST_FIXTURE_H
#define RP_TEST_FIXTURE_H

#include "chunk/chunk_api.h"
#include "reprise/reprise.h"
#include "support/unit.h"

/* Returns `count` times the scale, but at least `least`. */
size_t rp_test_scaled(size_t count, size_t least);

/* Makes a chunk of about `payload` bytes (>= 1), not compressed. Returns owned, or NULL. */
rp_chunk *rp_test_try_blob(const rp_allocator *alloc, uint64_t key, uint64_t episode,
                           size_t payload);

/* Makes a trajectory of one column that has all rows of `count` chunks. Returns owned, or NULL.
 */
rp_trajectory *rp_test_try_join(const rp_allocator *alloc, rp_chunk *const *chunks,
                                size_t count);

/* Makes a trajectory with its own chunk. Returns owned. */
rp_trajectory *rp_test_blob_trajectory(const rp_allocator *alloc, uint64_t key,
                                       uint64_t episode, size_t payload);

typedef struct rp_test_bed {
    rp_test_oom oom;    /* counts what the store and its trajectories allocate */
    rp_allocator alloc; /* allocates from `oom` */
    rp_store *store;
    rp_trajectory *plain; /* a trajectory that any item may use */
    int64_t wall_ns;      /* the time of the store's wall clock */
    rp_error err;
} rp_test_bed;

/* Makes the store. `options` may be NULL. Allocator and clock are those of the fixture; a seed
 * of 0 becomes 7. */
void rp_test_bed_init(rp_test_bed *bed, const rp_store_options *options);

/* Frees the store, and fails if memory was not freed. */
void rp_test_bed_deinit(rp_test_bed *bed);

rp_table *rp_test_bed_table(rp_test_bed *bed, const rp_table_options *options);
/* Makes a queue of 100,000 items. */
rp_table *rp_test_bed_queue(rp_test_bed *bed, const char *name);
/* Inserts `count` plain items with the keys `first`, `first` + 1, ... */
void rp_test_bed_fill(rp_test_bed *bed, rp_table *t, uint64_t first, size_t count);

/* Returns options for a table with these selectors. Samples wait until it has one item. */
rp_table_options rp_test_options(const char *name, rp_selector_kind sampler,
                                 rp_selector_kind remover, int64_t max_size);

/* Inserts one item without waiting. */
rp_status rp_test_try_put(rp_table *t, uint64_t key, double priority, rp_trajectory *trajectory,
                          rp_error *err);
void rp_test_put(rp_table *t, uint64_t key, double priority, rp_trajectory *trajectory);

/* Draws one item without waiting, and releases its trajectory. */
rp_sample rp_test_draw(rp_table *t);

/* Draws without waiting, and releases the trajectories. Returns the number of samples. */
size_t rp_test_draw_many(rp_table *t, const rp_sample_options *options, rp_sample *out);

bool rp_test_has_key(rp_table *t, uint64_t key);
rp_table_info rp_test_info_of(rp_table *t);

/* Checks that the invariants hold and that all counts are those of `before`. */
void rp_test_unchanged(rp_table *t, const rp_table_info *before, const char *file, int line);
#define assert_unchanged(table, before) rp_test_unchanged((table), (before), __FILE__, __LINE__)

#endif
