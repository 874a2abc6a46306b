/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/builder.h"

#include "support/chunks.h"

static const rp_chunk_origin origin = {
    .key = 11, .episode = 3, .first_step = 4, .last_step = 9};

static rp_chunk_builder *make(const rp_spec *specs, size_t count,
                              const rp_chunk_options *options)
{
    rp_chunk_builder *builder = NULL;
    rp_error err = {0};
    assert_ok_err(
        rp_chunk_builder_new(rp_allocator_default(), specs, count, options, &builder, &err),
        &err);
    return builder;
}

/* Appends `value` to a builder of one int32 scalar column. */
static void append_int(rp_chunk_builder *builder, int32_t value)
{
    rp_tensor row = {RP_INT32, SCALAR, &value};
    assert_ok(rp_chunk_builder_append(builder, &row, NULL));
}

/* Decodes a whole column and compares it. */
static void assert_column(const rp_chunk *chunk, size_t column, const void *expected,
                          size_t size)
{
    size_t rows = (size_t)rp_chunk_get_column(chunk, column)->shape.dims[0];
    uint8_t *back = malloc(size + 1);
    rp_decoder *decoder = NULL;
    rp_error err = {0};

    assert_non_null(back);
    assert_ok(rp_decoder_new(rp_allocator_default(), 1 << 20, &decoder));
    assert_ok_err(
        rp_decoder_rows(decoder, chunk, (rp_row_range){column, 0, rows}, back, size, &err),
        &err);
    assert_memory_equal(back, expected, size);
    rp_decoder_free(decoder);
    free(back);
}

static const rp_spec int_column = {"x", RP_INT32, {.rank = 0}};

static void rows_and_bytes_are_counted(void **state)
{
    rp_chunk_builder *b = make(&int_column, 1, NULL);

    (void)state;
    assert_int_equal(rp_chunk_builder_rows(b), 0);
    assert_int_equal(rp_chunk_builder_bytes(b), 0);
    append_int(b, 5);
    append_int(b, 6);
    assert_int_equal(rp_chunk_builder_rows(b), 2);
    assert_int_equal(rp_chunk_builder_bytes(b), 8);
    rp_chunk_builder_clear(b);
    assert_int_equal(rp_chunk_builder_rows(b), 0);
    assert_int_equal(rp_chunk_builder_bytes(b), 0);
    rp_chunk_builder_free(b);
    rp_chunk_builder_free(NULL);
}

static void every_dtype_codec_and_delta_round_trips(void **state)
{
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 61);
    for (size_t d = 0; d < COUNT_OF(rp_test_dtypes); d++)
        for (int codec = 0; codec < 4; codec++)
            for (int delta = 0; delta < 2; delta++) {
                rp_chunk_options options = {.codec = (rp_codec)codec, .delta = delta != 0};
                rp_spec spec = {"x", rp_test_dtypes[d], SHAPE(3, 5)};
                size_t size = 6 * 15 * rp_dtype_size(spec.dtype);
                uint8_t data[6 * 15 * 16];
                rp_chunk *chunk;
                rp_test_fill(&rng, data, size);
                chunk = rp_test_chunk(1, &options, &spec, 6, data);
                assert_int_equal(rp_chunk_get_column(chunk, 0)->raw_bytes, size);
                assert_true(
                    rp_shape_equal(&rp_chunk_get_column(chunk, 0)->shape, &SHAPE(6, 3, 5)));
                assert_column(chunk, 0, data, size);
                rp_chunk_unref(chunk);
            }
}

static void scalars_are_never_changed_by_delta(void **state)
{
    rp_chunk_options options = {.codec = RP_CODEC_NONE, .delta = true};
    int32_t rows[] = {5, 7, 9};
    rp_chunk *chunk = rp_test_chunk(1, &options, &int_column, 3, rows);
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);

    (void)state;
    assert_non_null(memmem(wire, size, rows, sizeof rows));
    assert_column(chunk, 0, rows, sizeof rows);
    rp_chunk_unref(chunk);
}

