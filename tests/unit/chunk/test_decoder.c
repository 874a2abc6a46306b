/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/decoder.h"

#include "support/chunks.h"

enum { ROWS = 9, COLS = 30 };

static rp_decoder *make(size_t cache_bytes)
{
    rp_decoder *decoder = NULL;
    assert_ok(rp_decoder_new(rp_allocator_default(), cache_bytes, &decoder));
    return decoder;
}

/* Rows [offset, offset + length) of a chunk of rp_test_ints() must be as they were built. */
static void assert_rows(rp_decoder *decoder, const rp_chunk *chunk, size_t offset,
                        size_t length)
{
    int32_t rows[ROWS * COLS];
    rp_error err = {0};

    assert_ok_err(rp_decoder_rows(decoder, chunk, (rp_row_range){0, offset, length}, rows,
                                  length * COLS * sizeof rows[0], &err),
                  &err);
    for (size_t i = 0; i < length * COLS; i++)
        assert_int_equal(rows[i], 1000 * rp_chunk_get_origin(chunk)->key + offset * COLS + i);
}

static void every_range_of_rows_is_decoded_by_every_codec(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *chunk = rp_test_ints(3, (rp_codec)codec, ROWS, COLS);
        for (size_t offset = 0; offset <= ROWS; offset++)
            for (size_t length = 0; length <= ROWS - offset; length++) {
                rp_decoder *fresh = make(1 << 20);
                assert_rows(fresh, chunk, offset, length);
                rp_decoder_free(fresh);
            }
        rp_chunk_unref(chunk);
    }
}

static void every_order_of_requests_gives_the_same_rows(void **state)
{
    static const size_t caches[] = {0, 500, 1 << 20};
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 81);
    for (size_t c = 0; c < COUNT_OF(caches); c++) {
        rp_decoder *decoder = make(caches[c]);
        rp_chunk *chunks[8];
        for (uint64_t i = 0; i < 8; i++)
            chunks[i] = rp_test_ints(i + 1, (rp_codec)(i % 4), ROWS, COLS);
        for (int i = 0; i < 2000; i++) {
            size_t offset = rp_rng_below(&rng, ROWS);
            assert_rows(decoder, chunks[rp_rng_below(&rng, 8)], offset,
                        rp_rng_below(&rng, ROWS - offset) + 1);
            if (rp_rng_below(&rng, 100) == 0) rp_decoder_clear(decoder);
        }
        rp_decoder_free(decoder);
        for (size_t i = 0; i < 8; i++) rp_chunk_unref(chunks[i]);
    }
}

/* Of a large batch, short rows and long ones: written another way, they are the same. */
static void large_rows_are_copied_alike(void **state)
{
    enum { WIDE = 1500 };
    static int32_t rows[ROWS * WIDE];
    rp_decoder *decoder = make(1 << 20);
    rp_error err = {0};

    (void)state;
    rp_decoder_set_large(decoder, true);
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *narrow = rp_test_ints(3, (rp_codec)codec, ROWS, COLS);
        rp_chunk *wide = rp_test_ints(4, (rp_codec)codec, ROWS, WIDE);

        assert_rows(decoder, narrow, 2, 5);
        memset(rows, 0xff, sizeof rows);
        assert_ok_err(rp_decoder_rows(decoder, wide, (rp_row_range){0, 1, ROWS - 1}, rows,
                                      (ROWS - 1) * WIDE * sizeof rows[0], &err),
                      &err);
        for (size_t i = 0; i < (ROWS - 1) * WIDE; i++)
            assert_int_equal(rows[i], 4000 + WIDE + i);
        rp_chunk_unref(narrow);
        rp_chunk_unref(wide);
    }
    rp_decoder_free(decoder);
}

static void delta_rows_are_decoded_from_any_offset(void **state)
{
    rp_spec spec = {NULL, RP_UINT16, SHAPE(4)};
    uint16_t data[6 * 4], back[4];
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 82);
    for (size_t i = 0; i < COUNT_OF(data); i++) data[i] = (uint16_t)rp_rng_next(&rng);
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk_options options = {.codec = (rp_codec)codec, .delta = true};
        rp_chunk *chunk = rp_test_chunk(1, &options, &spec, 6, data);
        for (size_t row = 0; row < 6; row++) {
            rp_decoder *decoder = make(1000);
            assert_ok(rp_decoder_rows(decoder, chunk, (rp_row_range){0, row, 1}, back,
                                      sizeof back, NULL));
            assert_memory_equal(back, data + 4 * row, sizeof back);
            rp_decoder_free(decoder);
        }
        rp_chunk_unref(chunk);
    }
}

