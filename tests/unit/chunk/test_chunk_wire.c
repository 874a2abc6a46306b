/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/chunk_wire.h"

#include "chunk/protobuf.h"
#include "support/chunks.h"
#include "support/hex.h"

/* The chunk of the wire document, section 16: key 1, episode 7, steps 0 to 2, int64 [0,1,2]. */
static const uint8_t document[] = {
    0x08, 0x01, 0x12, 0x04, 0x08, 0x07, 0x18, 0x02, 0x2a, 0x26, 0x0a, 0x24, 0x08,
    0x09, 0x12, 0x04, 0x12, 0x02, 0x08, 0x03, 0x22, 0x1a, 0x18, 0x5c, 0,    0,
    0,    0,    0,    0,    0,    0,    1,    0,    0,    0,    0,    0,    0,
    0,    2,    0,    0,    0,    0,    0,    0,    0,    0x30, 0x01, 0x38, 0x18};

static const int64_t document_rows[] = {0, 1, 2};

/* A message put together by hand. */
typedef struct message {
    uint8_t bytes[1024];
    size_t size;
} message;

static void add_varint(message *m, uint32_t number, uint64_t value)
{
    m->size = (size_t)(rp_pb_put_varint_field(m->bytes + m->size, number, value) - m->bytes);
}

static void add_bytes(message *m, uint32_t number, const void *data, size_t size)
{
    m->size = (size_t)(rp_pb_put_bytes_head(m->bytes + m->size, number, size) - m->bytes);
    memcpy(m->bytes + m->size, data, size);
    m->size += size;
}

static void add_message(message *m, uint32_t number, const message *inner)
{
    add_bytes(m, number, inner->bytes, inner->size);
}

static message shape_of(int64_t dim)
{
    message d = {.size = 0}, shape = {.size = 0};
    add_varint(&d, RP_PB_DIM_SIZE, (uint64_t)dim);
    add_message(&shape, RP_PB_SHAPE_DIM, &d);
    return shape;
}

/* A TensorProto of `rows` (< 60) bytes of uint8, stored. */
static message tensor_of(uint8_t rows)
{
    message t = {.size = 0}, shape = shape_of(rows);
    uint8_t content[64] = {rows, (uint8_t)((rows - 1) << 2)};

    for (uint8_t i = 0; i < rows; i++) content[i + 2] = i;
    add_varint(&t, RP_PB_TENSOR_DTYPE, RP_UINT8);
    add_message(&t, RP_PB_TENSOR_SHAPE, &shape);
    add_bytes(&t, RP_PB_TENSOR_CONTENT, content, rows + 2u);
    return t;
}

static message data_of(uint8_t rows)
{
    message data = {.size = 0}, t = tensor_of(rows);
    add_message(&data, RP_PB_DATA_TENSOR, &t);
    return data;
}

static rp_chunk *parse(const message *m)
{
    rp_chunk *chunk = NULL;
    rp_error err = {0};
    assert_ok_err(rp_chunk_parse(rp_allocator_default(), m->bytes, m->size, NULL, &chunk, &err),
                  &err);
    return chunk;
}

static void the_encoder_writes_the_vector_of_the_document(void **state)
{
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_spec spec = {NULL, RP_INT64, SCALAR};
    rp_chunk *chunk = rp_test_chunk(1, &options, &spec, 3, document_rows);
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);

    (void)state;
    assert_int_equal(size, sizeof document);
    assert_memory_equal(wire, document, size);
    rp_chunk_unref(chunk);
}

static void the_vector_of_the_document_is_read(void **state)
{
    rp_chunk *chunk = NULL;
    rp_decoder *decoder = NULL;
    int64_t rows[3];

    (void)state;
    assert_ok(
        rp_chunk_parse(rp_allocator_default(), document, sizeof document, NULL, &chunk, NULL));
    assert_int_equal(rp_chunk_get_origin(chunk)->key, 1);
    assert_int_equal(rp_chunk_get_origin(chunk)->episode, 7);
    assert_int_equal(rp_chunk_get_origin(chunk)->first_step, 0);
    assert_int_equal(rp_chunk_get_origin(chunk)->last_step, 2);
    assert_false(rp_chunk_get_origin(chunk)->sparse);
    assert_int_equal(rp_chunk_column_count(chunk), 1);
    assert_int_equal(rp_chunk_get_column(chunk, 0)->dtype, RP_INT64);
    assert_true(rp_shape_equal(&rp_chunk_get_column(chunk, 0)->shape, &SHAPE(3)));
    assert_int_equal(rp_chunk_get_column(chunk, 0)->raw_bytes, 24);
    assert_int_equal(rp_chunk_get_column(chunk, 0)->stored_bytes, 26);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(
        rp_decoder_rows(decoder, chunk, (rp_row_range){0, 0, 3}, rows, sizeof rows, NULL));
    assert_memory_equal(rows, document_rows, sizeof rows);
    rp_decoder_free(decoder);
    rp_chunk_unref(chunk);
}

