/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/template.h"

#include "chunk/chunk.h"
#include "chunk/protobuf.h"
#include "support/chunks.h"

static const rp_chunk_options plain = {.codec = RP_CODEC_NONE};
static const rp_spec spec = {"x", RP_FLOAT32, {.rank = 2, .dims = {2, 3}}};

/* A chunk of `rows` rows, as a writer makes it; or as it is received. */
static rp_chunk *make(uint64_t key, const rp_chunk_options *options, size_t rows, uint8_t fill)
{
    uint8_t data[8 * 24];

    memset(data, fill, sizeof data);
    return rp_test_chunk(key, options, &spec, rows, data);
}

static void assert_same(const rp_chunk *a, const rp_chunk *b)
{
    assert_int_equal(a->wire_bytes, b->wire_bytes);
    assert_memory_equal(a->wire, b->wire, a->wire_bytes);
    assert_true(a->origin.key == b->origin.key && a->origin.episode == b->origin.episode);
    assert_int_equal(a->origin.first_step, b->origin.first_step);
    assert_int_equal(a->origin.last_step, b->origin.last_step);
    assert_int_equal(a->origin.sparse, b->origin.sparse);
    assert_int_equal(a->codec, b->codec);
    assert_int_equal(a->delta, b->delta);
    assert_int_equal(a->column_count, b->column_count);
    assert_int_equal(a->columns[0].dtype, b->columns[0].dtype);
    assert_int_equal(a->columns[0].shape.rank, b->columns[0].shape.rank);
    assert_memory_equal(a->columns[0].shape.dims, b->columns[0].shape.dims,
                        (size_t)a->columns[0].shape.rank * sizeof(int64_t));
    assert_int_equal(a->columns[0].raw_bytes, b->columns[0].raw_bytes);
    assert_int_equal(a->columns[0].stored_bytes, b->columns[0].stored_bytes);
    assert_int_equal(a->places[0].content_at, b->places[0].content_at);
    assert_int_equal(a->places[0].rows_at, b->places[0].rows_at);
    assert_int_equal(a->places[0].row_bytes, b->places[0].row_bytes);
    assert_int_equal(a->places[0].form, b->places[0].form);
    assert_int_equal(a->places[0].delta, b->places[0].delta);
}

/* Both ways of reading give the same, whatever the template was used for before. */
static void assert_parsed_alike(rp_chunk_template *template, const uint8_t *wire, size_t size)
{
    rp_chunk_limits limits = rp_chunk_limits_default();
    rp_error a_err = {0}, b_err = {0};
    rp_chunk *a = NULL, *b = NULL;
    rp_status a_st = rp_chunk_parse(rp_allocator_default(), wire, size, &limits, &a, &a_err);
    rp_chunk_head head;
    rp_status peeked = rp_chunk_wire_peek(wire, size, &head, NULL);
    rp_status b_st = rp_chunk_template_parse(
        template, rp_allocator_default(), (rp_bytes){wire, size}, &head, &limits, &b, &b_err);

    assert_true(peeked == RP_OK || a_st != RP_OK);
    assert_int_equal(a_st, b_st);
    assert_string_equal(a_err.text, b_err.text);
    if (a_st == RP_OK) assert_same(a, b);
    rp_chunk_unref(a);
    rp_chunk_unref(b);
}

static void chunks_of_one_form_read_alike(void **state)
{
    rp_chunk_template template = {0};

    (void)state;
    for (uint64_t key = 1; key != 0 && key < UINT64_MAX / 3; key *= 3)
        for (size_t rows = 1; rows < 8; rows += key % 2 == 0 ? 1 : 3) {
            rp_chunk *chunk = make(key, &plain, rows, (uint8_t)key);
            assert_parsed_alike(&template, chunk->wire, chunk->wire_bytes);
            assert_parsed_alike(&template, chunk->wire, chunk->wire_bytes);
            rp_chunk_unref(chunk);
        }
}

static void every_flipped_bit_parses_as_without_a_template(void **state)
{
    rp_chunk *chunk = make(77, &plain, 4, 9);
    rp_chunk_template template = {0};

    (void)state;
    for (size_t at = 0; at < chunk->wire_bytes; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            uint8_t *wire = malloc(chunk->wire_bytes);

            assert_non_null(wire);
            memcpy(wire, chunk->wire, chunk->wire_bytes);
            wire[at] ^= (uint8_t)(1u << bit);
            assert_parsed_alike(&template, chunk->wire, chunk->wire_bytes);
            assert_true(template.rows_bytes > 0);
            assert_parsed_alike(&template, wire, chunk->wire_bytes);
            assert_parsed_alike(&template, wire, at); /* cut off */
            free(wire);
        }
    rp_chunk_unref(chunk);
}

