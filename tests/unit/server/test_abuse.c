/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/abuse.h"

#include "support/unit.h"

static const rp_server_limits limits = {.abuse_burst = 1000, .abuse_per_second = 33};

static void all_kinds_share_one_budget(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_abuse_rate(&limits);
    rp_abuse abuse = {0};

    for (int i = 0; i < 1000; i++)
        assert_true(rp_abuse_spend(&abuse, &rate, (rp_abuse_kind)(i % RP_ABUSE_KINDS), 0));
    assert_false(rp_abuse_spend(&abuse, &rate, RP_ABUSE_PING, 0));
    assert_int_equal(abuse.last, RP_ABUSE_PING);
}

static void events_within_the_rate_are_never_refused(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_abuse_rate(&limits);
    rp_abuse abuse = {0};
    int64_t now_ns = 0;

    for (int i = 0; i < 100000; i++, now_ns += 1000000000 / 33 + 1)
        assert_true(rp_abuse_spend(&abuse, &rate, RP_ABUSE_CLIENT_RESET, now_ns));
}

static void twice_the_rate_ends_after_a_burst(void **state)
{
    (void)state;
    rp_bucket_rate rate = rp_abuse_rate(&limits);
    rp_abuse abuse = {0};
    int64_t now_ns = 0;
    int i = 0;

    while (i < 100000 && rp_abuse_spend(&abuse, &rate, RP_ABUSE_SETTINGS, now_ns)) {
        i++;
        now_ns += 1000000000 / 66;
    }
    assert_in_range(i, 1990, 2010);
}

static void a_smaller_budget_applies_at_once(void **state)
{
    (void)state;
    rp_server_limits small = {.abuse_burst = 2, .abuse_per_second = 1};
    rp_bucket_rate rate = rp_abuse_rate(&limits), tight = rp_abuse_rate(&small);
    rp_abuse abuse = {0};

    for (int i = 0; i < 500; i++)
        assert_true(rp_abuse_spend(&abuse, &rate, RP_ABUSE_EMPTY_FRAME, 0));
    assert_false(rp_abuse_spend(&abuse, &tight, RP_ABUSE_EMPTY_FRAME, 0));
}

static void every_kind_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (rp_abuse_kind kind = 0; kind < RP_ABUSE_KINDS; kind++) {
        assert_string_not_equal(rp_abuse_name(kind), "unknown");
        for (rp_abuse_kind other = 0; other < kind; other++)
            assert_string_not_equal(rp_abuse_name(kind), rp_abuse_name(other));
    }
    assert_string_equal(rp_abuse_name(RP_ABUSE_KINDS), "unknown");
}

RP_TESTS(abuse)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_share_one_budget),
        cmocka_unit_test(events_within_the_rate_are_never_refused),
        cmocka_unit_test(twice_the_rate_ends_after_a_burst),
        cmocka_unit_test(a_smaller_budget_applies_at_once),
        cmocka_unit_test(every_kind_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests_name("abuse", tests, NULL, NULL);
}
