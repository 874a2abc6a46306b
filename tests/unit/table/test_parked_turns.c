/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which waiting operations are served; operations that are withdrawn, expire or
 * are ended by a close; callbacks that start others. */
#include "parked_fixture.h"

static void waiting_calls_are_served_in_order_of_arrival(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call samples[4], inserts[4];

    for (size_t i = 0; i < 4; i++) assert_false(start_sample(&samples[i], t, 1, 0, RP_FOREVER));
    for (uint64_t key = 1; key <= 4; key++) put(t, key);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(samples[i].turn, i + 1);
        assert_int_equal(samples[i].samples[0].key, i + 1);
        expect_over(&samples[i], 1, RP_OK, 1);
    }
    put(t, 5);
    put(t, 6);
    for (size_t i = 0; i < 4; i++)
        assert_false(start_insert(&inserts[i], t, 10 + i, 1, RP_FOREVER));
    for (uint64_t key = 5; key <= 6; key++) assert_int_equal(rp_test_draw(t).key, key);
    for (uint64_t key = 10; key < 14; key++) assert_int_equal(rp_test_draw(t).key, key);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(inserts[i].turn, 5 + i);
        expect_over(&inserts[i], 1, RP_OK, 1);
    }
}

static void inserts_and_samples_unblock_each_other(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call insert, sample;

    assert_false(start_insert(&insert, t, 1, 6, RP_FOREVER)); /* one at a time fits */
    assert_true(start_sample(&sample, t, 6, 6, RP_FOREVER) || sample.calls == 1);

    for (size_t i = 0; i < 6; i++) assert_int_equal(sample.samples[i].key, i + 1);
    expect_over(&insert, 1, RP_OK, 6);
    rp_samples_release(sample.samples, 6);
    assert_int_equal(rp_test_info_of(t).size, 0);
}

static void sample_without_waiting_does_not_overtake_the_queue(void **state)
{
    (void)state;
    rp_table *t = make_queue(3);
    call first, impatient;
    assert_false(start_sample(&first, t, 4, 0, RP_FOREVER));
    put(t, 1); /* goes to the first in line */

    assert_true(start_sample(&impatient, t, 1, 0, RP_NOW));

    expect_over(&impatient, 0, RP_DEADLINE, 0);
    assert_non_null(strstr(impatient.op.error.text, "1 other waits ahead; sample waits"));
    assert_true(rp_op_withdraw(&first.op, RP_CANCELLED));
    expect_over(&first, 0, RP_OK, 1);
}

static void insert_without_waiting_does_not_overtake_the_queue(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call first;
    put(t, 1);
    assert_false(start_insert(&first, t, 2, 1, RP_FOREVER));

    assert_fails(
        rp_test_try_put(t, 3, 1, bed.plain, &bed.err), RP_DEADLINE, &bed.err,
        "1 other waits ahead; insert waits for samples: (1 insert + 1) * 1 - 0 samples = 2 "
        "is over max_diff 1");

    assert_int_equal(rp_test_draw(t).key, 1);
    expect_over(&first, 1, RP_OK, 1);
}

static void withdrawn_operation_ends_without_on_done(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call insert, sample;
    assert_false(start_sample(&sample, t, 1, 0, RP_FOREVER));

    assert_true(rp_op_withdraw(&sample.op, RP_CANCELLED));
    assert_false(rp_op_withdraw(&sample.op, RP_CANCELLED)); /* only once */
    expect_over(&sample, 0, RP_CANCELLED, 0);
    assert_non_null(strstr(sample.op.error.text, "table 'q' wait was ended: sample waits"));
    assert_false(start_insert(&insert, t, 1, 3, RP_FOREVER));
    assert_true(rp_op_withdraw(&insert.op, RP_DEADLINE));
    expect_over(&insert, 0, RP_DEADLINE, 2); /* what went in stays in */
    assert_non_null(strstr(insert.op.error.text, "timed out"));
    assert_int_equal(rp_test_info_of(t).size, 2);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 0);
    assert_int_equal(rp_test_draw(t).key, 1);
}

static void withdrawn_sample_keeps_its_samples(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c;
    assert_false(start_sample(&c, t, 3, 0, RP_FOREVER));
    put(t, 1);

    assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));

    expect_over(&c, 0, RP_OK, 1);
}

static void operation_that_is_over_cannot_be_withdrawn(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call done, at_once;
    assert_false(start_sample(&done, t, 1, 0, RP_FOREVER));
    put(t, 1);
    assert_true(start_insert(&at_once, t, 2, 1, RP_FOREVER));

    assert_false(rp_op_withdraw(&done.op, RP_CANCELLED));
    assert_false(rp_op_withdraw(&at_once.op, RP_CANCELLED));

    expect_over(&done, 1, RP_OK, 1);
    expect_over(&at_once, 0, RP_OK, 1);
}

