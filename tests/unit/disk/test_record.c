/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/record.h"

#include <string.h>

#include "support/unit.h"
#include "util/little_endian.h"

static rp_file_header header_of_a_segment(void)
{
    rp_file_header h = {.version = 1,
                        .kind = RP_FILE_SEGMENT,
                        .compat = 0x01020304,
                        .read_only = 0x05060708,
                        .number = 0x1122334455667788};

    for (size_t i = 0; i < 16; i++) h.store.bytes[i] = (uint8_t)(0xa0 + i);
    return h;
}

/* A crc that fits again after a change. */
static void mend(uint8_t *data, size_t crc_at)
{
    rp_put_u32(data + crc_at, rp_crc32c(0, data, crc_at));
}

static void a_file_header_has_the_bytes_of_the_manual(void **state)
{
    static const uint8_t expected[60] =
        "RPRSTORE\1\0\0\0\3\0\0\0\4\3\2\1\x8\7\6\5\0\0\0\0"
        "\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf"
        "\x88\x77\x66\x55\x44\x33\x22\x11\0\0\0\0\0\0\0";
    rp_file_header h = header_of_a_segment();
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    uint32_t crc = rp_file_header_write(bytes, &h);

    (void)state;
    assert_memory_equal(bytes, expected, 60);
    assert_int_equal(crc, rp_crc32c(0, expected, 60));
    assert_int_equal(rp_get_u32(bytes + 60), crc);
}

static void a_file_header_round_trips(void **state)
{
    rp_file_header h = header_of_a_segment(), got;
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    uint32_t crc = rp_file_header_write(bytes, &h), got_crc;
    rp_error err;

    (void)state;
    assert_ok_err(rp_file_header_read(bytes, sizeof bytes, &got, &got_crc, &err), &err);
    assert_int_equal(got_crc, crc);
    assert_int_equal(got.version, h.version);
    assert_int_equal(got.kind, h.kind);
    assert_int_equal(got.compat, h.compat);
    assert_int_equal(got.read_only, h.read_only);
    assert_int_equal(got.incompat, 0);
    assert_int_equal(got.number, h.number);
    assert_memory_equal(&got.store, &h.store, sizeof h.store);
}

static void every_bit_of_a_file_header_counts(void **state)
{
    rp_file_header h = header_of_a_segment(), got;
    uint8_t bytes[RP_FILE_HEADER_BYTES];

    (void)state;
    (void)rp_file_header_write(bytes, &h);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(rp_file_header_read(bytes, sizeof bytes, &got, NULL, NULL),
                         RP_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < sizeof bytes; size++)
        assert_int_equal(rp_file_header_read(bytes, size, &got, NULL, NULL), RP_CORRUPT);
    assert_ok(rp_file_header_read(bytes, sizeof bytes, &got, NULL, NULL));
}

static void a_newer_file_is_refused_by_name(void **state)
{
    rp_file_header h = header_of_a_segment(), got;
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    rp_error err;

    (void)state;
    h.version = 2;
    (void)rp_file_header_write(bytes, &h);
    assert_fails(rp_file_header_read(bytes, sizeof bytes, &got, NULL, &err), RP_PRECONDITION,
                 &err, "version 2");
    h.version = 1;
    h.incompat = 0x40;
    (void)rp_file_header_write(bytes, &h);
    assert_fails(rp_file_header_read(bytes, sizeof bytes, &got, NULL, &err), RP_PRECONDITION,
                 &err, "0x40");
}

static void a_file_header_with_wrong_fields_is_damage(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {{8, 0}, {12, 0}, {12, RP_FILE_ROLLOUTS + 1}, {52, 1}, {59, 1}};
    rp_file_header h = header_of_a_segment(), got;
    uint8_t bytes[RP_FILE_HEADER_BYTES];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)rp_file_header_write(bytes, &h);
        bytes[wrong[i].at] = wrong[i].value;
        mend(bytes, 60);
        assert_int_equal(rp_file_header_read(bytes, sizeof bytes, &got, NULL, NULL),
                         RP_CORRUPT);
    }
}

static void a_record_has_the_bytes_of_the_manual(void **state)
{
    static const uint8_t expected[20] = "\5\0\0\0\2\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11"
                                        "\xef\xbe\xad\xde";
    uint8_t bytes[RP_RECORD_HEADER_BYTES];
    uint32_t crc =
        rp_record_write(bytes, RP_RECORD_BLOCK, 0x1122334455667788, 0xdeadbeef, "hello", 5);

    (void)state;
    assert_memory_equal(bytes, expected, 20);
    assert_int_equal(rp_get_u32(bytes + 20), rp_crc32c(0, "hello", 5));
    assert_int_equal(rp_get_u32(bytes + 24), 0);
    assert_int_equal(rp_get_u32(bytes + 28), crc);
    assert_int_equal(rp_crc32c(0, bytes, 28), crc);
}

