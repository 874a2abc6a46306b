/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/waiting_groups.h"

#include <stdio.h>

#include "support/unit.h"

static rp_client_waiting call(const char *table, uint64_t client, int64_t waiting_ns,
                              const char *why)
{
    rp_client_waiting c = {.client_id = client, .waiting = {.waiting_ns = waiting_ns}};

    (void)snprintf(c.table, sizeof c.table, "%s", table);
    (void)snprintf(c.client, sizeof c.client, "host:%d", (int)client);
    (void)snprintf(c.waiting.why, sizeof c.waiting.why, "%s", why);
    return c;
}

static void calls_of_a_reason_are_a_group(void **state)
{
    static rp_waiting_groups g;
    rp_client_waiting calls[] = {
        call("a", 1, 30, "full"),
        call("a", 2, 50, "1 other waits ahead; full"),
        call("a", 1, 40, "at most 2 others wait ahead; full"),
        call("a", 1, 10, "paused"),
        call("b", 1, 20, "full"),
        call("a", 3, 20, "3 others wait ahead; full"),
    };

    (void)state;
    calls[5].waiting.is_insert = true;
    rp_waiting_groups_make(&g, calls, COUNT_OF(calls));
    assert_int_equal(g.group_count, 4);
    assert_string_equal(g.groups[0].reason, "full");
    assert_int_equal(g.groups[0].calls, 3);
    assert_int_equal(g.groups[0].clients, 2);
    assert_ptr_equal(g.groups[0].first, &calls[1]);
    assert_string_equal(g.groups[1].reason, "paused");
    assert_string_equal(g.groups[2].first->table, "b");
    assert_true(g.groups[3].first->waiting.is_insert);
    assert_int_equal(g.waiter_count, 5);
    assert_ptr_equal(g.waiters[0].first, &calls[1]); /* it has waited longest */
    assert_ptr_equal(g.waiters[1].first, &calls[2]);
    assert_int_equal(g.waiters[1].calls, 2);
}

static void connections_of_one_address_are_kept_apart(void **state)
{
    static rp_waiting_groups g;
    rp_client_waiting calls[] = {call("a", 1, 30, "full"), call("a", 2, 50, "full")};

    (void)state;
    (void)snprintf(calls[1].client, sizeof calls[1].client, "host:1");
    rp_waiting_groups_make(&g, calls, COUNT_OF(calls));
    assert_int_equal(g.groups[0].clients, 2);
    rp_waiting_groups_make(&g, NULL, 0);
    assert_int_equal(g.group_count + g.waiter_count, 0);
}

RP_TESTS(waiting_groups)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_reason_are_a_group),
        cmocka_unit_test(connections_of_one_address_are_kept_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
