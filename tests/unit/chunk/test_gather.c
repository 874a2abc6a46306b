/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are gathered: they are those that a decoder gives, and the first item of another
 * kind ends the gathering. */
#include "chunk/gather.h"

#include "chunk/chunk.h"
#include "support/chunks.h"

enum { ROWS = 5, COLS = 2, MOST = 64 };

static rp_trajectory *items[MOST];
static size_t item_count;

static int tear_down(void **state)
{
    (void)state;
    while (item_count > 0) rp_trajectory_unref(items[--item_count]);
    return 0;
}

/* Adds an item of one column; drops the chunk. */
static void add(rp_chunk *chunk, uint32_t offset, uint32_t length, bool squeeze)
{
    rp_chunk_slice slice = {chunk, 0, offset, length};
    rp_slices column = {&slice, 1, squeeze};

    assert_true(item_count < MOST);
    assert_ok(
        rp_trajectory_new(rp_allocator_default(), &column, 1, &items[item_count++], NULL));
    rp_chunk_unref(chunk);
}

static void add_ints(uint64_t key, rp_codec codec, uint32_t offset, uint32_t length)
{
    add(rp_test_ints(key, codec, ROWS, COLS), offset, length, length == 1);
}

static size_t gather(size_t columns, int32_t *dst)
{
    rp_trajectory_column like = rp_trajectory_get_column(items[0], 0);

    rp_gather_fetch((const rp_trajectory *const *)items, item_count);
    return rp_gather_plain((const rp_trajectory *const *)items, item_count, 0, columns, &like,
                           (uint8_t *)dst);
}

static void rows_are_those_of_the_items(void **state)
{
    int32_t dst[MOST * COLS];

    (void)state;
    for (uint32_t i = 0; i < MOST; i++) add_ints(i, RP_CODEC_NONE, i % ROWS, 1);
    assert_true(rp_trajectory_extents(items[3])->is_plain);
    assert_int_equal(gather(1, NULL), MOST);
    assert_int_equal(gather(1, dst), MOST);
    for (int32_t i = 0; i < MOST; i++)
        for (int32_t j = 0; j < COLS; j++)
            assert_int_equal(dst[i * COLS + j], 1000 * i + i % ROWS * COLS + j);
}

static void items_of_several_rows_are_found_by_their_chunk(void **state)
{
    int32_t dst[MOST * 3 * COLS];

    (void)state;
    for (uint32_t i = 0; i < MOST; i++) add_ints(i, RP_CODEC_NONE, i % 3, 3);
    assert_false(rp_trajectory_extents(items[3])->is_plain);
    assert_int_equal(gather(0, dst), MOST);
    for (int32_t i = 0; i < MOST; i++)
        for (int32_t j = 0; j < 3 * COLS; j++)
            assert_int_equal(dst[i * 3 * COLS + j], 1000 * i + i % 3 * COLS + j);
}

/* Each differs from the first item in one respect. */
static void an_item_of_another_kind_ends_it(void **state)
{
    const float zeros[ROWS * COLS] = {0};
    rp_spec floats = {NULL, RP_FLOAT32, SHAPE(COLS)}, deep = {NULL, RP_INT32, SHAPE(1, COLS)};
    const rp_chunk_options plain = {.codec = RP_CODEC_NONE};
    int32_t dst[MOST * COLS];

    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        for (uint32_t i = 0; i < 30; i++) add_ints(i, RP_CODEC_NONE, 1, 1);
        if (kind == 0) add_ints(40, RP_CODEC_ZSTD, 1, 1);
        if (kind == 1) add(rp_test_ints(40, RP_CODEC_NONE, ROWS, COLS + 1), 1, 1, true);
        if (kind == 2) add(rp_test_ints(40, RP_CODEC_NONE, ROWS, COLS), 1, 1, false);
        if (kind == 3) add(rp_test_chunk(40, &plain, &floats, ROWS, zeros), 1, 1, true);
        if (kind == 4) add(rp_test_chunk(40, &plain, &deep, ROWS, zeros), 1, 1, true);
        add_ints(41, RP_CODEC_NONE, 1, 1);
        assert_int_equal(gather(0, dst), 30);
        assert_int_equal(gather(2, dst), 0); /* they have one column */
        (void)tear_down(NULL);
    }
}

/* A copy of a trajectory over other chunks reads these. */
static void a_copy_leads_to_its_own_chunks(void **state)
{
    rp_chunk *other = rp_test_ints(7, RP_CODEC_NONE, ROWS, COLS);
    rp_trajectory *first;
    int32_t dst[COLS];

    (void)state;
    add_ints(3, RP_CODEC_NONE, 2, 1);
    first = items[0];
    items[0] = rp_trajectory_over(rp_allocator_default(), first, &other);
    assert_non_null(items[0]);
    rp_trajectory_unref(first);
    rp_chunk_unref(other);
    assert_int_equal(gather(1, dst), 1);
    assert_int_equal(dst[0], 7000 + 2 * COLS);
}

RP_TESTS(gather)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_teardown(name, tear_down)
        T(rows_are_those_of_the_items),
        T(items_of_several_rows_are_found_by_their_chunk),
        T(an_item_of_another_kind_ends_it),
        T(a_copy_leads_to_its_own_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
