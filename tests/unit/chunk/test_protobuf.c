/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/protobuf.h"

#include <pthread.h>
#include <stdatomic.h>

#include "support/chunks.h"

static rp_pb_step next_of(const void *bytes, size_t size, rp_pb_field *field)
{
    rp_pb_reader reader = rp_pb_open(bytes, size);
    return rp_pb_next(&reader, field);
}

static void varints_round_trip(void **state)
{
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        uint64_t value = rp_rng_next(&rng) >> rp_rng_below(&rng, 64), back = 0;
        uint8_t bytes[16];
        const uint8_t *at = bytes, *end = rp_pb_put_varint(bytes, value);
        assert_int_equal(end - bytes, rp_pb_varint_size(value));
        assert_true(rp_pb_get_varint(&at, end, &back));
        assert_true(back == value && at == end);
    }
}

static void varint_sizes_change_every_seven_bits(void **state)
{
    (void)state;
    assert_int_equal(rp_pb_varint_size(0), 1);
    for (unsigned bits = 7; bits < 64; bits += 7) {
        assert_int_equal(rp_pb_varint_size(((uint64_t)1 << bits) - 1), bits / 7);
        assert_int_equal(rp_pb_varint_size((uint64_t)1 << bits), bits / 7 + 1);
    }
    assert_int_equal(rp_pb_varint_size(UINT64_MAX), 10);
}

static void a_varint_that_is_cut_off_is_refused(void **state)
{
    uint8_t bytes[16];
    uint8_t *end = rp_pb_put_varint(bytes, UINT64_MAX);

    (void)state;
    for (const uint8_t *stop = bytes; stop < end; stop++) {
        const uint8_t *at = bytes;
        uint64_t value;
        assert_false(rp_pb_get_varint(&at, stop, &value));
        assert_ptr_equal(at, bytes);
    }
}

static void a_varint_over_64_bits_is_refused(void **state)
{
    uint8_t bytes[11];
    const uint8_t *at = bytes;
    uint64_t value;

    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    bytes[9] = 0x02; /* bit 64 */
    assert_false(rp_pb_get_varint(&at, bytes + 11, &value));
    bytes[9] = 0x80; /* an eleventh byte */
    bytes[10] = 0x00;
    assert_false(rp_pb_get_varint(&at, bytes + 11, &value));
    bytes[9] = 0x01;
    assert_true(rp_pb_get_varint(&at, bytes + 11, &value));
    assert_true(value == UINT64_MAX);
}

static void an_empty_message_ends_at_once(void **state)
{
    rp_pb_field field;

    (void)state;
    assert_int_equal(next_of(NULL, 0, &field), RP_PB_END);
}

static void fields_of_every_type_are_read(void **state)
{
    static const uint8_t bytes[] = {0x08, 0x96, 0x01,                       /* 1: 150 */
                                    0x11, 1,    2,    3,   4,   5, 6, 7, 8, /* 2: fixed64 */
                                    0x1a, 0x03, 'a',  'b', 'c',             /* 3: "abc" */
                                    0x25, 1,    2,    3,   4,               /* 4: fixed32 */
                                    0xc2, 0x3e, 0x00};                      /* 1000: "" */
    rp_pb_reader reader = rp_pb_open(bytes, sizeof bytes);
    rp_pb_field f;

    (void)state;
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_true(rp_pb_is(&f, 1, RP_PB_VARINT) && f.value == 150);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_true(rp_pb_is(&f, 2, RP_PB_FIXED64) && f.value == 0x0807060504030201u);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_true(rp_pb_is(&f, 3, RP_PB_BYTES) && f.size == 3 && f.data == bytes + 14);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_true(rp_pb_is(&f, 4, RP_PB_FIXED32) && f.value == 0x04030201u);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_FIELD);
    assert_true(rp_pb_is(&f, 1000, RP_PB_BYTES) && f.size == 0);
    assert_int_equal(rp_pb_next(&reader, &f), RP_PB_END);
}

