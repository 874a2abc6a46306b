/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/row_cut.h"

#include <stdio.h>

#include "chunk/chunk.h"
#include "support/chunks.h"

enum { MAX_ROWS = 40, MAX_COLUMNS = 3, MAX_ROW_BYTES = 256, STRING_BYTES = 8 };

static rp_decoder *new_decoder(void)
{
    rp_decoder *decoder = NULL;

    assert_ok(rp_decoder_new(rp_allocator_default(), 1 << 20, &decoder));
    return decoder;
}

/* A copy of the chunk, as somebody who receives it has it. */
static rp_chunk *received(const rp_chunk *chunk)
{
    rp_chunk *copy = NULL;
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);

    assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &copy, NULL));
    return copy;
}

/* A chunk of 20 rows that every codec makes smaller. Returns owned. */
static rp_chunk *repetitive(rp_codec codec)
{
    rp_chunk_options options = {.codec = codec};
    rp_spec spec = {"x", RP_INT32, SHAPE(40)};
    int32_t data[20 * 40];

    for (int i = 0; i < 20 * 40; i++) data[i] = i / 40 + i % 7;
    return rp_test_chunk(3, &options, &spec, 20, data);
}

/* Rows of a column, decoded; of strings, their bytes as well. Returns owned by malloc. */
static uint8_t *rows_of(const rp_chunk *chunk, size_t column, size_t first, size_t count,
                        size_t *size)
{
    rp_decoder *decoder = new_decoder();
    size_t row_bytes = chunk->places[column].row_bytes, bytes = count * row_bytes;
    uint8_t *rows = calloc(1, bytes + 1), *at = rows;
    rp_error err = {0};

    assert_non_null(rows);
    if (chunk->columns[column].dtype != RP_STRING) {
        assert_ok_err(rp_decoder_rows(decoder, chunk, (rp_row_range){column, first, count},
                                      rows, bytes, &err),
                      &err);
    } else {
        size_t elements = bytes / sizeof(rp_string);
        rp_string *strings = calloc(elements + 1, sizeof *strings);
        uint8_t *texts = calloc(elements + 1, 1 + STRING_BYTES);
        assert_true(strings != NULL && texts != NULL);
        assert_ok_err(rp_decoder_strings(decoder, chunk, (rp_row_range){column, first, count},
                                         strings, elements, &err),
                      &err);
        at = texts;
        for (size_t i = 0; i < elements; i++) {
            *at++ = (uint8_t)strings[i].size;
            memcpy(at, strings[i].data, strings[i].size);
            at += strings[i].size;
        }
        bytes = (size_t)(at - texts);
        free(rows);
        free(strings);
        rows = texts;
    }
    rp_decoder_free(decoder);
    *size = bytes;
    return rows;
}

/* The cut holds what the original has in rows [first, first + count), and says so. */
static void assert_cut(const rp_chunk *cut, const rp_chunk *chunk, size_t first, size_t count)
{
    rp_chunk *copy = received(cut);

    assert_int_equal(copy->column_count, chunk->column_count);
    assert_int_equal(copy->origin.key, chunk->origin.key);
    assert_int_equal(copy->origin.episode, chunk->origin.episode);
    assert_int_equal(copy->delta, chunk->delta);
    assert_int_equal(copy->codec,
                     chunk->codec == RP_CODEC_NONE ? RP_CODEC_SNAPPY : chunk->codec);
    for (size_t i = 0; i < chunk->column_count; i++) {
        size_t wanted_bytes, got_bytes;
        uint8_t *wanted = rows_of(chunk, i, first, count, &wanted_bytes);
        uint8_t *got = rows_of(copy, i, 0, count, &got_bytes);
        assert_int_equal(copy->columns[i].dtype, chunk->columns[i].dtype);
        assert_int_equal(copy->columns[i].shape.rank, chunk->columns[i].shape.rank);
        assert_int_equal(copy->columns[i].shape.dims[0], count);
        assert_int_equal(got_bytes, wanted_bytes);
        assert_memory_equal(got, wanted, got_bytes);
        free(wanted);
        free(got);
    }
    rp_chunk_unref(copy);
}

/* Cuts, and checks the cut if there is one. True if there is. */
static bool try_cut(const rp_chunk *chunk, size_t first, size_t count)
{
    rp_decoder *decoder = new_decoder();
    rp_chunk *cut = NULL;
    rp_error err = {0};

    assert_true(rp_row_cut_cost(chunk, first, count) > 0);
    assert_ok_err(rp_row_cut(rp_allocator_default(), decoder, chunk, first, count, &cut, &err),
                  &err);
    rp_decoder_free(decoder);
    if (cut == NULL) return false;
    assert_true(4 * cut->wire_bytes <= 3 * chunk->wire_bytes + 3);
    assert_cut(cut, chunk, first, count);
    rp_chunk_unref(cut);
    return true;
}

