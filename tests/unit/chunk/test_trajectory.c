/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/trajectory.h"

#include "chunk/chunk.h"
#include "support/chunks.h"

static rp_trajectory *make(const rp_slices *columns, size_t count)
{
    rp_trajectory *t = NULL;
    rp_error err = {0};
    assert_ok_err(rp_trajectory_new(rp_allocator_default(), columns, count, &t, &err), &err);
    return t;
}

/* One column of these slices must be refused, and nothing may be left alive. */
static void assert_refused(const rp_chunk_slice *slices, size_t count, bool squeeze,
                           const char *part)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_slices column = {slices, count, squeeze};
    rp_trajectory *t = NULL;
    rp_error err = {0};

    assert_fails(rp_trajectory_new(&alloc, &column, 1, &t, &err), RP_INVALID, &err, part);
    assert_null(t);
    assert_int_equal(o.live, 0);
}

static void a_column_has_the_rows_of_its_slices(void **state)
{
    rp_chunk *a = rp_test_ints(1, RP_CODEC_SNAPPY, 4, 3);
    rp_chunk *b = rp_test_ints(2, RP_CODEC_SNAPPY, 5, 3);
    rp_chunk_slice slices[] = {{a, 0, 2, 2}, {b, 0, 0, 5}, {a, 0, 0, 1}};
    rp_slices column = {slices, 3, false};
    rp_trajectory *t = make(&column, 1);
    rp_trajectory_column c = rp_trajectory_get_column(t, 0);

    (void)state;
    assert_int_equal(rp_trajectory_column_count(t), 1);
    assert_int_equal(c.dtype, RP_INT32);
    assert_int_equal(c.slice_count, 3);
    assert_int_equal(c.bytes, 8 * 3 * 4);
    assert_false(c.squeeze);
    assert_true(rp_shape_equal(&c.shape, &SHAPE(8, 3)));
    assert_memory_equal(rp_trajectory_slices(t, 0).slices, slices, sizeof slices);
    rp_trajectory_unref(t);
    rp_chunk_unref(a);
    rp_chunk_unref(b);
}

static rp_status make_within(const rp_slices *columns, size_t count, size_t limit,
                             rp_error *err)
{
    const rp_decoded_limit decoded = {limit, "the setting"};
    rp_trajectory *t = NULL;
    rp_status st =
        rp_trajectory_new_unheld(rp_allocator_default(), columns, count, &decoded, &t, err);

    if (st == RP_OK) {
        rp_trajectory_hold(t);
        rp_trajectory_unref(t);
    }
    return st;
}

static void decoded_bytes_are_limited_issue_20(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 4, 3); /* 12 bytes a row */
    rp_chunk_slice slices[] = {{chunk, 0, 0, 4}, {chunk, 0, 1, 3}, {chunk, 0, 0, 4}};
    rp_slices columns[] = {{slices, 3, false}, {slices, 1, false}};
    rp_error err = {0};

    (void)state;
    assert_ok_err(make_within(columns + 1, 1, 48, &err), &err); /* one slice */
    assert_fails(make_within(columns + 1, 1, 47, &err), RP_NO_RESOURCE, &err, "the setting");
    assert_ok_err(make_within(columns, 1, 132, &err), &err);
    assert_fails(make_within(columns, 1, 131, &err), RP_NO_RESOURCE, &err, "131 bytes");
    assert_ok_err(make_within(columns, 2, 180, &err), &err);
    assert_fails(make_within(columns, 2, 179, &err), RP_NO_RESOURCE, &err, "have 180");
    rp_chunk_unref(chunk);
}

static void rows_of_no_bytes_count_as_one_each(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 4, 0);
    rp_chunk_slice slice = {chunk, 0, 0, 4};
    rp_slices column = {&slice, 1, false};
    rp_error err = {0};

    (void)state;
    assert_ok_err(make_within(&column, 1, 4, &err), &err);
    assert_fails(make_within(&column, 1, 3, &err), RP_NO_RESOURCE, &err, "3 bytes");
    rp_chunk_unref(chunk);
}

static void a_squeezed_column_loses_its_row_dimension(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 4, 3);
    rp_chunk_slice slice = {chunk, 0, 3, 1};
    rp_slices column = {&slice, 1, true};
    rp_trajectory *t = make(&column, 1);

    (void)state;
    assert_true(
        rp_shape_equal(&(rp_shape[]){rp_trajectory_get_column(t, 0).shape}[0], &SHAPE(3)));
    assert_true(rp_trajectory_get_column(t, 0).squeeze);
    assert_int_equal(rp_trajectory_get_column(t, 0).bytes, 12);
    rp_trajectory_unref(t);
    rp_chunk_unref(chunk);
}

