/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/units.h"

#include <string.h>

#include "cli/serve/address_check.h"
#include "support/unit.h"

static const uint64_t whole = UINT64_C(1000);

static void sizes_are_read_with_their_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"1048576", 1048576},
        {"1_048_576", 1048576},
        {"12B", 12},
        {"1K", 1024},
        {"1KiB", 1024},
        {"1kB", 1000},
        {"64 MiB", 64 << 20},
        {"3MB", 3000000},
        {"1.5GiB", UINT64_C(3) << 29},
        {"4G", UINT64_C(4) << 30},
        {"2TiB", UINT64_C(2) << 40},
        {"1TB", UINT64_C(1000000000000)},
        {"18446744073709551615", UINT64_MAX},
        {"16777215TiB", UINT64_C(16777215) << 40},
        {"80%", 800},
        {"0.5%", 5},
        {"12.5 %", 125},
        {"100%", 1000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t bytes = 7;

        if (!rp_parse_size(cases[i].text, whole, &bytes)) fail_msg("%s", cases[i].text);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void malformed_sizes_are_refused_and_write_nothing(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        "-1",
        "+1",
        "x",
        "1 ",
        " 1",
        "1x",
        "1gib",
        "1.GiB",
        ".5GiB",
        "1.5",
        "0x10",
        "1e6",
        "1__0",
        "_1",
        "1_",
        "1  MiB",
        "0%",
        "101%",
        "100.5%",
        "%",
        "80%x",
        "18446744073709551616",
        "16777216TiB",
        "nan",
        "inf",
    };
    uint64_t bytes = 7;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (rp_parse_size(cases[i], whole, &bytes)) fail_msg("'%s'", cases[i]);
    assert_false(rp_parse_size("80%", 0, &bytes)); /* of nothing */
    assert_int_equal(bytes, 7);
}

static void durations_are_read_with_their_unit(void **state)
{
    int64_t ms = 0;

    (void)state;
    assert_true(rp_parse_duration("500", 1, &ms) && ms == 500);
    assert_true(rp_parse_duration("30", 1000, &ms) && ms == 30000);
    assert_true(rp_parse_duration("1.5", 1000, &ms) && ms == 1500);
    assert_true(rp_parse_duration("250ms", 1000, &ms) && ms == 250);
    assert_true(rp_parse_duration("10s", 1, &ms) && ms == 10000);
    assert_true(rp_parse_duration("2m", 1, &ms) && ms == 120000);
    assert_true(rp_parse_duration("1h", 1, &ms) && ms == 3600000);
    ms = 7;
    assert_false(rp_parse_duration("1.5", 1, &ms)); /* half a millisecond */
    assert_false(rp_parse_duration("-1s", 1, &ms));
    assert_false(rp_parse_duration("1d", 1, &ms));
    assert_false(rp_parse_duration("", 1, &ms));
    assert_false(rp_parse_duration("9223372036854775808", 1, &ms));
    assert_int_equal(ms, 7);
}

static void integers_stay_within_64_bits(void **state)
{
    int64_t i = 0;
    uint64_t u = 0;

    (void)state;
    assert_true(rp_parse_integer("9223372036854775807", &i) && i == INT64_MAX);
    assert_true(rp_parse_integer("-42", &i) && i == -42);
    assert_false(rp_parse_integer("9223372036854775808", &i));
    assert_false(rp_parse_integer("--1", &i));
    assert_false(rp_parse_integer("-", &i));
    assert_true(rp_parse_unsigned("18446744073709551615", &u) && u == UINT64_MAX);
    assert_false(rp_parse_unsigned("18446744073709551616", &u));
    assert_false(rp_parse_unsigned("-1", &u));
}

static void numbers_are_decimal_and_finite(void **state)
{
    static const char *const bad[] = {"",   "x",   "nan", "inf", "0x1p3", "1e999", " 1",
                                      "1 ", "1,5", ".",   "-",   "1e",    "1-2",   "e5"};
    double d = 0;

    (void)state;
    assert_true(rp_parse_number("0.6", &d) && d == 0.6);
    assert_true(rp_parse_number("-0.4", &d) && d == -0.4);
    assert_true(rp_parse_number("1e3", &d) && d == 1000);
    assert_true(rp_parse_number(".5", &d) && d == 0.5);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (rp_parse_number(bad[i], &d)) fail_msg("'%s'", bad[i]);
    assert_true(d == 0.5);
}

static void booleans_are_true_or_false(void **state)
{
    bool b = false;

    (void)state;
    assert_true(rp_parse_boolean("true", &b) && b);
    assert_true(rp_parse_boolean("false", &b) && !b);
    assert_false(rp_parse_boolean("yes", &b));
    assert_false(rp_parse_boolean("True", &b));
    assert_false(rp_parse_boolean("", &b));
}

