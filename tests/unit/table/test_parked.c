/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that wait: how they are started and resumed, what they return, what the table
 * reports about them. Their order, and how waits end: test_parked_turns.c. */
#include "parked_fixture.h"

static void operation_that_can_go_ahead_is_over_at_once(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call insert, sample;

    assert_true(start_insert(&insert, t, 1, 2, RP_FOREVER));
    assert_true(start_sample(&sample, t, 2, 0, RP_FOREVER));

    assert_true(sample.samples[0].key == 1 && sample.samples[1].key == 2);
    assert_false(sample.samples[0].rate_limited);
    expect_over(&insert, 0, RP_OK, 2);
    expect_over(&sample, 0, RP_OK, 2);
}

static void operation_with_bad_arguments_is_over_at_once(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call c;

    assert_true(start_sample(&c, t, 0, 0, RP_FOREVER));
    expect_over(&c, 0, RP_INVALID, 0);
    assert_non_null(strstr(c.op.error.text, "got 0"));
    call_init(&c, RP_FOREVER);
    c.op.items = c.items;
    c.op.count = 1; /* without a trajectory */
    assert_true(rp_table_start_insert(t, &c.op));
    expect_over(&c, 0, RP_INVALID, 0);
}

static void operation_that_may_wait_needs_an_on_done(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    rp_insert item = {.key = 2, .priority = 1, .trajectory = bed.plain};
    rp_sample_options one = {.count = 1};
    rp_sample s;
    rp_op insert = {.items = &item, .count = 1, .until_ns = RP_FOREVER};
    rp_op sample = {.options = &one, .samples = &s, .until_ns = 1};
    put(t, 1);
    rp_table_info before = rp_test_info_of(t);

    assert_true(rp_table_start_insert(t, &insert)); /* though it would not have to wait */
    assert_true(rp_table_start_sample(t, &sample));

    assert_true(insert.done == 0 && sample.done == 0);
    assert_fails(insert.status, RP_INVALID, &insert.error, "needs an on_done");
    assert_fails(sample.status, RP_INVALID, &sample.error, "needs an on_done");
    assert_unchanged(t, &before);
    insert.until_ns = RP_NOW; /* nobody will have to be told */
    assert_true(rp_table_start_insert(t, &insert));
    assert_true(insert.status == RP_OK && insert.done == 1);
}

static void waiting_sample_is_resumed_by_an_insert(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call c;

    assert_false(start_sample(&c, t, 2, 0, RP_FOREVER));
    assert_int_equal(rp_test_info_of(t).waiting_samples, 1);
    put(t, 1);
    assert_int_equal(c.calls, 0); /* one of two */
    put(t, 2);

    assert_true(c.samples[0].key == 1 && c.samples[1].key == 2);
    assert_true(c.samples[0].rate_limited && c.samples[1].rate_limited);
    expect_over(&c, 1, RP_OK, 2);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
    put(t, 3);
    assert_int_equal(c.calls, 1);
}

static void waiting_insert_is_resumed_by_a_sample(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c;

    assert_false(start_insert(&c, t, 1, 4, RP_FOREVER));
    assert_int_equal(c.op.done, 2);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 1);
    bed.wall_ns = 7777;
    assert_int_equal(rp_test_draw(t).key, 1);
    assert_int_equal(c.op.done, 3);
    assert_int_equal(rp_test_draw(t).key, 2);

    expect_over(&c, 1, RP_OK, 4);
    rp_sample s = rp_test_draw(t);
    assert_true(s.key == 3 && s.inserted_at_ns == 7777); /* the moment it went in */
}

static void waiting_insert_is_resumed_by_a_delete(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    o.limiter = (rp_limiter_options){1, 3, 0, 2};
    rp_table *t = rp_test_bed_table(&bed, &o);
    call c;
    for (uint64_t key = 1; key <= 3; key++) put(t, key);

    assert_false(start_insert(&c, t, 9, 1, RP_FOREVER));
    assert_ok(rp_table_delete(t, &(uint64_t){2}, 1, NULL, NULL)); /* below min_size again */

    expect_over(&c, 1, RP_OK, 1);
    assert_true(rp_test_has_key(t, 9));
}

