/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/chunk.h"

#include "chunk/chunk_wire.h"
#include "chunk/protobuf.h"
#include "support/chunks.h"

/* What a TensorProto says; written by put_tensor(). */
typedef struct tensor {
    uint64_t dtype;
    int64_t dims[20];
    size_t rank;
    const char *content;
    size_t content_bytes;
    uint32_t extra_field; /* with one byte, if not 0 */
    bool unknown_rank;
} tensor;

static uint8_t *put_bytes(uint8_t *at, uint32_t number, const void *data, size_t size)
{
    at = rp_pb_put_bytes_head(at, number, size);
    if (size > 0) memcpy(at, data, size);
    return at + size;
}

static uint8_t *put_tensor(uint8_t *at, const tensor *t)
{
    uint8_t shape[512], dim[16], *end = shape;

    for (size_t i = 0; i < t->rank; i++) {
        uint8_t *dim_end = rp_pb_put_varint_field(dim, RP_PB_DIM_SIZE, (uint64_t)t->dims[i]);
        end = put_bytes(end, RP_PB_SHAPE_DIM, dim, (size_t)(dim_end - dim));
    }
    if (t->unknown_rank) end = rp_pb_put_varint_field(end, RP_PB_SHAPE_UNKNOWN_RANK, 1);
    at = rp_pb_put_varint_field(at, RP_PB_TENSOR_DTYPE, t->dtype);
    at = put_bytes(at, RP_PB_TENSOR_SHAPE, shape, (size_t)(end - shape));
    if (t->content_bytes > 0)
        at = put_bytes(at, RP_PB_TENSOR_CONTENT, t->content, t->content_bytes);
    if (t->extra_field != 0) at = put_bytes(at, t->extra_field, "v", 1);
    return at;
}

/* A message with one tensor, in `wire`; returns its size. */
static size_t message_of(const tensor *t, uint8_t *wire)
{
    uint8_t body[1024], data[1100], *end = put_tensor(body, t);
    uint8_t *data_end = put_bytes(data, RP_PB_DATA_TENSOR, body, (size_t)(end - body));

    return (size_t)(put_bytes(wire, RP_PB_CHUNK_DATA, data, (size_t)(data_end - data)) - wire);
}

static rp_status parse_limited(const uint8_t *wire, size_t size, const rp_chunk_limits *limits,
                               rp_error *err)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    uint8_t *copy = malloc(size + 1); /* of exact size, for the sanitizer */
    rp_chunk *chunk = NULL;
    rp_status st;

    assert_non_null(copy);
    memcpy(copy, wire, size);
    st = rp_chunk_parse(&alloc, copy, size, limits, &chunk, err);
    assert_true((st == RP_OK) == (chunk != NULL));
    rp_chunk_unref(chunk);
    assert_int_equal(o.live, 0);
    free(copy);
    return st;
}

static void assert_tensor_fails(const tensor *t, rp_status expected, const char *part)
{
    uint8_t wire[2048];
    size_t size = message_of(t, wire);
    rp_error err = {0};

    assert_fails(parse_limited(wire, size, NULL, &err), expected, &err, part);
}

/* "\2\4ab": two bytes, stored */
static const tensor two_bytes = {
    .dtype = RP_UINT8, .dims = {2}, .rank = 1, .content = "\2\4ab", .content_bytes = 4};

static void a_parsed_chunk_keeps_the_bytes_as_they_came(void **state)
{
    uint8_t wire[2048];
    size_t size = message_of(&two_bytes, wire), kept;
    rp_chunk *chunk = NULL;

    (void)state;
    assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &chunk, NULL));
    assert_memory_equal(rp_chunk_wire(chunk, &kept), wire, size);
    assert_int_equal(kept, size);
    assert_ptr_not_equal(rp_chunk_wire(chunk, &kept), wire);
    rp_chunk_unref(chunk);
}

