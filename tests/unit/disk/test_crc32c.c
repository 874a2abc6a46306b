/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/crc32c.h"

#include "disk/record.h"
#include "support/unit.h"
#include "util/rng.h"

/* One bit after the other, as the polynomial says. */
static uint32_t slow(uint32_t state, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        state ^= data[i];
        for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (state & 1 ? 0x82f63b78u : 0);
    }
    return state;
}

/* RFC 3720, appendix B.4, and the check value of the catalogues. */
static void checksums_are_those_of_the_standard(void **state)
{
    uint8_t zeroes[32] = {0}, ones[32], up[32], down[32];

    (void)state;
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    assert_int_equal(rp_crc32c(0, "", 0), 0);
    assert_int_equal(rp_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(rp_crc32c(0, zeroes, 32), 0x8a9136aa);
    assert_int_equal(rp_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(rp_crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(rp_crc32c(0, down, 32), 0x113fdb5c);
}

static void a_checksum_can_be_continued(void **state)
{
    static const char text[] = "a stretch of bytes that is cut in two at every place";
    uint32_t whole = rp_crc32c(0, text, sizeof text);

    (void)state;
    for (size_t cut = 0; cut <= sizeof text; cut++)
        assert_int_equal(rp_crc32c(rp_crc32c(0, text, cut), text + cut, sizeof text - cut),
                         whole);
}

static void kernels_give_the_same_numbers(void **state)
{
    static uint8_t data[16384 + 16];
    rp_crc32c_kernel *kernel = rp_crc32c_choose();
    rp_rng rng;

    (void)state;
#if defined(__x86_64__)
    assert_true(kernel == rp_crc32c_sse42 || !__builtin_cpu_supports("sse4.2") ||
                !__builtin_cpu_supports("pclmul"));
#endif
    rp_rng_init(&rng, 1);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)rp_rng_next(&rng);
    for (size_t i = 0; i < rp_test_length(3000, 1600); i++) {
        size_t at = rp_rng_below(&rng, 16);
        size_t size = i < 1200 ? i : rp_rng_below(&rng, 16384);
        uint32_t start = (uint32_t)rp_rng_next(&rng), expected = slow(start, data + at, size);

        assert_int_equal(rp_crc32c_plain(start, data + at, size), expected);
        assert_int_equal(kernel(start, data + at, size), expected);
    }
}

RP_TESTS(crc32c)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_those_of_the_standard),
        cmocka_unit_test(a_checksum_can_be_continued),
        cmocka_unit_test(kernels_give_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