static void waiting_calls_survive_a_reset(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call insert, sample;
    put(t, 1);

    assert_false(start_insert(&insert, t, 2, 1, RP_FOREVER));
    assert_ok(rp_table_reset(t, NULL));
    expect_over(&insert, 1, RP_OK, 1); /* there is room now */
    assert_int_equal(rp_test_draw(t).key, 2);
    assert_false(start_sample(&sample, t, 1, 0, RP_FOREVER));
    assert_ok(rp_table_reset(t, NULL));
    assert_int_equal(sample.calls, 0);
    put(t, 3);
    expect_over(&sample, 1, RP_OK, 1);
}

static void at_least_ends_a_sample_early(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c, at_once;

    assert_false(start_sample(&c, t, 4, 2, RP_FOREVER));
    put(t, 1);
    assert_int_equal(c.calls, 0);
    put(t, 2);
    expect_over(&c, 1, RP_OK, 2);
    for (uint64_t key = 3; key <= 5; key++) put(t, key);
    assert_true(start_sample(&at_once, t, 8, 2, RP_FOREVER)); /* all that can be had */
    expect_over(&at_once, 0, RP_OK, 3);
}

static double weights_when_told[MOST];

static void note_weights(rp_op *op)
{
    count_call(op);
    for (size_t i = 0; i < op->done; i++) weights_when_told[i] = op->samples[i].weight;
}

static bool start_weighed(call *c, rp_table *t, size_t count)
{
    call_init(c, 1000);
    c->options = (rp_sample_options){.count = count, .beta = 1};
    c->op.options = &c->options;
    c->op.samples = c->samples;
    c->op.on_done = note_weights;
    return rp_table_start_sample(t, &c->op);
}

/* A queue gives its first with probability 1: weights are 1 / size, divided by the largest. */
static void weights_of_a_sample_that_is_over_at_once_are_filled_in(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c;
    for (uint64_t key = 1; key <= 4; key++) put(t, key);

    assert_true(start_weighed(&c, t, 4));

    assert_true(c.samples[0].weight == 0.25 && c.samples[2].weight == 0.5);
    assert_true(c.samples[3].weight == 1);
    expect_over(&c, 0, RP_OK, 4);
}

static void weights_of_a_resumed_sample_are_those_of_the_whole_batch(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c;
    put(t, 1);
    put(t, 2);
    assert_false(start_weighed(&c, t, 3));

    put(t, 3);

    assert_true(weights_when_told[0] == 0.5 && weights_when_told[1] == 1);
    assert_true(weights_when_told[2] == 1);
    expect_over(&c, 1, RP_OK, 3);
}

static void weights_of_a_sample_that_ends_early_are_filled_in(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        call c;
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, NULL);
        rp_table *t = make_queue(5);
        put(t, 1);
        put(t, 2);
        assert_false(start_weighed(&c, t, 3));

        if (how == 0) assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));
        if (how == 1) (void)rp_table_expire(t, 1000);
        if (how == 2) rp_table_close(t);

        assert_true(c.samples[0].weight == 0.5 && c.samples[1].weight == 1);
        expect_over(&c, how == 0 ? 0 : 1, RP_OK, 2);
    }
}

static void ignore_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)ctx, (void)view, (void)events, (void)count;
}

/* The events of so many draws do not fit the room that the first insert made for them. */
static void partly_drawn_sample_that_lacks_memory_keeps_its_samples(void **state)
{
    (void)state;
    static rp_sample drawn[200];
    rp_extension e = {.name = "ignore", .deferred = true, .on_events = ignore_events};
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    call c;
    o.limiter = rp_limiter_queue(1000);
    o.max_times_sampled = 1;
    o.extensions = &e;
    o.extension_count = 1;
    rp_table *t = rp_test_bed_table(&bed, &o);
    put(t, 1);
    call_init(&c, RP_FOREVER);
    c.options = (rp_sample_options){.count = COUNT_OF(drawn)};
    c.op.options = &c.options;
    c.op.samples = drawn;
    assert_false(rp_table_start_sample(t, &c.op));
    assert_int_equal(c.op.done, 1);

    bed.oom.left = 0;
    put(t, 2);
    bed.oom.left = RP_TEST_OOM_UNLIMITED;

    assert_true(bed.oom.failed > 0);
    assert_true(c.calls == 1 && c.op.status == RP_OK);
    assert_true(c.op.done == 1 && drawn[0].key == 1);
    rp_samples_release(drawn, 1); /* the fixture counts what is left */
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
    assert_int_equal(rp_test_draw(t).key, 2);
    assert_true(rp_table_check(t));
}

