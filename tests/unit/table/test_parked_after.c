/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of waiting operations: inserts of one caller that wait behind each other, and samples
 * that go to the end of the queue after a block. */
#include "parked_fixture.h"

/* Starts an insert of one item behind another insert, which waits. */
static void start_behind(call *c, rp_table *t, uint64_t key, call *after)
{
    call_init(c, RP_FOREVER);
    c->items[0] = (rp_insert){.key = key, .priority = 1, .trajectory = bed.plain};
    c->op.items = c->items;
    c->op.count = 1;
    c->op.after = after != NULL ? &after->op : NULL;
    assert_false(rp_table_start_insert(t, &c->op));
    assert_true(rp_table_check(t));
}

/* A full queue of one item, with key 1, for which four inserts of one caller wait, with the
 * keys 11 to 14, and then one of another, with key 20. */
static rp_table *make_line(call mine[4], call *other)
{
    rp_table *t = make_queue(1);

    put(t, 1);
    for (size_t i = 0; i < 4; i++)
        start_behind(&mine[i], t, 11 + i, i > 0 ? &mine[i - 1] : NULL);
    start_behind(other, t, 20, NULL);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 5);
    return t;
}

static void expect_keys(rp_table *t, const uint64_t *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rp_test_draw(t).key, keys[i]);
        assert_true(rp_table_check(t));
    }
    assert_int_equal(rp_test_info_of(t).size, 0);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 0);
}

static void caller_with_many_inserts_has_one_place(void **state)
{
    static const uint64_t keys[] = {1, 11, 20, 12, 13, 14};
    call mine[4], other;

    (void)state;
    expect_keys(make_line(mine, &other), keys, 6);
    assert_int_equal(other.turn, 2);
    for (size_t i = 0; i < 4; i++) expect_over(&mine[i], 1, RP_OK, 1);
    expect_over(&other, 1, RP_OK, 1);
}

static void insert_behind_one_that_is_over_goes_to_the_queue(void **state)
{
    static const uint64_t keys[] = {11, 20, 12};
    rp_table *t = make_queue(1);
    call first, other, second;

    (void)state;
    put(t, 1);
    start_behind(&first, t, 11, NULL);
    start_behind(&other, t, 20, NULL);
    assert_int_equal(rp_test_draw(t).key, 1);
    expect_over(&first, 1, RP_OK, 1);
    start_behind(&second, t, 12, &first);
    expect_keys(t, keys, 3);
}

static void withdrawn_insert_lets_the_one_behind_it_advance(void **state)
{
    static const uint64_t keys[] = {1, 20, 12, 14};
    call mine[4], other;
    rp_table *t = make_line(mine, &other);

    (void)state;
    assert_true(rp_op_withdraw(&mine[2].op, RP_CANCELLED)); /* behind another */
    assert_true(rp_table_check(t));
    assert_true(rp_op_withdraw(&mine[0].op, RP_CANCELLED)); /* in the queue */
    assert_true(rp_table_check(t));
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 3);
    expect_keys(t, keys, 4);
    expect_over(&mine[0], 0, RP_CANCELLED, 0);
    expect_over(&mine[2], 0, RP_CANCELLED, 0);
    expect_over(&mine[3], 1, RP_OK, 1);
}

static void withdrawal_from_the_last_to_the_first_leaves_nothing(void **state)
{
    call mine[4], other;
    rp_table *t = make_line(mine, &other);

    (void)state;
    for (size_t i = 4; i-- > 0;) {
        assert_true(rp_op_withdraw(&mine[i].op, RP_CANCELLED));
        assert_true(rp_table_check(t));
    }
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 1);
    assert_true(rp_op_withdraw(&other.op, RP_CANCELLED));
    assert_true(rp_table_check(t));
}

static void close_ends_inserts_behind_others(void **state)
{
    call mine[4], other;
    rp_table *t = make_line(mine, &other);

    (void)state;
    rp_table_close(t);
    for (size_t i = 0; i < 4; i++) expect_over(&mine[i], 1, RP_CANCELLED, 0);
    expect_over(&other, 1, RP_CANCELLED, 0);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 0);
}

static void all_waiting_inserts_are_described(void **state)
{
    call mine[4], other;
    rp_table *t = make_line(mine, &other);
    rp_waiting out[8];

    (void)state;
    assert_int_equal(rp_table_waiting(t, out, 8), 5);
    assert_memory_equal(out[0].why, "insert waits for samples", 24);
    assert_memory_equal(out[1].why, "1 other waits ahead; ", 21); /* the other caller */
    for (size_t i = 2; i < 5; i++) {
        assert_true(out[i].is_insert && out[i].wanted == 1);
        assert_memory_equal(out[i].why, "at most 4 others wait ahead; ", 29);
    }
    assert_int_equal(rp_table_waiting(t, out, 3), 5);
    rp_table_close(t);
}

static void sample_goes_to_the_end_of_the_queue_after_a_block(void **state)
{
    enum { LARGE = 2 * RP_BLOCK + 1 };
    static rp_sample samples[LARGE];
    rp_table *t = make_queue(1);
    call large, small[2];
    uint64_t key = 1;

    (void)state;
    call_init(&large, RP_FOREVER);
    large.options = (rp_sample_options){.count = LARGE};
    large.op.options = &large.options;
    large.op.samples = samples;
    assert_false(rp_table_start_sample(t, &large.op));
    for (size_t i = 0; i < 2; i++) assert_false(start_sample(&small[i], t, 1, 0, RP_FOREVER));

    for (; key <= RP_BLOCK; key++) put(t, key);
    assert_int_equal(turns, 0);
    for (; key <= RP_BLOCK + 2; key++) put(t, key);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(small[i].turn, i + 1);
        assert_int_equal(small[i].samples[0].key, RP_BLOCK + 1 + i);
        expect_over(&small[i], 1, RP_OK, 1);
    }
    assert_true(rp_table_check(t));
    for (; key <= LARGE + 2; key++) put(t, key); /* alone it keeps the first place */
    assert_true(large.calls == 1 && large.op.status == RP_OK && large.op.done == LARGE);
    for (size_t i = 1; i < LARGE; i++) assert_true(samples[i - 1].key < samples[i].key);
    rp_samples_release(samples, LARGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(parked_after)
{
    const struct CMUnitTest tests[] = {
        TEST(caller_with_many_inserts_has_one_place),
        TEST(insert_behind_one_that_is_over_goes_to_the_queue),
        TEST(withdrawn_insert_lets_the_one_behind_it_advance),
        TEST(withdrawal_from_the_last_to_the_first_leaves_nothing),
        TEST(close_ends_inserts_behind_others),
        TEST(all_waiting_inserts_are_described),
        TEST(sample_goes_to_the_end_of_the_queue_after_a_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