static void rows_are_cut_by_every_codec(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++)
        for (int delta = 0; delta < 2; delta++) {
            rp_chunk_options options = {.codec = (rp_codec)codec, .delta = delta != 0};
            rp_spec spec = {"x", RP_INT32, SHAPE(50)};
            int32_t data[30 * 50];
            rp_chunk *chunk, *copy;
            for (int i = 0; i < 30 * 50; i++) data[i] = i * i % 1009;
            chunk = rp_test_chunk(9, &options, &spec, 30, data);
            copy = received(chunk);
            assert_true(try_cut(chunk, 0, 5));
            assert_true(try_cut(copy, 0, 5));
            assert_true(try_cut(copy, 11, 1));
            assert_true(try_cut(copy, 25, 5));
            rp_chunk_unref(chunk);
            rp_chunk_unref(copy);
        }
}

static void a_cut_of_an_uncompressed_chunk_is_uncompressed(void **state)
{
    rp_chunk *built = rp_test_ints(3, RP_CODEC_NONE, 20, 40), *chunk = received(built);
    rp_decoder *decoder = new_decoder();
    rp_chunk *cut = NULL;

    (void)state;
    assert_ok(rp_row_cut(rp_allocator_default(), decoder, chunk, 4, 3, &cut, NULL));
    assert_int_equal(cut->places[0].form, RP_FORM_STORED);
    assert_int_equal(cut->columns[0].raw_bytes, 3 * 40 * 4);
    rp_chunk_unref(cut);
    rp_decoder_free(decoder);
    rp_chunk_unref(built);
    rp_chunk_unref(chunk);
}

static void steps_follow_the_rows_unless_some_are_missing(void **state)
{
    static const struct {
        rp_chunk_origin origin;
        int32_t first, last;
    } cases[] = {
        {{.key = 1, .first_step = 100, .last_step = 119}, 104, 106},
        {{.key = 1, .first_step = 100, .last_step = 150, .sparse = true}, 100, 150},
        {{.key = 1, .first_step = 0, .last_step = 19, .sparse = true}, 0, 19},
        {{.key = 1, .first_step = 5, .last_step = 6}, 5, 6}, /* not what its rows say */
        {{.key = 1, .first_step = INT32_MAX - 19, .last_step = INT32_MAX},
         INT32_MAX - 15,
         INT32_MAX - 13},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_chunk *chunk = rp_test_ints(3, RP_CODEC_NONE, 20, 40), *cut = NULL;
        rp_decoder *decoder = new_decoder();
        chunk->origin = cases[i].origin;
        assert_ok(rp_row_cut(rp_allocator_default(), decoder, chunk, 4, 3, &cut, NULL));
        assert_int_equal(cut->origin.first_step, cases[i].first);
        assert_int_equal(cut->origin.last_step, cases[i].last);
        assert_int_equal(cut->origin.sparse, cases[i].origin.sparse);
        rp_chunk_unref(cut);
        rp_decoder_free(decoder);
        rp_chunk_unref(chunk);
    }
}

static void chunks_are_not_cut_where_it_saves_little(void **state)
{
    rp_chunk *chunk = repetitive(RP_CODEC_SNAPPY);

    (void)state;
    assert_int_equal(rp_row_cut_cost(chunk, 0, 20), 0);
    assert_int_equal(rp_row_cut_cost(chunk, 2, 16), 0);
    assert_int_equal(rp_row_cut_cost(chunk, 2, 0), 0);
    assert_true(rp_row_cut_cost(chunk, 5, 15) > 0);
    assert_true(rp_row_cut_cost(chunk, 0, 1) < rp_row_cut_cost(chunk, 10, 1));
    chunk->origin.first_step = -1; /* which a peer may say, but no builder */
    assert_int_equal(rp_row_cut_cost(chunk, 0, 1), 0);
    rp_chunk_unref(chunk);
}

static void a_cut_that_saved_little_is_thrown_away(void **state)
{
    static const uint8_t zeros[400 * 50];
    rp_chunk_options options = {.codec = RP_CODEC_ZSTD};
    rp_spec spec = {"x", RP_UINT8, SHAPE(50)};
    rp_chunk *chunk = rp_test_chunk(9, &options, &spec, 400, zeros);

    (void)state; /* it is all head: half the rows are hardly smaller */
    assert_false(try_cut(chunk, 0, 200));
    rp_chunk_unref(chunk);
}