static void delta_stores_differences(void **state)
{
    rp_chunk_options options = {.codec = RP_CODEC_NONE, .delta = true};
    rp_spec spec = {NULL, RP_INT32, SHAPE(1)};
    int32_t rows[] = {500, 501, 503}, differences[] = {500, 1, 2};
    rp_chunk *chunk = rp_test_chunk(1, &options, &spec, 3, rows);
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);

    (void)state;
    assert_non_null(memmem(wire, size, differences, sizeof differences));
    assert_column(chunk, 0, rows, sizeof rows);
    rp_chunk_unref(chunk);
}

static void strings_round_trip(void **state)
{
    rp_spec spec = {"s", RP_STRING, SHAPE(2)};
    char longest[300];
    rp_string rows[] = {{"a", 1}, {"", 0}, {"b\0c", 3}, {longest, sizeof longest}}, back[4];
    rp_decoder *decoder = NULL;
    rp_chunk *chunk;

    (void)state;
    memset(longest, 'z', sizeof longest);
    chunk = rp_test_chunk(1, NULL, &spec, 2, rows);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_decoder_strings(decoder, chunk, (rp_row_range){0, 0, 2}, back, 4, NULL));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(back[i].size, rows[i].size);
        if (rows[i].size > 0) assert_memory_equal(back[i].data, rows[i].data, rows[i].size);
    }
    rp_decoder_free(decoder);
    rp_chunk_unref(chunk);
}

static void rows_of_no_elements_round_trip(void **state)
{
    static const rp_dtype dtypes[] = {RP_FLOAT32, RP_STRING, RP_INT64};

    (void)state;
    for (size_t d = 0; d < COUNT_OF(dtypes); d++)
        for (int codec = 0; codec < 4; codec++) {
            rp_chunk_options options = {.codec = (rp_codec)codec, .delta = true};
            rp_spec spec = {"e", dtypes[d], SHAPE(2, 0)};
            rp_chunk_builder *b = make(&spec, 1, &options);
            rp_tensor row = {spec.dtype, spec.shape, NULL};
            rp_chunk *chunk = NULL;
            for (int i = 0; i < 3; i++) assert_ok(rp_chunk_builder_append(b, &row, NULL));
            assert_ok(rp_chunk_builder_finish(b, &origin, &chunk, NULL));
            assert_true(rp_shape_equal(&rp_chunk_get_column(chunk, 0)->shape, &SHAPE(3, 2, 0)));
            if (spec.dtype != RP_STRING) assert_column(chunk, 0, "", 0);
            rp_chunk_unref(chunk);
            rp_chunk_builder_free(b);
        }
}

static void an_empty_tensor_is_a_single_zero_byte(void **state)
{
    rp_spec spec = {NULL, RP_UINT8, SHAPE(0)};
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 2, "");
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);

    (void)state;
    assert_int_equal(rp_chunk_get_column(chunk, 0)->stored_bytes, 1);
    assert_non_null(memmem(wire, size, "\x22\x01\x00", 3));
    rp_chunk_unref(chunk);
}

static void a_row_of_another_dtype_is_refused(void **state)
{
    rp_chunk_builder *b = make(&int_column, 1, NULL);
    double value = 1;
    rp_tensor row = {RP_FLOAT64, SCALAR, &value};
    rp_error err;

    (void)state;
    assert_fails(rp_chunk_builder_append(b, &row, &err), RP_INVALID, &err,
                 "column 0 'x': got dtype float64 but expected int32");
    assert_int_equal(rp_chunk_builder_rows(b), 0);
    rp_chunk_builder_free(b);
}

static void a_row_of_another_shape_is_refused(void **state)
{
    rp_spec spec = {NULL, RP_INT32, SHAPE(2)};
    rp_chunk_builder *b = make(&spec, 1, NULL);
    int32_t values[3] = {0};
    rp_tensor row = {RP_INT32, SHAPE(3), values};
    rp_error err;

    (void)state;
    assert_fails(rp_chunk_builder_append(b, &row, &err), RP_INVALID, &err,
                 "column 0: got shape [3] but expected [2]");
    row.shape = SHAPE(2, 1);
    assert_fails(rp_chunk_builder_append(b, &row, &err), RP_INVALID, &err,
                 "got shape [2,1] but expected [2]");
    rp_chunk_builder_free(b);
}