static void rows_out_of_range_are_refused(void **state)
{
    rp_chunk *chunk = rp_test_ints(5, RP_CODEC_SNAPPY, ROWS, COLS);
    rp_decoder *d = make(0);
    uint8_t dst[2 * COLS * 4];
    rp_error err;

    (void)state;
    assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){0, ROWS, 1}, dst, COLS * 4, &err),
                 RP_INVALID, &err, "chunk 5, column 0: rows [9, 9 + 1) of 9");
    assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){0, 0, ROWS + 1}, dst, COLS * 4, &err),
                 RP_INVALID, &err, "of 9");
    assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){0, SIZE_MAX, 2}, dst, COLS * 4, &err),
                 RP_INVALID, &err, "of 9");
    assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){0, 1, SIZE_MAX}, dst, COLS * 4, &err),
                 RP_INVALID, &err, "of 9");
    assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){1, 0, 1}, dst, COLS * 4, &err),
                 RP_INVALID, &err, "column 1 of 1");
    rp_decoder_free(d);
    rp_decoder_free(NULL);
    rp_chunk_unref(chunk);
}

static void an_output_of_another_size_is_refused(void **state)
{
    rp_chunk *chunk = rp_test_ints(5, RP_CODEC_SNAPPY, ROWS, COLS);
    rp_decoder *d = make(0);
    uint8_t dst[2 * COLS * 4];
    rp_error err;

    (void)state;
    assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){0, 0, 2}, dst, sizeof dst - 1, &err),
                 RP_INVALID, &err, "2 rows have 240 bytes, got room for 239");
    assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){0, 0, 1}, dst, sizeof dst, &err),
                 RP_INVALID, &err, "1 row has 120 bytes, got room for 240");
    rp_decoder_free(d);
    rp_chunk_unref(chunk);
}

static void strings_and_numbers_are_not_mixed_up(void **state)
{
    rp_spec spec = {NULL, RP_STRING, SCALAR};
    rp_string text = {"hi", 2}, back;
    rp_chunk *strings = rp_test_chunk(1, NULL, &spec, 1, &text);
    rp_chunk *numbers = rp_test_ints(2, RP_CODEC_SNAPPY, 1, 1);
    rp_decoder *d = make(0);
    rp_error err;

    (void)state;
    assert_fails(rp_decoder_rows(d, strings, (rp_row_range){0, 0, 1}, &back, sizeof back, &err),
                 RP_INVALID, &err, "it holds string");
    assert_fails(rp_decoder_strings(d, numbers, (rp_row_range){0, 0, 1}, &back, 1, &err),
                 RP_INVALID, &err, "it holds int32");
    assert_fails(rp_decoder_strings(d, strings, (rp_row_range){0, 0, 1}, &back, 2, &err),
                 RP_INVALID, &err, "1 row has 1 string, got room for 2");
    assert_ok(rp_decoder_strings(d, strings, (rp_row_range){0, 0, 1}, &back, 1, &err));
    rp_decoder_free(d);
    rp_chunk_unref(strings);
    rp_chunk_unref(numbers);
}

static void strings_borrow_from_the_chunk(void **state)
{
    rp_spec spec = {NULL, RP_STRING, SHAPE(2)};
    rp_string rows[] = {{"a", 1}, {"bb", 2}, {"ccc", 3}, {"", 0}, {"e", 1}, {"ff", 2}}, back[2];
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 3, rows);
    rp_decoder *d = make(0);
    size_t size;
    const char *wire = (const char *)rp_chunk_wire(chunk, &size);

    (void)state;
    for (size_t row = 0; row < 3; row++) {
        assert_ok(rp_decoder_strings(d, chunk, (rp_row_range){0, row, 1}, back, 2, NULL));
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(back[i].size, rows[2 * row + i].size);
            assert_true(back[i].data >= wire && back[i].data + back[i].size <= wire + size);
            assert_memory_equal(back[i].data, rows[2 * row + i].data, back[i].size);
        }
    }
    rp_decoder_free(d);
    assert_memory_equal(back[1].data, "ff", 2); /* the decoder is gone, the chunk is not */
    rp_chunk_unref(chunk);
}