static void a_trajectory_of_one_slice_behaves_like_one_of_several(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 4, 3);
    rp_chunk_slice slice = {chunk, 0, 1, 3};
    rp_slices column = {&slice, 1, false};
    rp_trajectory *t = make(&column, 1);
    rp_trajectory_column c;

    (void)state;
    rp_chunk_unref(chunk); /* it holds one of its own */
    c = rp_trajectory_get_column(t, 0);
    assert_true(rp_shape_equal(&c.shape, &SHAPE(3, 3)));
    assert_int_equal(c.slice_count, 1);
    assert_false(c.squeeze);
    assert_memory_equal(rp_trajectory_slices(t, 0).slices, &slice, sizeof slice);
    assert_int_equal(rp_trajectory_chunk_count(t), 1);
    assert_int_equal(t->bytes, chunk->wire_bytes);
    rp_trajectory_unref(t);
}

static void squeezing_other_than_one_row_is_refused(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_SNAPPY, 4, 3);
    rp_chunk_slice slices[] = {{chunk, 0, 0, 1}, {chunk, 0, 1, 1}};

    (void)state;
    assert_refused(slices, 2, true, "column 0: a squeezed column must have one row, got 2");
    rp_chunk_unref(chunk);
}

static void chunks_are_listed_once_in_order_of_appearance(void **state)
{
    rp_chunk *c[3];
    rp_trajectory *t;

    (void)state;
    for (uint64_t i = 0; i < 3; i++) c[i] = rp_test_ints(i + 1, RP_CODEC_SNAPPY, 2, 1 + i);
    {
        rp_chunk_slice first[] = {{c[2], 0, 0, 1}, {c[2], 0, 1, 1}};
        rp_chunk_slice second[] = {{c[0], 0, 0, 2}}, third[] = {{c[2], 0, 0, 1}};
        rp_chunk_slice fourth[] = {{c[1], 0, 0, 1}};
        rp_slices columns[] = {
            {first, 2, false}, {second, 1, false}, {third, 1, false}, {fourth, 1, false}};
        t = make(columns, 4);
    }
    assert_int_equal(rp_trajectory_chunk_count(t), 3);
    assert_ptr_equal(rp_trajectory_get_chunk(t, 0), c[2]);
    assert_ptr_equal(rp_trajectory_get_chunk(t, 1), c[0]);
    assert_ptr_equal(rp_trajectory_get_chunk(t, 2), c[1]);
    assert_int_equal(t->bytes, c[0]->wire_bytes + c[1]->wire_bytes + c[2]->wire_bytes);
    rp_trajectory_unref(t);
    for (size_t i = 0; i < 3; i++) rp_chunk_unref(c[i]);
}

/* Any number of chunks around the sizes where the search changes its way. */
static void many_chunks_are_listed_once_each(void **state)
{
    enum { MOST = 700 };
    static rp_chunk *chunks[MOST];
    static rp_chunk_slice slices[4 * MOST];
    static const size_t counts[] = {1, 2, 15, 16, 17, 18, 63, 64, 65, 300, MOST};
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 91);
    for (uint64_t i = 0; i < MOST; i++) chunks[i] = rp_test_ints(i, RP_CODEC_NONE, 2, 1);
    for (size_t k = 0; k < COUNT_OF(counts); k++) {
        size_t seen_order[MOST], seen_count = 0, n = counts[k];
        bool seen[MOST] = {false};
        rp_slices column = {slices, 4 * n, false};
        rp_trajectory *t;
        for (size_t i = 0; i < 4 * n; i++) {
            size_t pick = rp_rng_below(&rng, n);
            slices[i] = (rp_chunk_slice){chunks[pick], 0, 0, 1};
            if (!seen[pick]) seen_order[seen_count++] = pick;
            seen[pick] = true;
        }
        t = make(&column, 1);
        assert_int_equal(rp_trajectory_chunk_count(t), seen_count);
        for (size_t i = 0; i < seen_count; i++)
            assert_ptr_equal(rp_trajectory_get_chunk(t, i), chunks[seen_order[i]]);
        rp_trajectory_unref(t);
    }
    for (size_t i = 0; i < MOST; i++) rp_chunk_unref(chunks[i]);
}

