/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/read_moderation.h"

#include "support/unit.h"

enum { US = 1000, MS = 1000000 };

/* A peer that sends `per_ms` messages a millisecond, whatever we do. */
static int64_t rests_with_a_stream(rp_read_moderation *g, double per_ms, size_t turns)
{
    int64_t now_ns = MS, rested = 0;
    double owed = 0;

    for (size_t i = 0; i < turns; i++) {
        rp_turn_reads turn = {.messages = 0, .bytes = 500};
        int64_t rest_ns;
        while (owed < 1) {
            now_ns += 10 * US;
            owed += per_ms / 100;
        }
        turn.messages = (size_t)owed;
        owed -= (double)turn.messages;
        rest_ns = rp_read_moderation_judge(g, &turn, now_ns);
        now_ns += rest_ns;
        owed += per_ms * (double)rest_ns / MS;
        rested += rest_ns > 0;
    }
    return rested;
}

/* A peer that sends `burst` messages, waits for their answers, and sends the next. */
static int64_t rests_with_bursts(rp_read_moderation *g, size_t burst, size_t turns)
{
    int64_t now_ns = MS, rested = 0;

    for (size_t i = 0; i < turns; i++) {
        const rp_turn_reads turn = {.messages = burst, .bytes = 500 * burst};
        int64_t rest_ns = rp_read_moderation_judge(g, &turn, now_ns);
        now_ns += rest_ns > 60 * US ? rest_ns : 60 * US;
        rested += rest_ns > 0;
    }
    return rested;
}

static void reads_of_a_stream_of_small_messages_are_delayed(void **state)
{
    rp_read_moderation g = {0};

    (void)state;
    assert_true(rests_with_a_stream(&g, 30, 2000) > 1800);
    assert_int_equal(g.rest_ns, 800 * US); /* longer rests brought more */
}

static void request_response_clients_are_rarely_delayed(void **state)
{
    (void)state;
    for (size_t burst = 1; burst <= 5; burst++) {
        rp_read_moderation g = {0};
        (void)rests_with_bursts(&g, burst, 20000);              /* it learns */
        assert_true(rests_with_bursts(&g, burst, 20000) < 200); /* less than one in a hundred */
    }
}

static void reads_of_a_slow_stream_are_not_delayed(void **state)
{
    rp_read_moderation g = {0};

    (void)state;
    assert_true(rests_with_a_stream(&g, 0.2, 2000) < 100);
}

static void other_calls_suspend_the_delay(void **state)
{
    rp_read_moderation g = {0};
    rp_turn_reads turn = {.messages = 3, .bytes = 100, .others = true};
    int64_t now_ns = MS;

    (void)state;
    assert_int_equal(rp_read_moderation_judge(&g, &turn, now_ns), 0);
    turn.others = false;
    for (int i = 0; i < 9; i++)
        assert_int_equal(rp_read_moderation_judge(&g, &turn, now_ns += MS), 0);
    assert_int_equal(rp_read_moderation_judge(&g, &turn, now_ns + MS), 200 * US);
}

static void reads_of_large_messages_are_not_delayed(void **state)
{
    rp_read_moderation g = {0};
    const rp_turn_reads turn = {.messages = 1, .bytes = (64 << 10) + 1};

    (void)state;
    for (int i = 1; i < 100; i++)
        assert_int_equal(rp_read_moderation_judge(&g, &turn, i * 100 * US), 0);
}

RP_TESTS(read_moderation)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_of_a_stream_of_small_messages_are_delayed),
        cmocka_unit_test(request_response_clients_are_rarely_delayed),
        cmocka_unit_test(reads_of_a_slow_stream_are_not_delayed),
        cmocka_unit_test(other_calls_suspend_the_delay),
        cmocka_unit_test(reads_of_large_messages_are_not_delayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
