/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/items_response.h"

#include "chunk/chunk.h"
#include "chunk/protobuf.h"
#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "util/buf.h"

enum { ROWS = 30, COLS = 80, MAX_CHUNKS = 64, NO_LIMIT = 1 << 30 };

/* An answer as its reader has it. */
typedef struct reading {
    rp_buf bytes; /* of the whole message */
    rp_chunk *chunks[MAX_CHUNKS];
    size_t chunk_count;
    size_t entry_count;
    rp_buf rows; /* of all entries: keys, weights, columns and their rows */
    size_t chunk_bytes;
} reading;

static void put(rp_buf *buf, uint64_t number)
{
    rp_buf_append(buf, &number, sizeof number);
}

/* Appends rows of a column of a chunk. */
static void put_rows(rp_buf *buf, const rp_chunk *chunk, size_t column, size_t first,
                     size_t count)
{
    rp_decoder *decoder = NULL;
    size_t bytes = count * chunk->places[column].row_bytes;
    uint8_t *at = rp_buf_reserve(buf, bytes);
    rp_error err = {0};

    assert_non_null(at);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok_err(
        rp_decoder_rows(decoder, chunk, (rp_row_range){column, first, count}, at, bytes, &err),
        &err);
    rp_decoder_free(decoder);
    buf->size += bytes;
}

/* The submessage or number in field `number`; an empty one if there is none. */
static rp_pb_field field_of(const rp_pb_field *message, uint32_t number)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_field f, found = {.number = number};

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == number) found = f;
    return found;
}

static void read_slice(reading *r, const rp_pb_field *slice)
{
    uint64_t key = field_of(slice, 1).value;

    for (size_t i = 0; i < r->chunk_count; i++)
        if (r->chunks[i]->origin.key == key) {
            put_rows(&r->rows, r->chunks[i], field_of(slice, 4).value, field_of(slice, 2).value,
                     field_of(slice, 3).value);
            return;
        }
    fail_msg("no chunk of key %llu", (unsigned long long)key);
}

static void read_entry(reading *r, const rp_pb_field *entry)
{
    rp_pb_field info = field_of(entry, 1), item = field_of(&info, 1);
    rp_pb_field trajectory = field_of(&item, 8), column, slice;
    rp_pb_reader columns = rp_pb_open(trajectory.data, trajectory.size), slices;

    r->entry_count++;
    put(&r->rows, field_of(&item, 1).value);
    put(&r->rows, field_of(entry, 2).value);
    while (rp_pb_next(&columns, &column) == RP_PB_FIELD) {
        put(&r->rows, field_of(&column, 2).value);
        if (r->chunk_count == 0) continue;
        slices = rp_pb_open(column.data, column.size);
        while (rp_pb_next(&slices, &slice) == RP_PB_FIELD)
            if (slice.number == 1) read_slice(r, &slice);
    }
}

static reading read_reply(rp_message *reply)
{
    reading r = {0};
    rp_pb_reader fields;
    const uint8_t *data;
    rp_pb_field f;
    size_t size;

    rp_buf_init(&r.bytes, rp_allocator_default());
    rp_buf_init(&r.rows, rp_allocator_default());
    assert_true(rp_message_close(reply));
    while ((size = rp_message_take(reply, SIZE_MAX, &data)) > 0)
        rp_buf_append(&r.bytes, data, size);
    fields = rp_pb_open(r.bytes.data + RP_GRPC_PREFIX, r.bytes.size - RP_GRPC_PREFIX);
    while (rp_pb_next(&fields, &f) == RP_PB_FIELD) {
        if (f.number == 1) {
            assert_true(r.chunk_count < MAX_CHUNKS);
            assert_ok(rp_chunk_parse(rp_allocator_default(), f.data, f.size, NULL,
                                     &r.chunks[r.chunk_count++], NULL));
            r.chunk_bytes += f.size;
        } else {
            assert_int_equal(f.number, 2);
            read_entry(&r, &f);
        }
    }
    return r;
}