static void a_trajectory_holds_its_chunks_and_copies_its_slices(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_chunk *chunk = NULL;
    rp_trajectory *t = NULL;

    (void)state;
    assert_ok(rp_test_try_ints(&alloc, 1, RP_CODEC_NONE, 2, 1, &chunk));
    {
        rp_chunk_slice slices[] = {{chunk, 0, 0, 1}, {chunk, 0, 1, 1}};
        rp_slices column = {slices, 2, false};
        assert_ok(rp_trajectory_new(&alloc, &column, 1, &t, NULL));
        memset(slices, 0, sizeof slices);
    }
    assert_int_equal(chunk->refs.n, 2); /* one for all its slices */
    rp_chunk_unref(chunk);
    assert_int_equal(o.live, 2);
    assert_int_equal(rp_trajectory_slices(t, 0).slices[1].offset, 1);
    assert_ptr_equal(rp_trajectory_ref(t), t);
    rp_trajectory_unref(t);
    assert_int_equal(o.live, 2);
    rp_trajectory_unref(t);
    assert_int_equal(o.live, 0);
    rp_trajectory_unref(NULL);
}

static void slices_outside_their_chunk_are_refused(void **state)
{
    rp_chunk *chunk = rp_test_ints(6, RP_CODEC_SNAPPY, 4, 3);
    rp_chunk_slice beyond = {chunk, 0, 3, 2}, behind = {chunk, 0, 5, 1},
                   wraps = {chunk, 0, UINT32_MAX, 2};
    rp_chunk_slice column = {chunk, 1, 0, 1}, empty = {chunk, 0, 0, 0}, none = {NULL, 0, 0, 1};
    rp_chunk_slice last = {chunk, 0, 3, 1}, endless = {chunk, 0, 1, UINT32_MAX};
    rp_slices ok = {&last, 1, false};

    (void)state;
    assert_refused(&beyond, 1, false,
                   "column 0, slice 0: rows [3, 3 + 2) of chunk 6, which has 4");
    assert_refused(&behind, 1, false, "of chunk 6");
    assert_refused(&wraps, 1, false, "of chunk 6");
    assert_refused(&endless, 1, false, "of chunk 6");
    assert_refused(&column, 1, false, "column 1 of chunk 6, which has 1");
    assert_refused(&empty, 1, false, "length must be >= 1, got 0");
    assert_refused(&none, 1, false, "no chunk");
    rp_trajectory_unref(make(&ok, 1));
    rp_chunk_unref(chunk);
}

static void a_later_bad_slice_is_named(void **state)
{
    rp_chunk *chunk = rp_test_ints(6, RP_CODEC_SNAPPY, 4, 3);
    rp_chunk_slice slices[] = {{chunk, 0, 0, 1}, {chunk, 0, 1, 1}, {chunk, 0, 4, 1}};
    rp_chunk_slice with_none[] = {{chunk, 0, 0, 1}, {NULL, 0, 1, 1}};

    (void)state;
    assert_refused(slices, 3, false, "column 0, slice 2");
    assert_refused(with_none, 2, false, "column 0, slice 1: no chunk");
    assert_int_equal(chunk->refs.n, 1);
    rp_chunk_unref(chunk);
}

static void columns_of_mixed_kind_are_refused(void **state)
{
    rp_spec floats = {NULL, RP_FLOAT32, SHAPE(3)}, squares = {NULL, RP_INT32, SHAPE(3, 1)};
    uint8_t zeroes[64] = {0};
    rp_chunk *ints = rp_test_ints(1, RP_CODEC_SNAPPY, 2, 3);
    rp_chunk *wide = rp_test_ints(2, RP_CODEC_SNAPPY, 2, 4);
    rp_chunk *other = rp_test_chunk(3, NULL, &floats, 2, zeroes);
    rp_chunk *square = rp_test_chunk(4, NULL, &squares, 2, zeroes);
    rp_chunk_slice dtypes[] = {{ints, 0, 0, 1}, {other, 0, 0, 1}};
    rp_chunk_slice shapes[] = {{ints, 0, 0, 1}, {ints, 0, 1, 1}, {wide, 0, 0, 1}};
    rp_chunk_slice ranks[] = {{ints, 0, 0, 1}, {square, 0, 0, 1}};

    (void)state;
    assert_refused(dtypes, 2, false,
                   "slice 1: got dtype float but the column began with int32");
    assert_refused(shapes, 3, false,
                   "slice 2: got shape [?,4] but the column began with [?,3]");
    assert_refused(ranks, 2, false,
                   "slice 1: got shape [?,3,1] but the column began with [?,3]");
    rp_chunk_unref(ints);
    rp_chunk_unref(wide);
    rp_chunk_unref(other);
    rp_chunk_unref(square);
}

