/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/watch_events.h"

#include <string.h>

#include "support/unit.h"

static rp_text_buffer events; /* "name: text\n" for each event */

static int empty_events(void **state)
{
    (void)state;
    rp_text_buffer_deinit(&events);
    return 0;
}

static void note(void *ctx, const char *name, const char *text)
{
    (void)ctx;
    rp_text_buffer_format(&events, "%s: %s\n", name, text);
}

static const char *why(void *ctx, uint32_t side)
{
    (void)ctx;
    return side == RP_SIDE_SAMPLES ? "too few items" : NULL;
}

static const char *compare(const rp_table_info *before, const rp_table_info *now)
{
    rp_text_buffer_clear(&events);
    rp_watch_events(before, now, why, note, NULL);
    return rp_text_buffer_text(&events);
}

static rp_table_info table(void)
{
    return (rp_table_info){
        .name = "t",
        .size = 5,
        .max_size = 10,
        .inserts = 5,
        .limiter = {1, 3, -8, 8},
    };
}

static void changes_between_snapshots_are_events(void **state)
{
    rp_table_info before = table(), now = table();

    (void)state;
    assert_string_equal(compare(&before, &now), "");
    now.paused = RP_SIDE_SAMPLES;
    assert_string_equal(compare(&before, &now), "paused: samples are paused\n");
    assert_string_equal(compare(&now, &before), "resumed: samples are resumed\n");
    now = table();
    now.limiter.min_size = 4;
    now.max_times_sampled = 1;
    assert_string_equal(compare(&before, &now),
                        "altered: max_times_sampled no limit -> 1\naltered: min_size 3 -> 4\n");
    now = table();
    now.inserts = now.size = 0;
    assert_string_equal(compare(&before, &now),
                        "reset: all items were removed and the counters reset\n");
    assert_string_equal(compare(&now, &before), "filled: min_size is reached: 5 items\n");
    now = table();
    now.size = 10;
    assert_string_equal(compare(&before, &now), "full: the table is full: 10 items\n");
    assert_string_equal(compare(&now, &now), "");
}

static void long_waits_are_events_and_short_ones_are_not(void **state)
{
    rp_table_info before = table(), now = table();

    (void)state;
    now.waiting_samples = 2;
    now.sample_waits.longest_ns = 900000000;
    assert_string_equal(compare(&before, &now), "");
    now.sample_waits.longest_ns = 1000000000;
    assert_string_equal(compare(&before, &now), "blocked: samples wait: too few items\n");
    assert_string_equal(compare(&now, &now), "");
    assert_string_equal(compare(&now, &before), "unblocked: samples proceed again\n");
    now = table();
    now.waiting_inserts = 1;
    now.insert_waits.longest_ns = 5000000000;
    assert_string_equal(compare(&before, &now), "blocked: inserts wait\n");
}

static void rates_are_those_since_the_snapshot_before(void **state)
{
    rp_table_info before = table(), now = table();
    rp_watch_rates rates;

    (void)state;
    assert_false(rp_watch_rates_of(NULL, &now, 1000000000, &rates));
    assert_false(rp_watch_rates_of(&before, &now, 1000000000, &rates));
    now.inserts += 10;
    now.samples += 40;
    now.bytes = 1536;
    assert_true(rp_watch_rates_of(&before, &now, 500000000, &rates));
    rp_watch_rates_text(&events, &now, &rates);
    assert_string_equal(rp_text_buffer_text(&events),
                        "5 items, 1.5 KiB; 20 inserts/s, 80 samples/s");
    rp_text_buffer_clear(&events);
    now.updates = 1500;
    now.deletes = 1;
    now.size = 1;
    (void)rp_watch_rates_of(&before, &now, 1000000000, &rates);
    rp_watch_rates_text(&events, &now, &rates);
    assert_string_equal(
        rp_text_buffer_text(&events),
        "1 item, 1.5 KiB; 10 inserts/s, 40 samples/s, 1.5k updates/s, 1 deletes/s");
}

RP_TESTS(watch_events)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(changes_between_snapshots_are_events, empty_events),
        cmocka_unit_test_teardown(long_waits_are_events_and_short_ones_are_not, empty_events),
        cmocka_unit_test_teardown(rates_are_those_since_the_snapshot_before, empty_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