static void a_new_chunk_has_no_holders(void **state)
{
    rp_chunk *built = rp_test_ints(1, RP_CODEC_SNAPPY, 2, 2), *parsed = NULL;
    size_t size;
    const uint8_t *wire = rp_chunk_wire(built, &size);
    static const rp_holders none;

    (void)state;
    assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &parsed, NULL));
    assert_memory_equal(&built->holders, &none, sizeof none);
    assert_memory_equal(&parsed->holders, &none, sizeof none);
    rp_chunk_unref(parsed);
    rp_chunk_unref(built);
}

static void the_last_reference_frees(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    uint8_t wire[2048];
    size_t size = message_of(&two_bytes, wire);
    rp_chunk *chunk = NULL;

    (void)state;
    assert_ok(rp_chunk_parse(&alloc, wire, size, NULL, &chunk, NULL));
    assert_int_equal(o.live, 1); /* one allocation */
    assert_ptr_equal(rp_chunk_ref(chunk), chunk);
    rp_chunk_unref(chunk);
    assert_int_equal(o.live, 1);
    rp_chunk_unref(chunk);
    assert_int_equal(o.live, 0);
    rp_chunk_unref(NULL);
}

static void every_dtype_is_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rp_test_dtypes); i++) {
        size_t size = rp_dtype_size(rp_test_dtypes[i]);
        char content[20] = {(char)size, (char)((size - 1) << 2)};
        tensor t = {.dtype = (uint64_t)rp_test_dtypes[i],
                    .dims = {1},
                    .rank = 1,
                    .content = content,
                    .content_bytes = size + 2};
        uint8_t wire[2048];
        rp_error err;
        assert_ok_err(parse_limited(wire, message_of(&t, wire), NULL, &err), &err);
    }
}

static void unknown_dtypes_are_refused(void **state)
{
    static const uint64_t none[] = {0, 20, 21, 26, 31, 104, UINT32_MAX, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        tensor t = two_bytes;
        t.dtype = none[i];
        assert_tensor_fails(&t, RP_INVALID, "unsupported dtype");
    }
}

static void shapes_without_rows_are_refused(void **state)
{
    tensor scalar = two_bytes, unknown = two_bytes;

    (void)state;
    scalar.rank = 0;
    unknown.unknown_rank = true;
    assert_tensor_fails(&scalar, RP_CORRUPT, "no dimension for its rows");
    assert_tensor_fails(&unknown, RP_CORRUPT, "no dimension for its rows");
}

static void impossible_shapes_are_refused(void **state)
{
    tensor negative = two_bytes, huge = two_bytes, hidden = two_bytes, deep = two_bytes;

    (void)state;
    negative.dims[0] = -2;
    huge.rank = hidden.rank = 3;
    huge.dims[1] = huge.dims[2] = (int64_t)1 << 40;
    memcpy(hidden.dims, huge.dims, sizeof huge.dims);
    hidden.dims[0] = 0;
    deep.rank = RP_MAX_RANK + 1;
    for (size_t i = 1; i < deep.rank; i++) deep.dims[i] = 1;
    assert_tensor_fails(&negative, RP_CORRUPT, "negative dimension");
    assert_tensor_fails(&huge, RP_CORRUPT, "too large");
    assert_tensor_fails(&hidden, RP_CORRUPT, "too large");
    assert_tensor_fails(&deep, RP_NO_RESOURCE, "rank is over the limit");
}

static void the_deepest_shape_is_accepted(void **state)
{
    tensor deep = two_bytes;
    uint8_t wire[2048];

    (void)state;
    deep.rank = RP_MAX_RANK;
    for (size_t i = 1; i < deep.rank; i++) deep.dims[i] = 1;
    assert_ok(parse_limited(wire, message_of(&deep, wire), NULL, NULL));
}

static void content_of_another_size_is_refused(void **state)
{
    tensor more = two_bytes, less = two_bytes, none = two_bytes;

    (void)state;
    more.dims[0] = 3;
    less.dims[0] = 1;
    none.content_bytes = 0;
    assert_tensor_fails(&more, RP_CORRUPT, "does not declare the size of its shape");
    assert_tensor_fails(&less, RP_CORRUPT, "does not declare the size of its shape");
    assert_tensor_fails(&none, RP_CORRUPT, "no content");
}