static void chunks_of_different_length_mix(void **state)
{
    rp_chunk *a = rp_test_ints(1, RP_CODEC_SNAPPY, 2, 3);
    rp_chunk *b = rp_test_ints(2, RP_CODEC_ZSTD, 9, 3);
    rp_chunk_slice slices[] = {{a, 0, 0, 2}, {b, 0, 4, 5}};
    rp_slices column = {slices, 2, false};
    rp_trajectory *t = make(&column, 1);

    (void)state;
    assert_int_equal(rp_trajectory_get_column(t, 0).shape.dims[0], 7);
    rp_trajectory_unref(t);
    rp_chunk_unref(a);
    rp_chunk_unref(b);
}

static void the_number_of_columns_has_bounds(void **state)
{
    rp_slices *columns = calloc(RP_MAX_COLUMNS + 1, sizeof *columns);
    rp_chunk *chunk = rp_test_ints(6, RP_CODEC_SNAPPY, 4, 3);
    rp_chunk_slice slice = {chunk, 0, 0, 1};
    rp_trajectory *t = NULL;
    rp_error err;

    (void)state;
    assert_non_null(columns);
    for (size_t i = 0; i <= RP_MAX_COLUMNS; i++) columns[i] = (rp_slices){&slice, 1, false};
    assert_fails(rp_trajectory_new(rp_allocator_default(), columns, 0, &t, &err), RP_INVALID,
                 &err, "[1, 4096], got 0");
    assert_fails(
        rp_trajectory_new(rp_allocator_default(), columns, RP_MAX_COLUMNS + 1, &t, &err),
        RP_INVALID, &err, "got 4097");
    rp_trajectory_unref(make(columns, RP_MAX_COLUMNS));
    columns[2].slice_count = 0;
    assert_fails(rp_trajectory_new(rp_allocator_default(), columns, 3, &t, &err), RP_INVALID,
                 &err, "column 2: no slices");
    rp_chunk_unref(chunk);
    free(columns);
}

static void the_number_of_slices_has_a_bound(void **state)
{
    rp_chunk_slice *slices = calloc(RP_MAX_SLICES, sizeof *slices);
    rp_chunk *chunk = rp_test_ints(6, RP_CODEC_SNAPPY, 4, 3);
    rp_slices columns[] = {{slices, RP_MAX_SLICES - 1, false}, {slices, 1, false}};
    rp_trajectory *t = NULL;
    rp_error err;

    (void)state;
    assert_non_null(slices);
    for (size_t i = 0; i < RP_MAX_SLICES; i++) slices[i] = (rp_chunk_slice){chunk, 0, 0, 1};
    rp_trajectory_unref(make(columns, 2));
    columns[1].slice_count = 2;
    assert_fails(rp_trajectory_new(rp_allocator_default(), columns, 2, &t, &err), RP_INVALID,
                 &err, "column 1: more than 1048576 slices");
    columns[1].slice_count = SIZE_MAX;
    assert_fails(rp_trajectory_new(rp_allocator_default(), columns, 2, &t, &err), RP_INVALID,
                 &err, "column 1: more than");
    rp_chunk_unref(chunk);
    free(slices);
}

static rp_signature *signature_of(const rp_spec *columns, size_t count)
{
    rp_signature *s = NULL;
    assert_ok(rp_signature_flat(rp_allocator_default(), columns, count, &s, NULL));
    return s;
}

/* The trajectory of rows [0, 2) of a column of doubles, shape [2]. */
static rp_trajectory *doubles(void)
{
    rp_spec spec = {NULL, RP_FLOAT64, SCALAR};
    double rows[2] = {1, 2};
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 2, rows);
    rp_chunk_slice slice = {chunk, 0, 0, 2};
    rp_slices column = {&slice, 1, false};
    rp_trajectory *t = make(&column, 1);

    rp_chunk_unref(chunk);
    return t;
}

static void a_fitting_trajectory_passes(void **state)
{
    const rp_spec fitting[] = {{"obs", RP_FLOAT64, SHAPE(-1)},
                               {"obs", RP_FLOAT64, SHAPE(2)},
                               {"obs", RP_FLOAT64, {.rank = -1}}};
    rp_trajectory *t = doubles();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fitting); i++) {
        rp_signature *s = signature_of(&fitting[i], 1);
        rp_error err;
        assert_ok_err(rp_trajectory_check(t, s, &err), &err);
        rp_signature_unref(s);
    }
    rp_trajectory_unref(t);
}

