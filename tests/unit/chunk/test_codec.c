/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/codec.h"

#include <zstd.h>

#include "support/chunks.h"

static const rp_codec codecs[] = {RP_CODEC_SNAPPY, RP_CODEC_NONE, RP_CODEC_ZSTD, RP_CODEC_LZ4};

/* A state, and a block with what it was made of. */
typedef struct fixture {
    rp_codec_state codec;
    uint8_t *raw, *block;
    size_t raw_bytes, stored_bytes;
} fixture;

static void setup(fixture *f, rp_codec codec, size_t raw_bytes, uint64_t seed)
{
    rp_rng rng;

    rp_rng_init(&rng, seed);
    rp_codec_state_init(&f->codec, rp_allocator_default());
    f->raw_bytes = raw_bytes;
    f->raw = malloc(raw_bytes + 1);
    f->block = malloc(rp_codec_max_bytes(codec, raw_bytes));
    assert_true(f->raw != NULL && f->block != NULL);
    rp_test_fill(&rng, f->raw, raw_bytes);
    assert_ok(
        rp_codec_compress(&f->codec, codec, 0, f->raw, raw_bytes, f->block, &f->stored_bytes));
    assert_in_range(f->stored_bytes, 1, rp_codec_max_bytes(codec, raw_bytes));
}

static void teardown(fixture *f)
{
    rp_codec_state_deinit(&f->codec);
    free(f->raw);
    free(f->block);
}

/* Decodes a prefix of a block of `size` bytes; compares if that succeeds. */
static rp_status decode(fixture *f, rp_codec codec, const uint8_t *block, size_t size,
                        size_t want)
{
    uint8_t *copy = malloc(size + 1), *dst = malloc(want + 1);
    rp_status st;

    assert_true(copy != NULL && dst != NULL);
    memcpy(copy, block, size);
    st = rp_codec_decompress(&f->codec, codec, copy, size, f->raw_bytes, dst, want);
    if (st == RP_OK) assert_memory_equal(dst, f->raw, want);
    free(copy);
    free(dst);
    return st;
}

static void codecs_have_names(void **state)
{
    (void)state;
    assert_string_equal(rp_codec_name(RP_CODEC_SNAPPY), "snappy");
    assert_string_equal(rp_codec_name(RP_CODEC_NONE), "none");
    assert_string_equal(rp_codec_name(RP_CODEC_ZSTD), "zstd");
    assert_string_equal(rp_codec_name(RP_CODEC_LZ4), "lz4");
    assert_null(rp_codec_name((rp_codec)4));
    assert_null(rp_codec_name((rp_codec)-1));
}

static void every_codec_round_trips(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 60, 61, 1000, 65536, 200000};

    (void)state;
    for (size_t c = 0; c < COUNT_OF(codecs); c++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            fixture f;
            setup(&f, codecs[c], sizes[i], i);
            assert_true(rp_codec_check_head(codecs[c], f.block, f.stored_bytes, f.raw_bytes));
            assert_ok(decode(&f, codecs[c], f.block, f.stored_bytes, f.raw_bytes));
            teardown(&f);
        }
}

static void every_prefix_is_decoded(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT_OF(codecs); c++) {
        fixture f;
        setup(&f, codecs[c], 600, 7);
        for (size_t want = 0; want <= f.raw_bytes; want++)
            assert_ok(decode(&f, codecs[c], f.block, f.stored_bytes, want));
        teardown(&f);
    }
}

static void prefixes_of_large_blocks_are_decoded(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT_OF(codecs); c++) {
        fixture f;
        setup(&f, codecs[c], 700000, 8); /* several blocks of zstd, several windows of snappy */
        for (size_t want = 1; want < f.raw_bytes; want = want * 3 + 1)
            assert_ok(decode(&f, codecs[c], f.block, f.stored_bytes, want));
        teardown(&f);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT_OF(codecs); c++) {
        fixture f;
        setup(&f, codecs[c], 500, 9);
        for (size_t size = 0; size < f.stored_bytes; size++)
            assert_int_equal(decode(&f, codecs[c], f.block, size, f.raw_bytes), RP_CORRUPT);
        teardown(&f);
    }
}