/* The value of a varint field of the message of `chunk`; UINT64_MAX if it is not there. */
static uint64_t field_of(const rp_chunk *chunk, uint32_t number)
{
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);
    rp_pb_reader reader = rp_pb_open(wire, size);
    uint64_t value = UINT64_MAX;
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (rp_pb_is(&f, number, RP_PB_VARINT)) value = f.value;
    return value;
}

static void reprise_codecs_are_in_field_1000(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *chunk = rp_test_ints(5, (rp_codec)codec, 3, 2);
        bool ours = codec == RP_CODEC_ZSTD || codec == RP_CODEC_LZ4;
        assert_true(field_of(chunk, 1000) == (ours ? (uint64_t)codec : UINT64_MAX));
        assert_int_equal(field_of(chunk, RP_PB_CHUNK_TENSOR_COUNT), 1);
        assert_int_equal(field_of(chunk, RP_PB_CHUNK_RAW_BYTES), 24);
        rp_chunk_unref(chunk);
    }
}

static void delta_encoding_is_marked(void **state)
{
    rp_chunk_options options = {.delta = true};
    rp_spec spec = {NULL, RP_INT32, SHAPE(2)};
    int32_t rows[] = {1, 2, 3, 4};
    rp_chunk *chunk = rp_test_chunk(1, &options, &spec, 2, rows);

    (void)state;
    assert_true(rp_chunk_is_delta(chunk));
    assert_int_equal(field_of(chunk, RP_PB_CHUNK_DELTA), 1);
    rp_chunk_unref(chunk);
    options.delta = false;
    chunk = rp_test_chunk(1, &options, &spec, 2, rows);
    assert_true(field_of(chunk, RP_PB_CHUNK_DELTA) == UINT64_MAX);
    rp_chunk_unref(chunk);
}

static void strings_count_for_24_bytes_more_than_they_have(void **state)
{
    rp_spec spec = {NULL, RP_STRING, SHAPE(2)};
    rp_string rows[] = {{"abc", 3}, {"", 0}};
    rp_chunk *chunk = rp_test_chunk(1, NULL, &spec, 1, rows);

    (void)state;
    assert_int_equal(field_of(chunk, RP_PB_CHUNK_RAW_BYTES), 2 * 24 + 3);
    rp_chunk_unref(chunk);
}

static void unknown_fields_are_skipped_everywhere(void **state)
{
    message range = {.size = 0}, dim = {.size = 0}, shape = {.size = 0}, t = {.size = 0};
    message data = {.size = 0}, m = {.size = 0};
    rp_chunk *chunk;

    (void)state;
    add_varint(&range, 77, 1);
    add_varint(&range, RP_PB_RANGE_EPISODE, 9);
    add_bytes(&dim, 2, "time", 4); /* the name of a dimension */
    add_varint(&dim, RP_PB_DIM_SIZE, 1);
    add_varint(&shape, 50, 3);
    add_message(&shape, RP_PB_SHAPE_DIM, &dim);
    add_varint(&t, 3, 5); /* version_number */
    add_varint(&t, RP_PB_TENSOR_DTYPE, RP_UINT8);
    add_message(&t, RP_PB_TENSOR_SHAPE, &shape);
    add_bytes(&t, RP_PB_TENSOR_CONTENT, "\1\0x", 3);
    add_bytes(&t, 300, "?", 1);
    add_varint(&data, 2, 2);
    add_message(&data, RP_PB_DATA_TENSOR, &t);
    add_message(&m, RP_PB_CHUNK_RANGE, &range);
    add_bytes(&m, 3, "old", 3); /* deprecated_data */
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    add_varint(&m, 500000, 1);
    chunk = parse(&m);
    assert_int_equal(rp_chunk_get_origin(chunk)->episode, 9);
    assert_true(rp_shape_equal(&rp_chunk_get_column(chunk, 0)->shape, &SHAPE(1)));
    rp_chunk_unref(chunk);
}