static void a_signature_mismatch_names_the_difference(void **state)
{
    const struct {
        rp_spec spec;
        const char *text;
    } cases[] = {
        {{"obs", RP_INT64, SHAPE(-1)}, "column 0 'obs': got dtype float64 but expected int64"},
        {{"obs", RP_FLOAT64, SHAPE(3)}, "column 0 'obs': got shape [2] but expected [3]"},
        {{"obs", RP_FLOAT64, SHAPE(-1, -1)},
         "column 0 'obs': got shape [2] but expected [?,?]"},
    };
    rp_trajectory *t = doubles();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_signature *s = signature_of(&cases[i].spec, 1);
        rp_error err;
        assert_fails(rp_trajectory_check(t, s, &err), RP_INVALID, &err, cases[i].text);
        assert_string_equal(err.text, cases[i].text);
        rp_signature_unref(s);
    }
    rp_trajectory_unref(t);
}

static void a_run_of_steps_fits_the_shape_of_a_step(void **state)
{
    const rp_spec step = {"obs", RP_FLOAT64, SCALAR}, other = {"obs", RP_FLOAT32, SCALAR};
    rp_signature *fits = signature_of(&step, 1), *differs = signature_of(&other, 1);
    rp_trajectory *t = doubles();
    rp_error err;

    (void)state;
    assert_int_equal(rp_trajectory_check(t, fits, &err), RP_OK);
    assert_fails(rp_trajectory_check(t, differs, &err), RP_INVALID, &err,
                 "got dtype float64 but expected float32");
    rp_signature_unref(fits);
    rp_signature_unref(differs);
    rp_trajectory_unref(t);
}

static void another_number_of_columns_is_refused(void **state)
{
    const rp_spec two[] = {{"a", RP_FLOAT64, SHAPE(-1)}, {"b", RP_FLOAT64, SHAPE(-1)}};
    rp_signature *s = signature_of(two, 2);
    rp_trajectory *t = doubles();
    rp_error err;

    (void)state;
    assert_fails(rp_trajectory_check(t, s, &err), RP_INVALID, &err,
                 "the trajectory has 1 column but the signature has 2");
    rp_signature_unref(s);
    rp_trajectory_unref(t);
}

static rp_status make_large(const rp_allocator *alloc)
{
    enum { CHUNKS = 20 };
    rp_chunk *chunks[CHUNKS];
    rp_chunk_slice slices[CHUNKS];
    rp_slices column = {slices, CHUNKS, false};
    rp_trajectory *t = NULL;
    rp_error err;
    rp_status st;

    for (uint64_t i = 0; i < CHUNKS; i++) {
        chunks[i] = rp_test_ints(i, RP_CODEC_NONE, 1, 1);
        slices[i] = (rp_chunk_slice){chunks[i], 0, 0, 1};
    }
    st = rp_trajectory_new(alloc, &column, 1, &t, &err);
    rp_trajectory_unref(t);
    for (uint64_t i = 0; i < CHUNKS; i++) {
        assert_int_equal(chunks[i]->refs.n, 1);
        rp_chunk_unref(chunks[i]);
    }
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(make_large);
}

RP_TESTS(trajectory)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_has_the_rows_of_its_slices),
        cmocka_unit_test(decoded_bytes_are_limited_issue_20),
        cmocka_unit_test(rows_of_no_bytes_count_as_one_each),
        cmocka_unit_test(a_squeezed_column_loses_its_row_dimension),
        cmocka_unit_test(a_trajectory_of_one_slice_behaves_like_one_of_several),
        cmocka_unit_test(squeezing_other_than_one_row_is_refused),
        cmocka_unit_test(chunks_are_listed_once_in_order_of_appearance),
        cmocka_unit_test(many_chunks_are_listed_once_each),
        cmocka_unit_test(a_trajectory_holds_its_chunks_and_copies_its_slices),
        cmocka_unit_test(slices_outside_their_chunk_are_refused),
        cmocka_unit_test(a_later_bad_slice_is_named),
        cmocka_unit_test(columns_of_mixed_kind_are_refused),
        cmocka_unit_test(chunks_of_different_length_mix),
        cmocka_unit_test(the_number_of_columns_has_bounds),
        cmocka_unit_test(the_number_of_slices_has_a_bound),
        cmocka_unit_test(a_fitting_trajectory_passes),
        cmocka_unit_test(a_signature_mismatch_names_the_difference),
        cmocka_unit_test(a_run_of_steps_fits_the_shape_of_a_step),
        cmocka_unit_test(another_number_of_columns_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("trajectory", tests, NULL, NULL);
}