static void trailing_bytes_are_refused(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT_OF(codecs); c++) {
        fixture f;
        uint8_t *longer;
        setup(&f, codecs[c], 500, 10);
        longer = calloc(f.stored_bytes + 1, 1);
        assert_non_null(longer);
        memcpy(longer, f.block, f.stored_bytes);
        assert_int_equal(decode(&f, codecs[c], longer, f.stored_bytes + 1, f.raw_bytes),
                         RP_CORRUPT);
        free(longer);
        teardown(&f);
    }
}

static void a_size_other_than_declared_is_refused(void **state)
{
    uint8_t dst[600];

    (void)state;
    for (size_t c = 0; c < COUNT_OF(codecs); c++) {
        fixture f;
        setup(&f, codecs[c], 500, 11);
        for (size_t raw = 499; raw <= 501; raw += 2) {
            assert_false(rp_codec_check_head(codecs[c], f.block, f.stored_bytes, raw));
            assert_int_equal(rp_codec_decompress(&f.codec, codecs[c], f.block, f.stored_bytes,
                                                 raw, dst, 100),
                             RP_CORRUPT);
        }
        teardown(&f);
    }
}

static void damaged_blocks_give_a_status(void **state)
{
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 12);
    for (size_t c = 0; c < COUNT_OF(codecs); c++) {
        fixture f;
        uint8_t dst[800];
        setup(&f, codecs[c], sizeof dst, 13);
        for (int i = 0; i < 3000; i++) {
            size_t at = rp_rng_below(&rng, f.stored_bytes);
            size_t want = rp_rng_below(&rng, 2) ? sizeof dst : rp_rng_below(&rng, sizeof dst);
            uint8_t bit = (uint8_t)(1u << rp_rng_below(&rng, 8));
            rp_status st;
            f.block[at] ^= bit;
            st = rp_codec_decompress(&f.codec, codecs[c], f.block, f.stored_bytes, sizeof dst,
                                     dst, want);
            assert_true(st == RP_OK || st == RP_CORRUPT);
            f.block[at] ^= bit;
        }
        assert_ok(
            decode(&f, codecs[c], f.block, f.stored_bytes, sizeof dst)); /* still usable */
        teardown(&f);
    }
}

static void data_that_snappy_cannot_shrink_is_stored(void **state)
{
    uint8_t noise[1000], block[2000];
    rp_codec_state codec;
    size_t stored;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 14);
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)rp_rng_next(&rng);
    rp_codec_state_init(&codec, rp_allocator_default());
    assert_ok(
        rp_codec_compress(&codec, RP_CODEC_SNAPPY, 0, noise, sizeof noise, block, &stored));
    assert_non_null(rp_codec_stored(RP_CODEC_SNAPPY, block, stored, sizeof noise));
    memset(noise, 0, sizeof noise);
    assert_ok(
        rp_codec_compress(&codec, RP_CODEC_SNAPPY, 0, noise, sizeof noise, block, &stored));
    assert_null(rp_codec_stored(RP_CODEC_SNAPPY, block, stored, sizeof noise));
    assert_true(stored < 100);
    rp_codec_state_deinit(&codec);
}

static void only_snappy_blocks_count_as_stored(void **state)
{
    fixture f;

    (void)state;
    setup(&f, RP_CODEC_NONE, 100, 15);
    assert_non_null(rp_codec_stored(RP_CODEC_NONE, f.block, f.stored_bytes, 100));
    assert_null(rp_codec_stored(RP_CODEC_LZ4, f.block, f.stored_bytes, 100));
    assert_null(rp_codec_stored(RP_CODEC_ZSTD, f.block, f.stored_bytes, 100));
    teardown(&f);
}

static void levels_of_zstd_have_bounds(void **state)
{
    (void)state;
    assert_true(rp_codec_level_is_valid(RP_CODEC_ZSTD, 0));
    assert_true(rp_codec_level_is_valid(RP_CODEC_ZSTD, ZSTD_maxCLevel()));
    assert_false(rp_codec_level_is_valid(RP_CODEC_ZSTD, ZSTD_maxCLevel() + 1));
    assert_true(rp_codec_level_is_valid(RP_CODEC_ZSTD, ZSTD_minCLevel()));
    assert_false(rp_codec_level_is_valid(RP_CODEC_ZSTD, ZSTD_minCLevel() - 1));
    assert_true(rp_codec_level_is_valid(RP_CODEC_SNAPPY, 1000));
}