static void a_bad_last_column_leaves_the_first_untouched(void **state)
{
    rp_spec specs[] = {{"a", RP_INT32, SCALAR}, {"b", RP_INT32, SCALAR}};
    rp_chunk_builder *b = make(specs, 2, NULL);
    int32_t value = 1;
    rp_tensor row[] = {{RP_INT32, SCALAR, &value}, {RP_INT32, SCALAR, NULL}};
    rp_error err;

    (void)state;
    assert_fails(rp_chunk_builder_append(b, row, &err), RP_INVALID, &err, "column 1: no data");
    assert_int_equal(rp_chunk_builder_rows(b), 0);
    assert_int_equal(rp_chunk_builder_bytes(b), 0);
    rp_chunk_builder_free(b);
}

static void reserving_appends_nothing_until_committed(void **state)
{
    rp_chunk_builder *b = make(&int_column, 1, NULL);
    int32_t value = 8, back;
    rp_tensor row = {RP_INT32, SCALAR, &value};

    (void)state;
    assert_ok(rp_chunk_builder_reserve(b, &row, NULL));
    assert_ok(rp_chunk_builder_reserve(b, &row, NULL));
    assert_int_equal(rp_chunk_builder_rows(b), 0);
    assert_int_equal(rp_chunk_builder_bytes(b), 0);
    rp_chunk_builder_commit(b, &row);
    assert_int_equal(rp_chunk_builder_rows(b), 1);
    assert_ok(rp_chunk_builder_rows_copy(b, 0, 0, 1, &back, sizeof back, NULL));
    assert_int_equal(back, 8);
    rp_chunk_builder_free(b);
}

static void finishing_without_rows_is_refused(void **state)
{
    rp_chunk_builder *b = make(&int_column, 1, NULL);
    rp_chunk *chunk = NULL;
    rp_error err;

    (void)state;
    assert_fails(rp_chunk_builder_finish(b, &origin, &chunk, &err), RP_PRECONDITION, &err,
                 "no rows");
    rp_chunk_builder_free(b);
}

static void an_impossible_origin_is_refused_and_the_rows_stay(void **state)
{
    rp_chunk_builder *b = make(&int_column, 1, NULL);
    rp_chunk_origin backwards = {.first_step = 5, .last_step = 4};
    rp_chunk_origin negative = {.first_step = -1, .last_step = 4};
    rp_chunk *chunk = NULL;
    rp_error err;

    (void)state;
    append_int(b, 1);
    assert_fails(rp_chunk_builder_finish(b, &backwards, &chunk, &err), RP_INVALID, &err,
                 "steps must be");
    assert_fails(rp_chunk_builder_finish(b, &negative, &chunk, &err), RP_INVALID, &err,
                 "got -1 and 4");
    assert_int_equal(rp_chunk_builder_rows(b), 1);
    rp_chunk_builder_free(b);
}

static void the_origin_is_kept(void **state)
{
    rp_chunk_origin sparse = {.key = UINT64_MAX,
                              .episode = 1,
                              .first_step = 0,
                              .last_step = INT32_MAX,
                              .sparse = true};
    rp_chunk_builder *b = make(&int_column, 1, NULL);
    rp_chunk *built = NULL, *parsed = NULL;
    const rp_chunk_origin *back;
    const uint8_t *wire;
    size_t size;

    (void)state;
    append_int(b, 1);
    assert_ok(rp_chunk_builder_finish(b, &sparse, &built, NULL));
    wire = rp_chunk_wire(built, &size);
    assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &parsed, NULL));
    back = rp_chunk_get_origin(parsed);
    assert_true(back->key == UINT64_MAX && back->episode == 1 && back->first_step == 0);
    assert_true(back->last_step == INT32_MAX && back->sparse);
    rp_chunk_unref(built);
    rp_chunk_unref(parsed);
    rp_chunk_builder_free(b);
}

static void a_builder_starts_afresh_after_finishing(void **state)
{
    rp_chunk_builder *b = make(&int_column, 1, NULL);

    (void)state;
    for (int32_t round = 0; round < 5; round++) {
        int32_t expected[3];
        rp_chunk *chunk = NULL;
        for (int32_t i = 0; i < 3; i++) append_int(b, expected[i] = 100 * round + i);
        assert_ok(rp_chunk_builder_finish(b, &origin, &chunk, NULL));
        assert_int_equal(rp_chunk_builder_rows(b), 0);
        assert_column(chunk, 0, expected, sizeof expected);
        rp_chunk_unref(chunk);
    }
    rp_chunk_builder_free(b);
}

