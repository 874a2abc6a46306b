/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose inserts or samples are paused. */
#include "support/fixture.h"
#include "table/op.h"

static rp_test_bed bed;
static rp_table *t;

static int set_up(void **state)
{
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 100);

    (void)state;
    rp_test_bed_init(&bed, NULL);
    t = rp_test_bed_table(&bed, &o);
    for (uint64_t key = 0; key < 3; key++) rp_test_put(t, key, 1, bed.plain);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_status try_draw(rp_wait wait)
{
    rp_sample_options one = {.count = 1};
    rp_sample sample;
    size_t drawn = 0;
    rp_status st = rp_table_sample(t, &one, &sample, &drawn, wait, &bed.err);

    rp_samples_release(&sample, drawn);
    return st;
}

static rp_status try_put(rp_wait wait)
{
    rp_insert item = {.key = 70, .priority = 1, .trajectory = bed.plain};

    return rp_table_insert(t, &item, 1, wait, NULL, &bed.err);
}

static void sides_are_paused_and_resumed_one_by_one(void **state)
{
    (void)state;
    assert_int_equal(rp_test_info_of(t).paused, 0);

    for (uint32_t sides = 1; sides <= 3; sides++) {
        assert_ok(rp_table_pause(t, sides, NULL));
        assert_ok(rp_table_pause(t, sides, NULL)); /* again changes nothing */
        assert_int_equal(rp_test_info_of(t).paused, sides);
        assert_int_equal(rp_table_can_insert(t, 1), (sides & RP_SIDE_INSERTS) == 0);
        assert_int_equal(rp_table_can_sample(t, 1), (sides & RP_SIDE_SAMPLES) == 0);
        assert_int_equal(try_put(rp_wait_none()),
                         sides & RP_SIDE_INSERTS ? RP_DEADLINE : RP_OK);
        assert_int_equal(try_draw(rp_wait_none()),
                         sides & RP_SIDE_SAMPLES ? RP_DEADLINE : RP_OK);
        assert_ok(rp_table_resume(t, sides, NULL));
        assert_int_equal(rp_test_info_of(t).paused, 0);
        assert_ok(try_put(rp_wait_none()));
        assert_ok(try_draw(rp_wait_none()));
    }
}

static void one_side_can_be_resumed_of_two(void **state)
{
    (void)state;
    assert_ok(rp_table_pause(t, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL));

    assert_ok(rp_table_resume(t, RP_SIDE_SAMPLES, NULL));

    assert_int_equal(rp_test_info_of(t).paused, RP_SIDE_INSERTS);
    assert_ok(try_draw(rp_wait_none()));
    assert_int_equal(try_put(rp_wait_none()), RP_DEADLINE);
}

static void unknown_sides_are_refused(void **state)
{
    (void)state;
    assert_fails(rp_table_pause(t, 0, &bed.err), RP_INVALID, &bed.err, "the sides must be");
    assert_fails(rp_table_pause(t, 4, &bed.err), RP_INVALID, &bed.err, "got 4");
    assert_fails(rp_table_resume(t, 7, &bed.err), RP_INVALID, &bed.err, "got 7");
    assert_int_equal(rp_test_info_of(t).paused, 0);
}

static void closed_table_is_neither_paused_nor_resumed(void **state)
{
    (void)state;
    rp_table_close(t);

    assert_fails(rp_table_pause(t, 1, &bed.err), RP_CANCELLED, &bed.err, "is closed");
    assert_fails(rp_table_resume(t, 1, &bed.err), RP_CANCELLED, &bed.err, "is closed");
}

static void paused_calls_time_out_with_the_reason(void **state)
{
    (void)state;
    int64_t before_ns;
    assert_ok(rp_table_pause(t, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL));
    before_ns = rp_now_ns();

    assert_fails(try_put(rp_wait_ms(5)), RP_DEADLINE, &bed.err,
                 "inserts are paused by an administrator: resume the table");
    assert_fails(try_draw(rp_wait_ms(5)), RP_DEADLINE, &bed.err,
                 "samples are paused by an administrator: resume the table");

    assert_true(rp_now_ns() - before_ns >= 10000000);
    assert_int_equal(rp_test_info_of(t).samples, 0);
}

static void paused_table_stays_so_when_it_is_reset(void **state)
{
    (void)state;
    assert_ok(rp_table_pause(t, RP_SIDE_INSERTS, NULL));

    assert_ok(rp_table_reset(t, NULL));

    assert_int_equal(rp_test_info_of(t).paused, RP_SIDE_INSERTS);
    assert_int_equal(try_put(rp_wait_none()), RP_DEADLINE);
}

static void other_calls_go_on_while_paused(void **state)
{
    (void)state;
    uint64_t key = 1;
    size_t found;
    assert_ok(rp_table_pause(t, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL));

    assert_ok(rp_table_update(t, &(rp_update){1, 2}, 1, &found, NULL));
    assert_int_equal(found, 1);
    assert_ok(rp_table_delete(t, &key, 1, &found, NULL));
    assert_int_equal(found, 1);
    assert_true(rp_test_has_key(t, 2));
    assert_ok(rp_table_trim(t, &found, NULL));
}

