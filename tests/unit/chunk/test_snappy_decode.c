/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/snappy_decode.h"

#include <snappy-c.h>

#include "support/chunks.h"

enum { GUARD = 0x5a };

/* Compresses with libsnappy; the caller frees. */
static uint8_t *compress(const uint8_t *data, size_t size, size_t *stored)
{
    uint8_t *block = malloc(snappy_max_compressed_length(size));

    *stored = snappy_max_compressed_length(size);
    assert_non_null(block);
    assert_int_equal(snappy_compress((const char *)data, size, (char *)block, stored),
                     SNAPPY_OK);
    return block;
}

/* Decodes a prefix into memory of exactly that size, so that a sanitizer sees any overrun. */
static rp_status decode(const uint8_t *block, size_t stored, size_t raw,
                        const uint8_t *expected, size_t want)
{
    uint8_t *dst = malloc(want + 1);
    rp_status st;

    assert_non_null(dst);
    dst[want] = GUARD;
    st = rp_snappy_decode(block, stored, raw, dst, want);
    assert_int_equal(dst[want], GUARD);
    if (st == RP_OK && expected != NULL && want > 0) assert_memory_equal(dst, expected, want);
    free(dst);
    return st;
}

static void a_single_literal_is_recognised_at_every_size(void **state)
{
    static const size_t sizes[] = {0,   1,   2,     59,    60,    61,     255,      256,
                                   257, 300, 65535, 65536, 65537, 100000, 16777216, 16777217};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t head = rp_snappy_literal_head_size(sizes[i]), raw, at;
        uint8_t *block = calloc(head + sizes[i] + 1, 1);
        assert_non_null(block);
        assert_ptr_equal(rp_snappy_put_literal_head(block, sizes[i]), block + head);
        assert_ptr_equal(rp_snappy_literal(block, head + sizes[i], sizes[i]), block + head);
        assert_true(rp_snappy_head(block, head + sizes[i], &raw, &at));
        assert_int_equal(raw, sizes[i]);
        assert_null(rp_snappy_literal(block, head + sizes[i] + 1, sizes[i]));
        if (sizes[i] > 0) assert_null(rp_snappy_literal(block, head + sizes[i] - 1, sizes[i]));
        assert_null(rp_snappy_literal(block, head + sizes[i], sizes[i] + 1));
        free(block);
    }
}

static void libsnappy_reads_our_literals(void **state)
{
    static const size_t sizes[] = {0, 1, 60, 61, 256, 257, 65536, 65537, 70000};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        size_t head = rp_snappy_literal_head_size(sizes[i]), raw = sizes[i];
        uint8_t *block = malloc(head + sizes[i]), *back = malloc(sizes[i] + 1);
        assert_true(block != NULL && back != NULL);
        rp_snappy_put_literal_head(block, sizes[i]);
        memset(block + head, 0x77, sizes[i]);
        assert_int_equal(snappy_uncompress((char *)block, head + sizes[i], (char *)back, &raw),
                         SNAPPY_OK);
        assert_int_equal(raw, sizes[i]);
        assert_memory_equal(block + head, back, raw);
        free(block);
        free(back);
    }
}

static void the_literal_of_the_wire_document_is_read(void **state)
{
    uint8_t block[26] = {0x18, 0x5c};

    (void)state;
    for (uint8_t i = 0; i < 24; i++) block[i + 2] = i;
    assert_ptr_equal(rp_snappy_literal(block, 26, 24), block + 2);
    assert_int_equal(decode(block, 26, 24, block + 2, 24), RP_OK);
}

static void blocks_with_copies_are_not_taken_for_a_literal(void **state)
{
    uint8_t zeroes[100] = {0};
    size_t stored;
    uint8_t *block = compress(zeroes, sizeof zeroes, &stored);

    (void)state;
    assert_null(rp_snappy_literal(block, stored, sizeof zeroes));
    free(block);
}