static void columns_of_different_lengths_are_left_alone(void **state)
{
    rp_spec specs[] = {{"x", RP_INT32, SHAPE(4)}, {"y", RP_INT32, SHAPE(4)}};
    int32_t row[4] = {1, 2, 3, 4};
    rp_tensor tensors[] = {{RP_INT32, SHAPE(4), row}, {RP_INT32, SHAPE(4), row}};
    rp_chunk_builder *builder = NULL;
    rp_chunk_origin origin = {.key = 1, .last_step = 19};
    rp_chunk *two = NULL;

    (void)state;
    assert_ok(rp_chunk_builder_new(rp_allocator_default(), specs, 2, NULL, &builder, NULL));
    for (int i = 0; i < 20; i++) assert_ok(rp_chunk_builder_append(builder, tensors, NULL));
    assert_ok(rp_chunk_builder_finish(builder, &origin, &two, NULL));
    rp_chunk_builder_free(builder);
    assert_true(rp_row_cut_cost(two, 0, 1) > 0);
    two->columns[1].shape.dims[0] = 19;
    assert_int_equal(rp_row_cut_cost(two, 0, 1), 0);
    rp_chunk_unref(two);
}

/* A chunk of one string column of eight rows, with its elements as values of the tensor. */
static rp_chunk *chunk_of_values(void)
{
    uint8_t wire[128] = {0x08, 0x05,             /* key 5 */
                         0x12, 0x02, 0x18, 0x07, /* steps 0 to 7 */
                         0x2a, 0x4c, 0x0a, 0x4a, /* Data, TensorProto */
                         0x08, 0x07,             /* string */
                         0x12, 0x04, 0x12, 0x02, 0x08, 0x08};
    size_t at = 18;
    rp_chunk *chunk = NULL;
    rp_error err = {0};

    for (int i = 0; i < 8; i++) {
        wire[at++] = 0x42; /* field 8 */
        wire[at++] = 6;
        (void)snprintf((char *)wire + at, 7, "text %d", i);
        at += 6;
    }
    wire[at++] = 0x28; /* bytes of a field that is skipped, to fill what was announced */
    wire[at++] = 0;
    assert_int_equal(at, 4 + 2 + 4 + 0x4a);
    assert_ok_err(rp_chunk_parse(rp_allocator_default(), wire, at, NULL, &chunk, &err), &err);
    assert_int_equal(chunk->places[0].form, RP_FORM_STRING_VALUES);
    return chunk;
}

static void strings_in_values_are_cut_too(void **state)
{
    rp_chunk *chunk = chunk_of_values();

    (void)state;
    for (size_t first = 0; first < 8; first++) assert_true(try_cut(chunk, first, 1));
    assert_true(try_cut(chunk, 3, 3));
    rp_chunk_unref(chunk);
}

static void undecodable_bytes_are_corrupt(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *built, *chunk, *cut = NULL;
        rp_decoder *decoder;
        rp_error err = {0};
        uint8_t *wire;
        size_t size;
        if (codec == RP_CODEC_NONE) continue; /* there is nothing to decode */
        decoder = new_decoder();
        built = repetitive((rp_codec)codec);
        wire = malloc(built->wire_bytes);
        assert_non_null(wire);
        memcpy(wire, rp_chunk_wire(built, &size), built->wire_bytes);
        memset(wire + built->places[0].content_at + 12, 0xff,
               built->columns[0].stored_bytes - 12);
        assert_ok_err(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &chunk, &err),
                      &err);
        assert_fails(rp_row_cut(rp_allocator_default(), decoder, chunk, 10, 5, &cut, &err),
                     RP_CORRUPT, &err, "chunk 3, column 0");
        assert_null(cut);
        free(wire);
        rp_decoder_free(decoder);
        rp_chunk_unref(built);
        rp_chunk_unref(chunk);
    }
}

/* One row of a column of any kind; strings are kept in `texts`. */
static void fill_row(rp_rng *rng, const rp_spec *spec, rp_string *strings, char *texts,
                     uint8_t *numbers, rp_tensor *out)
{
    size_t elements;

    assert_ok(rp_shape_elements(&spec->shape, &elements));
    *out = (rp_tensor){spec->dtype, spec->shape, numbers};
    if (spec->dtype != RP_STRING) {
        rp_test_fill(rng, numbers, elements * rp_dtype_size(spec->dtype));
        return;
    }
    out->data = strings;
    for (size_t i = 0; i < elements; i++) {
        strings[i] = (rp_string){texts + i * STRING_BYTES, rp_rng_below(rng, STRING_BYTES)};
        rp_test_fill(rng, (uint8_t *)texts + i * STRING_BYTES, STRING_BYTES);
    }
}