static void of_a_repeated_number_the_last_counts(void **state)
{
    message m = {.size = 0}, data = data_of(2);
    rp_chunk *chunk;

    (void)state;
    add_varint(&m, RP_PB_CHUNK_KEY, 5);
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    add_varint(&m, RP_PB_CHUNK_KEY, 6);
    chunk = parse(&m);
    assert_int_equal(rp_chunk_get_origin(chunk)->key, 6);
    rp_chunk_unref(chunk);
}

static void repeated_data_is_concatenated(void **state)
{
    message m = {.size = 0}, first = data_of(2), second = data_of(3);
    rp_chunk *chunk;

    (void)state;
    add_message(&m, RP_PB_CHUNK_DATA, &first);
    add_varint(&m, RP_PB_CHUNK_TENSOR_COUNT, 2);
    add_message(&m, RP_PB_CHUNK_DATA, &second);
    chunk = parse(&m);
    assert_int_equal(rp_chunk_column_count(chunk), 2);
    assert_int_equal(rp_chunk_get_column(chunk, 0)->raw_bytes, 2);
    assert_int_equal(rp_chunk_get_column(chunk, 1)->raw_bytes, 3);
    rp_chunk_unref(chunk);
}

static void a_repeated_range_is_merged(void **state)
{
    message m = {.size = 0}, data = data_of(2), one = {.size = 0}, two = {.size = 0};
    rp_chunk *chunk;

    (void)state;
    add_varint(&one, RP_PB_RANGE_EPISODE, 4);
    add_varint(&one, RP_PB_RANGE_END, 8);
    add_varint(&two, RP_PB_RANGE_END, 9);
    add_varint(&two, RP_PB_RANGE_SPARSE, 1);
    add_message(&m, RP_PB_CHUNK_RANGE, &one);
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    add_message(&m, RP_PB_CHUNK_RANGE, &two);
    chunk = parse(&m);
    assert_int_equal(rp_chunk_get_origin(chunk)->episode, 4);
    assert_int_equal(rp_chunk_get_origin(chunk)->last_step, 9);
    assert_true(rp_chunk_get_origin(chunk)->sparse);
    rp_chunk_unref(chunk);
}

static void a_repeated_shape_adds_dimensions(void **state)
{
    message m = {.size = 0}, data = {.size = 0}, t = {.size = 0}, two = shape_of(2);
    rp_chunk *chunk;

    (void)state;
    add_varint(&t, RP_PB_TENSOR_DTYPE, RP_UINT8);
    add_message(&t, RP_PB_TENSOR_SHAPE, &two);
    add_message(&t, RP_PB_TENSOR_SHAPE, &two);
    add_bytes(&t, RP_PB_TENSOR_CONTENT,
              "\4\x0c"
              "abcd",
              6);
    add_message(&data, RP_PB_DATA_TENSOR, &t);
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    chunk = parse(&m);
    assert_true(rp_shape_equal(&rp_chunk_get_column(chunk, 0)->shape, &SHAPE(2, 2)));
    rp_chunk_unref(chunk);
}

static void the_last_content_counts(void **state)
{
    message m = {.size = 0}, data = {.size = 0}, t = {.size = 0}, two = shape_of(2);
    rp_chunk *chunk;

    (void)state;
    add_varint(&t, RP_PB_TENSOR_DTYPE, RP_UINT8);
    add_bytes(&t, RP_PB_TENSOR_CONTENT, "nonsense", 8);
    add_message(&t, RP_PB_TENSOR_SHAPE, &two);
    add_bytes(&t, RP_PB_TENSOR_CONTENT, "\2\4ab", 4);
    add_message(&data, RP_PB_DATA_TENSOR, &t);
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    chunk = parse(&m);
    assert_int_equal(rp_chunk_get_column(chunk, 0)->stored_bytes, 4);
    rp_chunk_unref(chunk);
}

