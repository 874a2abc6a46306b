/* SPDX-License-Identifier: Apache-2.0 */
#include "rollouts/rollout_item.h"
#include "support/unit.h"

static rp_error err;

/* An item with `rows` rows of two numbers from `first` on, and a scalar. */
static rp_rollout_stored *item(int64_t rows, int32_t first)
{
    int32_t numbers[16];
    float scalar = (float)first;
    const rp_rollout_column columns[] = {{{"x", 1}, {RP_INT32, {2, {rows, 2}}, numbers}},
                                         {{"r", 1}, {RP_FLOAT32, {0, {0}}, &scalar}}};
    rp_rollout_stored *stored;

    for (int i = 0; i < 16; i++) numbers[i] = first + i;
    stored = rp_rollout_stored_new(rp_allocator_default(), columns, 2, 0, 0);
    assert_non_null(stored);
    return stored;
}

static void rows_of_all_items_are_joined(void **state)
{
    (void)state;
    rp_rollout_stored *stored[] = {item(2, 10), item(0, 20), item(3, 30)};
    const rp_rollout_item *items[] = {&stored[0]->view, &stored[1]->view, &stored[2]->view};
    const int32_t expected[] = {10, 11, 12, 13, 30, 31, 32, 33, 34, 35};
    const int64_t expected_offsets[] = {0, 2, 2, 5};
    rp_rollout_ragged ragged;
    int32_t values[10];
    int64_t offsets[4];

    assert_ok(rp_rollout_ragged_measure(items, 3, (rp_string){"x", 1}, &ragged, &err));
    assert_int_equal(ragged.bytes, sizeof values);
    assert_int_equal(ragged.shape.rank, 2);
    assert_int_equal(ragged.shape.dims[0], 5);
    assert_int_equal(ragged.shape.dims[1], 2);
    rp_rollout_ragged_fill(items, (rp_string){"x", 1}, &ragged, values, offsets);
    assert_memory_equal(values, expected, sizeof values);
    assert_memory_equal(offsets, expected_offsets, sizeof offsets);

    assert_ok(rp_rollout_ragged_measure(items, 3, (rp_string){"r", 1}, &ragged, &err));
    assert_int_equal(ragged.shape.dims[0], 3); /* a scalar is one row */
    assert_int_equal(ragged.bytes, 3 * sizeof(float));
    for (int i = 0; i < 3; i++) rp_rollout_stored_unref(stored[i]);
}

static void items_that_do_not_fit_together_are_refused(void **state)
{
    (void)state;
    int32_t number = 0;
    const rp_rollout_column other = {{"x", 1}, {RP_INT32, {1, {1}}, &number}};
    rp_rollout_stored *a = item(2, 10);
    rp_rollout_stored *b = rp_rollout_stored_new(rp_allocator_default(), &other, 1, 0, 0);
    const rp_rollout_item *items[] = {&a->view, &b->view};
    rp_rollout_ragged ragged;

    assert_fails(rp_rollout_ragged_measure(items, 2, (rp_string){"x", 1}, &ragged, &err),
                 RP_INVALID, &err, "of item 1 has rows of int32");
    assert_fails(rp_rollout_ragged_measure(items, 2, (rp_string){"r", 1}, &ragged, &err),
                 RP_NOT_FOUND, &err, "item 1 of the batch has no column 'r'");
    rp_rollout_stored_unref(a);
    rp_rollout_stored_unref(b);
}

static void batches_are_packed_to_the_budget(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 4, 7, 8, 20, 22}; /* rows: 4, 3, 1, 12, 2 */
    const size_t expected[] = {0, 2, 3, 4, 5};
    size_t first[6];

    assert_int_equal(rp_rollout_pack(offsets, 5, 7, first), 4);
    assert_memory_equal(first, expected, sizeof expected);
    assert_int_equal(rp_rollout_pack(offsets, 5, 100, first), 1);
    assert_int_equal(first[1], 5);
    assert_int_equal(rp_rollout_pack(offsets, 0, 7, first), 0);
    assert_int_equal(first[0], 0);
}

RP_TESTS(rollout_ragged)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_items_are_joined),
        cmocka_unit_test(items_that_do_not_fit_together_are_refused),
        cmocka_unit_test(batches_are_packed_to_the_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