static void free_reading(reading *r)
{
    for (size_t i = 0; i < r->chunk_count; i++) rp_chunk_unref(r->chunks[i]);
    rp_buf_deinit(&r->bytes);
    rp_buf_deinit(&r->rows);
}

/* Makes an answer in steps of `work` bytes; `*steps` (may be NULL) says how many. */
static rp_status make(const rp_items_material *material, size_t work, size_t *steps,
                      rp_message *reply, rp_error *err)
{
    rp_items_response answer;
    bool done = false;
    rp_status st = RP_OK;

    rp_items_response_init(&answer, rp_allocator_default(), 99, material, reply);
    for (size_t i = 1; st == RP_OK && !done; i++) {
        st = rp_items_response_step(&answer, work, &done, err);
        if (steps != NULL) *steps = i;
    }
    rp_items_response_deinit(&answer);
    return st;
}

/* The answer must be made, and read. */
static reading answer_to(const rp_items_material *material, size_t work)
{
    rp_message_pool pool;
    rp_message *reply;
    rp_error err = {0};
    reading r;

    rp_message_pool_init(&pool, rp_allocator_default());
    reply = rp_message_new(&pool);
    assert_non_null(reply);
    assert_ok_err(make(material, work, NULL, reply, &err), &err);
    r = read_reply(reply);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    return r;
}

static void assert_refused(const rp_items_material *material, rp_status status,
                           const char *part)
{
    rp_message_pool pool;
    rp_message *reply;
    rp_error err = {0};

    rp_message_pool_init(&pool, rp_allocator_default());
    reply = rp_message_new(&pool);
    assert_non_null(reply);
    assert_fails(make(material, SIZE_MAX, NULL, reply, &err), status, &err, part);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
}

/* What the reader of an answer to these samples should have in `rows`. */
static rp_buf expected_rows(const rp_sample *samples, size_t count)
{
    rp_buf buf;

    rp_buf_init(&buf, rp_allocator_default());
    for (size_t i = 0; i < count; i++) {
        uint64_t weight;
        if (samples[i].trajectory == NULL) continue;
        memcpy(&weight, &samples[i].weight, sizeof weight);
        put(&buf, samples[i].key);
        put(&buf, weight);
        for (size_t j = 0; j < samples[i].trajectory->column_count; j++) {
            rp_slices column = rp_trajectory_slices(samples[i].trajectory, j);
            put(&buf, column.squeeze);
            for (size_t k = 0; k < column.slice_count; k++)
                put_rows(&buf, column.slices[k].chunk, column.slices[k].column,
                         column.slices[k].offset, column.slices[k].length);
        }
    }
    return buf;
}

static void assert_rows(const reading *r, const rp_sample *samples, size_t count)
{
    rp_buf expected = expected_rows(samples, count);

    assert_int_equal(r->rows.size, expected.size);
    assert_memory_equal(r->rows.data, expected.data, expected.size);
    rp_buf_deinit(&expected);
}

/* A sample of rows of one chunk. */
static rp_sample sample_of(uint64_t key, rp_chunk *chunk, uint32_t offset, uint32_t length)
{
    rp_chunk_slice slice = {chunk, 0, offset, length};
    rp_slices column = {&slice, 1, false};
    rp_sample sample = {.key = key, .priority = 1, .weight = 1, .table_size = 3};

    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &sample.trajectory, NULL));
    return sample;
}

static rp_items_material material_of(const rp_sample *samples, size_t count)
{
    return (rp_items_material){.samples = samples,
                               .count = count,
                               .table = "t",
                               .with_chunks = true,
                               .max_bytes = NO_LIMIT,
                               .max_cut_bytes = NO_LIMIT};
}