static void a_known_number_of_another_type_is_unknown(void **state)
{
    message m = {.size = 0}, data = data_of(2);
    rp_chunk *chunk;

    (void)state;
    add_bytes(&m, RP_PB_CHUNK_KEY, "key", 3);
    add_varint(&m, RP_PB_CHUNK_RANGE, 3);
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    add_bytes(&m, RP_PB_CHUNK_CODEC, "zstd", 4);
    chunk = parse(&m);
    assert_int_equal(rp_chunk_get_origin(chunk)->key, 0);
    assert_int_equal(rp_chunk_codec(chunk), RP_CODEC_SNAPPY);
    rp_chunk_unref(chunk);
}

static void negative_steps_are_read_as_int32(void **state)
{
    message m = {.size = 0}, data = data_of(2), range = {.size = 0};
    rp_chunk *chunk;

    (void)state;
    add_varint(&range, RP_PB_RANGE_START, (uint64_t)(int64_t)-5);
    add_varint(&range, RP_PB_RANGE_END, 0xffffffffu); /* -1 in 32 bits */
    add_message(&m, RP_PB_CHUNK_RANGE, &range);
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    chunk = parse(&m);
    assert_int_equal(rp_chunk_get_origin(chunk)->first_step, -5);
    assert_int_equal(rp_chunk_get_origin(chunk)->last_step, -1);
    rp_chunk_unref(chunk);
}

static void a_group_anywhere_is_refused(void **state)
{
    static const uint8_t group[] = {0x0b, 0x0c}; /* begin and end of group 1 */
    message m = {.size = 0}, data = data_of(2), bad_range = {.size = 0};
    rp_chunk *chunk = NULL;
    rp_error err;

    (void)state;
    add_message(&m, RP_PB_CHUNK_DATA, &data);
    memcpy(m.bytes + m.size, group, 2);
    m.size += 2;
    assert_fails(rp_chunk_parse(rp_allocator_default(), m.bytes, m.size, NULL, &chunk, &err),
                 RP_CORRUPT, &err, "not a valid message");
    m.size -= 2;
    memcpy(bad_range.bytes, group, 2);
    bad_range.size = 2;
    add_message(&m, RP_PB_CHUNK_RANGE, &bad_range);
    assert_fails(rp_chunk_parse(rp_allocator_default(), m.bytes, m.size, NULL, &chunk, &err),
                 RP_CORRUPT, &err, "sequence range");
}

static void written_messages_have_the_computed_size(void **state)
{
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 51);
    for (int i = 0; i < 300; i++) {
        rp_chunk_part parts[3];
        rp_chunk_outline outline = {
            .origin = {.key = rp_rng_next(&rng) >> rp_rng_below(&rng, 64),
                       .episode = rp_rng_next(&rng) >> rp_rng_below(&rng, 64),
                       .first_step = (int32_t)rp_rng_below(&rng, 1000),
                       .last_step = (int32_t)(1000 + rp_rng_below(&rng, 100000)),
                       .sparse = rp_rng_below(&rng, 2) == 0},
            .codec = (rp_codec)rp_rng_below(&rng, 4),
            .delta = rp_rng_below(&rng, 2) == 0,
            .column_count = 1 + rp_rng_below(&rng, 3)};
        uint8_t text[256], dst[4096];
        rp_chunk_outline back;
        rp_chunk_limits limits = rp_chunk_limits_default();
        size_t size, raw = rp_rng_next(&rng) >> rp_rng_below(&rng, 64);
        for (int k = 0; k < 3; k++) {
            parts[k] = (rp_chunk_part){.dtype = RP_STRING, .shape = SHAPE(3, 300, 0)};
            parts[k].shape.rank = (int32_t)rp_rng_below(&rng, 4);
            parts[k].content.pieces[0].data = parts[k].content.pieces[1].data = text;
            parts[k].content.pieces[0].size = rp_rng_below(&rng, 200);
            parts[k].content.pieces[1].size = rp_rng_below(&rng, 200);
            parts[k].content.head_bytes = rp_rng_below(&rng, 16);
        }
        memset(text, 'x', sizeof text);
        size = rp_chunk_wire_size(&outline, parts, raw);
        assert_true(size + 1 < sizeof dst);
        memset(dst, 0xcc, sizeof dst);
        rp_chunk_wire_write(&outline, parts, raw, dst);
        assert_int_equal(dst[size], 0xcc);
        assert_ok(rp_chunk_wire_outline(dst, size, &limits, &back, NULL));
        assert_memory_equal(&back.origin, &outline.origin, offsetof(rp_chunk_origin, sparse));
        assert_int_equal(back.origin.sparse, outline.origin.sparse);
        assert_int_equal(back.delta, outline.delta);
        assert_int_equal(back.column_count, outline.column_count);
    }
}