static void zstd_compresses_harder_at_higher_levels(void **state)
{
    size_t low, high, raw_bytes = 100000;
    fixture f;

    (void)state;
    setup(&f, RP_CODEC_ZSTD, raw_bytes, 16);
    assert_ok(rp_codec_compress(&f.codec, RP_CODEC_ZSTD, -7, f.raw, raw_bytes, f.block, &low));
    assert_ok(rp_codec_compress(&f.codec, RP_CODEC_ZSTD, 12, f.raw, raw_bytes, f.block, &high));
    assert_true(high < low);
    assert_ok(decode(&f, RP_CODEC_ZSTD, f.block, high, raw_bytes));
    teardown(&f);
}

static void two_zstd_frames_are_refused(void **state)
{
    uint8_t empty[32], *both;
    size_t empty_bytes = ZSTD_compress(empty, sizeof empty, NULL, 0, 1);
    fixture f;

    (void)state;
    setup(&f, RP_CODEC_ZSTD, 500, 17);
    both = malloc(f.stored_bytes + empty_bytes);
    assert_non_null(both);
    memcpy(both, f.block, f.stored_bytes);
    memcpy(both + f.stored_bytes, empty, empty_bytes);
    assert_int_equal(decode(&f, RP_CODEC_ZSTD, both, f.stored_bytes + empty_bytes, 500),
                     RP_CORRUPT);
    free(both);
    teardown(&f);
}

static void zstd_frames_of_other_kinds_are_refused(void **state)
{
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4};
    static const uint8_t old_format[] = {0x25, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0};

    (void)state;
    assert_false(rp_codec_check_head(RP_CODEC_ZSTD, skippable, sizeof skippable, 0));
    assert_false(rp_codec_check_head(RP_CODEC_ZSTD, old_format, sizeof old_format, 0));
    assert_false(rp_codec_check_head(RP_CODEC_ZSTD, skippable, 3, 0));
}

static void a_zstd_frame_that_hides_its_size_is_refused(void **state)
{
    ZSTD_CCtx *ctx = ZSTD_createCCtx();
    uint8_t raw[100] = {0}, block[200];
    size_t size;

    (void)state;
    assert_non_null(ctx);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 0)));
    size = ZSTD_compress2(ctx, block, sizeof block, raw, sizeof raw);
    assert_false(ZSTD_isError(size));
    assert_false(rp_codec_check_head(RP_CODEC_ZSTD, block, size, sizeof raw));
    ZSTD_freeCCtx(ctx);
}

/* Runs are what each format does best, and none of ours does better than its bound. */
static void runs_of_every_length_pass_the_size_check(void **state)
{
    static uint8_t raw[1 << 20], block[1 << 21];
    rp_codec_state s;
    size_t size;

    (void)state;
    rp_codec_state_init(&s, rp_allocator_default());
    for (size_t c = 0; c < COUNT_OF(codecs); c++)
        for (size_t n = 1; n <= sizeof raw; n += 1 + n / 7) {
            assert_true(rp_codec_max_bytes(codecs[c], n) <= sizeof block);
            assert_ok(rp_codec_compress(&s, codecs[c], 0, raw, n, block, &size));
            assert_true(rp_codec_check_head(codecs[c], block, size, n));
        }
    rp_codec_state_deinit(&s);
}

