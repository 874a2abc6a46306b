/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/newcomers.h"

#include "support/unit.h"

static void the_oldest_newcomer_goes_first(void **state)
{
    rp_newcomers n;
    rp_newcomer some[3] = {0};

    (void)state;
    rp_newcomers_init(&n);
    assert_int_equal(rp_newcomers_oldest_ns(&n), INT64_MAX);
    for (int i = 0; i < 3; i++) rp_newcomers_enter(&n, &some[i], 10 + i);
    assert_int_equal(rp_newcomers_oldest_ns(&n), 10);
    rp_newcomers_send(&n, true);
    assert_ptr_equal(rp_newcomers_take(&n), &some[0]);
    rp_newcomers_leave(&n, &some[0]);
    rp_newcomers_arrived(&n);
    assert_int_equal(rp_newcomers_oldest_ns(&n), 11);
    rp_newcomers_leave(&n, &some[0]); /* it is not there: nothing */
    rp_newcomers_leave(&n, &some[1]);
    rp_newcomers_enter(&n, &some[0], 20); /* as the youngest */
    assert_int_equal(rp_newcomers_oldest_ns(&n), 12);
    rp_newcomers_leave(&n, &some[2]);
    assert_int_equal(rp_newcomers_oldest_ns(&n), 20);
    rp_newcomers_leave(&n, &some[0]);
    assert_int_equal(rp_newcomers_oldest_ns(&n), INT64_MAX);
    assert_int_equal(atomic_load(&n.count), 0);
}

static void newcomers_leave_from_the_middle_and_the_end(void **state)
{
    rp_newcomers n;
    rp_newcomer some[4] = {0};

    (void)state;
    rp_newcomers_init(&n);
    for (int i = 0; i < 4; i++) rp_newcomers_enter(&n, &some[i], i);
    rp_newcomers_leave(&n, &some[1]);
    rp_newcomers_leave(&n, &some[3]);
    assert_ptr_equal(n.first, &some[0]);
    assert_ptr_equal(n.first->next, &some[2]);
    assert_ptr_equal(n.last, &some[2]);
    assert_null(n.last->next);
    assert_int_equal(atomic_load(&n.count), 2);
}

/* Otherwise a connection that has just arrived would be closed for the next one. */
static void there_are_no_more_claims_than_newcomers(void **state)
{
    rp_newcomers n;
    rp_newcomer some[2] = {0};

    (void)state;
    rp_newcomers_init(&n);
    for (int i = 0; i < 2; i++) rp_newcomers_enter(&n, &some[i], i);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rp_newcomers_oldest_ns(&n), 0);
        rp_newcomers_send(&n, true);
    }
    rp_newcomers_leave(&n, &some[0]);
    rp_newcomers_leave(&n, &some[1]);
    assert_int_equal(rp_newcomers_oldest_ns(&n), INT64_MAX);
    for (int i = 0; i < 2; i++) {
        assert_null(rp_newcomers_take(&n));
        rp_newcomers_arrived(&n);
    }
    rp_newcomers_enter(&n, &some[0], 5);
    assert_int_equal(rp_newcomers_oldest_ns(&n), 5);
}

/* The worker is behind: a hundred connections are on their way, and none has arrived. */
static void newcomers_on_their_way_can_be_replaced(void **state)
{
    enum { FREE = 20, ALL = 100 };
    rp_newcomers n;
    rp_newcomer some[ALL] = {0};

    (void)state;
    rp_newcomers_init(&n);
    for (int i = 0; i < ALL; i++) {
        assert_int_equal(rp_newcomers_oldest_ns(&n), i == 0 ? INT64_MAX : RP_NEWCOMER_COMING);
        rp_newcomers_send(&n, i >= FREE);
    }
    for (int i = 0; i < ALL; i++) {
        if (i >= FREE) {
            assert_ptr_equal(rp_newcomers_take(&n), &some[i - FREE]);
            rp_newcomers_leave(&n, &some[i - FREE]);
        }
        rp_newcomers_enter(&n, &some[i], i);
        rp_newcomers_arrived(&n);
        assert_int_equal(rp_newcomers_oldest_ns(&n), i < FREE ? 0 : i - FREE + 1);
    }
    assert_int_equal(atomic_load(&n.count), FREE);
}

static void places_are_those_of_the_limit_and_some_for_newcomers(void **state)
{
    rp_places p = rp_places_of(10000, SIZE_MAX);

    (void)state;
    assert_int_equal(p.accepted, 10000);
    assert_int_equal(p.all, 10000 + RP_NEW_PLACES);
    assert_int_equal(p.most, 10000 + RP_NEW_PLACES + RP_CHANGING_PLACES);
    assert_false(p.is_by_descriptors);
    p = rp_places_of(SIZE_MAX, SIZE_MAX);
    assert_int_equal(p.most, SIZE_MAX);
}

static void places_never_exceed_the_descriptors(void **state)
{
    (void)state;
    for (size_t descriptors = 32; descriptors < 2000; descriptors++) {
        rp_places p = rp_places_of(1000, descriptors);

        assert_true(p.most <= descriptors);
        assert_true(p.accepted >= 1 && p.all > p.accepted && p.most > p.all);
        assert_true(p.is_by_descriptors == (p.accepted < 1000));
        assert_true(!p.is_by_descriptors || p.most == descriptors);
    }
}

RP_TESTS(newcomers)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_newcomer_goes_first),
        cmocka_unit_test(newcomers_leave_from_the_middle_and_the_end),
        cmocka_unit_test(there_are_no_more_claims_than_newcomers),
        cmocka_unit_test(newcomers_on_their_way_can_be_replaced),
        cmocka_unit_test(places_are_those_of_the_limit_and_some_for_newcomers),
        cmocka_unit_test(places_never_exceed_the_descriptors),
    };
    return cmocka_run_group_tests_name("newcomers", tests, NULL, NULL);
}