typedef struct call {
    rp_op op;
    rp_insert items[2];
    rp_sample_options options;
    rp_sample samples[2];
    int calls;
} call;

static void count_call(rp_op *op)
{
    call *c = op->user;

    c->calls++;
    if (!op->is_insert) rp_samples_release(c->samples, op->done);
}

static bool start(call *c, bool insert, int64_t until_ns)
{
    *c = (call){.options = {.count = 2},
                .op = {.until_ns = until_ns, .on_done = count_call, .user = c, .count = 2}};
    for (size_t i = 0; i < 2; i++)
        c->items[i] = (rp_insert){.key = 50 + i, .priority = 1, .trajectory = bed.plain};
    c->op.items = c->items;
    c->op.options = &c->options;
    c->op.samples = c->samples;
    return insert ? rp_table_start_insert(t, &c->op) : rp_table_start_sample(t, &c->op);
}

static void resume_runs_waiting_calls(void **state)
{
    (void)state;
    call insert, sample;
    rp_waiting why[2];
    assert_ok(rp_table_pause(t, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL));
    assert_false(start(&insert, true, RP_FOREVER));
    assert_false(start(&sample, false, RP_FOREVER));
    assert_ok(rp_table_update(t, &(rp_update){1, 2}, 1, NULL, NULL)); /* pumps in vain */
    assert_int_equal(rp_table_waiting(t, why, 2), 2);
    assert_string_equal(why[0].why, "inserts are paused by an administrator: resume the table");
    assert_string_equal(why[1].why, "samples are paused by an administrator: resume the table");
    assert_true(insert.calls == 0 && sample.calls == 0 && insert.op.done == 0);

    assert_ok(rp_table_resume(t, RP_SIDE_SAMPLES, NULL));
    assert_true(insert.calls == 0 && sample.calls == 1 && sample.op.done == 2);
    assert_ok(rp_table_resume(t, RP_SIDE_INSERTS, NULL));

    assert_true(insert.calls == 1 && insert.op.status == RP_OK && insert.op.done == 2);
    assert_int_equal(rp_test_info_of(t).size, 5);
}

static void parked_calls_expire_while_paused(void **state)
{
    (void)state;
    call insert, sample;
    assert_ok(rp_table_pause(t, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL));
    assert_false(start(&insert, true, 1000));
    assert_false(start(&sample, false, 2000));

    assert_int_equal(rp_table_expire(t, 1000), 2000);
    assert_int_equal(rp_table_expire(t, 2000), RP_FOREVER);

    assert_true(insert.calls == 1 && insert.op.status == RP_DEADLINE);
    assert_true(sample.calls == 1 && sample.op.status == RP_DEADLINE);
}

/* The limiter and the pause have to agree. */
static void resume_does_not_overrule_the_limiter(void **state)
{
    (void)state;
    call sample;
    assert_ok(rp_table_reset(t, NULL));
    assert_ok(rp_table_pause(t, RP_SIDE_SAMPLES, NULL));
    assert_false(start(&sample, false, RP_FOREVER));

    assert_ok(rp_table_resume(t, RP_SIDE_SAMPLES, NULL));
    assert_int_equal(sample.calls, 0);
    rp_test_put(t, 1, 1, bed.plain);

    assert_true(sample.calls == 1 && sample.op.status == RP_OK);
}

/* What would release a call is paused. */
static void reasons_say_that_the_other_side_is_paused(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 100);
    rp_waiting why;
    call insert;
    assert_ok(rp_table_reset(t, NULL));
    assert_ok(rp_table_pause(t, RP_SIDE_INSERTS, NULL));
    assert_fails(try_draw(rp_wait_none()), RP_DEADLINE, &bed.err,
                 "min_size is 1; 1 more insert would release it; inserts are paused by an "
                 "administrator: resume the table");

    o.limiter = rp_limiter_queue(1);
    t = rp_test_bed_table(&bed, &o);
    assert_ok(rp_table_pause(t, RP_SIDE_SAMPLES, NULL));
    assert_false(start(&insert, true, RP_FOREVER));
    assert_int_equal(rp_table_waiting(t, &why, 1), 1);
    assert_non_null(strstr(why.why, "1 more sample would release it; samples are paused by an "
                                    "administrator: resume the table"));
    assert_ok(rp_table_resume(t, RP_SIDE_SAMPLES, NULL));
    assert_int_equal(rp_table_waiting(t, &why, 1), 1);
    assert_null(strstr(why.why, "paused"));
    assert_true(rp_op_withdraw(&insert.op, RP_CANCELLED));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(pause)
{
    const struct CMUnitTest tests[] = {
        TEST(sides_are_paused_and_resumed_one_by_one),
        TEST(one_side_can_be_resumed_of_two),
        TEST(unknown_sides_are_refused),
        TEST(closed_table_is_neither_paused_nor_resumed),
        TEST(paused_calls_time_out_with_the_reason),
        TEST(paused_table_stays_so_when_it_is_reset),
        TEST(other_calls_go_on_while_paused),
        TEST(resume_runs_waiting_calls),
        TEST(parked_calls_expire_while_paused),
        TEST(resume_does_not_overrule_the_limiter),
        TEST(reasons_say_that_the_other_side_is_paused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