static void a_shared_chunk_is_sent_once(void **state)
{
    rp_chunk *one = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS);
    rp_chunk *two = rp_test_ints(2, RP_CODEC_SNAPPY, ROWS, COLS);
    rp_sample samples[] = {sample_of(11, one, 0, 2), sample_of(12, two, 3, 4),
                           sample_of(13, one, 1, 5), sample_of(14, two, 3, 4)};
    rp_items_material material = material_of(samples, COUNT_OF(samples));
    reading r = answer_to(&material, SIZE_MAX);

    (void)state;
    assert_int_equal(r.chunk_count, 2);
    assert_int_equal(r.entry_count, 4);
    assert_int_equal(r.chunk_bytes, one->wire_bytes + two->wire_bytes);
    assert_rows(&r, samples, COUNT_OF(samples));
    free_reading(&r);
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(one);
    rp_chunk_unref(two);
}

static void unused_rows_are_not_sent(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS);
    rp_sample samples[] = {sample_of(11, chunk, 10, 2), sample_of(12, chunk, 13, 2)};
    rp_items_material material = material_of(samples, COUNT_OF(samples));
    reading r;

    (void)state;
    material.cut_rows = true;
    r = answer_to(&material, SIZE_MAX);
    assert_int_equal(r.chunk_count, 1);
    assert_int_equal(r.chunks[0]->columns[0].shape.dims[0], 5); /* 10 to 14 */
    assert_int_equal(r.chunks[0]->origin.first_step, 10);
    assert_true(r.chunk_bytes < chunk->wire_bytes / 5);
    assert_rows(&r, samples, COUNT_OF(samples));
    free_reading(&r);
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(chunk);
}

static void missing_items_are_left_out(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS);
    rp_sample samples[] = {{.key = 5}, sample_of(11, chunk, 0, 2), {.key = 6}};
    rp_items_material material = material_of(samples, COUNT_OF(samples));
    reading r = answer_to(&material, 1);

    (void)state;
    assert_int_equal(r.entry_count, 1);
    assert_rows(&r, samples, COUNT_OF(samples));
    free_reading(&r);
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(chunk);
}

static void without_data_there_are_entries_only(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS);
    rp_sample samples[] = {sample_of(11, chunk, 10, 2)};
    rp_items_material material = material_of(samples, COUNT_OF(samples));
    reading r;

    (void)state;
    material.with_chunks = false;
    material.cut_rows = true; /* means nothing then */
    r = answer_to(&material, SIZE_MAX);
    assert_int_equal(r.chunk_count, 0);
    assert_int_equal(r.entry_count, 1);
    free_reading(&r);
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(chunk);
}

static void one_chunk_sent_twice_is_one_but_two_under_one_key_are_two(void **state)
{
    rp_chunk *one = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS);
    rp_chunk *again = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS);
    rp_chunk *other = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS + 1);
    rp_sample samples[] = {sample_of(11, one, 0, 2), sample_of(12, again, 3, 4),
                           sample_of(13, other, 0, 1)};
    rp_items_material material = material_of(samples, 2);
    reading r;

    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        material.cut_rows = cut != 0;
        r = answer_to(&material, SIZE_MAX);
        assert_int_equal(r.chunk_count, 1);
        assert_rows(&r, samples, 2);
        free_reading(&r);
    }
    material.count = 3;
    for (int cut = 0; cut < 2; cut++) {
        material.cut_rows = cut != 0;
        r = answer_to(&material, 1);
        assert_int_equal(r.chunk_count, 2);
        assert_rows(&r, samples, 3);
        free_reading(&r);
    }
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(one);
    rp_chunk_unref(again);
    rp_chunk_unref(other);
}

