/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/bucket.h"

#include "support/unit.h"

static const int64_t second_ns = 1000000000;

static size_t spend_all(rp_bucket *bucket, const rp_bucket_rate *rate, int64_t now_ns)
{
    size_t n = 0;

    while (n < 100000 && rp_bucket_spend(bucket, rate, now_ns)) n++;
    return n;
}

static void a_new_bucket_holds_a_whole_burst_and_not_one_more(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_bucket_rate_of(1000, 33);
    rp_bucket bucket = {0};
    int64_t now_ns = 5 * second_ns;

    assert_int_equal(spend_all(&bucket, &rate, now_ns), 1000);
    assert_false(rp_bucket_can_spend(&bucket, &rate, now_ns));
    assert_false(rp_bucket_spend(&bucket, &rate, now_ns));
}

static void tokens_refill_at_their_rate(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_bucket_rate_of(1000, 33);
    rp_bucket bucket = {0};

    (void)spend_all(&bucket, &rate, 0);
    assert_int_equal(spend_all(&bucket, &rate, second_ns / 33 - 1), 0);
    assert_int_equal(spend_all(&bucket, &rate, second_ns / 33), 1);
    assert_int_equal(spend_all(&bucket, &rate, second_ns + 10), 32);
    assert_int_equal(spend_all(&bucket, &rate, 11 * second_ns + 10), 330);
}

static void a_bucket_never_holds_more_than_its_burst(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_bucket_rate_of(7, 10);
    rp_bucket bucket = {0};

    (void)spend_all(&bucket, &rate, 0);
    assert_int_equal(spend_all(&bucket, &rate, 1000000 * second_ns), 7);
}

static void a_refused_spend_costs_nothing(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_bucket_rate_of(1, 1);
    rp_bucket bucket = {0};

    assert_true(rp_bucket_spend(&bucket, &rate, 0));
    for (int i = 0; i < 100; i++) assert_false(rp_bucket_spend(&bucket, &rate, second_ns / 2));
    assert_true(rp_bucket_spend(&bucket, &rate, second_ns));
}

static void time_that_goes_back_adds_no_tokens(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_bucket_rate_of(2, 1);
    rp_bucket bucket = {0};

    assert_int_equal(spend_all(&bucket, &rate, 100 * second_ns), 2);
    assert_int_equal(spend_all(&bucket, &rate, 50 * second_ns), 0);
}

static void odd_rates_do_not_overflow(void **state)
{
    (void)state;
    rp_bucket_rate slow = rp_bucket_rate_of(SIZE_MAX, 1);
    rp_bucket_rate fast = rp_bucket_rate_of(SIZE_MAX, SIZE_MAX);
    rp_bucket_rate none = rp_bucket_rate_of(0, 0);
    rp_bucket bucket = {0};

    assert_true(slow.burst_ns > 0 && slow.token_ns == second_ns);
    assert_true(fast.burst_ns > 0 && fast.token_ns == 1);
    assert_true(rp_bucket_spend(&bucket, &slow, INT64_MAX / 2));
    assert_true(none.token_ns == second_ns && none.burst_ns == second_ns);
}

RP_TESTS(bucket)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_bucket_holds_a_whole_burst_and_not_one_more),
        cmocka_unit_test(tokens_refill_at_their_rate),
        cmocka_unit_test(a_bucket_never_holds_more_than_its_burst),
        cmocka_unit_test(a_refused_spend_costs_nothing),
        cmocka_unit_test(time_that_goes_back_adds_no_tokens),
        cmocka_unit_test(odd_rates_do_not_overflow),
    };
    return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
