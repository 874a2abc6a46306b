/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/top_print.h"

#include <stdio.h>
#include <string.h>

#include "support/unit.h"

static rp_text_buffer buffer;
static const char *const shards[] = {"localhost:8000", "localhost:8001"};

static int empty_buffer(void **state)
{
    (void)state;
    rp_text_buffer_deinit(&buffer);
    return 0;
}

static rp_client_table table(const char *name, int64_t inserts, int64_t samples)
{
    return (rp_client_table){
        .info = {.name = name,
                 .sampler = {RP_UNIFORM, 0},
                 .limiter = {4, 10, -8, 8},
                 .max_size = 1000,
                 .size = 100,
                 .bytes = 123456,
                 .inserts = inserts,
                 .samples = samples,
                 .limiter_diff = -8},
    };
}

static rp_top_look look(const rp_client_table *tables, size_t count, int64_t at_ns)
{
    return (rp_top_look){
        .at_ns = at_ns,
        .view = {.tables = tables, .count = count, .shards = shards, .shard_count = 1}};
}

static void a_screen_has_rates_bars_and_waiting_calls(void **state)
{
    rp_client_table before[] = {table("replay", 1000, 4000), table("queue", 7, 7)};
    rp_client_table now[] = {table("replay", 1500, 6000), table("queue", 7, 7)};
    rp_client_waiting waiting = {.table = "replay",
                                 .client = "10.0.0.7:5000",
                                 .client_id = 4,
                                 .waiting = {.is_insert = false,
                                             .wanted = 10,
                                             .done = 3,
                                             .waiting_ns = 1250000000,
                                             .why = "sample waits for inserts"}};
    rp_top_screen screen = {.width = 80, .height = 10, .title = "localhost:8000  12:00:00"};
    rp_top_look old = look(before, 2, 0), fresh = look(now, 2, 500000000);

    (void)state;
    now[0].info.waiting_samples = 1;
    fresh.waiting = &waiting;
    fresh.waiting_count = fresh.waiting_total = 1;
    rp_top_print(&buffer, &screen, &fresh, &old);
    assert_string_equal(
        rp_text_buffer_text(&buffer),
        "reprise top  localhost:8000  12:00:00                            ? keys  q quits\n"
        "2 tables, 200 items, 241.1 KiB; 1.0k inserts/s, 4.0k samples/s; 1 call waits\n"
        "\n"
        "TABLE     ITEMS    BYTES   IN/S  OUT/S  UPD/S  RATIO LIMITER        WAIT\n"
        "replay      100  121 KiB   1.0k   4.0k      0   4.00 [|-----------] 1 sample\n"
        "queue       100  121 KiB      0      0      0      - [|-----------]\n"
        "\n"
        "WAITING\n"
        "replay  1 sample  sample waits for inserts\n"
        "    10.0.0.7:5000                   1 call   for 1.2 s, 3 of 10 items done\n");
}

/* A writer of many items has a call for each of them (issue 26). */
static void calls_are_grouped_by_reason_and_client(void **state)
{
    static rp_client_waiting waiting[200];
    rp_client_table tables[] = {table("replay", 1, 1)};
    rp_top_screen screen = {.width = 64, .height = 16, .title = "t"};
    rp_top_look now = look(tables, 1, 0);

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        rp_client_waiting *w = &waiting[i];

        *w = (rp_client_waiting){.table = "replay", .client_id = 1 + i % 2};
        (void)snprintf(w->client, sizeof w->client, "10.0.0.%zu:5000", 1 + i % 2);
        w->waiting.is_insert = true;
        w->waiting.waiting_ns = (int64_t)(300 - i) * 1000000000;
        (void)snprintf(w->waiting.why, sizeof w->waiting.why,
                       "%s%zu other%s ahead; insert waits for samples: a reason that is longer "
                       "than a line of this window and is not cut",
                       i > 100 ? "at most " : "", i, i == 1 ? " waits" : "s wait");
    }
    now.waiting = waiting;
    now.waiting_count = 200;
    now.waiting_total = 286;
    rp_top_print(&buffer, &screen, &now, NULL);
    assert_non_null(strstr(rp_text_buffer_text(&buffer),
                           "WAITING\n"
                           "replay  200 inserts  insert waits for samples: a reason that is\n"
                           "    longer than a line of this window and is not cut\n"
                           "    10.0.0.1:5000                 100 calls  for 5 min\n"
                           "    10.0.0.2:5000                 100 calls  for 5 min\n"
                           "... and 86 more calls\n"));
}