static void values_in_typed_fields_are_refused_with_a_sentence(void **state)
{
    static const uint32_t fields[] = {5, 6, 7, 9, 10, 11, 12, 13, 16, 17, 18};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        tensor t = two_bytes;
        t.content_bytes = 0;
        t.extra_field = fields[i];
        assert_tensor_fails(&t, RP_INVALID, "typed fields");
    }
}

static void an_empty_tensor_needs_no_content(void **state)
{
    tensor t = two_bytes;
    uint8_t wire[2048];

    (void)state;
    t.dims[0] = 0;
    t.content_bytes = 0;
    assert_ok(parse_limited(wire, message_of(&t, wire), NULL, NULL));
    t.content = "\0";
    t.content_bytes = 1;
    assert_ok(parse_limited(wire, message_of(&t, wire), NULL, NULL));
}

static void malformed_strings_are_refused(void **state)
{
    tensor t = {
        .dtype = RP_STRING, .dims = {2}, .rank = 1, .content = "\1\2abc", .content_bytes = 5};
    uint8_t wire[2048];

    (void)state;
    assert_ok(parse_limited(wire, message_of(&t, wire), NULL, NULL));
    t.content_bytes = 4;
    assert_tensor_fails(&t, RP_CORRUPT, "strings are malformed");
    t.content_bytes = 5;
    t.dims[0] = 0;
    assert_tensor_fails(&t, RP_CORRUPT, "strings are malformed");
}

static void strings_in_string_val_are_accepted(void **state)
{
    tensor t = {.dtype = RP_STRING, .dims = {3}, .rank = 1, .extra_field = 8};
    uint8_t wire[2048];
    size_t size = message_of(&t, wire);
    rp_chunk *chunk = NULL;
    rp_decoder *decoder = NULL;
    rp_string s[3];

    (void)state;
    assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &chunk, NULL));
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_decoder_strings(decoder, chunk, (rp_row_range){0, 0, 3}, s, 3, NULL));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s[i].size, 1);
        assert_int_equal(s[i].data[0], 'v');
    }
    rp_decoder_free(decoder);
    rp_chunk_unref(chunk);
}

static void many_strings_out_of_one_are_limited(void **state)
{
    tensor t = {.dtype = RP_STRING, .dims = {(int64_t)1 << 40}, .rank = 1, .extra_field = 8};

    (void)state;
    assert_tensor_fails(&t, RP_NO_RESOURCE, "over the limit");
}

static void a_message_without_tensors_is_refused(void **state)
{
    rp_error err;

    (void)state;
    assert_fails(parse_limited((const uint8_t *)"", 0, NULL, &err), RP_CORRUPT, &err,
                 "no tensors");
    assert_fails(parse_limited((const uint8_t *)"\x08\x05\x2a\x00", 4, NULL, &err), RP_CORRUPT,
                 &err, "chunk 5: no tensors");
}

static void a_wrong_number_of_tensors_is_refused(void **state)
{
    uint8_t wire[2048];
    size_t size = message_of(&two_bytes, wire);
    rp_error err;

    (void)state;
    for (uint64_t count = 0; count < 3; count++) {
        uint8_t *end = rp_pb_put_varint_field(wire + size, RP_PB_CHUNK_TENSOR_COUNT, count);
        rp_status st = parse_limited(wire, (size_t)(end - wire), NULL, &err);
        if (count == 1)
            assert_ok_err(st, &err);
        else
            assert_fails(st, RP_CORRUPT, &err, "are declared");
    }
}