static void truncated_and_too_long_size_prefixes_are_refused(void **state)
{
    size_t raw, head;

    (void)state;
    assert_false(rp_snappy_head((const uint8_t *)"", 0, &raw, &head));
    assert_false(rp_snappy_head((const uint8_t *)"\x80", 1, &raw, &head));
    assert_false(rp_snappy_head((const uint8_t *)"\x80\x80\x80\x80\x80\x01", 6, &raw, &head));
    assert_false(rp_snappy_head((const uint8_t *)"\xff\xff\xff\xff\x1f", 5, &raw, &head));
    assert_true(rp_snappy_head((const uint8_t *)"\xff\xff\xff\xff\x0f", 5, &raw, &head));
    assert_true(raw == UINT32_MAX && head == 5);
}

static void every_prefix_is_decoded(void **state)
{
    uint8_t data[700];
    size_t stored;
    uint8_t *block;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 2);
    rp_test_fill(&rng, data, sizeof data);
    block = compress(data, sizeof data, &stored);
    for (size_t want = 0; want <= sizeof data; want++)
        assert_int_equal(decode(block, stored, sizeof data, data, want), RP_OK);
    free(block);
}

static void every_truncation_is_refused_when_all_is_wanted(void **state)
{
    uint8_t data[300];
    size_t stored;
    uint8_t *block;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 3);
    rp_test_fill(&rng, data, sizeof data);
    block = compress(data, sizeof data, &stored);
    for (size_t size = 0; size < stored; size++) {
        uint8_t *cut = malloc(size + 1);
        assert_non_null(cut);
        memcpy(cut, block, size);
        assert_int_equal(decode(cut, size, sizeof data, data, sizeof data), RP_CORRUPT);
        free(cut);
    }
    free(block);
}

static void overlapping_copies_repeat_what_they_began_with(void **state)
{
    (void)state;
    for (uint8_t offset = 1; offset <= 40; offset++) {
        for (uint8_t length = 1; length <= 64; length++) {
            uint8_t block[64], expected[128], *at = block;
            at = rp_snappy_put_literal_head(at, offset);
            block[0] = (uint8_t)(offset + length); /* both below 128: one byte */
            for (uint8_t i = 0; i < offset; i++) *at++ = expected[i] = (uint8_t)(i * 7 + 1);
            for (uint8_t i = 0; i < length; i++) expected[offset + i] = expected[i];
            *at++ = (uint8_t)((length - 1) << 2 | 2);
            *at++ = offset;
            *at++ = 0;
            for (size_t want = offset; want <= (size_t)offset + length; want++)
                assert_int_equal(decode(block, (size_t)(at - block), (size_t)offset + length,
                                        expected, want),
                                 RP_OK);
        }
    }
}

static void copies_of_every_kind_are_read(void **state)
{
    /* "abcd", then four bytes from four back, with one, two and four bytes of offset */
    static const uint8_t block[] = {16,   0x0c, 'a', 'b',  'c', 'd', 0x01, 4,
                                    0x0e, 4,    0,   0x0f, 4,   0,   0,    0};

    (void)state;
    assert_int_equal(decode(block, sizeof block, 16, (const uint8_t *)"abcdabcdabcdabcd", 16),
                     RP_OK);
}

static void copies_from_before_the_beginning_are_refused(void **state)
{
    static const uint8_t zero[] = {8, 0x0c, 'a', 'b', 'c', 'd', 0x01, 0};
    static const uint8_t before[] = {8, 0x0c, 'a', 'b', 'c', 'd', 0x01, 5};
    static const uint8_t first[] = {4, 0x01, 1};
    static const uint8_t far[] = {8, 0x0c, 'a', 'b', 'c', 'd', 0x0f, 4, 0, 0, 0x80};

    (void)state;
    assert_int_equal(decode(zero, sizeof zero, 8, NULL, 8), RP_CORRUPT);
    assert_int_equal(decode(before, sizeof before, 8, NULL, 8), RP_CORRUPT);
    assert_int_equal(decode(first, sizeof first, 4, NULL, 4), RP_CORRUPT);
    assert_int_equal(decode(far, sizeof far, 8, NULL, 8), RP_CORRUPT);
}

static void elements_longer_than_declared_are_refused(void **state)
{
    static const uint8_t literal[] = {3, 0x0c, 'a', 'b', 'c', 'd'};
    static const uint8_t copy[] = {7, 0x0c, 'a', 'b', 'c', 'd', 0x01, 4};

    (void)state;
    assert_int_equal(decode(literal, sizeof literal, 3, NULL, 3), RP_CORRUPT);
    assert_int_equal(decode(copy, sizeof copy, 7, NULL, 7), RP_CORRUPT);
    assert_int_equal(decode(copy, sizeof copy, 7, NULL, 6), RP_CORRUPT);
}