/* A chunk whose compressed bytes end in nonsense, though the head is right. */
static rp_chunk *damaged(rp_codec codec)
{
    uint32_t data[64 * COLS];
    rp_chunk_options options = {.codec = codec};
    rp_spec spec = {NULL, RP_UINT32, SHAPE(COLS)};
    rp_chunk *chunk, *parsed = NULL;
    const uint8_t *wire;
    uint8_t *copy;
    size_t size;
    rp_rng rng;

    rp_rng_init(&rng, 83);
    for (size_t i = 0; i < COUNT_OF(data); i++) data[i] = (uint32_t)rp_rng_next(&rng) & 3;
    chunk = rp_test_chunk(1, &options, &spec, 64, data);
    wire = rp_chunk_wire(chunk, &size);
    copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, wire, size);
    memset(copy + size - 60, 0xff, 40); /* copies from far before the beginning */
    assert_ok(rp_chunk_parse(rp_allocator_default(), copy, size, NULL, &parsed, NULL));
    rp_chunk_unref(chunk);
    free(copy);
    return parsed;
}

static void no_more_is_decoded_than_asked_for(void **state)
{
    static const rp_codec codecs[] = {RP_CODEC_SNAPPY, RP_CODEC_LZ4};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        rp_chunk *chunk = damaged(codecs[i]);
        rp_decoder *d = make(1 << 20);
        uint8_t dst[64 * COLS * 4];
        rp_error err = {0};
        assert_ok_err(
            rp_decoder_rows(d, chunk, (rp_row_range){0, 0, 5}, dst, 5 * COLS * 4, &err), &err);
        assert_fails(rp_decoder_rows(d, chunk, (rp_row_range){0, 0, 64}, dst, sizeof dst, &err),
                     RP_CORRUPT, &err, "chunk 1, column 0");
        rp_decoder_free(d);
        rp_chunk_unref(chunk);
    }
}

static void a_corrupt_column_leaves_nothing_behind(void **state)
{
    (void)state;
    for (int direct = 0; direct < 2; direct++) {
        rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
        rp_allocator alloc = rp_test_oom_allocator(&o);
        rp_chunk *chunk = damaged(RP_CODEC_SNAPPY);
        rp_decoder *d = NULL;
        uint8_t dst[64 * COLS * 4];
        assert_ok(rp_decoder_new(&alloc, direct ? 0 : 1 << 20, &d));
        for (int i = 0; i < 3; i++)
            assert_int_equal(
                rp_decoder_rows(d, chunk, (rp_row_range){0, 0, 64}, dst, sizeof dst, NULL),
                RP_CORRUPT);
        assert_int_equal(o.live, direct ? 1 : 2); /* the decoder, and the table of the cache */
        rp_decoder_free(d);
        assert_int_equal(o.live, 0);
        rp_chunk_unref(chunk);
    }
}

static void stored_rows_are_read_without_any_memory(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(1);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_chunk *chunk = rp_test_ints(4, RP_CODEC_NONE, ROWS, COLS);
    rp_decoder *d = NULL;

    (void)state;
    assert_ok(rp_decoder_new(&alloc, 1 << 20, &d));
    for (size_t i = 0; i < ROWS; i++) assert_rows(d, chunk, i, 1);
    assert_rows(d, chunk, 0, ROWS);
    assert_int_equal(o.total, 1);
    rp_decoder_free(d);
    rp_chunk_unref(chunk);
}

static void a_whole_column_beyond_the_cache_is_decoded_in_place(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(1);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_chunk *chunk = rp_test_ints(4, RP_CODEC_LZ4, ROWS, COLS);
    rp_decoder *d = NULL;

    (void)state;
    assert_ok(rp_decoder_new(&alloc, ROWS * COLS * 4 - 1, &d));
    assert_rows(d, chunk, 0, ROWS);
    assert_int_equal(o.total, 1);
    rp_decoder_free(d);
    rp_chunk_unref(chunk);
}

static void a_cached_column_is_not_decoded_again(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    rp_chunk *chunk = rp_test_ints(4, RP_CODEC_LZ4, ROWS, COLS);
    rp_decoder *d = NULL;
    const uint8_t *first, *again;
    size_t before;

    (void)state;
    assert_ok(rp_decoder_new(&alloc, 1 << 20, &d));
    assert_ok(rp_decoder_find(d, chunk, 0, 3, 3, &first, NULL));
    before = o.total;
    assert_ok(rp_decoder_find(d, chunk, 0, 3, 2, &again, NULL));
    assert_ptr_equal(first, again);
    assert_int_equal(o.total, before);
    rp_decoder_free(d);
    rp_chunk_unref(chunk);
}