static void steps_in_the_wrong_order_are_refused(void **state)
{
    uint8_t wire[2048];
    uint8_t *end = wire + message_of(&two_bytes, wire);
    rp_error err;

    (void)state;
    end = put_bytes(end, RP_PB_CHUNK_RANGE, "\x10\x05\x18\x04", 4);
    assert_fails(parse_limited(wire, (size_t)(end - wire), NULL, &err), RP_CORRUPT, &err,
                 "last step 4 is before step 5");
}

static void unknown_codecs_are_refused(void **state)
{
    static const uint64_t none[] = {4, 256, 257, 1u << 31, UINT64_MAX};
    uint8_t wire[2048];
    size_t size = message_of(&two_bytes, wire);
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        uint8_t *end = rp_pb_put_varint_field(wire + size, RP_PB_CHUNK_CODEC, none[i]);
        assert_fails(parse_limited(wire, (size_t)(end - wire), NULL, &err), RP_INVALID, &err,
                     "unknown codec");
    }
}

static void the_limit_on_the_message_is_exact(void **state)
{
    rp_chunk_limits limits = rp_chunk_limits_default();
    uint8_t wire[2048];
    size_t size = message_of(&two_bytes, wire);
    rp_error err;

    (void)state;
    limits.max_wire_bytes = size;
    assert_ok_err(parse_limited(wire, size, &limits, &err), &err);
    limits.max_wire_bytes = size - 1;
    assert_fails(parse_limited(wire, size, &limits, &err), RP_NO_RESOURCE, &err,
                 "over the limit");
}

static void the_limit_on_raw_bytes_is_exact_over_all_columns(void **state)
{
    rp_chunk_limits limits = rp_chunk_limits_default();
    uint8_t wire[4096], *end = wire;
    rp_error err;

    (void)state;
    for (int i = 0; i < 3; i++) end += message_of(&two_bytes, end);
    limits.max_raw_bytes = 6;
    assert_ok_err(parse_limited(wire, (size_t)(end - wire), &limits, &err), &err);
    limits.max_raw_bytes = 5;
    assert_fails(parse_limited(wire, (size_t)(end - wire), &limits, &err), RP_NO_RESOURCE, &err,
                 "tensor 2: decompressed, the chunk would be over the limit of 5 bytes");
}

static void the_limit_on_columns_is_exact(void **state)
{
    rp_chunk_limits limits = rp_chunk_limits_default();
    uint8_t wire[4096], *end = wire;
    rp_error err;

    (void)state;
    for (int i = 0; i < 3; i++) end += message_of(&two_bytes, end);
    limits.max_columns = 3;
    assert_ok_err(parse_limited(wire, (size_t)(end - wire), &limits, &err), &err);
    limits.max_columns = 2;
    assert_fails(parse_limited(wire, (size_t)(end - wire), &limits, &err), RP_NO_RESOURCE, &err,
                 "more than 2 columns");
}

static void the_default_limits_are_those_documented(void **state)
{
    rp_chunk_limits limits = rp_chunk_limits_default();

    (void)state;
    assert_int_equal(limits.max_wire_bytes, 64 << 20);
    assert_int_equal(limits.max_raw_bytes, 1 << 30);
    assert_int_equal(limits.max_columns, RP_MAX_COLUMNS);
}

static void a_decompression_bomb_is_refused_before_decoding(void **state)
{
    /* 4 GiB - 1 declared by a block of seven bytes */
    tensor bomb = {.dtype = RP_UINT8,
                   .dims = {UINT32_MAX},
                   .rank = 1,
                   .content = "\xff\xff\xff\xff\x0f\0a",
                   .content_bytes = 7};

    (void)state;
    assert_tensor_fails(&bomb, RP_NO_RESOURCE, "over the limit");
}

