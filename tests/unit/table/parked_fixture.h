/* SPDX-License-Identifier: Apache-2.0 */
/* A store that set_up() makes for each test; operations on its tables that may wait, with a
 * record of how each ended. */
#ifndef RP_TEST_PARKED_FIXTURE_H
#define RP_TEST_PARKED_FIXTURE_H

#include "support/fixture.h"
#include "table/op.h"
#include "table/table.h"

enum { MOST = 8 };

/* An operation with everything that it points at, and how it ended. */
typedef struct call {
    rp_op op;
    rp_insert items[MOST];
    rp_sample_options options;
    rp_sample samples[MOST];
    int calls;   /* of on_done */
    size_t turn; /* its place in the order of all on_done calls, from 1 */
} call;

static rp_test_bed bed;
static size_t turns; /* on_done calls so far */

static inline int set_up(void **state)
{
    (void)state;
    turns = 0;
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

/* A table that holds at most `size` items, each of which is sampled once. */
static inline rp_table *make_queue(int64_t size)
{
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    o.limiter = rp_limiter_queue(size);
    o.max_times_sampled = 1;
    return rp_test_bed_table(&bed, &o);
}

static inline void count_call(rp_op *op)
{
    call *c = op->user;

    c->calls++;
    c->turn = ++turns;
}

static inline void call_init(call *c, int64_t until_ns)
{
    memset(c, 0, sizeof *c);
    c->op = (rp_op){.until_ns = until_ns, .on_done = count_call, .user = c};
}

/* Starts an insert of `count` items with the keys `key`, `key` + 1, ... Returns true if it
 * ended at once, false if it waits. */
static inline bool start_insert(call *c, rp_table *t, uint64_t key, size_t count,
                                int64_t until_ns)
{
    call_init(c, until_ns);
    for (size_t i = 0; i < count; i++)
        c->items[i] = (rp_insert){.key = key + i, .priority = 1, .trajectory = bed.plain};
    c->op.items = c->items;
    c->op.count = count;
    return rp_table_start_insert(t, &c->op);
}

/* Starts a sample; returns like start_insert(). */
static inline bool start_sample(call *c, rp_table *t, size_t count, size_t at_least,
                                int64_t until_ns)
{
    call_init(c, until_ns);
    c->options = (rp_sample_options){.count = count, .at_least = at_least};
    c->op.options = &c->options;
    c->op.samples = c->samples;
    return rp_table_start_sample(t, &c->op);
}

/* Checks how an operation ended, and releases its samples. */
static inline void expect_over(call *c, int calls, rp_status status, size_t done)
{
    assert_int_equal(c->calls, calls);
    assert_int_equal(c->op.status, status);
    assert_int_equal(c->op.done, done);
    if (c->op.samples != NULL) rp_samples_release(c->samples, done);
}

static inline void put(rp_table *t, uint64_t key)
{
    rp_test_put(t, key, 1, bed.plain);
}

#endif