static rp_spec any_spec(rp_rng *rng)
{
    static const rp_shape shapes[] = {
        {0, {0}},       {1, {1}},    {1, {7}},  {2, {3, 4}},
        {3, {2, 1, 3}}, {2, {0, 5}}, {1, {16}}, {7, {1, 1, 2, 1, 1, 1, 2}}};
    size_t kind = rp_rng_below(rng, COUNT_OF(rp_test_dtypes) + 4);

    return (rp_spec){
        "x",
        kind < COUNT_OF(rp_test_dtypes) ? rp_test_dtypes[kind] : RP_STRING,
        shapes[rp_rng_below(rng, COUNT_OF(shapes))],
    };
}

static rp_chunk *any_chunk(rp_rng *rng)
{
    rp_string strings[MAX_COLUMNS][16];
    char texts[MAX_COLUMNS][16 * STRING_BYTES];
    uint8_t numbers[MAX_COLUMNS][MAX_ROW_BYTES];
    rp_chunk_options options = {.codec = (rp_codec)rp_rng_below(rng, 4),
                                .delta = rp_rng_below(rng, 2) == 0};
    size_t rows = 1 + rp_rng_below(rng, MAX_ROWS), columns = 1 + rp_rng_below(rng, MAX_COLUMNS);
    rp_chunk_origin origin = {.key = rp_rng_next(rng), .episode = 3};
    rp_chunk_builder *builder = NULL;
    rp_spec specs[MAX_COLUMNS];
    rp_tensor row[MAX_COLUMNS];
    rp_chunk *chunk = NULL;

    origin.last_step = (int32_t)rows - 1;
    for (size_t i = 0; i < columns; i++) specs[i] = any_spec(rng);
    assert_ok(
        rp_chunk_builder_new(rp_allocator_default(), specs, columns, &options, &builder, NULL));
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++)
            fill_row(rng, &specs[j], strings[j], texts[j], numbers[j], &row[j]);
        assert_ok(rp_chunk_builder_append(builder, row, NULL));
    }
    assert_ok(rp_chunk_builder_finish(builder, &origin, &chunk, NULL));
    rp_chunk_builder_free(builder);
    return chunk;
}

static void a_cut_decodes_to_the_rows_of_the_original(void **state)
{
    size_t cuts = 0;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 4242);
    for (int i = 0; i < 2000; i++) {
        rp_chunk *built = any_chunk(&rng), *chunk = received(built);
        size_t rows = rp_chunk_rows(chunk, 0), first = rp_rng_below(&rng, rows);
        size_t count = 1 + rp_rng_below(&rng, rows - first);
        if (rp_row_cut_cost(chunk, first, count) > 0) cuts += try_cut(chunk, first, count);
        rp_chunk_unref(built);
        rp_chunk_unref(chunk);
    }
    assert_true(cuts > 500);
}

static rp_status scenario(const rp_allocator *alloc)
{
    rp_chunk *chunk = rp_test_ints(3, RP_CODEC_ZSTD, 20, 40), *cut = NULL;
    rp_decoder *decoder = NULL;
    rp_status st = rp_decoder_new(alloc, 1 << 20, &decoder);

    if (st == RP_OK) st = rp_row_cut(alloc, decoder, chunk, 10, 5, &cut, NULL);
    rp_decoder_free(decoder);
    rp_chunk_unref(cut);
    rp_chunk_unref(chunk);
    return st;
}

static void out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(scenario);
}

RP_TESTS(row_cut)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_cut_by_every_codec),
        cmocka_unit_test(a_cut_of_an_uncompressed_chunk_is_uncompressed),
        cmocka_unit_test(steps_follow_the_rows_unless_some_are_missing),
        cmocka_unit_test(chunks_are_not_cut_where_it_saves_little),
        cmocka_unit_test(a_cut_that_saved_little_is_thrown_away),
        cmocka_unit_test(columns_of_different_lengths_are_left_alone),
        cmocka_unit_test(strings_in_values_are_cut_too),
        cmocka_unit_test(undecodable_bytes_are_corrupt),
        cmocka_unit_test(a_cut_decodes_to_the_rows_of_the_original),
        cmocka_unit_test(out_of_memory_is_a_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