static void a_key_at_the_end_counts(void **state)
{
    rp_chunk *chunks[] = {make(5, &plain, 2, 1), make(6, &plain, 2, 2)};
    rp_chunk_template template = {0};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t wire[512];
        size_t size = chunks[i]->wire_bytes;

        memcpy(wire, chunks[i]->wire, size);
        size = (size_t)(rp_pb_put_varint_field(wire + size, 1, 1234) - wire);
        assert_parsed_alike(&template, wire, size);
        rp_chunk_unref(chunks[i]);
    }
}

/* A server takes new limits while a stream has a template of older chunks. */
static void limits_hold_for_chunks_that_match_the_template(void **state)
{
    rp_chunk *chunk = make(7, &plain, 4, 1), *parsed;
    const rp_chunk_limits limits[] = {
        {chunk->wire_bytes, chunk->columns[0].raw_bytes, 1},
        {chunk->wire_bytes - 1, chunk->columns[0].raw_bytes, 1},
        {chunk->wire_bytes, chunk->columns[0].raw_bytes - 1, 1},
    };
    rp_chunk_template template = {0};
    rp_chunk_head head;

    (void)state;
    rp_chunk_template_set(&template, chunk);
    assert_ok(rp_chunk_wire_peek(chunk->wire, chunk->wire_bytes, &head, NULL));
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        rp_status st = rp_chunk_template_parse(&template, rp_allocator_default(),
                                               (rp_bytes){chunk->wire, chunk->wire_bytes},
                                               &head, &limits[i], &parsed, NULL);

        assert_int_equal(st, i == 0 ? RP_OK : RP_NO_RESOURCE);
        if (st == RP_OK) rp_chunk_unref(parsed);
    }
    rp_chunk_unref(chunk);
}

static void other_codecs_leave_the_template_unset(void **state)
{
    static const rp_chunk_options others[] = {
        {.codec = RP_CODEC_ZSTD},
        {.codec = RP_CODEC_NONE, .delta = true},
    };
    rp_chunk_template template = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        rp_chunk *chunk = make(3, &others[i], 3, 0);
        assert_parsed_alike(&template, chunk->wire, chunk->wire_bytes);
        assert_int_equal(template.rows_bytes, 0);
        rp_chunk_unref(chunk);
    }
}

/* A builder's second chunk of as many rows is cast; one of a fresh builder is not. */
static void a_builder_instantiates_its_template_to_equal_bytes(void **state)
{
    rp_chunk_builder *used = NULL, *fresh;
    float row[6] = {1, 2, 3, 4, 5, 6};
    rp_tensor tensor = {RP_FLOAT32, spec.shape, row};

    (void)state;
    assert_ok(rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &plain, &used, NULL));
    for (int32_t round = 0; round < 20; round++) {
        rp_chunk_origin origin = {.key = (uint64_t)1 << 3 * round,
                                  .episode = (uint64_t)round * 77777,
                                  .first_step = 40 * round,
                                  .last_step = 40 * round + 3,
                                  .sparse = round % 3 == 0};
        rp_chunk *a = NULL, *b = NULL;

        assert_ok(rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &plain, &fresh, NULL));
        for (int i = 0; i < (round < 10 ? 1 : 3); i++) {
            row[0] = (float)(round + i);
            assert_ok(rp_chunk_builder_append(used, &tensor, NULL));
            assert_ok(rp_chunk_builder_append(fresh, &tensor, NULL));
        }
        assert_ok(rp_chunk_builder_finish(used, &origin, &a, NULL));
        assert_ok(rp_chunk_builder_finish(fresh, &origin, &b, NULL));
        assert_same(a, b);
        rp_chunk_unref(a);
        rp_chunk_unref(b);
        rp_chunk_builder_free(fresh);
    }
    rp_chunk_builder_free(used);
}

RP_TESTS(template)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_of_one_form_read_alike),
        cmocka_unit_test(every_flipped_bit_parses_as_without_a_template),
        cmocka_unit_test(a_key_at_the_end_counts),
        cmocka_unit_test(limits_hold_for_chunks_that_match_the_template),
        cmocka_unit_test(other_codecs_leave_the_template_unset),
        cmocka_unit_test(a_builder_instantiates_its_template_to_equal_bytes),
    };

    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
