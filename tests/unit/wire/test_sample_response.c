/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sample_response.h"

#include "chunk/protobuf.h"
#include "chunk/trajectory.h"
#include "support/chunks.h"
#include "support/hex.h"

/* A sample of three chunks; the middle one is large enough to be borrowed. */
typedef struct fixture {
    rp_chunk *chunks[3];
    rp_sample sample;
    rp_message_pool pool;
    rp_message *reply;
} fixture;

static rp_status set_up(fixture *f, const rp_allocator *alloc)
{
    static const size_t cols[] = {1, 3000, 2};
    rp_chunk_slice slices[3];
    rp_slices columns[3];
    rp_status st = RP_OK;

    *f = (fixture){.sample = {.key = 5,
                              .priority = 1.5,
                              .probability = 0.5,
                              .table_size = 3,
                              .times_sampled = 2,
                              .inserted_at_ns = 1700000000000000042}};
    rp_message_pool_init(&f->pool, alloc);
    f->reply = rp_message_new(&f->pool);
    if (f->reply == NULL) return RP_NO_RESOURCE;
    for (size_t i = 0; i < 3 && st == RP_OK; i++) {
        st = rp_test_try_ints(alloc, i + 1, RP_CODEC_NONE, 2, cols[i], &f->chunks[i]);
        slices[i] = (rp_chunk_slice){f->chunks[i], 0, 1, 1};
        columns[i] = (rp_slices){&slices[i], 1, i == 2};
    }
    return st != RP_OK ? st : rp_trajectory_new(alloc, columns, 3, &f->sample.trajectory, NULL);
}

static void tear_down(fixture *f)
{
    rp_message_release(&f->pool, f->reply);
    rp_message_pool_deinit(&f->pool);
    rp_trajectory_unref(f->sample.trajectory);
    for (size_t i = 0; i < 3; i++) rp_chunk_unref(f->chunks[i]);
}

/* Closes the reply and copies its message, as a connection would send it. */
static void message_of(rp_message *reply, rp_buf *out)
{
    const uint8_t *data;

    assert_true(rp_message_close(reply));
    while (rp_message_remaining(reply) > 0) {
        size_t size = rp_message_take(reply, 700, &data);
        assert_true(size > 0 && size <= 700);
        rp_buf_append(out, data, size);
    }
    assert_int_equal(out->size, reply->size);
    assert_int_equal(out->data[0], 0);
    assert_int_equal((size_t)out->data[1] << 24 | (size_t)out->data[2] << 16 |
                         (size_t)out->data[3] << 8 | out->data[4],
                     out->size - RP_GRPC_PREFIX);
}

/* The next entry: its info if it has one, which chunks it has, and whether it is the last. */
static void expect_entry(rp_pb_reader *message, bool has_info, size_t first, size_t count,
                         bool is_last, const fixture *f)
{
    rp_pb_reader entry;
    rp_pb_field part;

    assert_int_equal(rp_pb_next(message, &part), RP_PB_FIELD);
    assert_int_equal(part.number, 1);
    entry = rp_pb_open(part.data, part.size);
    if (has_info) {
        assert_int_equal(rp_pb_next(&entry, &part), RP_PB_FIELD);
        assert_true(part.number == 1 && part.size == rp_sample_info_size(&f->sample, 1));
    }
    for (size_t i = first; i < first + count; i++) {
        size_t size;
        const uint8_t *wire = rp_chunk_wire(f->chunks[i], &size);
        assert_int_equal(rp_pb_next(&entry, &part), RP_PB_FIELD);
        assert_true(part.number == 2 && part.size == size);
        assert_memory_equal(part.data, wire, size);
    }
    if (is_last) {
        assert_int_equal(rp_pb_next(&entry, &part), RP_PB_FIELD);
        assert_true(part.number == 3 && part.value == 1);
    }
    assert_int_equal(rp_pb_next(&entry, &part), RP_PB_END);
}