static void numbers_are_written_so_that_they_are_read_back(void **state)
{
    static const double values[] = {0, 0.6, -0.4, 1.0 / 3, 1e300, 5e-324, 123456789.125};
    char text[32];
    double d;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        assert_true(rp_parse_number(rp_decimal_text(values[i], text, sizeof text), &d));
        assert_true(d == values[i]);
    }
    assert_string_equal(rp_decimal_text(0.6, text, sizeof text), "0.6");
    assert_string_equal(rp_size_text(512, text, sizeof text), "512 B");
    assert_string_equal(rp_size_text(UINT64_C(4) << 30, text, sizeof text), "4 GiB");
    assert_string_equal(rp_size_text(UINT64_C(3) << 29, text, sizeof text), "1.5 GiB");
    assert_string_equal(rp_size_text(UINT64_MAX, text, sizeof text), "16777216 TiB");
}

static void rates_of_any_counts_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(rp_per_second(3000, 1500000000), 2000);
    assert_true(rp_per_second(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(rp_per_second(UINT64_MAX, INT64_MAX) == 2000000000);
}

/* What is said of an address: "open", "local" or why it is none. */
static const char *said(const char *address)
{
    static char why[128];
    bool is_open;

    if (rp_address_check(address, &is_open, why, sizeof why) != RP_OK) return why;
    return is_open ? "open" : "local";
}

static void addresses_reachable_from_other_machines_are_recognised(void **state)
{
    (void)state;
    assert_string_equal(said("localhost:8000"), "local");
    assert_string_equal(said("127.0.0.1:0"), "local");
    assert_string_equal(said("127.9.9.9:65535"), "local");
    assert_string_equal(said("[::1]:8000"), "local");
    assert_string_equal(said("[::ffff:127.0.0.1]:8000"), "local");
    assert_string_equal(said("unix:/run/reprise.sock"), "local");
    assert_string_equal(said("fd:3"), "local");
    assert_string_equal(said("replay.example:8000"), "local"); /* nobody knows yet */
    assert_string_equal(said(":8000"), "open");
    assert_string_equal(said("0.0.0.0:8000"), "open");
    assert_string_equal(said("10.0.0.7:8000"), "open");
    assert_string_equal(said("[::]:8000"), "open");
    assert_string_equal(said("[fe80::1]:8000"), "open");
}

static void malformed_addresses_are_refused_with_a_reason(void **state)
{
    char text[32], path[128] = "unix:/";

    (void)state;
    assert_non_null(strstr(said("localhost"), "no port"));
    assert_non_null(strstr(said(""), "no port"));
    assert_non_null(strstr(said("localhost:"), "0 to 65535"));
    assert_non_null(strstr(said("localhost:65536"), "0 to 65535"));
    assert_non_null(strstr(said("localhost:-1"), "0 to 65535"));
    assert_non_null(strstr(said("localhost:8_0"), "0 to 65535"));
    assert_non_null(strstr(said("localhost:http"), "0 to 65535"));
    assert_non_null(strstr(said("::1:8000"), "brackets"));
    assert_non_null(strstr(said("[::1:8000"), "brackets"));
    assert_string_equal(said("http://localhost:8000"), "write host:port, without 'http://'");
    assert_string_equal(said("grpc://localhost"), "write host:port, without 'grpc://'");
    assert_non_null(strstr(said("a b:8000"), "spaces"));
    assert_non_null(strstr(said("unix:"), "1 to 107"));
    memset(path + 6, 'x', 106);
    assert_string_equal(said(path), "local");
    path[112] = 'x';
    assert_non_null(strstr(said(path), "1 to 107"));
    assert_non_null(strstr(said("fd:x"), "descriptor"));
    assert_non_null(strstr(said("fd:-1"), "descriptor"));
    assert_string_equal(rp_address_with_port("localhost:0", 81, text, sizeof text),
                        "localhost:81");
    assert_string_equal(rp_address_with_port("localhost:80", 81, text, sizeof text),
                        "localhost:80");
    assert_string_equal(rp_address_with_port("unix:/a:0", 81, text, sizeof text), "unix:/a:0");
}

RP_TESTS(units)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_of_any_counts_are_bounded),
        cmocka_unit_test(sizes_are_read_with_their_unit),
        cmocka_unit_test(malformed_sizes_are_refused_and_write_nothing),
        cmocka_unit_test(durations_are_read_with_their_unit),
        cmocka_unit_test(integers_stay_within_64_bits),
        cmocka_unit_test(numbers_are_decimal_and_finite),
        cmocka_unit_test(booleans_are_true_or_false),
        cmocka_unit_test(numbers_are_written_so_that_they_are_read_back),
        cmocka_unit_test(addresses_reachable_from_other_machines_are_recognised),
        cmocka_unit_test(malformed_addresses_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