/* libsnappy adds one to the length in 32 bits and sees no bytes at all. */
static void a_literal_of_4_gib_is_refused(void **state)
{
    static const uint8_t block[] = {1, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x00, 'x'};

    (void)state;
    assert_int_equal(decode(block, sizeof block, 1, NULL, 1), RP_CORRUPT);
}

static void trailing_bytes_are_refused(void **state)
{
    static const uint8_t block[] = {4, 0x0c, 'a', 'b', 'c', 'd', 0x00};

    (void)state;
    assert_int_equal(decode(block, 6, 4, (const uint8_t *)"abcd", 4), RP_OK);
    assert_int_equal(decode(block, 7, 4, NULL, 4), RP_CORRUPT);
}

static void a_length_other_than_declared_is_refused(void **state)
{
    static const uint8_t block[] = {4, 0x0c, 'a', 'b', 'c', 'd'};

    (void)state;
    assert_int_equal(decode(block, sizeof block, 5, NULL, 4), RP_CORRUPT);
    assert_int_equal(decode(block, sizeof block, 3, NULL, 3), RP_CORRUPT);
}

static void random_data_round_trips(void **state)
{
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 4);
    for (int i = 0; i < 400; i++) {
        size_t size = rp_rng_below(&rng, 9000), stored, want;
        uint8_t *data = malloc(size + 1), *block;
        assert_non_null(data);
        rp_test_fill(&rng, data, size);
        block = compress(data, size, &stored);
        want = rp_rng_below(&rng, size + 1);
        assert_int_equal(decode(block, stored, size, data, size), RP_OK);
        assert_int_equal(decode(block, stored, size, data, want), RP_OK);
        free(block);
        free(data);
    }
}

static void damaged_blocks_are_judged_as_libsnappy_does(void **state)
{
    const size_t count = rp_test_length(20000, 4000);
    size_t good = 0, bad = 0;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 5);
    for (size_t i = 0; i < count; i++) {
        uint8_t data[200], theirs[200];
        size_t stored, raw = sizeof data;
        uint8_t *block;
        bool ok;
        rp_test_fill(&rng, data, sizeof data);
        block = compress(data, sizeof data, &stored);
        block[2 + rp_rng_below(&rng, stored - 2)] ^= (uint8_t)(1u << rp_rng_below(&rng, 8));
        ok = snappy_uncompress((char *)block, stored, (char *)theirs, &raw) == SNAPPY_OK;
        assert_int_equal(decode(block, stored, sizeof data, theirs, sizeof data),
                         ok ? RP_OK : RP_CORRUPT);
        good += ok;
        bad += !ok;
        free(block);
    }
    assert_true(good > count / 20 && bad > count / 20);
}

RP_TESTS(snappy_decode)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_literal_is_recognised_at_every_size),
        cmocka_unit_test(libsnappy_reads_our_literals),
        cmocka_unit_test(the_literal_of_the_wire_document_is_read),
        cmocka_unit_test(blocks_with_copies_are_not_taken_for_a_literal),
        cmocka_unit_test(truncated_and_too_long_size_prefixes_are_refused),
        cmocka_unit_test(every_prefix_is_decoded),
        cmocka_unit_test(every_truncation_is_refused_when_all_is_wanted),
        cmocka_unit_test(overlapping_copies_repeat_what_they_began_with),
        cmocka_unit_test(copies_of_every_kind_are_read),
        cmocka_unit_test(copies_from_before_the_beginning_are_refused),
        cmocka_unit_test(elements_longer_than_declared_are_refused),
        cmocka_unit_test(a_literal_of_4_gib_is_refused),
        cmocka_unit_test(trailing_bytes_are_refused),
        cmocka_unit_test(a_length_other_than_declared_is_refused),
        cmocka_unit_test(random_data_round_trips),
        cmocka_unit_test(damaged_blocks_are_judged_as_libsnappy_does),
    };
    return cmocka_run_group_tests_name("snappy_decode", tests, NULL, NULL);
}
