/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/expiry.h"

#include "support/unit.h"

static const int64_t ms = 1000000;

static void a_reset_is_free_from_the_deadline_on(void **state)
{
    rp_expiries e = {0};
    int64_t expiry_ns = rp_expiry_ns(100 * ms, 640 * ms);

    (void)state;
    assert_int_equal(expiry_ns, (100 + 640 - 10 - 5) * ms);
    assert_false(rp_expiries_take(&e, expiry_ns, 10, 100 * ms));
    assert_false(rp_expiries_take(&e, expiry_ns, 10, expiry_ns - 1));
    assert_true(rp_expiries_take(&e, expiry_ns, 10, expiry_ns));
    assert_true(rp_expiries_take(&e, expiry_ns, 10, 2000 * ms));
}

static void a_call_without_a_deadline_never_expires(void **state)
{
    rp_expiries e = {0};

    (void)state;
    assert_int_equal(rp_expiry_ns(0, -1), INT64_MAX);
    assert_int_equal(rp_expiry_ns(5, INT64_MAX), INT64_MAX);
    assert_int_equal(rp_expiry_ns(5, INT64_MAX - 5), INT64_MAX);
    assert_true(rp_expiry_ns(5, INT64_MAX - 6) < INT64_MAX);
    assert_false(rp_expiries_take(&e, rp_expiry_ns(5, -1), 10, INT64_MAX - 1));
}

/* gRPC sends 1,001 ms as 1,010, and 10,001 ms as 10,100. */
static void a_timeout_that_was_rounded_up_is_allowed_for(void **state)
{
    static const int64_t meant[] = {1001, 1991, 9999, 10001, 99901, 100001};
    static const int64_t sent[] = {1010, 2000, 10000, 10100, 100000, 101000};

    (void)state;
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        rp_expiries e = {0};
        int64_t expiry_ns = rp_expiry_ns(0, sent[i] * ms);
        assert_true(rp_expiries_take(&e, expiry_ns, 1, meant[i] * ms));
        assert_false(rp_expiries_take(&e, expiry_ns, 1, meant[i] * ms * 9 / 10));
    }
}

/* With a timeout of 1 ns every reset comes after the deadline. */
static void a_turn_has_a_bound_of_free_resets(void **state)
{
    enum { MOST = 7 };
    rp_expiries e = {0};

    (void)state;
    for (int64_t turn_ns = 1; turn_ns < 1000; turn_ns++) {
        int64_t expiry_ns = rp_expiry_ns(turn_ns - 1, 1);
        for (int i = 0; i < 3 * MOST; i++)
            assert_int_equal(rp_expiries_take(&e, expiry_ns, MOST, turn_ns), i < MOST);
    }
}

RP_TESTS(expiry)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reset_is_free_from_the_deadline_on),
        cmocka_unit_test(a_call_without_a_deadline_never_expires),
        cmocka_unit_test(a_timeout_that_was_rounded_up_is_allowed_for),
        cmocka_unit_test(a_turn_has_a_bound_of_free_resets),
    };
    return cmocka_run_group_tests_name("expiry", tests, NULL, NULL);
}
