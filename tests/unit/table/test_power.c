/* SPDX-License-Identifier: Apache-2.0 */
#include "table/selector/power.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"
#include "util/cpu.h"
#include "util/rng.h"

enum { COUNT = 1001 /* not a multiple of any vector */ };

static const double exponents[] = {0, 0.001, 0.4, 0.6, 1, 2, 3.7, -0.4, -1, -7.25};

/* Positive numbers of every size, many near 1. */
static void fill(double *x, uint64_t seed)
{
    rp_rng rng;

    rp_rng_init(&rng, seed);
    for (size_t i = 0; i < COUNT; i++) {
        double range = i % 2 == 0 ? 4 : 2100;
        x[i] = exp2((rp_rng_unit(&rng) - 0.5) * range);
        if (x[i] == 0) x[i] = 0x1p-1074;
        if (isinf(x[i])) x[i] = 0x1.fffffffffffffp1023;
    }
}

static void power_has_the_documented_accuracy(void **state)
{
    (void)state;
    static double x[COUNT], out[COUNT];

    for (size_t e = 0; e < COUNT_OF(exponents); e++) {
        fill(x, e + 1);
        rp_power_plain(x, exponents[e], out, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            double exact = pow(x[i], exponents[e]);
            if (exact < 0x1p-1000 || exact > 0x1p1000) continue; /* see the next test */
            assert_true(fabs(out[i] / exact - 1) <=
                        0x1p-51 * (1 + fabs(exponents[e] * log2(x[i]))));
        }
    }
}

static void power_reaches_both_ends_of_float64(void **state)
{
    (void)state;
    const double x[] = {0, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023, 1};
    double out[COUNT_OF(x)];

    rp_power_plain(x, 3, out, COUNT_OF(x));
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0);
    assert_true(isinf(out[3]) && out[4] == 1);
    rp_power_plain(x, -3, out, COUNT_OF(x));
    assert_true(out[0] == 0 && isinf(out[1]) && isinf(out[2]));
    assert_true(out[3] == 0 && out[4] == 1);
    rp_power_plain(x, 0.5, out, COUNT_OF(x));
    assert_true(out[1] == 0x1p-537 && out[2] == 0x1p-511);
}

static void compare_with_plain(rp_power_fn *kernel)
{
    static double x[COUNT], plain[COUNT], other[COUNT];

    for (size_t e = 0; e < COUNT_OF(exponents); e++)
        for (size_t offset = 0; offset < 9; offset++) { /* every place within a vector */
            fill(x, e + 77);
            x[500] = 0;
            rp_power_plain(x + offset, exponents[e], plain, COUNT - offset);
            kernel(x + offset, exponents[e], other, COUNT - offset);
            assert_memory_equal(plain, other, (COUNT - offset) * sizeof *plain);
        }
}

static void kernels_agree_to_the_bit(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (rp_cpu_has_avx2()) compare_with_plain(rp_power_avx2);
    if (rp_cpu_has_avx512()) compare_with_plain(rp_power_avx512);
#endif
    compare_with_plain(rp_power_best());
}

static void batches_give_the_same_powers_as_single_calls(void **state)
{
    (void)state;
    static double x[COUNT], many[COUNT];

    fill(x, 5);
    rp_power_best()(x, 0.6, many, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        double one;
        rp_power_best()(&x[i], 0.6, &one, 1);
        assert_memory_equal(&one, &many[i], sizeof one);
    }
}

RP_TESTS(power)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_has_the_documented_accuracy),
        cmocka_unit_test(power_reaches_both_ends_of_float64),
        cmocka_unit_test(kernels_agree_to_the_bit),
        cmocka_unit_test(batches_give_the_same_powers_as_single_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