static void offer(call *c, rp_table *t, uint64_t key, size_t count)
{
    call_init(c, 1000);
    for (size_t i = 0; i < count; i++)
        c->items[i] = (rp_insert){.key = key + i,
                                  .priority = 1,
                                  .trajectory = rp_test_blob_trajectory(&bed.alloc, i, 1, 20),
                                  .flags = RP_INSERT_TAKE};
    c->op.items = c->items;
    c->op.count = count;
    assert_false(rp_table_start_insert(t, &c->op));
}

/* However the wait ends, what did not go in is still the owner's, and nothing else. */
static void offered_references_are_taken_as_far_as_a_waiting_insert_got(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        call c;
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, NULL);
        rp_table *t = make_queue(2);
        offer(&c, t, 1, 6); /* two go in at once */
        (void)rp_test_draw(t);
        assert_int_equal(c.op.done, 3);

        if (how == 0) assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));
        if (how == 1) (void)rp_table_expire(t, 1000);
        if (how == 2) rp_table_close(t);
        while (how == 3 && c.calls == 0) (void)rp_test_draw(t);

        assert_int_equal(c.op.done, how == 3 ? 6 : 3);
        for (size_t i = c.op.done; i < 6; i++) rp_trajectory_unref(c.items[i].trajectory);
    }
}

static void waiting_calls_report_what_they_wait_for(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    rp_waiting out[4];
    call samples[2], insert;
    memset(out, 0, sizeof out);
    assert_int_equal(rp_table_waiting(t, out, 4), 0);
    assert_false(start_sample(&samples[0], t, 3, 0, 12345));
    put(t, 1);
    assert_false(start_sample(&samples[1], t, 2, 1, RP_FOREVER));

    assert_int_equal(rp_table_waiting(t, out, 4), 2);
    assert_true(!out[0].is_insert && out[0].wanted == 3 && out[0].done == 1);
    assert_true(out[0].until_ns == 12345 && out[0].waiting_ns >= 0);
    assert_string_equal(out[0].why,
                        "sample waits for inserts: the table has 0 items, min_size is "
                        "1; 1 more insert would release it");
    assert_string_equal(out[1].why,
                        "1 other waits ahead; sample waits for inserts: the table has 0 items, "
                        "min_size is 1; 1 more insert would release it");
    assert_true(rp_op_withdraw(&samples[0].op, RP_OK) && rp_op_withdraw(&samples[1].op, RP_OK));
    rp_samples_release(samples[0].samples, 1);

    assert_false(start_insert(&insert, t, 10, 3, RP_FOREVER));
    assert_int_equal(rp_table_waiting(t, out, 4), 1);
    assert_true(out[0].is_insert && out[0].wanted == 3 && out[0].done == 2);
    assert_non_null(strstr(out[0].why,
                           "(3 inserts + 1) * 1 - 1 sample = 3 is over max_diff 2; 1 more "
                           "sample would release it"));
    assert_true(rp_op_withdraw(&insert.op, RP_CANCELLED));
}

static void waiting_lists_no_more_calls_than_fit_the_array(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c[3];
    rp_waiting out[3];
    for (size_t i = 0; i < 3; i++) assert_false(start_sample(&c[i], t, 1 + i, 0, RP_FOREVER));
    out[2].wanted = 99;

    assert_int_equal(rp_table_waiting(t, out, 2), 3);

    assert_true(out[0].wanted == 1 && out[1].wanted == 2 && out[2].wanted == 99);
    assert_int_equal(rp_table_waiting(t, NULL, 0), 3);
    for (size_t i = 0; i < 3; i++) assert_true(rp_op_withdraw(&c[i].op, RP_CANCELLED));
}

static void sleep_ms(int64_t ms)
{
    int64_t until_ns = rp_now_ns() + ms * 1000000;
    while (rp_now_ns() < until_ns) {}
}