static void a_response_over_the_limit_is_refused(void **state)
{
    rp_chunk *chunk = rp_test_ints(1, RP_CODEC_NONE, ROWS, COLS);
    rp_sample samples[] = {sample_of(11, chunk, 10, 2), sample_of(12, chunk, 13, 2)};
    rp_items_material material = material_of(samples, COUNT_OF(samples));
    size_t refused = 0;
    reading r = answer_to(&material, SIZE_MAX);

    (void)state;
    for (size_t limit = 1; limit < r.bytes.size; limit += 97) {
        material.max_bytes = limit;
        assert_refused(&material, RP_NO_RESOURCE, "the limit message_bytes of");
        refused++;
    }
    assert_true(refused > 90);
    material.max_bytes = r.bytes.size + 64;
    free_reading(&r);
    r = answer_to(&material, SIZE_MAX);
    free_reading(&r);
    material.cut_rows = true; /* what does not fit may fit when it is cut */
    material.max_bytes = chunk->wire_bytes / 2;
    r = answer_to(&material, SIZE_MAX);
    assert_true(r.bytes.size <= material.max_bytes);
    assert_rows(&r, samples, COUNT_OF(samples));
    free_reading(&r);
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(chunk);
}

static void cutting_stops_at_its_byte_budget(void **state)
{
    rp_chunk *chunks[8];
    rp_sample samples[8] = {{0}};
    rp_items_material material = material_of(samples, 8);
    size_t whole = 0;
    reading r;

    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        chunks[i] = rp_test_ints(i + 1, RP_CODEC_NONE, ROWS, COLS);
        samples[i] = sample_of(i, chunks[i], i, 1);
    }
    material.cut_rows = true;
    material.max_cut_bytes = 4 * COLS * 3 + 10;
    r = answer_to(&material, SIZE_MAX);
    for (size_t i = 0; i < r.chunk_count; i++) whole += rp_chunk_rows(r.chunks[i], 0) == ROWS;
    assert_int_equal(whole, 5);
    assert_rows(&r, samples, 8);
    free_reading(&r);
    rp_samples_release(samples, 8);
    for (size_t i = 0; i < 8; i++) rp_chunk_unref(chunks[i]);
}

/* A chunk whose bytes cannot be decompressed. Returns owned. */
static rp_chunk *damaged_chunk(uint64_t key)
{
    rp_chunk_options options = {.codec = RP_CODEC_ZSTD};
    rp_spec spec = {"x", RP_UINT8, SHAPE(COLS)};
    uint8_t data[ROWS * COLS];
    rp_chunk *built, *chunk = NULL;
    uint8_t *wire;

    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i % 7 + i / 100);
    built = rp_test_chunk(key, &options, &spec, ROWS, data);
    wire = malloc(built->wire_bytes);
    assert_non_null(wire);
    memcpy(wire, built->wire, built->wire_bytes);
    memset(wire + built->places[0].content_at + 12, 0xff, built->columns[0].stored_bytes - 12);
    assert_ok(
        rp_chunk_parse(rp_allocator_default(), wire, built->wire_bytes, NULL, &chunk, NULL));
    free(wire);
    rp_chunk_unref(built);
    return chunk;
}

/* The reader of the damaged item finds the damage. The items beside it are as without it. */
static void a_chunk_that_cannot_be_decoded_is_sent_as_it_is(void **state)
{
    rp_chunk *bad = damaged_chunk(77), *good = rp_test_ints(1, RP_CODEC_SNAPPY, ROWS, COLS);
    rp_sample samples[] = {sample_of(1, bad, 3, 1), sample_of(2, good, 5, 2)};
    rp_items_material material = material_of(samples, COUNT_OF(samples));
    rp_pb_field f, whole = {0}, cut = {0}, last = {0};
    rp_pb_reader fields;
    const uint8_t *data;
    rp_message_pool pool;
    rp_message *reply;
    rp_error err = {0};
    rp_buf bytes;
    reading r = {0};
    size_t size;

    (void)state;
    material.cut_rows = true;
    rp_buf_init(&bytes, rp_allocator_default());
    rp_buf_init(&r.rows, rp_allocator_default());
    rp_message_pool_init(&pool, rp_allocator_default());
    assert_non_null(reply = rp_message_new(&pool));
    assert_ok_err(make(&material, SIZE_MAX, NULL, reply, &err), &err);
    assert_true(rp_message_close(reply));
    while ((size = rp_message_take(reply, SIZE_MAX, &data)) > 0)
        rp_buf_append(&bytes, data, size);
    fields = rp_pb_open(bytes.data + RP_GRPC_PREFIX, bytes.size - RP_GRPC_PREFIX);
    while (rp_pb_next(&fields, &f) == RP_PB_FIELD) {
        if (f.number == 1 && whole.size == 0)
            whole = f;
        else if (f.number == 1)
            cut = f;
        last = f;
    }
    assert_int_equal(whole.size, bad->wire_bytes);
    assert_memory_equal(whole.data, bad->wire, bad->wire_bytes);
    assert_ok(rp_chunk_parse(rp_allocator_default(), cut.data, cut.size, NULL,
                             &r.chunks[r.chunk_count++], NULL));
    assert_int_equal(rp_chunk_rows(r.chunks[0], 0), 2);
    read_entry(&r, &last);
    assert_rows(&r, &samples[1], 1);
    free_reading(&r);
    rp_buf_deinit(&bytes);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(bad);
    rp_chunk_unref(good);
}

