/* SPDX-License-Identifier: Apache-2.0 */
/* The server's reader must read what the client's writer has written. */
#include "wire/insert_request_write.h"

#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "support/hex.h"
#include "wire/insert_request.h"

/* Room for the largest chunk, all items of a test and their keys. */
static const rp_insert_limits limits = {1 << 20, 1000, 100, 1000, 1000};

static rp_chunk *parse(const char *hex)
{
    rp_test_bytes b = rp_test_bytes_of(hex);
    rp_chunk *chunk = NULL;

    assert_ok(rp_chunk_parse(rp_allocator_default(), b.data, b.size, NULL, &chunk, NULL));
    return chunk;
}

static rp_trajectory *trajectory_of(rp_chunk *chunk, uint32_t length)
{
    rp_chunk_slice slice = {chunk, 0, 0, length};
    rp_slices column = {&slice, 1, false};
    rp_trajectory *trajectory = NULL;

    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &trajectory, NULL));
    return trajectory;
}

/* All of the message, borrowed pieces included, without the prefix. */
static void message_of(rp_message *reply, rp_buf *out)
{
    size_t said = rp_insert_request_bytes(reply);
    const uint8_t *data;

    assert_true(rp_message_close(reply));
    while (rp_message_remaining(reply) > 0) {
        size_t size = rp_message_take(reply, SIZE_MAX, &data);
        rp_buf_append(out, data, size);
    }
    assert_int_equal(said, out->size - RP_GRPC_PREFIX);
    memmove(out->data, out->data + RP_GRPC_PREFIX, said);
    out->size = said;
}

static void the_bytes_are_those_that_protobuf_writes(void **state)
{
    rp_chunk *chunk = parse("0801 1204 08071802 2a26 0a24 0809 1204 12020803 221a 185c"
                            "0000000000000000 0100000000000000 0200000000000000 3001 3818");
    rp_trajectory *trajectory = trajectory_of(chunk, 3);
    rp_wire_insert item = {2, "t", 1, 1.0, trajectory};
    uint64_t keep = 1;
    rp_message_pool pool;
    rp_message *reply;
    rp_buf out;

    (void)state;
    rp_message_pool_init(&pool, rp_allocator_default());
    rp_buf_init(&out, rp_allocator_default());
    reply = rp_message_new(&pool);
    assert_true(rp_insert_request_add_chunks(reply, &chunk, 1));
    assert_true(rp_insert_request_add_items(reply, &item, 1));
    assert_true(rp_insert_request_add_keep(reply, &keep, 1));
    message_of(reply, &out);
    assert_wrote(&out, "0a34 0801 1204 08071802 2a26 0a24 0809 1204 12020803 221a 185c"
                       "0000000000000000 0100000000000000 0200000000000000 3001 3818"
                       "1218 0802 120174 29000000000000f03f 4208 0a06 0a04 08011803 1a01 01");
    rp_message_release(&pool, reply);

    /* what has its default is left out */
    reply = rp_message_new(&pool);
    item = (rp_wire_insert){0, "", 0, 0.0, trajectory};
    assert_true(rp_insert_request_add_items(reply, &item, 1));
    assert_true(rp_insert_request_add_keep(reply, NULL, 0));
    message_of(reply, &out);
    assert_wrote(&out, "120a 4208 0a06 0a04 08011803");
    rp_message_release(&pool, reply);
    rp_buf_deinit(&out);
    rp_message_pool_deinit(&pool);
    rp_trajectory_unref(trajectory);
    rp_chunk_unref(chunk);
}

enum { CHUNKS = 40, ROWS = 64, MAX_COLUMNS = 20, MAX_SLICES = 60 };

