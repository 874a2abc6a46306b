/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/intake.h"

#include "support/unit.h"

#define SECOND INT64_C(1000000000)

enum { MIB = 1 << 20 };

static const int64_t grace_ns = 32 * SECOND; /* windows of four seconds */

static void a_message_is_reserved_as_a_whole_or_not_at_all(void **state)
{
    (void)state;
    rp_intake intake = {0};

    rp_intake_reserve(&intake, 100, 100, 1000, false);
    assert_int_equal(intake.reserved, 0);
    rp_intake_reserve(&intake, 100, 100, 1000, true);
    assert_int_equal(intake.reserved, 1000);
}

/* Bytes that arrive move from the reservation to what is held: no room is asked for. */
static void arrived_bytes_leave_the_reservation(void **state)
{
    (void)state;
    rp_intake intake = {0};

    rp_intake_reserve(&intake, 1100, 500, 600, false);
    assert_int_equal(intake.reserved, 600);
    rp_intake_reserve(&intake, 1100, 1100, 0, false);
    assert_int_equal(intake.reserved, 0);
}

/* A second message begins and finds no room: the first goes on with what it has; what arrives
 * of either uses that up; what a whole message leaves goes to the other one. */
static void a_connection_keeps_its_reservation_for_its_other_messages(void **state)
{
    (void)state;
    rp_intake intake = {0};

    rp_intake_reserve(&intake, 0, 0, 1000, true);
    rp_intake_reserve(&intake, 1000, 100, 900 + 1000, false);
    assert_int_equal(intake.reserved, 900);
    rp_intake_reserve(&intake, 1000, 1000, 1000, false); /* some of each */
    assert_int_equal(intake.reserved, 0);
    rp_intake_reserve(&intake, 1000, 500, 600, false); /* one is whole, and gone */
    assert_int_equal(intake.reserved, 500);
    rp_intake_reserve(&intake, 1000, 500, 500, false);
    assert_int_equal(intake.reserved, 500);
}

/* Looks once a second, `count` times, while `per_second` bytes arrive of a message. Returns
 * after how many looks there was a verdict, and which; 0 if there was none. */
static int looks(rp_intake *intake, rp_intake_look look, size_t per_second, int count,
                 rp_intake_verdict *verdict)
{
    int64_t now_ns = 1000 * SECOND;

    for (int i = 1; i <= count; i++, now_ns += SECOND) {
        *verdict = rp_intake_judge(intake, &look, grace_ns, now_ns);
        if (*verdict != RP_INTAKE_FINE) return i;
        look.arrived += per_second;
        look.partial += per_second;
        look.awaited -= per_second < look.awaited ? per_second : look.awaited;
    }
    return 0;
}

static const rp_intake_look in_message = {
    .reads = true, .in_message = true, .awaited = 32 * MIB};

/* I4: with the first window, which ends with the fifth look. */
static void a_stalled_message_gives_its_reservation_to_others(void **state)
{
    (void)state;
    rp_intake_look look = in_message;
    rp_intake_verdict verdict;

    look.is_short = true;
    assert_int_equal(looks(&(rp_intake){0}, look, 0, 100, &verdict), 5);
    assert_int_equal(verdict, RP_INTAKE_SLOW);
}

/* I5. */
static void without_others_a_message_has_the_whole_grace(void **state)
{
    (void)state;
    rp_intake_verdict verdict;

    assert_int_equal(looks(&(rp_intake){0}, in_message, 0, 100, &verdict), 33);
    assert_int_equal(verdict, RP_INTAKE_SLOW);
    assert_int_equal(looks(&(rp_intake){0}, in_message, 1023, 100, &verdict), 33);
    assert_int_equal(looks(&(rp_intake){0}, in_message, 1024, 100, &verdict), 0);
}