static void withdrawal_from_the_middle_keeps_the_queue_order(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call c[5];
    for (size_t i = 0; i < 5; i++) assert_false(start_sample(&c[i], t, 1, 0, RP_FOREVER));

    assert_true(rp_op_withdraw(&c[2].op, RP_CANCELLED));
    assert_true(rp_op_withdraw(&c[4].op, RP_CANCELLED)); /* the last */
    assert_true(rp_op_withdraw(&c[0].op, RP_CANCELLED)); /* the first */
    put(t, 1);
    put(t, 2);

    assert_true(c[1].turn == 1 && c[3].turn == 2);
    expect_over(&c[1], 1, RP_OK, 1);
    expect_over(&c[3], 1, RP_OK, 1);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
}

static void operations_behind_a_withdrawn_one_continue(void **state)
{
    (void)state;
    rp_table *t = make_queue(5);
    call greedy, modest;
    call_init(&greedy, RP_FOREVER);
    greedy.options = (rp_sample_options){.count = 3, .distinct = true};
    greedy.op.options = &greedy.options;
    greedy.op.samples = greedy.samples;
    rp_table_options o = rp_test_options("d", RP_FIFO, RP_FIFO, 10);
    o.limiter = rp_limiter_queue(9);
    rp_table *d = rp_test_bed_table(&bed, &o);
    for (uint64_t key = 1; key <= 3; key++) put(d, key);
    (void)rp_test_draw(d);
    (void)rp_test_draw(d);
    assert_false(rp_table_start_sample(d, &greedy.op)); /* three items, one sample allowed */
    assert_false(start_sample(&modest, d, 1, 0, RP_FOREVER));

    assert_true(rp_op_withdraw(&greedy.op, RP_CANCELLED));

    expect_over(&modest, 1, RP_OK, 1);
    (void)t;
}

static void expired_operations_end_with_partial_results(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call none, some, insert;
    assert_false(start_sample(&some, t, 3, 0, 100));
    put(t, 1);
    assert_false(start_sample(&none, t, 1, 0, 200));
    assert_int_equal(rp_table_expire(t, 99), 100);
    assert_true(some.calls == 0 && none.calls == 0);

    assert_int_equal(rp_table_expire(t, 100), 200);
    expect_over(&some, 1, RP_OK, 1);
    assert_int_equal(rp_table_expire(t, 5000), RP_FOREVER);
    expect_over(&none, 1, RP_DEADLINE, 0);
    assert_non_null(strstr(none.op.error.text, "table 'q' timed out: sample waits for inserts: "
                                               "the table has 0 items, min_size is 1"));
    assert_false(start_insert(&insert, t, 5, 5, 300));
    assert_int_equal(rp_table_expire(t, 300), RP_FOREVER);
    expect_over(&insert, 1, RP_DEADLINE, 2);
    assert_true(rp_test_has_key(t, 5) && rp_test_has_key(t, 6) && !rp_test_has_key(t, 7));
}

static void operations_behind_an_expired_one_continue(void **state)
{
    (void)state;
    rp_table_options o = rp_test_options("t", RP_FIFO, RP_FIFO, 10);
    o.limiter = rp_limiter_queue(9);
    rp_table *t = rp_test_bed_table(&bed, &o);
    call greedy, modest;
    for (uint64_t key = 1; key <= 3; key++) put(t, key);
    (void)rp_test_draw(t);
    call_init(&greedy, 50);
    greedy.options = (rp_sample_options){.count = 3, .distinct = true};
    greedy.op.options = &greedy.options;
    greedy.op.samples = greedy.samples;
    assert_false(rp_table_start_sample(t, &greedy.op));
    assert_false(start_sample(&modest, t, 1, 0, 1000));

    (void)rp_table_expire(t, 60);

    expect_over(&greedy, 1, RP_DEADLINE, 0);
    expect_over(&modest, 1, RP_OK, 1);
    assert_int_equal(rp_table_expire(t, 60), RP_FOREVER);
}

static void close_ends_every_wait(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call samples[3], partial, late;
    assert_false(start_sample(&partial, t, 2, 0, RP_FOREVER));
    put(t, 1);
    for (size_t i = 0; i < 3; i++) assert_false(start_sample(&samples[i], t, 1, 0, RP_FOREVER));

    rp_table_close(t);

    expect_over(&partial, 1, RP_OK, 1); /* what was drawn is handed over */
    for (size_t i = 0; i < 3; i++) {
        expect_over(&samples[i], 1, RP_CANCELLED, 0);
        assert_non_null(strstr(samples[i].op.error.text, "table 'q' was closed"));
    }
    assert_true(start_insert(&late, t, 5, 1, RP_FOREVER));
    expect_over(&late, 0, RP_CANCELLED, 0);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
}

