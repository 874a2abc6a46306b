/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/lz4_decode.h"

#include <lz4.h>

#include "support/chunks.h"

enum { GUARD = 0x5a };

/* Compresses with liblz4; the caller frees. */
static uint8_t *compress(const uint8_t *data, size_t size, size_t *stored)
{
    int room = LZ4_compressBound((int)size);
    uint8_t *block = malloc((size_t)room);

    assert_non_null(block);
    *stored = (size_t)LZ4_compress_default((const char *)data, (char *)block, (int)size, room);
    assert_true(*stored > 0);
    return block;
}

/* Decodes a prefix into memory of exactly that size, so that a sanitizer sees any overrun. */
static rp_status decode(const void *block, size_t stored, size_t raw, const void *expected,
                        size_t want)
{
    uint8_t *dst = malloc(want + 1);
    rp_status st;

    assert_non_null(dst);
    dst[want] = GUARD;
    st = rp_lz4_decode(block, stored, raw, dst, want);
    assert_int_equal(dst[want], GUARD);
    if (st == RP_OK && expected != NULL && want > 0) assert_memory_equal(dst, expected, want);
    free(dst);
    return st;
}

static void literals_alone_are_a_block(void **state)
{
    (void)state;
    assert_int_equal(decode("\x30"
                            "abc",
                            4, 3, "abc", 3),
                     RP_OK);
    assert_int_equal(decode("\0", 1, 0, "", 0), RP_OK);
}

static void matches_repeat_decoded_bytes(void **state)
{
    (void)state;
    /* "ab", six bytes from two back, then "xyz" */
    assert_int_equal(decode("\x22"
                            "ab\2\0\x30xyz",
                            9, 11, "ababababxyz", 11),
                     RP_OK);
}

static void long_lengths_go_on_in_further_bytes(void **state)
{
    uint8_t block[400] = {0xf0, 255, 30}; /* 15 + 255 + 30 literals */

    (void)state;
    memset(block + 3, 'x', 300);
    assert_int_equal(decode(block, 303, 300, block + 3, 300), RP_OK);
    assert_int_equal(decode("\x1f"
                            "a\1\0\xff\x05\0",
                            7, 280, NULL, 280),
                     RP_OK);
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
        assert_int_equal(decode(cut, size, sizeof data, NULL, sizeof data), RP_CORRUPT);
        free(cut);
    }
    free(block);
}

static void an_offset_of_zero_is_refused(void **state)
{
    uint8_t in_the_middle[60] = {0x10, 'a', 0, 0};

    (void)state;
    assert_int_equal(decode("\x10"
                            "a\0\0\x50"
                            "abcde",
                            10, 10, NULL, 10),
                     RP_CORRUPT);
    assert_int_equal(decode(in_the_middle, sizeof in_the_middle, 300, NULL, 200), RP_CORRUPT);
}

static void an_offset_before_the_beginning_is_refused(void **state)
{
    uint8_t in_the_middle[60] = {0x10, 'a', 9, 0};

    (void)state;
    assert_int_equal(decode("\x10"
                            "a\2\0\x50"
                            "abcde",
                            10, 10, NULL, 10),
                     RP_CORRUPT);
    assert_int_equal(decode(in_the_middle, sizeof in_the_middle, 300, NULL, 200), RP_CORRUPT);
    assert_int_equal(decode("\x10"
                            "a\1\0\x50"
                            "abcde",
                            10, 10, "aaaaaabcde", 10),
                     RP_OK);
}

static void more_than_declared_is_refused(void **state)
{
    (void)state;
    assert_int_equal(decode("\x40"
                            "abcd",
                            5, 3, NULL, 3),
                     RP_CORRUPT);
    assert_int_equal(decode("\x10"
                            "a\1\0\0",
                            5, 4, NULL, 4),
                     RP_CORRUPT);
    assert_int_equal(decode("\x10"
                            "a\1\0\0",
                            5, 5, "aaaaa", 5),
                     RP_OK);
    assert_int_equal(decode("\xf0\xff\xff\xff\xff\xff\xff\xff", 8, 5, NULL, 5), RP_CORRUPT);
}

static void trailing_bytes_are_refused(void **state)
{
    (void)state;
    assert_int_equal(decode("\x30"
                            "abc\0",
                            5, 3, NULL, 3),
                     RP_CORRUPT);
    assert_int_equal(decode("\0\0", 2, 0, NULL, 0), RP_CORRUPT);
}

static void overlapping_matches_of_every_offset_are_right(void **state)
{
    (void)state;
    for (uint8_t offset = 1; offset <= 14; offset++)
        for (size_t length = 4; length <= 200; length += 3) {
            uint8_t block[32] = {0}, expected[256], *at = block;
            size_t raw = offset + length;
            bool is_long = length - 4 >= 15;
            *at++ = (uint8_t)((size_t)offset << 4 | (is_long ? 15 : length - 4));
            for (uint8_t i = 0; i < offset; i++) *at++ = expected[i] = (uint8_t)(i * 7 + 1);
            for (size_t i = 0; i < length; i++) expected[offset + i] = expected[i];
            *at++ = offset;
            *at++ = 0;
            if (is_long) *at++ = (uint8_t)(length - 19);
            *at++ = 0; /* the end: a token without literals */
            for (size_t want = offset; want <= raw; want++)
                assert_int_equal(decode(block, (size_t)(at - block), raw, expected, want),
                                 RP_OK);
        }
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

static void damaged_blocks_that_both_accept_decode_alike(void **state)
{
    const size_t count = rp_test_length(20000, 4000);
    size_t alike = 0, refused = 0;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 5);
    for (size_t i = 0; i < count; i++) {
        uint8_t data[200], theirs[200];
        size_t stored;
        uint8_t *block;
        bool ok;
        rp_test_fill(&rng, data, sizeof data);
        block = compress(data, sizeof data, &stored);
        block[rp_rng_below(&rng, stored)] ^= (uint8_t)(1u << rp_rng_below(&rng, 8));
        ok = LZ4_decompress_safe((char *)block, (char *)theirs, (int)stored, 200) == 200;
        if (decode(block, stored, sizeof data, ok ? theirs : NULL, sizeof data) == RP_OK && ok)
            alike++;
        else
            refused++;
        free(block);
    }
    assert_true(alike > count / 20 && refused > count / 20);
}

RP_TESTS(lz4_decode)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literals_alone_are_a_block),
        cmocka_unit_test(matches_repeat_decoded_bytes),
        cmocka_unit_test(long_lengths_go_on_in_further_bytes),
        cmocka_unit_test(every_prefix_is_decoded),
        cmocka_unit_test(every_truncation_is_refused_when_all_is_wanted),
        cmocka_unit_test(an_offset_of_zero_is_refused),
        cmocka_unit_test(an_offset_before_the_beginning_is_refused),
        cmocka_unit_test(more_than_declared_is_refused),
        cmocka_unit_test(trailing_bytes_are_refused),
        cmocka_unit_test(overlapping_matches_of_every_offset_are_right),
        cmocka_unit_test(random_data_round_trips),
        cmocka_unit_test(damaged_blocks_that_both_accept_decode_alike),
    };
    return cmocka_run_group_tests_name("lz4_decode", tests, NULL, NULL);
}
