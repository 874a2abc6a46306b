/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/h2/grpc.h"

#include "support/unit.h"

static int64_t timeout_of(const char *text)
{
    int64_t ns = -7;
    bool ok = rp_grpc_parse_timeout((const uint8_t *)text, strlen(text), &ns);

    assert_true(ok || ns == -7); /* written on success only */
    return ok ? ns : -1;
}

static void every_unit_of_time_is_understood(void **state)
{
    (void)state;
    assert_int_equal(timeout_of("1n"), 1);
    assert_int_equal(timeout_of("2u"), 2000);
    assert_int_equal(timeout_of("3m"), 3000000);
    assert_int_equal(timeout_of("4S"), 4000000000);
    assert_int_equal(timeout_of("5M"), 300000000000);
    assert_int_equal(timeout_of("6H"), INT64_C(6) * 3600 * 1000000000);
    assert_int_equal(timeout_of("0S"), 0);
    assert_int_equal(timeout_of("00000010u"), 10000);
}

static void eight_digits_are_the_most_and_never_overflow(void **state)
{
    (void)state;
    assert_int_equal(timeout_of("99999999n"), 99999999);
    assert_int_equal(timeout_of("99999999S"), INT64_C(99999999) * 1000000000);
    assert_int_equal(timeout_of("99999999M"), INT64_C(99999999) * 60 * 1000000000);
    assert_int_equal(timeout_of("99999999H"), INT64_MAX);
    assert_int_equal(timeout_of("2562047H"), INT64_C(2562047) * 3600 * 1000000000);
    assert_int_equal(timeout_of("2562048H"), INT64_MAX);
    assert_int_equal(timeout_of("100000000n"), -1);
}

static void malformed_timeouts_are_refused(void **state)
{
    static const char *const bad[] = {"",    "1",    "S",   "S1",  "1s",  "1h",  "-1S",
                                      "+1S", "1.5S", " 1S", "1 S", "1SS", "1S ", "x1S"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) assert_int_equal(timeout_of(bad[i]), -1);
    int64_t ns;
    assert_false(rp_grpc_parse_timeout((const uint8_t *)"1\0S", 3, &ns));
}

static void plain_text_is_left_as_it_is(void **state)
{
    char out[64];

    (void)state;
    assert_int_equal(rp_grpc_encode_message("table 'a': 1 ~ 2", out, sizeof out), 16);
    assert_string_equal(out, "table 'a': 1 ~ 2");
    assert_int_equal(rp_grpc_encode_message("", out, sizeof out), 0);
    assert_string_equal(out, "");
}

static void every_other_byte_is_percent_encoded(void **state)
{
    char out[64];

    (void)state;
    assert_int_equal(rp_grpc_encode_message("100%\n\x7f\xc3\xa9\x1f", out, sizeof out), 21);
    assert_string_equal(out, "100%25%0A%7F%C3%A9%1F");
}

static void long_text_is_cut_and_never_within_an_escape(void **state)
{
    char out[16], small[4];

    (void)state;
    for (size_t capacity = 1; capacity <= sizeof out; capacity++) {
        size_t length = rp_grpc_encode_message("ab%%cd%%ef", out, capacity);
        assert_true(length < capacity);
        assert_int_equal(strlen(out), length);
        for (size_t i = 0; i < length; i++)
            if (out[i] == '%') assert_true(i + 2 < length);
    }
    assert_int_equal(rp_grpc_encode_message("\n", small, 3), 0);
    assert_int_equal(rp_grpc_encode_message("\n", small, 4), 3);
    assert_int_equal(rp_grpc_encode_message("abcdef", small, 1), 0);
    assert_string_equal(small, "");
}

static void a_time_is_written_in_the_finest_unit_that_holds_it(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {1, "1n"},
        {0, "1n"},
        {-5, "1n"},
        {99999999, "99999999n"},
        {100000000, "100000u"},
        {100000001, "100001u"},
        {INT64_C(99999999000), "99999999u"},
        {INT64_C(99999999001), "100000m"},
        {INT64_C(99999999) * 1000000000, "99999999S"},
        {INT64_C(99999999) * 1000000000 + 1, "1666667M"},
        {INT64_MAX, "2562048H"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char out[RP_GRPC_TIMEOUT_BYTES];
        rp_grpc_format_timeout(cases[i].ns, out);
        assert_string_equal(out, cases[i].text);
        assert_true(timeout_of(out) >= cases[i].ns); /* never too early */
    }
}

static void times_round_trip_at_most_a_little_longer(void **state)
{
    (void)state;
    for (int64_t ns = 1; ns < INT64_MAX / 3; ns = ns * 3 + ns % 7) {
        char out[RP_GRPC_TIMEOUT_BYTES];
        rp_grpc_format_timeout(ns, out);
        assert_true(timeout_of(out) >= ns && timeout_of(out) - ns <= ns / 10000);
    }
}