/* Reads all that can be read of the bytes; any status will do, but no crash. */
static void read_all(const uint8_t *wire, size_t size)
{
    rp_chunk_limits limits = {4096, 4096, 16};
    uint8_t *copy = malloc(size + 1);
    rp_decoder *decoder = NULL;
    rp_chunk *chunk = NULL;

    assert_non_null(copy);
    memcpy(copy, wire, size);
    if (rp_chunk_parse(rp_allocator_default(), copy, size, &limits, &chunk, NULL) == RP_OK) {
        assert_ok(rp_decoder_new(rp_allocator_default(), 1000, &decoder));
        for (size_t i = 0; i < rp_chunk_column_count(chunk); i++) {
            const rp_chunk_column *c = rp_chunk_get_column(chunk, i);
            size_t rows = rp_chunk_rows(chunk, i);
            uint8_t dst[4096];
            rp_status st = c->dtype == RP_STRING
                               ? RP_OK
                               : rp_decoder_rows(decoder, chunk, (rp_row_range){i, 0, rows},
                                                 dst, c->raw_bytes, NULL);
            assert_true(st == RP_OK || st == RP_CORRUPT);
        }
        rp_decoder_free(decoder);
    }
    rp_chunk_unref(chunk);
    free(copy);
}

/* A chunk of three columns: numbers, strings, one scalar a row. */
static rp_chunk *mixed_chunk(rp_codec codec)
{
    rp_spec specs[] = {
        {"n", RP_INT32, SHAPE(3)}, {"s", RP_STRING, SHAPE(2)}, {"x", RP_UINT8, SCALAR}};
    rp_chunk_options options = {.codec = codec, .delta = true};
    rp_chunk_origin origin = {.key = 99, .episode = 3, .first_step = 2, .last_step = 5};
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;

    assert_ok(rp_chunk_builder_new(rp_allocator_default(), specs, 3, &options, &builder, NULL));
    for (int32_t i = 0; i < 4; i++) {
        int32_t numbers[] = {i, 2 * i, 300 * i};
        rp_string strings[] = {{"hello", 5}, {"", 0}};
        uint8_t x = (uint8_t)i;
        rp_tensor row[] = {{RP_INT32, SHAPE(3), numbers},
                           {RP_STRING, SHAPE(2), strings},
                           {RP_UINT8, SCALAR, &x}};
        assert_ok(rp_chunk_builder_append(builder, row, NULL));
    }
    assert_ok(rp_chunk_builder_finish(builder, &origin, &chunk, NULL));
    rp_chunk_builder_free(builder);
    return chunk;
}

static void every_truncation_gives_a_status(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *chunk = mixed_chunk((rp_codec)codec);
        size_t size;
        const uint8_t *wire = rp_chunk_wire(chunk, &size);
        for (size_t cut = 0; cut < size; cut++) read_all(wire, cut);
        assert_int_equal(parse_limited(wire, size / 2, NULL, NULL), RP_CORRUPT);
        assert_ok(parse_limited(wire, size, NULL, NULL));
        rp_chunk_unref(chunk);
    }
}

static void every_changed_bit_gives_a_status(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *chunk = mixed_chunk((rp_codec)codec);
        size_t size;
        const uint8_t *wire = rp_chunk_wire(chunk, &size);
        uint8_t *copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, wire, size);
        for (size_t i = 0; i < 8 * size; i++) {
            copy[i / 8] ^= (uint8_t)(1u << i % 8);
            read_all(copy, size);
            copy[i / 8] ^= (uint8_t)(1u << i % 8);
        }
        free(copy);
        rp_chunk_unref(chunk);
    }
}

static rp_status parse_once(const rp_allocator *alloc)
{
    uint8_t wire[2048];
    size_t size = message_of(&two_bytes, wire);
    rp_chunk *chunk = NULL;
    rp_error err;
    rp_status st = rp_chunk_parse(alloc, wire, size, NULL, &chunk, &err);

    rp_chunk_unref(chunk);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(parse_once);
}

