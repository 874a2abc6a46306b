/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/trajectory.h"
#include "support/chunks.h"

static rp_decoder *make_decoder(void)
{
    rp_decoder *decoder = NULL;
    assert_ok(rp_decoder_new(rp_allocator_default(), 1 << 20, &decoder));
    return decoder;
}

/* A trajectory of one column with one slice. */
static rp_trajectory *slice_of(rp_chunk *chunk, uint32_t offset, uint32_t length, bool squeeze)
{
    rp_chunk_slice slice = {chunk, 0, offset, length};
    rp_slices column = {&slice, 1, squeeze};
    rp_trajectory *t = NULL;
    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &t, NULL));
    return t;
}

static rp_status stack(rp_decoder *d, rp_trajectory **items, size_t count, void *dst,
                       size_t size, rp_error *err)
{
    return rp_decoder_stack(d, (const rp_trajectory *const *)items, count, 0, dst, size, err);
}

static void items_are_stacked_in_order(void **state)
{
    rp_chunk *a = rp_test_ints(1, RP_CODEC_SNAPPY, 3, 2),
             *b = rp_test_ints(2, RP_CODEC_LZ4, 3, 2);
    rp_trajectory *items[] = {slice_of(a, 1, 2, false), slice_of(b, 0, 2, false)};
    const int32_t expected[] = {1002, 1003, 1004, 1005, 2000, 2001, 2002, 2003};
    rp_decoder *d = make_decoder();
    int32_t dst[8];

    (void)state;
    assert_ok(stack(d, items, 2, dst, sizeof dst, NULL));
    assert_memory_equal(dst, expected, sizeof dst);
    rp_decoder_free(d);
    for (size_t i = 0; i < 2; i++) rp_trajectory_unref(items[i]);
    rp_chunk_unref(a);
    rp_chunk_unref(b);
}

static void slices_of_an_item_are_joined(void **state)
{
    rp_chunk *a = rp_test_ints(1, RP_CODEC_SNAPPY, 3, 1),
             *b = rp_test_ints(2, RP_CODEC_NONE, 3, 1);
    rp_chunk_slice slices[] = {{a, 0, 2, 1}, {b, 0, 0, 2}, {a, 0, 0, 1}, {a, 0, 2, 1}};
    rp_slices column = {slices, 4, false};
    const int32_t expected[] = {1002, 2000, 2001, 1000, 1002};
    rp_decoder *d = make_decoder();
    rp_trajectory *t = NULL;
    int32_t dst[5];

    (void)state;
    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &t, NULL));
    assert_ok(stack(d, &t, 1, dst, sizeof dst, NULL));
    assert_memory_equal(dst, expected, sizeof dst);
    rp_decoder_free(d);
    rp_trajectory_unref(t);
    rp_chunk_unref(a);
    rp_chunk_unref(b);
}

static void squeezed_items_stack_as_rows(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_ZSTD, 3, 2);
    rp_trajectory *items[] = {slice_of(chunk, 2, 1, true), slice_of(chunk, 0, 1, true)};
    rp_decoder *d = make_decoder();
    int32_t dst[4];

    (void)state;
    assert_ok(stack(d, items, 2, dst, sizeof dst, NULL));
    assert_memory_equal(dst, ((int32_t[]){1004, 1005, 1000, 1001}), sizeof dst);
    rp_decoder_free(d);
    for (size_t i = 0; i < 2; i++) rp_trajectory_unref(items[i]);
    rp_chunk_unref(chunk);
}

static void items_that_differ_are_named(void **state)
{
    rp_spec floats = {NULL, RP_FLOAT32, SHAPE(2)};
    float zeroes[4] = {0};
    rp_chunk *ints = rp_test_ints(1, RP_CODEC_SNAPPY, 3, 2);
    rp_chunk *other = rp_test_chunk(2, NULL, &floats, 2, zeroes);
    rp_trajectory *shapes[] = {slice_of(ints, 0, 2, false), slice_of(ints, 0, 3, false)};
    rp_trajectory *dtypes[] = {shapes[0], shapes[0], slice_of(other, 0, 2, false)};
    rp_decoder *d = make_decoder();
    int32_t dst[12] = {-7};
    rp_error err;

    (void)state;
    assert_fails(stack(d, shapes, 2, dst, 32, &err), RP_INVALID, &err,
                 "item 1, column 0: shape [3,2] but item 0 has [2,2]");
    assert_fails(stack(d, dtypes, 3, dst, 48, &err), RP_INVALID, &err,
                 "item 2, column 0: dtype float but item 0 has int32");
    assert_int_equal(dst[0], -7); /* refused before anything was written */
    rp_decoder_free(d);
    rp_trajectory_unref(shapes[0]);
    rp_trajectory_unref(shapes[1]);
    rp_trajectory_unref(dtypes[2]);
    rp_chunk_unref(ints);
    rp_chunk_unref(other);
}