static void an_info_has_the_bytes_that_protobuf_gives_it(void **state)
{
    fixture f;
    rp_buf out;
    size_t size;

    (void)state;
    assert_ok(set_up(&f, rp_allocator_default()));
    size = rp_sample_info_size(&f.sample, 1);
    rp_buf_init(&out, rp_allocator_default());
    out.size = (size_t)(rp_sample_info_write(rp_buf_reserve(&out, size), &f.sample, "t", 1) -
                        out.data);
    assert_int_equal(out.size, size);
    assert_wrote(&out, "0a3c 0805 120174 29000000000000f83f 3002 3a08 0880e2cfaa06 102a"
                       "4220 0a08 0a06 0801 1001 1801 0a08 0a06 0802 1001 1801 0a0a 0a06 0803"
                       "1001 1801 1001 11000000000000e03f 1803");
    f.sample.rate_limited = true;
    f.sample.probability = 0;
    assert_int_equal(rp_sample_info_size(&f.sample, 1), size + 2 - 9);
    rp_buf_deinit(&out);
    tear_down(&f);
}

static void times_before_1970_have_positive_nanoseconds(void **state)
{
    fixture f;
    rp_buf out;

    (void)state;
    assert_ok(set_up(&f, rp_allocator_default()));
    f.sample.inserted_at_ns = -1;
    rp_buf_init(&out, rp_allocator_default());
    (void)rp_sample_info_write(rp_buf_reserve(&out, rp_sample_info_size(&f.sample, 0)),
                               &f.sample, "", 0);
    /* 0a <item> 0805 29.. 3002 3a 11 08 -1 10 999999999 */
    assert_memory_equal(out.data + 2 + 2 + 9 + 2,
                        "\x3a\x11\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\xff\x93\xeb"
                        "\xdc\x03",
                        19);
    rp_buf_deinit(&out);
    tear_down(&f);
}

static void a_sample_in_one_entry_has_info_chunks_and_end(void **state)
{
    fixture f;
    rp_buf out;
    rp_pb_reader message;

    (void)state;
    assert_ok(set_up(&f, rp_allocator_default()));
    assert_true(rp_sample_entry_append(f.reply, &f.sample, "t", 1, 0, 3, NULL));
    assert_true(rp_sample_entry_append(f.reply, &f.sample, "t", 1, 0, 3, NULL));
    assert_int_equal(f.reply->piece_count, 2); /* the large chunk, twice */
    rp_buf_init(&out, rp_allocator_default());
    message_of(f.reply, &out);
    message = rp_pb_open(out.data + RP_GRPC_PREFIX, out.size - RP_GRPC_PREFIX);
    expect_entry(&message, true, 0, 3, true, &f);
    expect_entry(&message, true, 0, 3, true, &f);
    assert_ptr_equal(message.at, message.end);
    rp_buf_deinit(&out);
    tear_down(&f);
}

static void a_sample_in_pieces_has_its_info_first_and_its_end_last(void **state)
{
    fixture f;
    rp_buf out;
    rp_pb_reader message;

    (void)state;
    assert_ok(set_up(&f, rp_allocator_default()));
    assert_true(rp_sample_entry_append(f.reply, &f.sample, "t", 1, 0, 1, NULL));
    assert_true(rp_sample_entry_append(f.reply, &f.sample, "t", 1, 1, 1, NULL));
    assert_true(rp_sample_entry_append(f.reply, &f.sample, "t", 1, 2, 1, NULL));
    rp_buf_init(&out, rp_allocator_default());
    message_of(f.reply, &out);
    message = rp_pb_open(out.data + RP_GRPC_PREFIX, out.size - RP_GRPC_PREFIX);
    expect_entry(&message, true, 0, 1, false, &f);
    expect_entry(&message, false, 1, 1, false, &f);
    expect_entry(&message, false, 2, 1, true, &f);
    assert_ptr_equal(message.at, message.end);
    rp_buf_deinit(&out);
    tear_down(&f);
}

static rp_status append_twice(const rp_allocator *alloc)
{
    fixture f;
    rp_status st = set_up(&f, alloc);

    if (st == RP_OK && (!rp_sample_entry_append(f.reply, &f.sample, "t", 1, 0, 3, NULL) ||
                        !rp_sample_entry_append(f.reply, &f.sample, "t", 1, 0, 3, NULL)))
        st = RP_NO_RESOURCE;
    tear_down(&f);
    return st;
}

static void appending_without_memory_fails(void **state)
{
    (void)state;
    rp_test_survives_oom(append_twice);
}

RP_TESTS(sample_response)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_info_has_the_bytes_that_protobuf_gives_it),
        cmocka_unit_test(times_before_1970_have_positive_nanoseconds),
        cmocka_unit_test(a_sample_in_one_entry_has_info_chunks_and_end),
        cmocka_unit_test(a_sample_in_pieces_has_its_info_first_and_its_end_last),
        cmocka_unit_test(appending_without_memory_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