static rp_trajectory *random_trajectory(rp_rng *rng, rp_chunk *const *chunks)
{
    size_t column_count = 1 + rp_rng_below(rng, MAX_COLUMNS);
    rp_chunk_slice slices[MAX_SLICES + MAX_COLUMNS];
    rp_slices columns[MAX_COLUMNS];
    size_t used = 0;
    rp_trajectory *trajectory = NULL;

    for (size_t i = 0; i < column_count; i++) {
        size_t count = 1 + rp_rng_below(rng, used < MAX_SLICES ? 8 : 1);
        if (used + count > MAX_SLICES) count = 1;
        columns[i] = (rp_slices){slices + used, count, count == 1 && rp_rng_below(rng, 2) == 0};
        for (size_t k = 0; k < count; k++) {
            uint32_t offset = (uint32_t)rp_rng_below(rng, ROWS);
            uint32_t length = 1 + (uint32_t)rp_rng_below(rng, ROWS - offset);
            slices[used++] = (rp_chunk_slice){chunks[rp_rng_below(rng, CHUNKS)], 0, offset,
                                              columns[i].squeeze ? 1 : length};
        }
    }
    assert_ok(
        rp_trajectory_new(rp_allocator_default(), columns, column_count, &trajectory, NULL));
    return trajectory;
}

static void expect_item(const uint8_t *data, size_t size, const rp_wire_insert *item)
{
    rp_wire_column columns[MAX_COLUMNS];
    rp_wire_slice slices[MAX_SLICES + MAX_COLUMNS];
    size_t at = 0;
    rp_wire_item read;
    rp_error err = {0};

    assert_ok_err(rp_wire_item_read(data, size,
                                    &(rp_wire_item_arrays){columns, COUNT_OF(columns), slices,
                                                           COUNT_OF(slices)},
                                    &read, &err),
                  &err);
    assert_true(read.key == item->key && read.priority == item->priority);
    assert_true(read.times_sampled == 0 && read.inserted_at_ns == 0);
    assert_int_equal(read.table.size, item->table_size);
    assert_memory_equal(read.table.data, item->table, item->table_size);
    assert_int_equal(read.column_count, rp_trajectory_column_count(item->trajectory));
    for (size_t i = 0; i < read.column_count; i++) {
        rp_trajectory_column column = rp_trajectory_get_column(item->trajectory, i);
        const rp_chunk_slice *expected = rp_trajectory_slices(item->trajectory, i).slices;
        assert_int_equal(columns[i].slice_count, column.slice_count);
        assert_int_equal(columns[i].squeeze, column.squeeze);
        for (size_t k = 0; k < column.slice_count; k++, at++) {
            assert_true(slices[at].chunk_key == rp_chunk_get_origin(expected[k].chunk)->key);
            assert_int_equal(slices[at].offset, expected[k].offset);
            assert_int_equal(slices[at].length, expected[k].length);
            assert_int_equal(slices[at].index, expected[k].column);
        }
    }
    assert_int_equal(at, read.slice_count);
}

static void expect_message(const rp_buf *message, rp_chunk *const *chunks,
                           const rp_wire_insert *items, size_t item_count, const uint64_t *keep,
                           size_t keep_count)
{
    uint64_t kept[CHUNKS];
    rp_insert_request request;
    rp_pb_reader reader;
    const uint8_t *data, *wire;
    size_t size, wire_size;
    rp_error err = {0};

    assert_ok_err(rp_insert_request_read(message->data, message->size, &limits, &request, &err),
                  &err);
    assert_int_equal(request.chunk_count, CHUNKS);
    assert_int_equal(request.item_count, item_count);
    assert_int_equal(request.keep_count, keep_count);
    rp_insert_request_keep(&request, kept);
    assert_memory_equal(kept, keep, keep_count * sizeof *keep);
    reader = rp_insert_request_parts(&request);
    for (size_t i = 0; i < CHUNKS; i++) {
        assert_true(rp_insert_request_next_chunk(&reader, &data, &size));
        wire = rp_chunk_wire(chunks[i], &wire_size);
        assert_int_equal(size, wire_size);
        assert_memory_equal(data, wire, size);
    }
    reader = rp_insert_request_parts(&request);
    for (size_t i = 0; i < item_count; i++) {
        assert_true(rp_insert_request_next_item(&reader, &data, &size));
        expect_item(data, size, &items[i]);
    }
}