/* The name of a table that is wider than the window hid the reason (issue 26). */
static void a_reason_follows_a_name_that_is_too_wide(void **state)
{
    rp_client_table tables[] = {table("replay", 1, 1)};
    rp_client_waiting waiting = {.waiting = {.why = "sample waits for inserts"}};
    rp_top_screen screen = {.width = 30, .height = 12, .title = "t"};
    rp_top_look now = look(tables, 1, 0);

    (void)state;
    memset(waiting.table, 'x', 50);
    now.waiting = &waiting;
    now.waiting_count = now.waiting_total = 1;
    rp_top_print(&buffer, &screen, &now, NULL);
    assert_non_null(strstr(rp_text_buffer_text(&buffer),
                           "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n    sample waits for inserts\n"));
}

static void help_has_the_keys(void **state)
{
    rp_client_table tables[] = {table("replay", 1, 1)};
    rp_top_screen screen = {.width = 80, .height = 18, .title = "t", .help = true};
    rp_top_look now = look(tables, 1, 0);

    (void)state;
    rp_top_print(&buffer, &screen, &now, NULL);
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "\nspace      refreshes at once\n"));
    assert_null(strstr(rp_text_buffer_text(&buffer), "replay"));
    rp_text_buffer_clear(&buffer); /* no line is cut */
    screen.height = 24;
    rp_top_print(&buffer, &screen, &now, NULL);
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "where samples wait, and\n"));
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "are below the tables\n"));
}

/* Sums and differences of what servers say, which may be anything (UBSan looks on). */
static void any_counts_make_a_screen(void **state)
{
    rp_client_table before[] = {table("a", INT64_MIN, INT64_MIN), table("b", 0, INT64_MAX)};
    rp_client_table now[] = {table("a", INT64_MAX, INT64_MAX), table("b", INT64_MIN, 1)};
    rp_top_screen screen = {.width = 80, .height = 10, .title = "t"};
    rp_top_look old = look(before, 2, 0), fresh = look(now, 2, 1);

    (void)state;
    now[0].info.size = now[1].info.size = INT64_MAX;
    rp_top_print(&buffer, &screen, &fresh, &old);
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "2 tables, 18.4E items"));
    rp_text_buffer_clear(&buffer);
    now[0].info.size = now[1].info.size = INT64_MIN;
    rp_top_print(&buffer, &screen, &fresh, &old);
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "2 tables, 0 items"));
    rp_text_buffer_clear(&buffer);
    rp_top_json(&buffer, &fresh, &old);
}

static void a_screen_is_never_larger_than_the_window(void **state)
{
    static rp_client_table tables[40];
    static rp_client_waiting waiting[20];
    static char names[40][64];
    rp_top_look now;

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        (void)snprintf(names[i], sizeof names[i], "a table with a name that is long %zu", i);
        tables[i] = table(names[i], 0, 0);
        tables[i].info.waiting_samples = 123456;
        tables[i].info.paused = RP_SIDE_SAMPLES;
    }
    for (size_t i = 0; i < 20; i++) {
        (void)snprintf(waiting[i].table, sizeof waiting[i].table, "%.60s", names[i]);
        memset(waiting[i].waiting.why, 'x', sizeof waiting[i].waiting.why - 1);
    }
    now = look(tables, 40, 0);
    now.waiting = waiting;
    now.waiting_count = 20;
    now.waiting_total = 1000;
    for (size_t height = 4; height < 70; height += 3)
        for (size_t width = 20; width < 200; width += 7) {
            rp_top_screen screen = {
                .width = width, .height = height, .title = "t", .scroll = height};
            size_t lines = 0;

            rp_text_buffer_clear(&buffer);
            rp_top_print(&buffer, &screen, &now, NULL);
            for (const char *at = rp_text_buffer_text(&buffer); *at != '\0'; lines++) {
                size_t length = strcspn(at, "\n");

                assert_true(length <= width);
                at += length + 1;
            }
            assert_int_equal(lines, height);
        }
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "... and 9")); /* of the 1000 */
}

