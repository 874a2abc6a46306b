/* SPDX-License-Identifier: Apache-2.0 */
/* A store with a byte budget and two tables, trajectories of equal size, and inserts that may
 * wait. */
#ifndef RP_TEST_BUDGET_FIXTURE_H
#define RP_TEST_BUDGET_FIXTURE_H

#include "chunk/trajectory.h"
#include "store/store.h"
#include "support/fixture.h"
#include "table/table.h"

enum { BLOBS = 24, PAYLOAD = 100 };

typedef struct world {
    rp_test_bed bed;
    rp_trajectory *blobs[BLOBS]; /* all of one size */
    uint64_t each;               /* the cost of one blob, in bytes */
    rp_table *a, *b;
} world;

/* Makes a store whose budget is `blobs` blobs (0: no budget), and two FIFO tables. */
static inline void world_init(world *w, rp_budget_policy policy, uint64_t blobs)
{
    rp_trajectory *probe = rp_test_blob_trajectory(rp_allocator_default(), 100, 1000, PAYLOAD);
    rp_table_options a = rp_test_options("a", RP_FIFO, RP_FIFO, 1000);
    rp_table_options b = rp_test_options("b", RP_FIFO, RP_FIFO, 1000);

    w->each = rp_trajectory_cost(probe);
    rp_trajectory_unref(probe);
    rp_test_bed_init(&w->bed,
                     &(rp_store_options){.max_bytes = blobs * w->each, .policy = policy});
    for (size_t i = 0; i < BLOBS; i++) {
        w->blobs[i] = rp_test_blob_trajectory(&w->bed.alloc, 100 + i, 1000 + i, PAYLOAD);
        assert_int_equal(rp_trajectory_cost(w->blobs[i]), w->each);
    }
    w->a = rp_test_bed_table(&w->bed, &a);
    w->b = rp_test_bed_table(&w->bed, &b);
}

static inline void world_deinit(world *w)
{
    assert_true(rp_table_check(w->a) && rp_table_check(w->b));
    for (size_t i = 0; i < BLOBS; i++) rp_trajectory_unref(w->blobs[i]);
    rp_test_bed_deinit(&w->bed);
}

/* Returns the bytes of all tables, in blobs. */
static inline uint64_t used(world *w)
{
    rp_store_info info;

    rp_store_get_info(w->bed.store, &info);
    assert_true(info.bytes <= info.max_bytes);
    return info.bytes / w->each;
}

/* Inserts blob `key` under the key `key`, without waiting. */
static inline rp_status put(world *w, rp_table *t, uint64_t key)
{
    return rp_test_try_put(t, key, 1, w->blobs[key], &w->bed.err);
}

/* Deletes the item `key`, which must exist. */
static inline void take(rp_table *t, uint64_t key)
{
    size_t found;
    assert_ok(rp_table_delete(t, &key, 1, &found, NULL));
    assert_int_equal(found, 1);
}

/* An insert of one item that may wait. */
typedef struct waiter {
    rp_op op;
    rp_insert item;
    int calls; /* of on_done */
} waiter;

static inline void count_call(rp_op *op)
{
    ((waiter *)op->user)->calls++;
}

/* Starts an insert. Returns true if it ended at once, false if it waits. */
static inline bool start_with(waiter *x, rp_table *t, uint64_t key, rp_trajectory *trajectory)
{
    *x = (waiter){.item = {.key = key, .priority = 1, .trajectory = trajectory}};
    x->op = (rp_op){.items = &x->item,
                    .count = 1,
                    .until_ns = RP_FOREVER,
                    .on_done = count_call,
                    .user = x};
    return rp_table_start_insert(t, &x->op);
}

static inline bool start(waiter *x, world *w, rp_table *t, uint64_t key)
{
    return start_with(x, t, key, w->blobs[key]);
}

/* Returns how many inserts of all tables wait for bytes. */
static inline uint64_t waiting_for_bytes(world *w)
{
    return atomic_load(&w->a->account.budget->waiting);
}

#endif