static void a_long_response_takes_many_steps_and_a_short_one_a_single_step(void **state)
{
    enum { COUNT = 50 };
    rp_chunk *chunks[COUNT];
    rp_sample samples[COUNT] = {{0}};
    rp_items_material material = material_of(samples, COUNT);
    rp_message_pool pool;
    size_t steps;

    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        chunks[i] = rp_test_ints(i + 1, RP_CODEC_SNAPPY, ROWS, COLS);
        samples[i] = sample_of(i, chunks[i], i % ROWS, 1);
    }
    rp_message_pool_init(&pool, rp_allocator_default());
    for (int cut = 0; cut < 2; cut++) {
        rp_message *reply = rp_message_new(&pool);
        material.cut_rows = cut != 0;
        assert_ok(make(&material, 1 << 20, &steps, reply, NULL));
        assert_int_equal(steps, 1);
        rp_message_release(&pool, reply);
        reply = rp_message_new(&pool);
        assert_ok(make(&material, 1024, &steps, reply, NULL));
        assert_true(steps > 20);
        rp_message_release(&pool, reply);
    }
    rp_message_pool_deinit(&pool);
    rp_samples_release(samples, COUNT);
    for (size_t i = 0; i < COUNT; i++) rp_chunk_unref(chunks[i]);
}

/* An item of up to three columns of up to four slices, of any chunks. */
static rp_sample any_sample(rp_rng *rng, rp_chunk *const *chunks, size_t chunk_count)
{
    rp_chunk_slice slices[3][4];
    rp_slices columns[3];
    size_t column_count = 1 + rp_rng_below(rng, 3);
    rp_sample sample = {.key = rp_rng_next(rng), .priority = 1, .weight = rp_rng_unit(rng)};

    for (size_t i = 0; i < column_count; i++) {
        size_t count = 1 + rp_rng_below(rng, 4);
        for (size_t j = 0; j < count; j++) {
            uint32_t offset = (uint32_t)rp_rng_below(rng, ROWS);
            uint32_t most = ROWS - offset < 5 ? ROWS - offset : 5;
            slices[i][j] = (rp_chunk_slice){chunks[rp_rng_below(rng, chunk_count)], 0, offset,
                                            1 + (uint32_t)rp_rng_below(rng, most)};
        }
        columns[i] = (rp_slices){slices[i], count, count == 1 && slices[i][0].length == 1};
    }
    assert_ok(rp_trajectory_new(rp_allocator_default(), columns, column_count,
                                &sample.trajectory, NULL));
    return sample;
}

/* A chunk of numbers that no other has. Returns owned. */
static rp_chunk *numbered_chunk(uint64_t key, rp_codec codec, int32_t number)
{
    rp_chunk_options options = {.codec = codec};
    rp_spec spec = {"x", RP_INT32, SHAPE(COLS)};
    int32_t data[ROWS * COLS];

    for (int32_t i = 0; i < ROWS * COLS; i++) data[i] = number * 100000 + i / 3;
    return rp_test_chunk(key, &options, &spec, ROWS, data);
}

