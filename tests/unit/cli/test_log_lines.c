/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve/log_lines.h"

#include <stdio.h>
#include <string.h>

#include "support/unit.h"

static char line[RP_LOG_LINE_BYTES + 1];

/* 2001-09-09T01:46:40.123Z */
static const int64_t wall_ns = INT64_C(1000000000123456789);

static const char *written(bool json, const char *event, const char *fields)
{
    rp_log_entry entry = {wall_ns, RP_LOG_INFO, event, fields, 0};
    size_t size = rp_log_line(&entry, json, line, RP_LOG_LINE_BYTES);

    line[size] = '\0';
    assert_int_equal(strlen(line), size);
    return line;
}

static void text_has_time_level_event_and_fields(void **state)
{
    (void)state;
    assert_string_equal(
        written(false, "serving", "a=1 b=\"x y\" c=\"q\\\"z\" d=\"\""),
        "time=2001-09-09T01:46:40.123Z level=info event=serving a=1 b=\"x y\" c=\"q\\\"z\" "
        "d=\"\"\n");
    assert_string_equal(written(false, "e", NULL),
                        "time=2001-09-09T01:46:40.123Z level=info event=e\n");
}

static void json_has_numbers_booleans_and_strings(void **state)
{
    (void)state;
    assert_string_equal(
        written(true, "e", "i=-12 d=0.5 t=true f=false s=word z=007 p=1. x=1e5 n=nan y=-"),
        "{\"time\":\"2001-09-09T01:46:40.123Z\",\"level\":\"info\",\"event\":\"e\",\"i\":-12,"
        "\"d\":0.5,\"t\":true,\"f\":false,\"s\":\"word\",\"z\":\"007\",\"p\":\"1.\","
        "\"x\":\"1e5\",\"n\":\"nan\",\"y\":\"-\"}\n");
}

static void nothing_in_a_value_breaks_a_line(void **state)
{
    rp_fields f;

    (void)state;
    rp_fields_init(&f);
    rp_fields_add(&f, "v", "%s", "a\nb\t\x1b[0m\"\\ = \xff\xc2\x80\xe2\x80\xae \xc3\xa9");
    assert_string_equal(written(false, "e", f.text),
                        "time=2001-09-09T01:46:40.123Z level=info event=e "
                        "v=\"a\\nb\\t\\x1b[0m\\\"\\\\ = \\xff\\u0080\\u202e \xc3\xa9\"\n");
    assert_string_equal(written(true, "e", f.text),
                        "{\"time\":\"2001-09-09T01:46:40.123Z\",\"level\":\"info\","
                        "\"event\":\"e\",\"v\":\"a\\nb\\t\\u001b[0m\\\"\\\\ = "
                        "\\ufffd\\u0080\\u202e \xc3\xa9\"}\n");
}

static void fields_come_back_as_they_were_put(void **state)
{
    static const char *const values[] = {
        "",       "x", "a b", "\"", "\\", "a=b", "\n\t\x01", "\xff", "\xc2\x9b\xe2\x80\xae",
        "\\u202e"};
    const char *rest;
    char key[16], value[64];
    rp_fields f;

    (void)state;
    rp_fields_init(&f);
    for (size_t i = 0; i < COUNT_OF(values); i++) rp_fields_add(&f, "key", "%s", values[i]);
    rest = f.text;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_true(rp_fields_next(&rest, key, sizeof key, value, sizeof value));
        assert_string_equal(key, "key");
        assert_string_equal(value, values[i]);
    }
    assert_false(rp_fields_next(&rest, key, sizeof key, value, sizeof value));
}

static void broken_fields_do_no_harm(void **state)
{
    (void)state;
    assert_non_null(strstr(written(true, "e", "a=\"no end"), "\"a\":\"no end\"}\n"));
    assert_non_null(strstr(written(true, "e", "a=\"\\"), "\"a\":\"\\\\\"}\n"));
    assert_non_null(strstr(written(true, "e", "a=\"\\xg\""), "\"a\":\"xg\"}\n"));
    assert_non_null(strstr(written(true, "e", "=x"), "\"\":\"x\"}\n"));
    assert_non_null(strstr(written(true, "e", "lonely a=1"), "\"lonely\":\"\",\"a\":1}\n"));
}