static const char *decoded(const char *value, size_t capacity)
{
    static char out[64];
    size_t length =
        rp_grpc_decode_message((const uint8_t *)value, strlen(value), out, capacity);

    assert_int_equal(length, strlen(out));
    assert_true(length < capacity);
    return out;
}

static void encoded_text_round_trips(void **state)
{
    static const char *const texts[] = {"",
                                        "plain",
                                        "100 %",
                                        "%%41",
                                        "\n\t\x7f\x01",
                                        "tabl\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                                        "\xff\xfe not UTF-8"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char encoded[128];
        (void)rp_grpc_encode_message(texts[i], encoded, sizeof encoded);
        assert_string_equal(decoded(encoded, 64), texts[i]);
    }
}

static void invalid_escapes_are_left_as_they_are(void **state)
{
    (void)state;
    assert_string_equal(decoded("%", 64), "%");
    assert_string_equal(decoded("%4", 64), "%4");
    assert_string_equal(decoded("%41%4", 64), "A%4");
    assert_string_equal(decoded("%4g%g4%%41", 64), "%4g%g4%A");
    assert_string_equal(decoded("%c3%A9", 64), "\xc3\xa9");
    assert_string_equal(decoded("a%00b", 64), "a%00b");         /* a zero would end the text */
    assert_string_equal(decoded("t\xc3\xa9", 64), "t\xc3\xa9"); /* not encoded at all */
}

static void decoded_text_is_cut_between_characters(void **state)
{
    (void)state;
    assert_string_equal(decoded("abc", 4), "abc");
    assert_string_equal(decoded("abcd", 4), "abc");
    assert_string_equal(decoded("abcd", 1), "");
    for (size_t capacity = 2; capacity < 12; capacity++) {
        const char *text = decoded("a%C3%A9%E2%82%AC%F0%9F%98%80", capacity);
        size_t length = capacity > 10 ? 10 : capacity > 6 ? 6 : capacity > 3 ? 3 : 1;
        assert_int_equal(strlen(text), length);
    }
    assert_int_equal(strlen(decoded("\x80\x80\x80\x80\x80\x80", 5)), 4); /* was none */
}

static rp_status status_of(const char *text)
{
    return rp_grpc_parse_status((const uint8_t *)text, strlen(text));
}

static void numbers_become_statuses(void **state)
{
    static const rp_status expected[] = {
        RP_OK,           RP_CANCELLED,      RP_INTERNAL,      RP_INVALID,     RP_DEADLINE,
        RP_NOT_FOUND,    RP_EXISTS,         RP_DENIED,        RP_NO_RESOURCE, RP_PRECONDITION,
        RP_PRECONDITION, RP_INVALID,        RP_UNIMPLEMENTED, RP_INTERNAL,    RP_UNAVAILABLE,
        RP_CORRUPT,      RP_UNAUTHENTICATED};
    static const char *const bad[] = {"", "17", "99", "100", "-1", "x", "1x", " 1", "016"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        char text[8];
        (void)snprintf(text, sizeof text, "%zu", i);
        assert_int_equal(status_of(text), expected[i]);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) assert_int_equal(status_of(bad[i]), RP_INTERNAL);
}

static void a_missing_grpc_status_is_never_ok(void **state)
{
    (void)state;
    for (int http = 0; http < 1000; http++)
        assert_int_not_equal(rp_grpc_status_of_http(http), RP_OK);
    for (uint32_t code = 0; code < 20; code++)
        assert_int_not_equal(rp_grpc_status_of_reset(code), RP_OK);
    assert_int_equal(rp_grpc_status_of_http(404), RP_UNIMPLEMENTED);
    assert_int_equal(rp_grpc_status_of_reset(7), RP_UNAVAILABLE);
    assert_int_equal(rp_grpc_status_of_reset(UINT32_MAX), RP_INTERNAL);
}

RP_TESTS(grpc)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_of_time_is_understood),
        cmocka_unit_test(eight_digits_are_the_most_and_never_overflow),
        cmocka_unit_test(malformed_timeouts_are_refused),
        cmocka_unit_test(plain_text_is_left_as_it_is),
        cmocka_unit_test(every_other_byte_is_percent_encoded),
        cmocka_unit_test(long_text_is_cut_and_never_within_an_escape),
        cmocka_unit_test(a_time_is_written_in_the_finest_unit_that_holds_it),
        cmocka_unit_test(times_round_trip_at_most_a_little_longer),
        cmocka_unit_test(encoded_text_round_trips),
        cmocka_unit_test(invalid_escapes_are_left_as_they_are),
        cmocka_unit_test(decoded_text_is_cut_between_characters),
        cmocka_unit_test(numbers_become_statuses),
        cmocka_unit_test(a_missing_grpc_status_is_never_ok),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