static void an_output_of_another_size_is_refused(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 3, 2);
    rp_trajectory *items[] = {slice_of(chunk, 0, 2, false), slice_of(chunk, 1, 2, false)};
    rp_decoder *d = make_decoder();
    int32_t dst[9];
    rp_error err;

    (void)state;
    assert_fails(stack(d, items, 2, dst, 31, &err), RP_INVALID, &err,
                 "2 items have 32 bytes, got room for 31");
    assert_fails(stack(d, items, 2, dst, 33, &err), RP_INVALID, &err, "got room for 33");
    assert_fails(rp_decoder_stack(d, (const rp_trajectory *const *)items, 2, 1, dst, 32, &err),
                 RP_INVALID, &err, "item 0: column 1 of 1");
    rp_decoder_free(d);
    for (size_t i = 0; i < 2; i++) rp_trajectory_unref(items[i]);
    rp_chunk_unref(chunk);
}

static void an_item_that_lacks_the_column_is_refused(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 3, 2);
    rp_chunk_slice slice = {chunk, 0, 0, 1};
    rp_slices columns[] = {{&slice, 1, false}, {&slice, 1, false}};
    rp_trajectory *two = NULL, *one = slice_of(chunk, 0, 1, false);
    const rp_trajectory *items[2];
    rp_decoder *d = make_decoder();
    int32_t dst[4];
    rp_error err;

    (void)state;
    assert_ok(rp_trajectory_new(rp_allocator_default(), columns, 2, &two, NULL));
    items[0] = two;
    items[1] = one;
    assert_fails(rp_decoder_stack(d, items, 2, 1, dst, sizeof dst, &err), RP_INVALID, &err,
                 "item 1: column 1 of 1");
    rp_decoder_free(d);
    rp_trajectory_unref(one);
    rp_trajectory_unref(two);
    rp_chunk_unref(chunk);
}

static void no_items_need_no_output(void **state)
{
    rp_decoder *d = make_decoder();
    rp_string text;
    rp_error err;

    (void)state;
    assert_ok(rp_decoder_stack(d, NULL, 0, 0, NULL, 0, &err));
    assert_fails(rp_decoder_stack(d, NULL, 0, 0, &text, 1, &err), RP_INVALID, &err, "0 items");
    assert_ok(rp_decoder_stack_strings(d, NULL, 0, 0, NULL, 0, &err));
    rp_decoder_free(d);
}

static void items_without_elements_are_stacked(void **state)
{
    rp_spec spec = {NULL, RP_INT32, SHAPE(0)};
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 3, "");
    rp_trajectory *items[] = {slice_of(chunk, 0, 2, false), slice_of(chunk, 1, 2, false)};
    rp_decoder *d = make_decoder();

    (void)state;
    assert_ok(stack(d, items, 2, NULL, 0, NULL));
    rp_decoder_free(d);
    for (size_t i = 0; i < 2; i++) rp_trajectory_unref(items[i]);
    rp_chunk_unref(chunk);
}

static void strings_are_stacked(void **state)
{
    rp_spec spec = {NULL, RP_STRING, SCALAR};
    rp_string rows[] = {{"a", 1}, {"bb", 2}, {"ccc", 3}}, dst[4];
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 3, rows);
    rp_trajectory *items[] = {slice_of(chunk, 0, 2, false), slice_of(chunk, 1, 2, false)};
    const rp_trajectory *const *view = (const rp_trajectory *const *)items;
    rp_decoder *d = make_decoder();
    rp_error err;

    (void)state;
    assert_ok(rp_decoder_stack_strings(d, view, 2, 0, dst, 4, &err));
    for (int i = 0; i < 4; i++) {
        const rp_string *expected = &rows[i / 2 + i % 2];
        assert_int_equal(dst[i].size, expected->size);
        assert_memory_equal(dst[i].data, expected->data, expected->size);
    }
    assert_fails(rp_decoder_stack_strings(d, view, 2, 0, dst, 3, &err), RP_INVALID, &err,
                 "2 items have 4 strings, got room for 3");
    assert_fails(stack(d, items, 2, dst, sizeof dst, &err), RP_INVALID, &err, "holds string");
    rp_decoder_free(d);
    for (size_t i = 0; i < 2; i++) rp_trajectory_unref(items[i]);
    rp_chunk_unref(chunk);
}