static void info_has_the_times_that_calls_wait_and_have_waited(void **state)
{
    (void)state;
    enum { MS = 1000000 };
    rp_table *t = make_queue(2);
    rp_table_info info = rp_test_info_of(t);
    call c[2], insert;
    int64_t before_ns = rp_now_ns(), bound_ns;
    assert_true(info.sample_waits.longest_ns == 0 && info.sample_waits.total_ns == 0);
    assert_true(info.sample_waits.parked == 0 && info.insert_waits.parked == 0);

    assert_false(start_sample(&c[0], t, 1, 0, RP_FOREVER));
    sleep_ms(4);
    assert_false(start_sample(&c[1], t, 1, 0, RP_FOREVER));
    sleep_ms(2);
    info = rp_test_info_of(t);
    bound_ns = rp_now_ns() - before_ns;
    assert_true(info.waiting_samples == 2 && info.sample_waits.parked == 2);
    assert_in_range(info.sample_waits.longest_ns, 6 * MS, bound_ns);
    assert_in_range(info.sample_waits.total_ns, 8 * MS, 2 * bound_ns - 4 * MS);
    put(t, 1); /* ends the first wait */
    info = rp_test_info_of(t);
    assert_true(info.sample_waits.longest_ns < rp_now_ns() - before_ns - 3 * MS);
    assert_in_range(info.sample_waits.total_ns, 8 * MS, 2 * (rp_now_ns() - before_ns));
    assert_true(rp_op_withdraw(&c[1].op, RP_CANCELLED));
    info = rp_test_info_of(t);
    sleep_ms(2);

    assert_ok(rp_table_reset(t, NULL)); /* these figures stay */
    assert_true(rp_test_info_of(t).sample_waits.total_ns == info.sample_waits.total_ns);
    assert_true(rp_test_info_of(t).sample_waits.parked == 2);
    assert_int_equal(rp_test_info_of(t).sample_waits.longest_ns, 0);
    assert_int_equal(rp_test_info_of(t).insert_waits.parked, 0);
    assert_false(start_insert(&insert, t, 1, 3, RP_FOREVER));
    sleep_ms(1);
    rp_table_close(t);
    assert_true(rp_test_info_of(t).insert_waits.parked == 1);
    assert_in_range(rp_test_info_of(t).insert_waits.total_ns, 1 * MS, rp_now_ns() - before_ns);
    rp_samples_release(c[0].samples, 1);
}

static void info_has_the_state_of_the_limiter(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("r", RP_FIFO, RP_FIFO, 100);
    rp_table_alteration change = {.which = RP_ALTER_LIMITER | RP_ALTER_RECENTER};
    o.limiter = rp_limiter_ratio(2.5, 2, 10);
    rp_table *t = rp_test_bed_table(&bed, &o);

    for (uint64_t key = 1; key <= 3; key++) put(t, key);
    (void)rp_test_draw(t);
    assert_true(rp_test_info_of(t).limiter_diff == 3 * 2.5 - 1);
    change.limiter = rp_limiter_ratio(1, 2, 50);
    assert_ok(rp_table_alter(t, &change, NULL));

    assert_true(rp_test_info_of(t).limiter_diff == 2); /* half-way between -48 and 52 */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(parked)
{
    const struct CMUnitTest tests[] = {
        TEST(operation_that_can_go_ahead_is_over_at_once),
        TEST(operation_with_bad_arguments_is_over_at_once),
        TEST(operation_that_may_wait_needs_an_on_done),
        TEST(waiting_sample_is_resumed_by_an_insert),
        TEST(waiting_insert_is_resumed_by_a_sample),
        TEST(waiting_insert_is_resumed_by_a_delete),
        TEST(waiting_calls_survive_a_reset),
        TEST(at_least_ends_a_sample_early),
        TEST(weights_of_a_sample_that_is_over_at_once_are_filled_in),
        TEST(weights_of_a_resumed_sample_are_those_of_the_whole_batch),
        TEST(weights_of_a_sample_that_ends_early_are_filled_in),
        TEST(partly_drawn_sample_that_lacks_memory_keeps_its_samples),
        TEST(offered_references_are_taken_as_far_as_a_waiting_insert_got),
        TEST(waiting_calls_report_what_they_wait_for),
        TEST(waiting_lists_no_more_calls_than_fit_the_array),
        TEST(info_has_the_times_that_calls_wait_and_have_waited),
        TEST(info_has_the_state_of_the_limiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