static void reading_row_by_row_decodes_a_few_times_only(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    int32_t *data = calloc(256, sizeof *data);
    rp_spec spec = {NULL, RP_INT32, SCALAR};
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 256, data);
    rp_decoder *d = NULL;

    (void)state;
    assert_ok(rp_decoder_new(&alloc, 1 << 20, &d));
    for (size_t i = 0; i < 256; i++) {
        int32_t row;
        assert_ok(rp_decoder_rows(d, chunk, (rp_row_range){0, i, 1}, &row, sizeof row, NULL));
    }
    assert_true(o.total <= 2 + 9); /* 1, 2, 4, ... 256 rows */
    rp_decoder_free(d);
    rp_chunk_unref(chunk);
    free(data);
}

static void a_cached_column_holds_its_chunk_until_cleared(void **state)
{
    rp_chunk *chunk = rp_test_ints(4, RP_CODEC_LZ4, ROWS, COLS);
    rp_decoder *d = make(1 << 20);

    (void)state;
    assert_rows(d, chunk, 0, 2);
    assert_int_equal(chunk->refs.n, 2);
    rp_decoder_clear(d);
    assert_int_equal(chunk->refs.n, 1);
    assert_rows(d, chunk, 0, 2);
    rp_decoder_free(d);
    assert_int_equal(chunk->refs.n, 1);
    rp_chunk_unref(chunk);
}

static void rows_without_elements_are_decoded(void **state)
{
    rp_decoder *d = make(100);

    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk_options options = {.codec = (rp_codec)codec};
        rp_spec spec = {NULL, RP_INT32, SHAPE(0)};
        rp_chunk *chunk = rp_test_chunk(1, &options, &spec, 3, "");
        assert_ok(rp_decoder_rows(d, chunk, (rp_row_range){0, 0, 3}, NULL, 0, NULL));
        assert_ok(rp_decoder_rows(d, chunk, (rp_row_range){0, 2, 1}, NULL, 0, NULL));
        rp_chunk_unref(chunk);
    }
    rp_decoder_free(d);
}

static rp_status decode_once(const rp_allocator *alloc)
{
    rp_chunk *zstd = rp_test_ints(4, RP_CODEC_ZSTD, ROWS, COLS);
    rp_chunk *snappy = rp_test_ints(5, RP_CODEC_SNAPPY, ROWS, COLS);
    rp_decoder *d = NULL;
    int32_t rows[3 * COLS];
    rp_error err;
    rp_status st = rp_decoder_new(alloc, 1 << 20, &d);

    if (st == RP_OK)
        st = rp_decoder_rows(d, zstd, (rp_row_range){0, 0, 2}, rows, 2 * COLS * 4, &err);
    if (st == RP_OK)
        st = rp_decoder_rows(d, snappy, (rp_row_range){0, 4, 3}, rows, sizeof rows, &err);
    if (st == RP_OK)
        st = rp_decoder_rows(d, snappy, (rp_row_range){0, 6, 3}, rows, sizeof rows, &err);
    rp_decoder_free(d);
    rp_chunk_unref(zstd);
    rp_chunk_unref(snappy);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(decode_once);
}

RP_TESTS(decoder)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_of_rows_is_decoded_by_every_codec),
        cmocka_unit_test(every_order_of_requests_gives_the_same_rows),
        cmocka_unit_test(large_rows_are_copied_alike),
        cmocka_unit_test(delta_rows_are_decoded_from_any_offset),
        cmocka_unit_test(rows_out_of_range_are_refused),
        cmocka_unit_test(an_output_of_another_size_is_refused),
        cmocka_unit_test(strings_and_numbers_are_not_mixed_up),
        cmocka_unit_test(strings_borrow_from_the_chunk),
        cmocka_unit_test(no_more_is_decoded_than_asked_for),
        cmocka_unit_test(a_corrupt_column_leaves_nothing_behind),
        cmocka_unit_test(stored_rows_are_read_without_any_memory),
        cmocka_unit_test(a_whole_column_beyond_the_cache_is_decoded_in_place),
        cmocka_unit_test(a_cached_column_is_not_decoded_again),
        cmocka_unit_test(reading_row_by_row_decodes_a_few_times_only),
        cmocka_unit_test(a_cached_column_holds_its_chunk_until_cleared),
        cmocka_unit_test(rows_without_elements_are_decoded),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("decoder", tests, NULL, NULL);
}