static void numbers_and_strings_do_not_mix(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 3, 2);
    rp_trajectory *t = slice_of(chunk, 0, 1, false);
    rp_decoder *d = make_decoder();
    rp_string dst[2];
    rp_error err;

    (void)state;
    assert_fails(
        rp_decoder_stack_strings(d, (const rp_trajectory *const *)&t, 1, 0, dst, 2, &err),
        RP_INVALID, &err, "column 0 holds int32");
    rp_decoder_free(d);
    rp_trajectory_unref(t);
    rp_chunk_unref(chunk);
}

/* Overlapping windows over many chunks of all codecs, with a cache that is too small. */
static void random_windows_agree_with_the_plain_rows(void **state)
{
    enum { CHUNKS = 12, ROWS = 5, WINDOW = 4, ITEMS = 40, COLS = 25 };
    rp_chunk *chunks[CHUNKS];
    rp_decoder *d = NULL;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 95);
    assert_ok(rp_decoder_new(rp_allocator_default(), 3 * ROWS * COLS * 4, &d));
    for (uint64_t i = 0; i < CHUNKS; i++)
        chunks[i] = rp_test_ints(i + 1, (rp_codec)(i % 4), ROWS, COLS);
    for (int round = 0; round < 50; round++) {
        rp_trajectory *items[ITEMS];
        static int32_t dst[ITEMS][WINDOW][COLS];
        size_t starts[ITEMS];
        for (size_t i = 0; i < ITEMS; i++) {
            rp_chunk_slice slices[WINDOW];
            rp_slices column = {slices, WINDOW, false};
            starts[i] = rp_rng_below(&rng, CHUNKS * ROWS - WINDOW + 1);
            for (size_t k = 0; k < WINDOW; k++) {
                size_t row = starts[i] + k;
                slices[k] = (rp_chunk_slice){chunks[row / ROWS], 0, (uint32_t)(row % ROWS), 1};
            }
            assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &items[i], NULL));
        }
        assert_ok(stack(d, items, ITEMS, dst, sizeof dst, NULL));
        for (size_t i = 0; i < ITEMS; i++) {
            for (size_t k = 0; k < WINDOW; k++) {
                size_t row = starts[i] + k;
                assert_int_equal(dst[i][k][0], 1000 * (row / ROWS + 1) + row % ROWS * COLS);
                assert_int_equal(dst[i][k][COLS - 1], dst[i][k][0] + COLS - 1);
            }
            rp_trajectory_unref(items[i]);
        }
    }
    rp_decoder_free(d);
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(chunks[i]);
}

static rp_status stack_once(const rp_allocator *alloc)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_ZSTD, 3, 20);
    rp_trajectory *items[] = {slice_of(chunk, 0, 2, false), slice_of(chunk, 1, 2, false)};
    rp_decoder *d = NULL;
    int32_t dst[80];
    rp_error err;
    rp_status st = rp_decoder_new(alloc, 1 << 20, &d);

    if (st == RP_OK) st = stack(d, items, 2, dst, sizeof dst, &err);
    if (st == RP_OK) assert_int_equal(dst[40], 1020);
    rp_decoder_free(d);
    for (size_t i = 0; i < 2; i++) rp_trajectory_unref(items[i]);
    rp_chunk_unref(chunk);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(stack_once);
}

RP_TESTS(stack)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_stacked_in_order),
        cmocka_unit_test(slices_of_an_item_are_joined),
        cmocka_unit_test(squeezed_items_stack_as_rows),
        cmocka_unit_test(items_that_differ_are_named),
        cmocka_unit_test(an_output_of_another_size_is_refused),
        cmocka_unit_test(an_item_that_lacks_the_column_is_refused),
        cmocka_unit_test(no_items_need_no_output),
        cmocka_unit_test(items_without_elements_are_stacked),
        cmocka_unit_test(strings_are_stacked),
        cmocka_unit_test(numbers_and_strings_do_not_mix),
        cmocka_unit_test(random_windows_agree_with_the_plain_rows),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
