/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/histogram_json.h"

#include <float.h>
#include <math.h>

#include "support/unit.h"

static rp_bins bins;

static uint64_t sum(void)
{
    uint64_t n = 0;

    for (size_t i = 0; i < bins.count; i++) n += bins.counts[i];
    return n;
}

static void no_values_have_no_bins(void **state)
{
    const double values[] = {NAN, INFINITY};

    (void)state;
    rp_bins_make(&bins, NULL, 0, false);
    assert_int_equal(bins.count, 0);
    rp_bins_make(&bins, values, 2, false);
    assert_int_equal(bins.count, 0);
}

static void equal_values_have_one_bin(void **state)
{
    const double values[] = {2, NAN, 2, 2};

    (void)state;
    rp_bins_make(&bins, values, 4, true);
    assert_int_equal(bins.count, 1);
    assert_true(bins.bounds[0] == 2 && bins.bounds[1] == 2 && bins.counts[0] == 3);
}

static void whole_numbers_have_a_bin_each(void **state)
{
    const double values[] = {0, 1, 1, 3};

    (void)state;
    rp_bins_make(&bins, values, 4, true);
    assert_int_equal(bins.count, 4);
    assert_int_equal(bins.counts[0], 1);
    assert_int_equal(bins.counts[1], 2);
    assert_int_equal(bins.counts[2], 0);
    assert_int_equal(bins.counts[3], 1);
    assert_true(bins.bounds[4] == 4);
}

static void scales_are_linear_or_logarithmic(void **state)
{
    double values[1000];

    (void)state;
    for (size_t i = 0; i < 1000; i++) values[i] = (double)i;
    rp_bins_make(&bins, values, 1000, false);
    assert_int_equal(bins.count, RP_HISTOGRAM_BINS);
    assert_int_equal(sum(), 1000);
    for (size_t i = 0; i < bins.count; i++) assert_in_range(bins.counts[i], 49, 51);
    for (size_t i = 0; i < 1000; i++) values[i] = pow(10, (double)i / 100);
    rp_bins_make(&bins, values, 1000, false);
    assert_int_equal(sum(), 1000);
    assert_true(bins.bounds[0] == 1 && bins.bounds[bins.count] == values[999]);
    for (size_t i = 0; i < bins.count; i++) assert_in_range(bins.counts[i], 49, 51);
}

static void extreme_values_are_counted(void **state)
{
    const double values[] = {-DBL_MAX, DBL_MAX, 0, DBL_MIN, -DBL_MIN};

    (void)state;
    rp_bins_make(&bins, values, 5, false);
    assert_int_equal(sum(), 5);
    for (size_t i = 0; i < bins.count; i++) {
        assert_true(isfinite(bins.bounds[i]));
        assert_true(bins.bounds[i] <= bins.bounds[i + 1]);
    }
}

static void histograms_are_written_as_json(void **state)
{
    const double values[] = {0, 1};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    rp_bins_make(&bins, values, 2, true);
    rp_buf_text(&out, "{");
    rp_out_bins(&out, "times", &bins);
    rp_bins_make(&bins, values, 0, true);
    rp_out_bins(&out, "none", &bins);
    rp_buf_append(&out, "}", 2);
    assert_string_equal((const char *)out.data,
                        "{\"times\":{\"bounds\":[0,1,2],\"counts\":[1,1]},"
                        "\"none\":{\"bounds\":[],\"counts\":[]}}");
    rp_buf_deinit(&out);
}

RP_TESTS(histogram_json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_values_have_no_bins),
        cmocka_unit_test(equal_values_have_one_bin),
        cmocka_unit_test(whole_numbers_have_a_bin_each),
        cmocka_unit_test(scales_are_linear_or_logarithmic),
        cmocka_unit_test(extreme_values_are_counted),
        cmocka_unit_test(histograms_are_written_as_json),
    };

    return cmocka_run_group_tests_name("histogram_json", tests, NULL, NULL);
}