static void open_rows_can_be_read(void **state)
{
    rp_spec spec = {NULL, RP_INT16, SHAPE(2)};
    rp_chunk_options options = {.delta = true};
    rp_chunk_builder *b = make(&spec, 1, &options);
    int16_t back[4];

    (void)state;
    for (int16_t i = 0; i < 4; i++) {
        int16_t values[] = {i, (int16_t)(10 * i)};
        rp_tensor row = {RP_INT16, SHAPE(2), values};
        assert_ok(rp_chunk_builder_append(b, &row, NULL));
    }
    assert_ok(rp_chunk_builder_rows_copy(b, 0, 1, 2, back, sizeof back, NULL));
    assert_memory_equal(back, ((int16_t[]){1, 10, 2, 20}), sizeof back);
    assert_ok(rp_chunk_builder_rows_copy(b, 0, 4, 0, NULL, 0, NULL));
    rp_chunk_builder_free(b);
}

static void open_rows_out_of_range_are_refused(void **state)
{
    rp_spec specs[] = {{NULL, RP_INT32, SCALAR}, {NULL, RP_STRING, SCALAR}};
    rp_chunk_builder *b = make(specs, 2, NULL);
    int32_t value = 3;
    rp_string text = {"t", 1};
    rp_tensor row[] = {{RP_INT32, SCALAR, &value}, {RP_STRING, SCALAR, &text}};
    rp_error err;

    (void)state;
    assert_ok(rp_chunk_builder_append(b, row, NULL));
    assert_fails(rp_chunk_builder_rows_copy(b, 0, 1, 1, &value, 4, &err), RP_INVALID, &err,
                 "rows [1, 1 + 1) of 1");
    assert_fails(rp_chunk_builder_rows_copy(b, 0, SIZE_MAX, 2, &value, 4, &err), RP_INVALID,
                 &err, "of 1");
    assert_fails(rp_chunk_builder_rows_copy(b, 0, 0, 1, &value, 3, &err), RP_INVALID, &err,
                 "got room for 3");
    assert_fails(rp_chunk_builder_rows_copy(b, 1, 0, 1, &value, 4, &err), RP_INVALID, &err,
                 "strings");
    assert_fails(rp_chunk_builder_rows_copy(b, 2, 0, 1, &value, 4, &err), RP_INVALID, &err,
                 "column 2");
    rp_chunk_builder_free(b);
}

static void assert_new_fails(const rp_spec *specs, size_t count,
                             const rp_chunk_options *options, const char *part)
{
    rp_chunk_builder *builder = NULL;
    rp_error err = {0};
    assert_fails(
        rp_chunk_builder_new(rp_allocator_default(), specs, count, options, &builder, &err),
        RP_INVALID, &err, part);
    assert_null(builder);
}

static void impossible_columns_are_refused(void **state)
{
    rp_spec dtype = {NULL, (rp_dtype)20, SCALAR}, any = {NULL, RP_INT32, SHAPE(-1)};
    rp_spec deep = {NULL, RP_INT32, {.rank = RP_MAX_RANK}},
            huge = {NULL, RP_INT8, SHAPE(1 << 30)};
    rp_spec overflow = {NULL, RP_INT64, SHAPE((int64_t)1 << 61)};

    (void)state;
    for (int i = 0; i < RP_MAX_RANK; i++) deep.shape.dims[i] = 1;
    assert_new_fails(&dtype, 1, NULL, "column 0: type code 20 is none of rp_dtype");
    assert_new_fails(&any, 1, NULL, "must be known");
    assert_new_fails(&deep, 1, NULL,
                     "a row of column 0 has 8 dimensions; at most 7 are supported");
    assert_new_fails(&huge, 1, NULL, "larger than");
    assert_new_fails(&overflow, 1, NULL, "larger than");
    assert_new_fails(&int_column, 0, NULL, "[1, 4096], got 0");
    assert_new_fails(&int_column, RP_MAX_COLUMNS + 1, NULL, "got 4097");
    deep.shape.rank--;
    rp_chunk_builder_free(make(&deep, 1, NULL));
}

