/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics/histogram.h"

#include <pthread.h>

#include "support/unit.h"
#include "util/rng.h"

static void every_bucket_ends_where_the_next_begins(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < RP_HISTOGRAM_BUCKETS; i++) {
        int64_t bound_ns = rp_histogram_bound_ns(i);

        assert_int_equal(rp_histogram_bucket(bound_ns), i);
        assert_int_equal(rp_histogram_bucket(bound_ns + 1), i + 1);
    }
    assert_int_equal(rp_histogram_bound_ns(RP_HISTOGRAM_BUCKETS - 1), INT64_MAX);
}

static void every_duration_has_a_bucket(void **state)
{
    (void)state;
    assert_int_equal(rp_histogram_bucket(INT64_MIN), 0);
    assert_int_equal(rp_histogram_bucket(-1), 0);
    assert_int_equal(rp_histogram_bucket(0), 0);
    assert_int_equal(rp_histogram_bucket(256), 0);
    assert_int_equal(rp_histogram_bucket(257), 1);
    assert_int_equal(rp_histogram_bucket((int64_t)1 << 38), RP_HISTOGRAM_BUCKETS - 2);
    assert_int_equal(rp_histogram_bucket(((int64_t)1 << 38) + 1), RP_HISTOGRAM_BUCKETS - 1);
    assert_int_equal(rp_histogram_bucket(INT64_MAX), RP_HISTOGRAM_BUCKETS - 1);
}

static void a_bound_is_at_most_a_quarter_above_its_durations(void **state)
{
    (void)state;
    rp_rng rng;

    rp_rng_init(&rng, 3);
    for (int i = 0; i < 100000; i++) {
        int64_t ns = (int64_t)(rp_rng_next(&rng) >> (26 + i % 30)) + 257;
        int64_t bound_ns = rp_histogram_bound_ns(rp_histogram_bucket(ns));

        if (ns > (int64_t)1 << 38) continue;
        assert_true(bound_ns >= ns && (double)bound_ns <= 1.25 * (double)ns);
    }
}

static void sums_and_shares_cover_all_recorded_durations(void **state)
{
    (void)state;
    static rp_histogram a, b;
    rp_histogram_sum sum = {.count = 0};

    rp_histogram_record(&a, 1000, 90);      /* bits 9 to 10 */
    rp_histogram_record(&b, 1000000, 9);    /* 19 to 20 */
    rp_histogram_record(&b, 1000000000, 1); /* 29 to 30 */
    rp_histogram_record(&a, -5, 0);
    rp_histogram_add(&sum, &a);
    rp_histogram_add(&sum, &b);

    assert_int_equal(sum.count, 100);
    assert_int_equal(sum.sum_ns, 90 * 1000 + 9 * 1000000 + 1000000000);
    assert_int_equal(rp_histogram_below(&sum, 8), 0);
    assert_int_equal(rp_histogram_below(&sum, 9), 0);
    assert_int_equal(rp_histogram_below(&sum, 10), 90);
    assert_int_equal(rp_histogram_below(&sum, 19), 90);
    assert_int_equal(rp_histogram_below(&sum, 20), 99);
    assert_int_equal(rp_histogram_below(&sum, 38), 100);
    assert_int_equal(rp_histogram_quantile_ns(&sum, 0.5), 1024);
    assert_int_equal(rp_histogram_quantile_ns(&sum, 0.9), 1024);
    assert_in_range(rp_histogram_quantile_ns(&sum, 0.91), 1000000, 1250000);
    assert_in_range(rp_histogram_quantile_ns(&sum, 0.99), 1000000, 1250000);
    assert_in_range(rp_histogram_quantile_ns(&sum, 1), 1000000000, 1250000000);
}

static void an_empty_histogram_has_no_quantiles(void **state)
{
    (void)state;
    rp_histogram_sum sum = {.count = 0};

    assert_int_equal(rp_histogram_quantile_ns(&sum, 0.99), 0);
    assert_int_equal(rp_histogram_quantile_ns(&sum, 0), 0);
}

static void durations_off_the_scale_count_in_the_last_bucket(void **state)
{
    (void)state;
    static rp_histogram h;
    rp_histogram_sum sum = {.count = 0};

    rp_histogram_record(&h, INT64_MAX / 4, 3);
    rp_histogram_add(&sum, &h);
    assert_int_equal(rp_histogram_below(&sum, RP_HISTOGRAM_LAST_BIT), 0);
    assert_int_equal(sum.count, 3);
    assert_int_equal(rp_histogram_quantile_ns(&sum, 0.5), (int64_t)1 << RP_HISTOGRAM_LAST_BIT);
}

enum { RECORDS = 20000 };

static void *record_many(void *histogram)
{
    for (int i = 0; i < RECORDS; i++) rp_histogram_record(histogram, 500, 2);
    return NULL;
}

static void one_thread_may_record_while_another_adds_up(void **state)
{
    (void)state;
    static rp_histogram h;
    rp_histogram_sum sum = {.count = 0};
    uint64_t last = 0;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, record_many, &h), 0);
    for (int i = 0; i < 200; i++) {
        rp_histogram_sum now = {.count = 0};

        rp_histogram_add(&now, &h);
        assert_true(now.count >= last);
        last = now.count;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    rp_histogram_add(&sum, &h);
    assert_int_equal(sum.count, 2 * RECORDS);
    assert_int_equal(sum.sum_ns, 1000 * RECORDS);
}

RP_TESTS(histogram)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bucket_ends_where_the_next_begins),
        cmocka_unit_test(every_duration_has_a_bucket),
        cmocka_unit_test(a_bound_is_at_most_a_quarter_above_its_durations),
        cmocka_unit_test(sums_and_shares_cover_all_recorded_durations),
        cmocka_unit_test(an_empty_histogram_has_no_quantiles),
        cmocka_unit_test(durations_off_the_scale_count_in_the_last_bucket),
        cmocka_unit_test(one_thread_may_record_while_another_adds_up),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