static void close_ends_waiting_inserts(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    call a, b;
    assert_false(start_insert(&a, t, 1, 2, RP_FOREVER));
    assert_false(start_insert(&b, t, 8, 1, RP_FOREVER));

    rp_store_close(bed.store);

    expect_over(&a, 1, RP_CANCELLED, 1);
    expect_over(&b, 1, RP_CANCELLED, 0);
}

static rp_table *chain_table;
static call chain[3];

static void start_the_next(rp_op *op)
{
    call *c = op->user;

    count_call(op);
    rp_samples_release(c->samples, op->done);
    if (c == &chain[2]) return;
    c++;
    assert_false(start_sample(c, chain_table, 1, 0, RP_FOREVER));
    c->op.on_done = start_the_next;           /* no other thread uses the call yet */
    if (c == &chain[2]) put(chain_table, 77); /* even something that ends it at once */
}

static void callback_may_start_other_operations(void **state)
{
    (void)state;
    chain_table = make_queue(3);
    assert_false(start_sample(&chain[0], chain_table, 1, 0, RP_FOREVER));
    chain[0].op.on_done = start_the_next;

    put(chain_table, 1);
    assert_true(chain[0].calls == 1 && chain[1].calls == 0);
    put(chain_table, 2);

    assert_true(chain[1].calls == 1 && chain[2].calls == 1);
    assert_int_equal(rp_test_info_of(chain_table).size, 0);
}

static int depth, deepest;

static void feed_the_next(rp_op *op)
{
    call *c = op->user;

    if (++depth > deepest) deepest = depth;
    count_call(op);
    rp_samples_release(c->samples, op->done);
    put(chain_table, 1 + turns);
    depth--;
}

static void callbacks_that_end_other_operations_do_not_nest(void **state)
{
    (void)state;
    enum { WAITERS = 5000 };
    call *c = calloc(WAITERS, sizeof *c);
    assert_non_null(c);
    chain_table = make_queue(3);
    depth = deepest = 0;
    for (size_t i = 0; i < WAITERS; i++) {
        assert_false(start_sample(&c[i], chain_table, 1, 0, RP_FOREVER));
        c[i].op.on_done = feed_the_next;
    }

    put(chain_table, 1);

    assert_int_equal(deepest, 1);
    for (size_t i = 0; i < WAITERS; i++) {
        assert_true(c[i].calls == 1 && c[i].turn == i + 1);
        assert_true(c[i].op.status == RP_OK && c[i].samples[0].key == i + 1);
    }
    assert_int_equal(rp_test_info_of(chain_table).waiting_samples, 0);
    assert_int_equal(rp_test_draw(chain_table).key, WAITERS + 1); /* what the last one put */
    free(c);
}

static void operation_can_be_started_again_once_over(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    call c;
    assert_false(start_sample(&c, t, 1, 0, RP_FOREVER));

    for (uint64_t key = 1; key <= 3; key++) {
        put(t, key);
        assert_true(c.calls == (int)key && c.samples[0].key == key);
        rp_samples_release(c.samples, 1);
        assert_false(rp_table_start_sample(t, &c.op));
    }

    assert_true(rp_op_withdraw(&c.op, RP_CANCELLED));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(parked_turns)
{
    const struct CMUnitTest tests[] = {
        TEST(waiting_calls_are_served_in_order_of_arrival),
        TEST(inserts_and_samples_unblock_each_other),
        TEST(sample_without_waiting_does_not_overtake_the_queue),
        TEST(insert_without_waiting_does_not_overtake_the_queue),
        TEST(withdrawn_operation_ends_without_on_done),
        TEST(withdrawn_sample_keeps_its_samples),
        TEST(operation_that_is_over_cannot_be_withdrawn),
        TEST(withdrawal_from_the_middle_keeps_the_queue_order),
        TEST(operations_behind_a_withdrawn_one_continue),
        TEST(expired_operations_end_with_partial_results),
        TEST(operations_behind_an_expired_one_continue),
        TEST(close_ends_every_wait),
        TEST(close_ends_waiting_inserts),
        TEST(callback_may_start_other_operations),
        TEST(callbacks_that_end_other_operations_do_not_nest),
        TEST(operation_can_be_started_again_once_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