static void impossible_options_are_refused(void **state)
{
    rp_chunk_options codec = {.codec = (rp_codec)7},
                     level = {.codec = RP_CODEC_ZSTD, .level = 99};

    (void)state;
    assert_new_fails(&int_column, 1, &codec, "unknown codec 7");
    assert_new_fails(&int_column, 1, &level, "99 is not a level of zstd");
}

static void names_are_copied(void **state)
{
    char name[] = "obs";
    rp_spec specs[] = {{NULL, RP_INT32, SCALAR}, {name, RP_INT32, SCALAR}};
    rp_chunk_builder *b = make(specs, 2, NULL);
    int32_t value = 0;
    rp_tensor row[] = {{RP_INT32, SCALAR, &value}, {RP_INT8, SCALAR, &value}};
    rp_error err;

    (void)state;
    memset(name, '!', 3);
    assert_fails(rp_chunk_builder_append(b, row, &err), RP_INVALID, &err, "column 1 'obs'");
    rp_chunk_builder_free(b);
}

/* Two rows, then a chunk: all that a builder does. */
static rp_status build(const rp_allocator *alloc, rp_codec codec)
{
    rp_spec specs[] = {{"n", RP_INT32, SHAPE(50)}, {"s", RP_STRING, SCALAR}};
    rp_chunk_options options = {.codec = codec, .delta = true};
    rp_chunk_builder *b = NULL;
    rp_chunk *chunk = NULL;
    int32_t numbers[50] = {7}, back[50];
    rp_string text = {"hello", 5};
    rp_tensor row[] = {{RP_INT32, SHAPE(50), numbers}, {RP_STRING, SCALAR, &text}};
    rp_error err;
    rp_status st = rp_chunk_builder_new(alloc, specs, 2, &options, &b, &err);

    for (size_t i = 0; st == RP_OK && i < 2; i++) {
        st = rp_chunk_builder_append(b, row, &err);
        assert_int_equal(rp_chunk_builder_rows(b), i + (st == RP_OK));
    }
    if (st == RP_OK) {
        st = rp_chunk_builder_finish(b, &origin, &chunk, &err);
        assert_int_equal(rp_chunk_builder_rows(b), st == RP_OK ? 0 : 2);
        if (st != RP_OK) { /* the rows are still there, and plain */
            assert_ok(rp_chunk_builder_rows_copy(b, 0, 1, 1, back, sizeof back, NULL));
            assert_memory_equal(back, numbers, sizeof back);
        }
    }
    rp_chunk_unref(chunk);
    rp_chunk_builder_free(b);
    return st;
}

static rp_status build_snappy(const rp_allocator *alloc)
{
    return build(alloc, RP_CODEC_SNAPPY);
}

static rp_status build_stored(const rp_allocator *alloc)
{
    return build(alloc, RP_CODEC_NONE);
}

static rp_status build_zstd(const rp_allocator *alloc)
{
    return build(alloc, RP_CODEC_ZSTD);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(build_snappy);
    rp_test_survives_oom(build_stored);
    rp_test_survives_oom(build_zstd);
}

static void a_failed_finish_can_be_repeated(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_spec spec = {NULL, RP_INT32, SHAPE(2)};
    rp_chunk_options options = {.codec = RP_CODEC_ZSTD, .delta = true};
    int32_t values[] = {5, 6, 7, 9};
    rp_chunk_builder *b = NULL;
    rp_chunk *chunk = NULL;

    (void)state;
    assert_ok(rp_chunk_builder_new(&alloc, &spec, 1, &options, &b, NULL));
    for (int i = 0; i < 2; i++) {
        rp_tensor row = {RP_INT32, SHAPE(2), values + 2 * i};
        assert_ok(rp_chunk_builder_append(b, &row, NULL));
    }
    for (size_t room = 0;; room++) {
        o.left = room;
        if (rp_chunk_builder_finish(b, &origin, &chunk, NULL) == RP_OK) break;
    }
    assert_column(chunk, 0, values, sizeof values);
    rp_chunk_unref(chunk);
    rp_chunk_builder_free(b);
    assert_int_equal(o.live, 0);
}

