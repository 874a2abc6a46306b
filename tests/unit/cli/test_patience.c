/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/patience.h"

#include <sys/resource.h>

#include "support/unit.h"

static void lines_come_at_ever_longer_intervals_and_not_before_now(void **state)
{
    const int64_t second = 1000000000;

    (void)state;
    assert_true(rp_patience_next(second, 3 * second, 3 * second) == 7 * second);
    assert_true(rp_patience_next(second, 7 * second, 7 * second) == 19 * second);
    /* The process was stopped meanwhile: the lines that it missed are left out. */
    assert_true(rp_patience_next(second, 3 * second, 40 * second) == 55 * second);
    /* The time of the next line never overflows. */
    assert_true(rp_patience_next(second, RP_FOREVER / 2, 0) == RP_FOREVER);
    assert_true(rp_patience_next(second, RP_FOREVER, RP_FOREVER) == RP_FOREVER);
}

/* `reprise insert` ends a wait for each item; that woke a thread each time (issue 26). */
static void an_end_without_a_wait_wakes_no_thread(void **state)
{
    enum { CALLS = 20000 };
    rp_patience *p = rp_patience_new("insert", "localhost:1", NULL);
    struct rusage before, after;

    (void)state;
    assert_non_null(p);
    rp_patience_begin(p, RP_FOREVER);
    rp_patience_end(p);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    for (int i = 0; i < CALLS; i++) rp_patience_end(p);
    rp_patience_free(p);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_in_range(after.ru_nvcsw - before.ru_nvcsw, 0, CALLS / 40);
}

RP_TESTS(patience)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_at_ever_longer_intervals_and_not_before_now),
        cmocka_unit_test(an_end_without_a_wait_wakes_no_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