/* I4: a message of 32 MiB in a grace of 32 s. */
static void a_message_below_the_minimum_rate_is_slow(void **state)
{
    (void)state;
    rp_intake_look look = in_message;
    rp_intake_verdict verdict;

    look.is_short = true;
    assert_int_equal(looks(&(rp_intake){0}, look, 64 << 10, 30, &verdict), 5);
    assert_int_equal(looks(&(rp_intake){0}, look, MIB - 1, 30, &verdict), 5);
    assert_int_equal(looks(&(rp_intake){0}, look, MIB, 30, &verdict), 0);
    look.awaited = 32 << 10; /* a small message may be slow */
    assert_int_equal(looks(&(rp_intake){0}, look, 1 << 10, 30, &verdict), 0);
}

/* A window that began with a small message says nothing of a large one that has just begun; nor
 * one that began with a large message that was taken back of a small one. */
static void the_smaller_message_size_of_a_window_sets_its_rate(void **state)
{
    (void)state;
    rp_intake intake = {0};
    rp_intake_look small = in_message, large = in_message;

    small.is_short = large.is_short = true;
    small.awaited = 4;
    small.arrived = 0;
    large.arrived = 10;
    assert_int_equal(rp_intake_judge(&intake, &small, grace_ns, 10 * SECOND), RP_INTAKE_FINE);
    assert_int_equal(rp_intake_judge(&intake, &large, grace_ns, 14 * SECOND), RP_INTAKE_FINE);
    small.arrived = 11;
    assert_int_equal(rp_intake_judge(&intake, &small, grace_ns, 18 * SECOND), RP_INTAKE_FINE);
}

/* The window begins when room becomes short, and anew when our own thread was late. */
static void only_time_with_a_short_budget_is_judged(void **state)
{
    (void)state;
    rp_intake intake = {0};
    rp_intake_look look = in_message;
    int64_t now_ns = SECOND;

    for (int i = 0; i < 30; i++, now_ns += SECOND) {
        look.is_short = i % 5 != 0; /* no window is ever over */
        assert_int_equal(rp_intake_judge(&intake, &look, grace_ns, now_ns), RP_INTAKE_FINE);
    }
    intake = (rp_intake){0};
    look.is_short = true;
    for (int i = 0; i < 30; i++, now_ns += 10 * SECOND) {
        look.is_late = true;
        look.arrived += 10240; /* I5 */
        assert_int_equal(rp_intake_judge(&intake, &look, grace_ns, now_ns), RP_INTAKE_FINE);
    }
}

/* I3. */
static void a_peer_that_is_not_read_is_not_slow(void **state)
{
    (void)state;
    rp_intake_look look = in_message;
    rp_intake_verdict verdict;

    look.reads = false;
    look.is_short = true;
    look.partial = 256 << 10;
    assert_int_equal(looks(&(rp_intake){0}, look, 0, 10000, &verdict), 0);
    look.partial++; /* but it may not keep much while it waits for more */
    assert_int_equal(looks(&(rp_intake){0}, look, 0, 10000, &verdict), 34);
    assert_int_equal(verdict, RP_INTAKE_HELD);
}

/* All clocks begin again when we read again. */
static void clocks_begin_again_with_reading(void **state)
{
    (void)state;
    rp_intake intake = {0};
    rp_intake_look look = in_message;
    int64_t now_ns = SECOND;

    look.is_short = true;
    look.partial = MIB;
    for (int i = 0; i < 1000; i++, now_ns += SECOND) {
        look.reads = i % 4 != 0;
        assert_int_equal(rp_intake_judge(&intake, &look, grace_ns, now_ns), RP_INTAKE_FINE);
    }
}

RP_TESTS(intake)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_reserved_as_a_whole_or_not_at_all),
        cmocka_unit_test(arrived_bytes_leave_the_reservation),
        cmocka_unit_test(a_connection_keeps_its_reservation_for_its_other_messages),
        cmocka_unit_test(a_stalled_message_gives_its_reservation_to_others),
        cmocka_unit_test(without_others_a_message_has_the_whole_grace),
        cmocka_unit_test(a_message_below_the_minimum_rate_is_slow),
        cmocka_unit_test(the_smaller_message_size_of_a_window_sets_its_rate),
        cmocka_unit_test(only_time_with_a_short_budget_is_judged),
        cmocka_unit_test(a_peer_that_is_not_read_is_not_slow),
        cmocka_unit_test(clocks_begin_again_with_reading),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