/* Two chunks of three columns are alike in all that is read from their messages. */
static void assert_alike(const rp_chunk *parsed, const rp_chunk *built)
{
    for (size_t i = 0; i < 3; i++) {
        const rp_chunk_column *a = &parsed->columns[i], *b = &built->columns[i];
        const rp_column_place *at = &parsed->places[i], *other = &built->places[i];
        assert_true(a->dtype == b->dtype && rp_shape_equal(&a->shape, &b->shape));
        assert_true(a->raw_bytes == b->raw_bytes && a->stored_bytes == b->stored_bytes);
        assert_true(at->content_at == other->content_at && at->rows_at == other->rows_at);
        assert_true(at->row_bytes == other->row_bytes && at->form == other->form);
        assert_true(at->delta == other->delta);
    }
}

static void a_parsed_chunk_looks_like_the_built_one(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *built = mixed_chunk((rp_codec)codec), *parsed = NULL;
        size_t size;
        const uint8_t *wire = rp_chunk_wire(built, &size);
        assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &parsed, NULL));
        assert_alike(parsed, built);
        assert_int_equal(parsed->origin.key, 99);
        assert_int_equal(parsed->origin.last_step, 5);
        assert_int_equal(built->codec, codec);
        assert_int_equal(parsed->codec, codec == RP_CODEC_NONE ? RP_CODEC_SNAPPY : codec);
        rp_chunk_unref(parsed);
        rp_chunk_unref(built);
    }
}

/* Stands for somebody whose bytes are adopted. */
static void count_release(void *ctx)
{
    ++*(int *)ctx;
}

static void an_adopted_chunk_borrows_the_bytes_and_releases_them_once(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    uint8_t wire[2048], rows[2];
    int released = 0;
    rp_chunk_owner owner = {count_release, &released};
    size_t size = message_of(&two_bytes, wire), kept;
    rp_chunk *chunk = NULL;
    rp_decoder *decoder = NULL;

    (void)state;
    assert_ok(rp_chunk_adopt(&alloc, wire, size, NULL, &owner, &chunk, NULL));
    owner = (rp_chunk_owner){NULL, NULL}; /* it has a copy */
    assert_ptr_equal(rp_chunk_wire(chunk, &kept), wire);
    assert_int_equal(kept, size);
    assert_int_equal(chunk->wire_bytes, size);
    assert_ok(rp_decoder_new(&alloc, 0, &decoder));
    assert_ok(rp_decoder_rows(decoder, chunk, (rp_row_range){0, 0, 2}, rows, 2, NULL));
    assert_memory_equal(rows, "ab", 2);
    rp_decoder_free(decoder);

    assert_int_equal(o.live, 1);
    assert_ptr_equal(rp_chunk_ref(chunk), chunk);
    rp_chunk_unref(chunk);
    assert_int_equal(released, 0);
    rp_chunk_unref(chunk);
    assert_int_equal(released, 1);
    assert_int_equal(o.live, 0);
}

static void a_chunk_that_cannot_be_adopted_leaves_the_bytes_alone(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(0);
    rp_allocator none = rp_test_oom_allocator(&o);
    rp_chunk_limits small = {.max_wire_bytes = 3, .max_raw_bytes = 99, .max_columns = 9};
    const rp_allocator *libc = rp_allocator_default();
    uint8_t wire[2048];
    int released = 0;
    rp_chunk_owner owner = {count_release, &released};
    tensor bad = two_bytes;
    size_t size = message_of(&two_bytes, wire);
    rp_chunk *chunk = NULL;
    rp_error err;

    (void)state;
    assert_fails(rp_chunk_adopt(libc, wire, size, &small, &owner, &chunk, &err), RP_NO_RESOURCE,
                 &err, "over the limit of 3");
    assert_fails(rp_chunk_adopt(libc, wire, size - 1, NULL, &owner, &chunk, &err), RP_CORRUPT,
                 &err, "not a valid message");
    assert_int_equal(rp_chunk_adopt(&none, wire, size, NULL, &owner, &chunk, NULL),
                     RP_NO_RESOURCE);
    bad.dims[0] = 3; /* found when the columns are read */
    size = message_of(&bad, wire);
    assert_fails(rp_chunk_adopt(libc, wire, size, NULL, &owner, &chunk, &err), RP_CORRUPT, &err,
                 "does not declare the size");
    assert_null(chunk);
    assert_int_equal(released, 0);
}

