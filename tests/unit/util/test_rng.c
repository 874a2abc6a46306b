/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "util/rng.h"

/* From the reference implementation of splitmix64, seed 1234567. */
static void splitmix64_gives_the_published_numbers(void **state)
{
    (void)state;
    uint64_t s = 1234567;

    assert_int_equal(rp_splitmix64(&s), 6457827717110365317u);
    assert_int_equal(rp_splitmix64(&s), 3203168211198807973u);
    assert_int_equal(rp_splitmix64(&s), 9817491932198370423u);
    assert_int_equal(rp_splitmix64(&s), 4593380528125082431u);
    assert_int_equal(rp_splitmix64(&s), 16408922859458223821u);
}

/* From the reference implementation of xoshiro256++, state 1, 2, 3, 4. */
static void xoshiro256_gives_the_published_numbers(void **state)
{
    (void)state;
    rp_rng rng = {{1, 2, 3, 4}};
    const uint64_t expected[] = {
        41943041u,
        58720359u,
        3588806011781223u,
        3591011842654386u,
        9228616714210784205u,
        9973669472204895162u,
        14011001112246962877u,
        12406186145184390807u,
        15849039046786891736u,
        10450023813501588000u,
    };

    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_int_equal(rp_rng_next(&rng), expected[i]);
}

static void seed_is_spread_by_splitmix64(void **state)
{
    (void)state;
    rp_rng rng;
    uint64_t s = 99;

    rp_rng_init(&rng, 99);

    for (int i = 0; i < 4; i++) assert_int_equal(rng.s[i], rp_splitmix64(&s));
}

static void unit_lies_in_its_range_and_has_53_bits(void **state)
{
    (void)state;
    rp_rng rng;
    double low = 1, high = 0, sum = 0;
    rp_rng_init(&rng, 5);

    for (int i = 0; i < 100000; i++) {
        double u = rp_rng_unit(&rng), scaled = u * 0x1p53;
        assert_true(u >= 0 && u < 1);
        assert_true(scaled == (double)(uint64_t)scaled);
        low = u < low ? u : low;
        high = u > high ? u : high;
        sum += u;
    }

    assert_true(low < 1e-3 && high > 1 - 1e-3);
    assert_true(sum > 49500 && sum < 50500); /* 5 standard deviations are 456 */
}

static void largest_unit_is_below_one(void **state)
{
    (void)state;
    /* The next number is rotl(s0 + s3, 23) + s0: all ones for s0 = 0, s3 = all ones. */
    rp_rng rng = {{0, 0, 0, UINT64_MAX}};

    assert_true(rp_rng_unit(&rng) == 1 - 0x1p-53);
}

static void below_is_the_high_half_of_the_product(void **state)
{
    (void)state;
    rp_rng a = {{7, 8, 9, 10}}, b = a, highest = {{0, 0, 0, UINT64_MAX}};

    for (uint64_t n = 1; n < UINT64_MAX / 3; n = 3 * n + 1)
        assert_int_equal(rp_rng_below(&a, n), (uint64_t)((rp_u128)rp_rng_next(&b) * n >> 64));
    assert_int_equal(rp_rng_below(&highest, 1000), 999);
}

static void below_covers_its_range_evenly(void **state)
{
    (void)state;
    int counts[10] = {0};
    rp_rng rng;
    rp_rng_init(&rng, 6);

    for (int i = 0; i < 100000; i++) counts[rp_rng_below(&rng, 10)]++;

    for (int i = 0; i < 10; i++) assert_in_range(counts[i], 9500, 10500); /* 5 sigma is 474 */
    for (int i = 0; i < 100; i++) assert_int_equal(rp_rng_below(&rng, 1), 0);
}

RP_TESTS(rng)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitmix64_gives_the_published_numbers),
        cmocka_unit_test(xoshiro256_gives_the_published_numbers),
        cmocka_unit_test(seed_is_spread_by_splitmix64),
        cmocka_unit_test(unit_lies_in_its_range_and_has_53_bits),
        cmocka_unit_test(largest_unit_is_below_one),
        cmocka_unit_test(below_is_the_high_half_of_the_product),
        cmocka_unit_test(below_covers_its_range_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