static void the_key_of_a_chunk_is_found_at_any_position(void **state)
{
    rp_test_bytes b = rp_test_bytes_of("1200 0801 2a00 08ffffffffffffffffff01");
    rp_chunk_head head;
    rp_error err = {0};

    (void)state;
    assert_ok(rp_chunk_wire_peek(b.data, b.size, &head, &err));
    assert_true(head.origin.key == UINT64_MAX); /* the last counts */
    assert_ok(rp_chunk_wire_peek(b.data, 4, &head, &err));
    assert_int_equal(head.origin.key, 1);
    assert_ok(rp_chunk_wire_peek(NULL, 0, &head, &err));
    assert_int_equal(head.origin.key, 0);
    assert_fails(rp_chunk_wire_peek(b.data, 3, &head, &err), RP_INVALID, &err, "ChunkData");
}

static void a_leading_key_is_found_without_parsing_the_rest(void **state)
{
    rp_test_bytes b = rp_test_bytes_of("08ac02 0b"); /* then a group */
    rp_chunk_head head;
    rp_error err = {0};

    (void)state;
    assert_ok(rp_chunk_wire_peek(b.data, b.size, &head, &err));
    assert_int_equal(head.origin.key, 300);
    assert_fails(rp_chunk_wire_peek(b.data, 2, &head, &err), RP_INVALID, &err, "ChunkData");
    assert_fails(rp_chunk_wire_peek(b.data, 1, &head, &err), RP_INVALID, &err, "ChunkData");
}

static void a_peeked_head_is_complete_or_only_a_key(void **state)
{
    static const struct {
        const char *hex;
        size_t bytes; /* of the head */
    } messages[] = {
        {"08ac02 1200 2a00", 5},
        {"08ac02 1208 0807 1001 1802 2001 2a00", 13},
        {"08ac02 1206 1802 1001 0807 2a00", 0}, /* in another order */
        {"08ac02 1204 1003 1802 2a00", 0},      /* the last step before the first */
        {"08ac02 1202 7801 2a00", 0},           /* a field nobody knows */
        {"08ac02 1209 0807", 0},                /* cut off */
        {"08ac02 2a00", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        rp_test_bytes b = rp_test_bytes_of(messages[i].hex);
        rp_chunk_head head;

        assert_ok(rp_chunk_wire_peek(b.data, b.size, &head, NULL));
        assert_int_equal(head.origin.key, 300);
        assert_int_equal(head.bytes, messages[i].bytes);
        if (i != 1) continue;
        assert_int_equal(head.origin.episode, 7);
        assert_int_equal(head.origin.first_step, 1);
        assert_int_equal(head.origin.last_step, 2);
        assert_true(head.origin.sparse);
    }
}

RP_TESTS(chunk_wire)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_encoder_writes_the_vector_of_the_document),
        cmocka_unit_test(the_vector_of_the_document_is_read),
        cmocka_unit_test(reprise_codecs_are_in_field_1000),
        cmocka_unit_test(delta_encoding_is_marked),
        cmocka_unit_test(strings_count_for_24_bytes_more_than_they_have),
        cmocka_unit_test(unknown_fields_are_skipped_everywhere),
        cmocka_unit_test(of_a_repeated_number_the_last_counts),
        cmocka_unit_test(repeated_data_is_concatenated),
        cmocka_unit_test(a_repeated_range_is_merged),
        cmocka_unit_test(a_repeated_shape_adds_dimensions),
        cmocka_unit_test(the_last_content_counts),
        cmocka_unit_test(a_known_number_of_another_type_is_unknown),
        cmocka_unit_test(negative_steps_are_read_as_int32),
        cmocka_unit_test(a_group_anywhere_is_refused),
        cmocka_unit_test(written_messages_have_the_computed_size),
        cmocka_unit_test(the_key_of_a_chunk_is_found_at_any_position),
        cmocka_unit_test(a_leading_key_is_found_without_parsing_the_rest),
        cmocka_unit_test(a_peeked_head_is_complete_or_only_a_key),
    };
    return cmocka_run_group_tests_name("chunk_wire", tests, NULL, NULL);
}