/* The best block of each format, by hand: a byte less could not be. */
static void the_best_ratio_of_each_format_passes_the_size_check(void **state)
{
    /* 1 + 30 * 64 bytes: a literal, then copies of 64 bytes from 1 byte back */
    uint8_t snappy[2 + 2 + 3 * 30] = {0x81, 0x0f, 0x00, 'x'}, raw[1921];
    rp_codec_state s;

    (void)state;
    for (size_t i = 4; i < sizeof snappy; i += 3) memcpy(snappy + i, "\xfe\x01\x00", 3);
    rp_codec_state_init(&s, rp_allocator_default());
    assert_ok(rp_codec_decompress(&s, RP_CODEC_SNAPPY, snappy, sizeof snappy, sizeof raw, raw,
                                  sizeof raw));
    for (size_t i = 0; i < sizeof raw; i++) assert_int_equal(raw[i], 'x');
    assert_false(
        rp_codec_check_head(RP_CODEC_SNAPPY, snappy, (3 * sizeof raw) / 64, sizeof raw));
    assert_true(
        rp_codec_check_head(RP_CODEC_SNAPPY, snappy, (3 * sizeof raw) / 64 + 1, sizeof raw));
    rp_codec_state_deinit(&s);
}

static void more_than_a_gibibyte_is_refused_before_decoding(void **state)
{
    static const uint8_t two_gib[] = {0x80, 0x80, 0x80, 0x80, 0x08};

    (void)state;
    assert_false(
        rp_codec_check_head(RP_CODEC_SNAPPY, two_gib, sizeof two_gib, (size_t)1 << 31));
}

static rp_status zstd_both_ways(const rp_allocator *alloc)
{
    uint8_t raw[3000] = {1, 2, 3}, block[4000], back[3000];
    rp_codec_state codec;
    size_t stored;
    rp_status st;

    rp_codec_state_init(&codec, alloc);
    st = rp_codec_compress(&codec, RP_CODEC_ZSTD, 0, raw, sizeof raw, block, &stored);
    if (st == RP_OK)
        st = rp_codec_decompress(&codec, RP_CODEC_ZSTD, block, stored, sizeof raw, back, 2000);
    if (st == RP_OK) assert_memory_equal(raw, back, 2000);
    rp_codec_state_deinit(&codec);
    return st;
}

static void every_allocation_of_zstd_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(zstd_both_ways);
}

static void a_state_recovers_from_a_failed_allocation(void **state)
{
    rp_test_oom o = RP_TEST_OOM_INIT(0);
    rp_allocator alloc = rp_test_oom_allocator(&o);
    uint8_t raw[3000] = {0}, block[4000];
    rp_codec_state codec;
    size_t stored;

    (void)state;
    rp_codec_state_init(&codec, &alloc);
    for (size_t room = 0;; room++) {
        rp_status st;
        o.left = room;
        st = rp_codec_compress(&codec, RP_CODEC_ZSTD, 0, raw, sizeof raw, block, &stored);
        if (st == RP_OK) break;
        assert_int_equal(st, RP_NO_RESOURCE);
    }
    rp_codec_state_deinit(&codec);
    rp_codec_state_deinit(NULL);
    assert_int_equal(o.live, 0);
}

RP_TESTS(codec)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codecs_have_names),
        cmocka_unit_test(every_codec_round_trips),
        cmocka_unit_test(every_prefix_is_decoded),
        cmocka_unit_test(prefixes_of_large_blocks_are_decoded),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(trailing_bytes_are_refused),
        cmocka_unit_test(a_size_other_than_declared_is_refused),
        cmocka_unit_test(damaged_blocks_give_a_status),
        cmocka_unit_test(data_that_snappy_cannot_shrink_is_stored),
        cmocka_unit_test(only_snappy_blocks_count_as_stored),
        cmocka_unit_test(levels_of_zstd_have_bounds),
        cmocka_unit_test(zstd_compresses_harder_at_higher_levels),
        cmocka_unit_test(two_zstd_frames_are_refused),
        cmocka_unit_test(zstd_frames_of_other_kinds_are_refused),
        cmocka_unit_test(a_zstd_frame_that_hides_its_size_is_refused),
        cmocka_unit_test(runs_of_every_length_pass_the_size_check),
        cmocka_unit_test(the_best_ratio_of_each_format_passes_the_size_check),
        cmocka_unit_test(more_than_a_gibibyte_is_refused_before_decoding),
        cmocka_unit_test(every_allocation_of_zstd_may_fail),
        cmocka_unit_test(a_state_recovers_from_a_failed_allocation),
    };
    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