static void a_builder_in_use_allocates_only_chunks(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_chunk_builder *b = NULL;

    (void)state;
    assert_ok(rp_chunk_builder_new(&alloc, &int_column, 1, NULL, &b, NULL));
    for (int round = 0; round < 4; round++) {
        rp_chunk *chunk = NULL;
        size_t before = o.total;
        for (int32_t i = 0; i < 100; i++) append_int(b, i);
        assert_ok(rp_chunk_builder_finish(b, &origin, &chunk, NULL));
        if (round > 0) assert_int_equal(o.total - before, 1);
        rp_chunk_unref(chunk);
    }
    rp_chunk_builder_free(b);
}

/* Random columns and rows; what was appended must come back from the parsed message. */
static void random_chunks_round_trip(void **state)
{
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 62);
    for (int round = 0; round < 300; round++) {
        rp_spec specs[4];
        rp_chunk_options options = {.codec = (rp_codec)rp_rng_below(&rng, 4),
                                    .delta = rp_rng_below(&rng, 2) == 0};
        size_t columns = 1 + rp_rng_below(&rng, 4), rows = 1 + rp_rng_below(&rng, 9), size;
        uint8_t *data[4];
        rp_chunk_builder *b;
        rp_chunk *built = NULL, *parsed = NULL;
        size_t row_bytes[4];
        const uint8_t *wire;
        for (size_t c = 0; c < columns; c++) {
            specs[c] = (rp_spec){NULL, rp_test_dtypes[rp_rng_below(&rng, 24)], SHAPE(1, 1, 1)};
            specs[c].shape.rank = (int32_t)rp_rng_below(&rng, 4);
            for (int32_t i = 0; i < specs[c].shape.rank; i++)
                specs[c].shape.dims[i] = (int64_t)rp_rng_below(&rng, 7);
            assert_ok(rp_shape_elements(&specs[c].shape, &row_bytes[c]));
            row_bytes[c] *= rp_dtype_size(specs[c].dtype);
            data[c] = malloc(rows * row_bytes[c] + 1);
            assert_non_null(data[c]);
            rp_test_fill(&rng, data[c], rows * row_bytes[c]);
        }
        b = make(specs, columns, &options);
        for (size_t r = 0; r < rows; r++) {
            rp_tensor row[4];
            for (size_t c = 0; c < columns; c++)
                row[c] =
                    (rp_tensor){specs[c].dtype, specs[c].shape, data[c] + r * row_bytes[c]};
            assert_ok(rp_chunk_builder_append(b, row, NULL));
        }
        assert_ok(rp_chunk_builder_finish(b, &origin, &built, NULL));
        wire = rp_chunk_wire(built, &size);
        assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &parsed, NULL));
        for (size_t c = 0; c < columns; c++) {
            assert_column(parsed, c, data[c], rows * row_bytes[c]);
            free(data[c]);
        }
        rp_chunk_unref(parsed);
        rp_chunk_unref(built);
        rp_chunk_builder_free(b);
    }
}

RP_TESTS(builder)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_bytes_are_counted),
        cmocka_unit_test(every_dtype_codec_and_delta_round_trips),
        cmocka_unit_test(scalars_are_never_changed_by_delta),
        cmocka_unit_test(delta_stores_differences),
        cmocka_unit_test(strings_round_trip),
        cmocka_unit_test(rows_of_no_elements_round_trip),
        cmocka_unit_test(an_empty_tensor_is_a_single_zero_byte),
        cmocka_unit_test(a_row_of_another_dtype_is_refused),
        cmocka_unit_test(a_row_of_another_shape_is_refused),
        cmocka_unit_test(a_bad_last_column_leaves_the_first_untouched),
        cmocka_unit_test(reserving_appends_nothing_until_committed),
        cmocka_unit_test(finishing_without_rows_is_refused),
        cmocka_unit_test(an_impossible_origin_is_refused_and_the_rows_stay),
        cmocka_unit_test(the_origin_is_kept),
        cmocka_unit_test(a_builder_starts_afresh_after_finishing),
        cmocka_unit_test(open_rows_can_be_read),
        cmocka_unit_test(open_rows_out_of_range_are_refused),
        cmocka_unit_test(impossible_columns_are_refused),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(names_are_copied),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_failed_finish_can_be_repeated),
        cmocka_unit_test(a_builder_in_use_allocates_only_chunks),
        cmocka_unit_test(random_chunks_round_trip),
    };
    return cmocka_run_group_tests_name("builder", tests, NULL, NULL);
}