static void an_error_replaces_the_line_of_totals(void **state)
{
    rp_client_table tables[] = {table("replay", 1, 1)};
    rp_top_screen screen = {.width = 80,
                            .height = 6,
                            .title = "t",
                            .trouble = "localhost:8000: connection\033 refused"};
    rp_top_look now = look(tables, 1, 0);

    (void)state;
    rp_top_print(&buffer, &screen, &now, NULL);
    assert_non_null(
        strstr(rp_text_buffer_text(&buffer), "\nlocalhost:8000: connection\\x1b refused\n"));
}

static void tables_of_shards_are_distinguished(void **state)
{
    rp_client_table tables[] = {table("replay", 100, 0), table("replay", 300, 0)};
    rp_client_table before[] = {table("replay", 0, 0), table("replay", 100, 0)};
    rp_top_look now = look(tables, 2, 1000000000), old = look(before, 2, 0);
    rp_top_screen screen = {.width = 100, .title = "t"};

    (void)state;
    tables[1].shard = before[1].shard = 1;
    now.view.shard_count = old.view.shard_count = 2;
    rp_top_print(&buffer, &screen, &now, &old);
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "0/replay    100  121 KiB    100 "));
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "1/replay    100  121 KiB    200 "));
}

static void rates_are_never_negative(void **state)
{
    (void)state;
    assert_true(rp_rate(100, 50, 500000000) == 100);
    assert_true(rp_rate(5, 50, 500000000) == 0); /* after a reset */
    assert_true(rp_rate(100, 50, 0) == 0);
}

static void json_is_one_line(void **state)
{
    rp_client_table before[] = {table("replay", 0, 0)}, tables[] = {table("replay", 10, 40)};
    rp_top_look now = look(tables, 1, 1000000000), old = look(before, 1, 0);
    const char *text;

    (void)state;
    rp_top_json(&buffer, &now, &old);
    text = rp_text_buffer_text(&buffer);
    assert_non_null(strstr(text, "\"inserts_per_s\":10,\"samples_per_s\":40"));
    assert_non_null(strstr(text, "\"waiting\":[],\"waiting_total\":0,\"storage\":[],"
                                 "\"unreachable\":[]}\n"));
    assert_ptr_equal(strchr(text, '\n'), text + buffer.size - 1);
}

RP_TESTS(top_print)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_screen_has_rates_bars_and_waiting_calls, empty_buffer),
        cmocka_unit_test_teardown(calls_are_grouped_by_reason_and_client, empty_buffer),
        cmocka_unit_test_teardown(a_reason_follows_a_name_that_is_too_wide, empty_buffer),
        cmocka_unit_test_teardown(help_has_the_keys, empty_buffer),
        cmocka_unit_test_teardown(any_counts_make_a_screen, empty_buffer),
        cmocka_unit_test_teardown(a_screen_is_never_larger_than_the_window, empty_buffer),
        cmocka_unit_test_teardown(an_error_replaces_the_line_of_totals, empty_buffer),
        cmocka_unit_test_teardown(tables_of_shards_are_distinguished, empty_buffer),
        cmocka_unit_test(rates_are_never_negative),
        cmocka_unit_test_teardown(json_is_one_line, empty_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
