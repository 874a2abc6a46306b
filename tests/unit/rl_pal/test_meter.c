/* SPDX-License-Identifier: Apache-2.0 */
#include "pal/meter.h"

#include <math.h>

#include "support/unit.h"

enum { MS = 1000000 };

static rp_meter meter_of(void)
{
    return (rp_meter){.warm_ns = 20 * MS, .slice_ns = 10 * MS, .least = 4};
}

static void a_steady_count_has_its_rate(void **state)
{
    (void)state;
    rp_meter m = meter_of();
    int64_t ms = 0;

    while (!rp_meter_look(&m, ms * MS, 3 * ms)) ms++;

    assert_int_equal(ms, 20 + 5 * 10);
    assert_true(fabs(rp_meter_rate(&m) - 3000) < 1e-6);
    assert_true(rp_meter_look(&m, 1000 * (int64_t)MS, 1));
    assert_true(fabs(rp_meter_rate(&m) - 3000) < 1e-6);
}

static void the_warm_up_and_the_wait_for_it_are_dropped(void **state)
{
    (void)state;
    rp_meter m = meter_of();
    int64_t ms = 0, count = 0;

    for (bool done = false; !done; ms++) {
        count += ms < 100 ? 0 : ms < 115 ? 50 : 2; /* nothing, then a rush */
        done = rp_meter_look(&m, ms * MS, count);
    }

    assert_true(fabs(rp_meter_rate(&m) - 2000) < 1e-6);
}

static void slices_without_the_core_are_ignored(void **state)
{
    (void)state;
    rp_meter m = meter_of();
    int64_t count = 0;
    bool done = false;

    for (int64_t ms = 0; !done; ms++) {
        bool is_away = ms >= 35 && ms < 50; /* touches two of five slices */

        count += is_away ? 0 : 7;
        done = rp_meter_look(&m, ms * MS, count);
    }

    assert_true(fabs(rp_meter_rate(&m) - 7000) < 1e-6);
}

static void slices_are_longer_for_slow_counts(void **state)
{
    (void)state;
    rp_meter m = meter_of();
    int64_t ms = 0;

    while (!rp_meter_look(&m, ms * MS, ms / 100)) ms++;

    assert_true(ms >= 5 * 4 * 100);
    assert_true(fabs(rp_meter_rate(&m) - 10) < 0.5);
}

static void a_count_that_stands_still_has_no_rate(void **state)
{
    (void)state;
    rp_meter m = meter_of();

    for (int64_t ms = 0; ms < 10000; ms++) assert_false(rp_meter_look(&m, ms * MS, 77));
}

RP_TESTS(meter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_count_has_its_rate),
        cmocka_unit_test(the_warm_up_and_the_wait_for_it_are_dropped),
        cmocka_unit_test(slices_without_the_core_are_ignored),
        cmocka_unit_test(slices_are_longer_for_slow_counts),
        cmocka_unit_test(a_count_that_stands_still_has_no_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