static void every_response_has_the_rows_of_its_items(void **state)
{
    enum { CHUNKS = 12, SAMPLES = 12 };
    rp_chunk *chunks[CHUNKS];
    rp_sample samples[SAMPLES];
    size_t cuts = 0;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 77);
    /* Some are copied into the reply, some borrowed; some have one key, and two are equal. */
    for (uint32_t i = 0; i < CHUNKS; i++)
        chunks[i] = numbered_chunk(i % 5 + 1, (rp_codec)(i % 4), (int32_t)i);
    rp_chunk_unref(chunks[11]);
    chunks[11] = numbered_chunk(2, (rp_codec)1, 1);
    for (int round = 0; round < 300; round++) {
        size_t count = rp_rng_below(&rng, SAMPLES + 1);
        size_t some = 1 + rp_rng_below(&rng, CHUNKS);
        rp_items_material material = material_of(samples, count);
        reading r;
        for (size_t i = 0; i < count; i++) samples[i] = any_sample(&rng, chunks, some);
        material.cut_rows = rp_rng_below(&rng, 4) != 0;
        r = answer_to(&material, 1 + rp_rng_below(&rng, 20000));
        assert_int_equal(r.entry_count, count);
        assert_rows(&r, samples, count);
        for (size_t i = 0; i < r.chunk_count; i++) cuts += rp_chunk_rows(r.chunks[i], 0) < ROWS;
        free_reading(&r);
        rp_samples_release(samples, count);
    }
    assert_true(cuts > 200);
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(chunks[i]);
}

static rp_status scenario(const rp_allocator *alloc)
{
    rp_chunk *one = rp_test_ints(1, RP_CODEC_SNAPPY, ROWS, COLS);
    rp_chunk *two = rp_test_ints(2, RP_CODEC_ZSTD, 60, 400); /* cut, it is still borrowed */
    rp_chunk *other = rp_test_ints(1, RP_CODEC_ZSTD, ROWS, COLS);
    rp_sample samples[] = {sample_of(11, one, 3, 2), sample_of(12, two, 20, 20),
                           sample_of(13, other, 3, 2)};
    rp_items_material material = material_of(samples, COUNT_OF(samples));
    rp_items_response answer;
    rp_message_pool pool;
    rp_message *reply;
    rp_status st = RP_NO_RESOURCE;
    bool done = false;

    material.cut_rows = true;
    rp_message_pool_init(&pool, alloc);
    reply = rp_message_new(&pool);
    if (reply != NULL) {
        rp_items_response_init(&answer, alloc, 5, &material, reply);
        st = rp_items_response_step(&answer, SIZE_MAX, &done, NULL);
        assert_true(done == (st == RP_OK));
        rp_items_response_deinit(&answer);
        if (st == RP_OK && !rp_message_close(reply)) st = RP_NO_RESOURCE;
    }
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    rp_samples_release(samples, COUNT_OF(samples));
    rp_chunk_unref(one);
    rp_chunk_unref(two);
    rp_chunk_unref(other);
    return st;
}

static void out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(scenario);
}

RP_TESTS(items_response)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_chunk_is_sent_once),
        cmocka_unit_test(unused_rows_are_not_sent),
        cmocka_unit_test(missing_items_are_left_out),
        cmocka_unit_test(without_data_there_are_entries_only),
        cmocka_unit_test(one_chunk_sent_twice_is_one_but_two_under_one_key_are_two),
        cmocka_unit_test(a_response_over_the_limit_is_refused),
        cmocka_unit_test(cutting_stops_at_its_byte_budget),
        cmocka_unit_test(a_chunk_that_cannot_be_decoded_is_sent_as_it_is),
        cmocka_unit_test(a_long_response_takes_many_steps_and_a_short_one_a_single_step),
        cmocka_unit_test(every_response_has_the_rows_of_its_items),
        cmocka_unit_test(out_of_memory_is_a_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
