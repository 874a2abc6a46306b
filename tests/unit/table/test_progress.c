/* SPDX-License-Identifier: Apache-2.0 */
/* A waiting insert reports how many of its items are inserted. */
#include "support/fixture.h"
#include "table/op.h"

enum { MOST = 8 };

typedef struct call {
    rp_op op;
    rp_insert items[MOST];
    int calls;    /* of on_done */
    int progress; /* of on_progress, */
    size_t in;    /* and the last that it said */
} call;

static void count_call(rp_op *op)
{
    ((call *)op->user)->calls++;
}

static void note_progress(rp_op *op)
{
    call *c = op->user;

    assert_int_equal(c->calls, 0);
    c->in = op->done;
    c->progress++;
}

static bool start(call *c, rp_test_bed *bed, rp_table *t, uint64_t key, size_t count)
{
    *c = (call){.op = {.until_ns = RP_FOREVER,
                       .on_done = count_call,
                       .on_progress = note_progress,
                       .user = c,
                       .items = c->items,
                       .count = count}};
    for (size_t i = 0; i < count; i++)
        c->items[i] = (rp_insert){.key = key + i, .priority = 1, .trajectory = bed->plain};
    return rp_table_start_insert(t, &c->op);
}

static void draw_one(rp_table *t)
{
    rp_sample_options options = {.count = 1};
    rp_sample sample;
    size_t drawn;

    assert_int_equal(rp_table_sample(t, &options, &sample, &drawn, rp_wait_none(), NULL),
                     RP_OK);
    rp_samples_release(&sample, drawn);
}

static void waiting_insert_reports_its_progress(void **state)
{
    (void)state;
    rp_test_bed bed;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    call c, behind;

    rp_test_bed_init(&bed, NULL);
    o.limiter = rp_limiter_queue(3);
    o.max_times_sampled = 1;
    rp_table *t = rp_test_bed_table(&bed, &o);

    assert_false(start(&c, &bed, t, 10, 6));
    assert_int_equal(c.in, 3);
    assert_int_equal(c.progress, 1);
    assert_false(start(&behind, &bed, t, 20, 1));
    assert_int_equal(behind.progress, 1);
    for (int i = 1; i <= 2; i++) {
        draw_one(t);
        assert_int_equal(c.in, 3 + i);
        assert_int_equal(c.progress, 1 + i);
    }
    draw_one(t);
    assert_int_equal(c.progress, 3); /* on_done tells of the last */
    assert_int_equal(c.calls, 1);
    assert_int_equal(c.op.done, 6);
    draw_one(t);
    assert_int_equal(behind.progress, 1); /* when it began to wait, with nothing in */
    assert_int_equal(behind.in, 0);
    assert_int_equal(behind.calls, 1);
    rp_test_bed_deinit(&bed);
}

RP_TESTS(progress)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_insert_reports_its_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