static void a_record_round_trips(void **state)
{
    uint8_t bytes[RP_RECORD_HEADER_BYTES + 5 + 3];
    uint32_t before = 7, crc;
    rp_record got;
    rp_error err;

    (void)state;
    crc = rp_record_write(bytes, RP_RECORD_CHUNK, 99, before, "hello", 5);
    memcpy(bytes + RP_RECORD_HEADER_BYTES, "hello", sizeof "hello" - 1);
    assert_ok_err(rp_record_read(bytes, sizeof bytes, &before, &got, &err), &err);
    assert_int_equal(got.kind, RP_RECORD_CHUNK);
    assert_int_equal(got.number, 99);
    assert_int_equal(got.size, 5);
    assert_int_equal(got.crc, crc);
    assert_ptr_equal(got.payload, bytes + RP_RECORD_HEADER_BYTES);
    before = 8;
    assert_fails(rp_record_read(bytes, sizeof bytes, &before, &got, &err), RP_CORRUPT, &err,
                 "follows");
    assert_ok(rp_record_read(bytes, sizeof bytes, NULL, &got, &err));
}

static void an_empty_record_round_trips(void **state)
{
    uint8_t bytes[RP_RECORD_HEADER_BYTES];
    rp_record got;

    (void)state;
    (void)rp_record_write(bytes, RP_RECORD_SYNCED, 1, 0, NULL, 0);
    assert_ok(rp_record_read(bytes, sizeof bytes, NULL, &got, NULL));
    assert_int_equal(got.size, 0);
}

static void every_bit_of_a_record_counts(void **state)
{
    uint8_t bytes[RP_RECORD_HEADER_BYTES + 21];
    rp_record got;

    (void)state;
    memset(bytes + RP_RECORD_HEADER_BYTES, 'x', 21);
    (void)rp_record_write(bytes, RP_RECORD_CHUNK, 99, 3, bytes + RP_RECORD_HEADER_BYTES, 21);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(rp_record_read(bytes, sizeof bytes, NULL, &got, NULL), RP_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < sizeof bytes; size++)
        assert_int_equal(rp_record_read(bytes, size, NULL, &got, NULL), RP_CORRUPT);
    assert_ok(rp_record_read(bytes, sizeof bytes, NULL, &got, NULL));
}

static void a_record_with_wrong_fields_is_damage(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {{3, 0x80}, {6, 1}, {7, 1}, {24, 1}, {27, 1}};
    uint8_t bytes[RP_RECORD_HEADER_BYTES];
    rp_record got;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)rp_record_write(bytes, RP_RECORD_CHUNK, 99, 3, NULL, 0);
        bytes[wrong[i].at] = wrong[i].value;
        mend(bytes, 28);
        assert_int_equal(rp_record_header_read(bytes, sizeof bytes, &got, NULL, NULL, NULL),
                         RP_CORRUPT);
    }
}

/* The header may announce more than is there: who streams reads on. */
static void a_header_alone_gives_the_size(void **state)
{
    static const uint8_t payload[100] = {1};
    uint8_t bytes[RP_RECORD_HEADER_BYTES];
    uint32_t before = 0, payload_crc = 0;
    rp_record got;

    (void)state;
    (void)rp_record_write(bytes, RP_RECORD_CHUNK, 99, 3, payload, sizeof payload);
    assert_ok(rp_record_header_read(bytes, sizeof bytes, &got, &before, &payload_crc, NULL));
    assert_int_equal(got.size, 100);
    assert_null(got.payload);
    assert_int_equal(before, 3);
    assert_int_equal(payload_crc, rp_crc32c(0, payload, sizeof payload));
    assert_int_equal(rp_record_read(bytes, sizeof bytes, NULL, &got, NULL), RP_CORRUPT);
}

RP_TESTS(record)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_header_has_the_bytes_of_the_manual),
        cmocka_unit_test(a_file_header_round_trips),
        cmocka_unit_test(every_bit_of_a_file_header_counts),
        cmocka_unit_test(a_newer_file_is_refused_by_name),
        cmocka_unit_test(a_file_header_with_wrong_fields_is_damage),
        cmocka_unit_test(a_record_has_the_bytes_of_the_manual),
        cmocka_unit_test(a_record_round_trips),
        cmocka_unit_test(an_empty_record_round_trips),
        cmocka_unit_test(every_bit_of_a_record_counts),
        cmocka_unit_test(a_record_with_wrong_fields_is_damage),
        cmocka_unit_test(a_header_alone_gives_the_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