static void an_adopted_chunk_looks_like_a_parsed_one(void **state)
{
    (void)state;
    for (int codec = 0; codec < 4; codec++) {
        rp_chunk *built = mixed_chunk((rp_codec)codec), *parsed = NULL, *adopted = NULL;
        rp_chunk_owner owner = {NULL, NULL}; /* nobody to tell is fine */
        size_t size;
        const uint8_t *wire = rp_chunk_wire(built, &size);
        assert_ok(rp_chunk_parse(rp_allocator_default(), wire, size, NULL, &parsed, NULL));
        assert_ok(
            rp_chunk_adopt(rp_allocator_default(), wire, size, NULL, &owner, &adopted, NULL));
        assert_alike(adopted, parsed);
        assert_int_equal(adopted->origin.key, 99);
        assert_int_equal(adopted->codec, parsed->codec);
        assert_int_equal(adopted->delta, parsed->delta);
        rp_chunk_unref(adopted);
        rp_chunk_unref(parsed);
        rp_chunk_unref(built);
    }
}

/* 64 bytes for 3 is the most that snappy makes of its bytes. */
static void a_raw_size_beyond_the_codecs_best_ratio_is_refused(void **state)
{
    char content[5] = {0};
    tensor t = {.dtype = RP_UINT8, .rank = 1, .content = content, .content_bytes = 5};
    uint8_t wire[2048];

    (void)state;
    t.dims[0] = 5 * 64 / 3; /* 106 */
    content[0] = (char)t.dims[0];
    assert_ok(parse_limited(wire, message_of(&t, wire), NULL, NULL));
    t.dims[0]++;
    content[0]++;
    assert_tensor_fails(&t, RP_CORRUPT, "cannot hold it");
}

RP_TESTS(chunk)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_parsed_chunk_keeps_the_bytes_as_they_came),
        cmocka_unit_test(a_new_chunk_has_no_holders),
        cmocka_unit_test(the_last_reference_frees),
        cmocka_unit_test(every_dtype_is_accepted),
        cmocka_unit_test(unknown_dtypes_are_refused),
        cmocka_unit_test(shapes_without_rows_are_refused),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(the_deepest_shape_is_accepted),
        cmocka_unit_test(content_of_another_size_is_refused),
        cmocka_unit_test(values_in_typed_fields_are_refused_with_a_sentence),
        cmocka_unit_test(an_empty_tensor_needs_no_content),
        cmocka_unit_test(malformed_strings_are_refused),
        cmocka_unit_test(strings_in_string_val_are_accepted),
        cmocka_unit_test(many_strings_out_of_one_are_limited),
        cmocka_unit_test(a_message_without_tensors_is_refused),
        cmocka_unit_test(a_wrong_number_of_tensors_is_refused),
        cmocka_unit_test(steps_in_the_wrong_order_are_refused),
        cmocka_unit_test(unknown_codecs_are_refused),
        cmocka_unit_test(the_limit_on_the_message_is_exact),
        cmocka_unit_test(the_limit_on_raw_bytes_is_exact_over_all_columns),
        cmocka_unit_test(the_limit_on_columns_is_exact),
        cmocka_unit_test(the_default_limits_are_those_documented),
        cmocka_unit_test(a_decompression_bomb_is_refused_before_decoding),
        cmocka_unit_test(every_truncation_gives_a_status),
        cmocka_unit_test(every_changed_bit_gives_a_status),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_parsed_chunk_looks_like_the_built_one),
        cmocka_unit_test(an_adopted_chunk_borrows_the_bytes_and_releases_them_once),
        cmocka_unit_test(a_chunk_that_cannot_be_adopted_leaves_the_bytes_alone),
        cmocka_unit_test(an_adopted_chunk_looks_like_a_parsed_one),
        cmocka_unit_test(a_raw_size_beyond_the_codecs_best_ratio_is_refused),
    };
    return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}
