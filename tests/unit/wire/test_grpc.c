/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc.h"

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

static void what_is_no_timeout_is_refused(void **state)
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

static void every_other_byte_is_written_in_hex(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_of_time_is_understood),
        cmocka_unit_test(eight_digits_are_the_most_and_never_overflow),
        cmocka_unit_test(what_is_no_timeout_is_refused),
        cmocka_unit_test(plain_text_is_left_as_it_is),
        cmocka_unit_test(every_other_byte_is_written_in_hex),
        cmocka_unit_test(long_text_is_cut_and_never_within_an_escape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
