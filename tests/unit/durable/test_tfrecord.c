/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/reverb/tfrecord.h"

#include <string.h>

#include "support/unit.h"

/* Collects what is written. */
static rp_status append(void *ctx, const void *data, size_t size, rp_error *err)
{
    (void)err;
    rp_buf_append(ctx, data, size);
    return RP_OK;
}

/* Three records, one of them empty. */
static rp_buf three_records(void)
{
    rp_buf out;

    rp_buf_init(&out, rp_allocator_default());
    assert_ok(rp_tfrecord_write((rp_byte_sink){append, &out}, "first", 5, NULL));
    assert_ok(rp_tfrecord_write((rp_byte_sink){append, &out}, "", 0, NULL));
    assert_ok(rp_tfrecord_write((rp_byte_sink){append, &out}, "the third", 9, NULL));
    assert_false(out.bad);
    return out;
}

/* Reads all records; returns how many were good, and how it ended. */
static size_t read_all(const rp_allocator *alloc, const uint8_t *bytes, size_t size,
                       size_t max_record, rp_status *st, rp_error *err)
{
    rp_memory_stream stream = {bytes, bytes + size};
    rp_tfrecord_reader reader;
    const uint8_t *data = NULL;
    size_t data_size, good = 0;

    rp_tfrecord_reader_init(&reader, alloc, (rp_byte_source){rp_memory_stream_read, &stream},
                            max_record);
    while ((*st = rp_tfrecord_next(&reader, &data, &data_size, err)) == RP_OK && data != NULL)
        good++;
    rp_tfrecord_reader_deinit(&reader);
    return good;
}

/* Taken from a file that TensorFlow wrote. */
static void framing_is_that_of_tensorflow(void **state)
{
    static const uint8_t expected[] = {0x03, 0,    0,   0,   0,   0,    0,    0,    0xb0, 0x99,
                                       0x49, 0x0e, 'a', 'b', 'c', 0x6e, 0x57, 0xf1, 0x21};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    assert_ok(rp_tfrecord_write((rp_byte_sink){append, &out}, "abc", 3, NULL));
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);
    rp_buf_deinit(&out);
}

static void records_round_trip(void **state)
{
    static const char *const texts[] = {"first", "", "the third"};
    rp_buf bytes = three_records();
    rp_memory_stream stream = {bytes.data, bytes.data + bytes.size};
    rp_tfrecord_reader reader;
    const uint8_t *data;
    size_t size;

    (void)state;
    rp_tfrecord_reader_init(&reader, rp_allocator_default(),
                            (rp_byte_source){rp_memory_stream_read, &stream}, 100);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_ok(rp_tfrecord_next(&reader, &data, &size, NULL));
        assert_non_null(data);
        assert_int_equal(size, strlen(texts[i]));
        assert_memory_equal(data, texts[i], size);
        assert_int_equal(reader.count, i + 1);
    }
    assert_ok(rp_tfrecord_next(&reader, &data, &size, NULL));
    assert_null(data);
    assert_int_equal(reader.offset, bytes.size);
    rp_tfrecord_reader_deinit(&reader);
    rp_buf_deinit(&bytes);
}

static void every_flipped_bit_is_found(void **state)
{
    rp_buf bytes = three_records();

    (void)state;
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        rp_error err = {0};
        rp_status st;

        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        (void)read_all(rp_allocator_default(), bytes.data, bytes.size, 100, &st, &err);
        assert_int_equal(st, RP_CORRUPT);
        assert_int_equal(err.code, RP_CORRUPT);
        bytes.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    rp_buf_deinit(&bytes);
}

static void a_truncated_file_ends_between_records_or_is_damaged(void **state)
{
    rp_buf bytes = three_records();

    (void)state;
    for (size_t size = 0; size < bytes.size; size++) {
        bool between = size == 0 || size == 21 || size == 37;
        rp_error err = {0};
        rp_status st;

        (void)read_all(rp_allocator_default(), bytes.data, size, 100, &st, &err);
        assert_int_equal(st, between ? RP_OK : RP_CORRUPT);
    }
    rp_buf_deinit(&bytes);
}

static void a_length_is_checked_before_memory_is_taken(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    uint8_t head[RP_TFRECORD_HEAD_BYTES];
    rp_error err = {0};
    rp_status st;

    (void)state;
    rp_tfrecord_put_head(head, (uint64_t)1 << 40);
    (void)read_all(&alloc, head, sizeof head, 100, &st, &err);
    assert_fails(st, RP_NO_RESOURCE, &err, "100 are allowed");

    /* Within the bound, but not there: no more than a step is allocated. */
    (void)read_all(&alloc, head, sizeof head, SIZE_MAX / 2, &st, &err);
    assert_fails(st, RP_CORRUPT, &err, "ends within");
    assert_true(o.peak_bytes <= 2 << 20);
    assert_int_equal(o.live, 0);
}

static rp_status read_three(const rp_allocator *alloc)
{
    rp_buf bytes = three_records();
    rp_error err = {0};
    rp_status st;

    (void)read_all(alloc, bytes.data, bytes.size, 100, &st, &err);
    rp_buf_deinit(&bytes);
    return st;
}

static void no_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(read_three);
}

RP_TESTS(tfrecord)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(framing_is_that_of_tensorflow),
        cmocka_unit_test(records_round_trip),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(a_truncated_file_ends_between_records_or_is_damaged),
        cmocka_unit_test(a_length_is_checked_before_memory_is_taken),
        cmocka_unit_test(no_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