static void a_line_too_long_loses_whole_fields(void **state)
{
    char fields[3 * 2000 + 32], *p = fields;

    (void)state;
    for (int i = 0; i < 3; i++) {
        p += sprintf(p, "%c=", 'a' + i);
        memset(p, 'x', 1900);
        p += 1900;
        *p++ = ' ';
    }
    (void)strcpy(p, "z=1");
    for (int json = 0; json < 2; json++) {
        (void)written(json != 0, "e", fields);
        assert_null(strstr(line, json ? ",\"c\":" : " c="));
        assert_non_null(strstr(line, json ? ",\"z\":1,\"cut\":true}\n" : " z=1 cut=true\n"));
    }
}

static void fields_that_do_not_fit_are_left_out(void **state)
{
    char big[1600];
    rp_fields f;

    (void)state;
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\0';
    rp_fields_init(&f);
    rp_fields_add(&f, "a", "%s", big);
    rp_fields_add(&f, "b", "%s", big);
    rp_fields_add(&f, "c", "1");
    assert_null(strstr(f.text, "b="));
    assert_non_null(strstr(f.text, "x c=1"));
}

static void an_event_over_its_rate_is_suppressed_and_counted(void **state)
{
    static rp_log_rate rate;
    uint64_t suppressed = 9;
    char name[16];

    (void)state;
    rate = (rp_log_rate){.window_ns = 1000, .burst = 2};
    assert_true(rp_log_rate_admit(&rate, "a", 0, &suppressed));
    assert_int_equal(suppressed, 0);
    assert_true(rp_log_rate_admit(&rate, "a", 1, &suppressed));
    assert_false(rp_log_rate_admit(&rate, "a", 2, &suppressed));
    assert_false(rp_log_rate_admit(&rate, "a", 999, &suppressed));
    assert_true(rp_log_rate_admit(&rate, "b", 999, &suppressed)); /* another event */
    assert_int_equal(suppressed, 0);
    assert_true(rp_log_rate_admit(&rate, "a", 1000, &suppressed));
    assert_int_equal(suppressed, 2);
    assert_true(rp_log_rate_admit(&rate, "a", 1001, &suppressed));
    assert_int_equal(suppressed, 0);

    for (int i = 0; i < 2 * RP_LOG_EVENTS; i++) { /* more events than there are places */
        (void)snprintf(name, sizeof name, "event%d", i);
        (void)rp_log_rate_admit(&rate, name, 5000, &suppressed);
    }
    assert_int_equal(rate.event_count, RP_LOG_EVENTS);
    assert_false(rp_log_rate_admit(&rate, "one more", 5000, &suppressed));
    assert_true(rp_log_rate_admit(&rate, "one more", 6000, &suppressed));
}

static void suppressed_lines_are_mentioned(void **state)
{
    rp_log_entry entry = {wall_ns, RP_LOG_ERROR, "e", "a=1", 7};

    (void)state;
    line[rp_log_line(&entry, false, line, RP_LOG_LINE_BYTES)] = '\0';
    assert_non_null(strstr(line, "level=error event=e suppressed=7 a=1\n"));
}

RP_TESTS(log_lines)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_time_level_event_and_fields),
        cmocka_unit_test(json_has_numbers_booleans_and_strings),
        cmocka_unit_test(nothing_in_a_value_breaks_a_line),
        cmocka_unit_test(fields_come_back_as_they_were_put),
        cmocka_unit_test(broken_fields_do_no_harm),
        cmocka_unit_test(a_line_too_long_loses_whole_fields),
        cmocka_unit_test(fields_that_do_not_fit_are_left_out),
        cmocka_unit_test(an_event_over_its_rate_is_suppressed_and_counted),
        cmocka_unit_test(suppressed_lines_are_mentioned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