static void written_requests_are_read_by_the_server(void **state)
{
    enum { ITEMS = 50 };
    rp_chunk *chunks[CHUNKS];
    rp_wire_insert items[ITEMS];
    uint64_t keep[CHUNKS];
    rp_message_pool pool;
    rp_message *reply;
    rp_rng rng;
    rp_buf out;

    (void)state;
    rp_rng_init(&rng, 1);
    rp_message_pool_init(&pool, rp_allocator_default());
    rp_buf_init(&out, rp_allocator_default());
    reply = rp_message_new(&pool);
    for (size_t i = 0; i < CHUNKS; i++) /* some are large enough to be borrowed */
        chunks[i] = rp_test_ints(rp_rng_next(&rng) >> rp_rng_below(&rng, 64), RP_CODEC_NONE,
                                 ROWS, i % 5 == 0 ? 40 : 1);
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (rp_wire_insert){rp_rng_next(&rng) >> rp_rng_below(&rng, 64), "table",
                                    rp_rng_below(&rng, 6), (double)rp_rng_below(&rng, 3), NULL};
    /* columns must not mix shapes: the small chunks only */
    for (size_t i = 0; i < CHUNKS; i += 5) {
        rp_chunk *large = chunks[i];
        chunks[i] = chunks[1];
        keep[i] = (uint64_t)(uintptr_t)large;
    }
    for (size_t i = 0; i < ITEMS; i++) items[i].trajectory = random_trajectory(&rng, chunks);
    for (size_t i = 0; i < CHUNKS; i += 5) chunks[i] = (rp_chunk *)(uintptr_t)keep[i];
    for (size_t i = 0; i < CHUNKS; i++) keep[i] = rp_chunk_get_origin(chunks[i])->key;

    assert_true(rp_insert_request_add_chunks(reply, chunks, CHUNKS));
    assert_true(rp_insert_request_add_items(reply, items, ITEMS));
    assert_true(rp_insert_request_add_keep(reply, keep, CHUNKS));
    assert_int_equal(reply->piece_count, CHUNKS / 5);
    message_of(reply, &out);
    expect_message(&out, chunks, items, ITEMS, keep, CHUNKS);
    for (size_t i = 0; i < ITEMS; i++)
        rp_trajectory_unref((rp_trajectory *)(uintptr_t)items[i].trajectory);
    for (size_t i = 0; i < CHUNKS; i++) rp_chunk_unref(chunks[i]);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    rp_buf_deinit(&out);
}

static rp_status write_all(const rp_allocator *alloc)
{
    rp_chunk *chunk = rp_test_ints(9, RP_CODEC_NONE, 3, 2000);
    rp_trajectory *trajectory = trajectory_of(chunk, 2);
    rp_wire_insert items[40];
    uint64_t keys[600] = {0};
    rp_message_pool pool;
    rp_message *reply;
    bool ok;

    for (size_t i = 0; i < COUNT_OF(items); i++)
        items[i] = (rp_wire_insert){i, "t", 1, 1.0, trajectory};
    rp_message_pool_init(&pool, alloc);
    reply = rp_message_new(&pool);
    ok = reply != NULL && rp_insert_request_add_chunks(reply, &chunk, 1) &&
         rp_insert_request_add_items(reply, items, COUNT_OF(items)) &&
         rp_insert_request_add_keep(reply, keys, COUNT_OF(keys));
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    rp_trajectory_unref(trajectory);
    rp_chunk_unref(chunk);
    return ok ? RP_OK : RP_NO_RESOURCE;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(write_all);
}

RP_TESTS(insert_request_write)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_that_protobuf_writes),
        cmocka_unit_test(written_requests_are_read_by_the_server),
        cmocka_unit_test(running_out_of_memory_is_a_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