static void groups_and_unknown_types_are_refused(void **state)
{
    static const uint8_t types[] = {3, 4, 6, 7};
    rp_pb_field field;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        uint8_t bytes[] = {(uint8_t)(0x08 | types[i]), 0, 0, 0, 0, 0, 0, 0, 0, 0};
        assert_int_equal(next_of(bytes, sizeof bytes, &field), RP_PB_BAD);
    }
}

static void field_numbers_lie_between_1_and_2_to_the_29(void **state)
{
    uint8_t bytes[16];
    uint8_t *end;
    rp_pb_field field;

    (void)state;
    assert_int_equal(next_of("\0\0", 2, &field), RP_PB_BAD);
    end = rp_pb_put_varint_field(bytes, (1u << 29) - 1, 5);
    assert_int_equal(next_of(bytes, (size_t)(end - bytes), &field), RP_PB_FIELD);
    assert_int_equal(field.number, (1u << 29) - 1);
    end = rp_pb_put_varint_field(bytes, 1u << 29, 5);
    assert_int_equal(next_of(bytes, (size_t)(end - bytes), &field), RP_PB_BAD);
}

static void lengths_past_the_end_are_refused(void **state)
{
    static const uint8_t past[] = {0x0a, 0x03, 1, 2};
    uint8_t huge[12] = {0x0a};
    rp_pb_field field;

    (void)state;
    assert_int_equal(next_of(past, sizeof past, &field), RP_PB_BAD);
    rp_pb_put_varint(huge + 1, UINT64_MAX);
    assert_int_equal(next_of(huge, sizeof huge, &field), RP_PB_BAD);
    assert_int_equal(next_of("\x11\1\2\3\4\5\6\7", 8, &field), RP_PB_BAD);
    assert_int_equal(next_of("\x25\1\2\3", 4, &field), RP_PB_BAD);
    assert_int_equal(next_of("\x0a", 1, &field), RP_PB_BAD);
    assert_int_equal(next_of("\x80", 1, &field), RP_PB_BAD);
}

/* Two bytes of a message in memory that somebody else writes to: the second is now the whole
 * length of the field, and now only its first half. */
typedef struct shared_bytes {
    uint8_t bytes[4];
    atomic_bool is_over;
} shared_bytes;

static void *change_bytes(void *arg)
{
    shared_bytes *s = arg;
    volatile uint8_t *byte = &s->bytes[1];

    while (!atomic_load_explicit(&s->is_over, memory_order_relaxed)) *byte ^= 0x80;
    return NULL;
}

static void a_concurrently_changing_byte_is_read_once(void **state)
{
    static shared_bytes s = {.bytes = {0x38, 0x18, 0x01, 0x01}};
    const int looks = (int)(3e6 * rp_test_scale());
    pthread_t thread;

    (void)state;
#ifdef RP_TEST_NO_RACE
    skip();
#endif
    assert_int_equal(pthread_create(&thread, NULL, change_bytes, &s), 0);
    for (int i = 0; i < looks; i++) {
        rp_pb_reader reader = rp_pb_open(s.bytes, 2);
        rp_pb_field field;

        (void)rp_pb_next(&reader, &field);
        assert_true(reader.at <= reader.end);
    }
    atomic_store_explicit(&s.is_over, true, memory_order_relaxed);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

RP_TESTS(protobuf)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_round_trip),
        cmocka_unit_test(varint_sizes_change_every_seven_bits),
        cmocka_unit_test(a_varint_that_is_cut_off_is_refused),
        cmocka_unit_test(a_varint_over_64_bits_is_refused),
        cmocka_unit_test(an_empty_message_ends_at_once),
        cmocka_unit_test(fields_of_every_type_are_read),
        cmocka_unit_test(groups_and_unknown_types_are_refused),
        cmocka_unit_test(field_numbers_lie_between_1_and_2_to_the_29),
        cmocka_unit_test(lengths_past_the_end_are_refused),
        cmocka_unit_test(a_concurrently_changing_byte_is_read_once),
    };
    return cmocka_run_group_tests_name("protobuf", tests, NULL, NULL);
}
