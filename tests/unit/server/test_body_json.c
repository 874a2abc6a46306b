/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/body_json.h"

#include <math.h>

#include "support/unit.h"

static rp_body in;

static rp_body *body(const char *text)
{
    rp_body_init(&in, text, strlen(text));
    return &in;
}

static bool skips(const char *text)
{
    return rp_body_skip(body(text)) && rp_body_end(&in);
}

static void values_are_read_in_turn(void **state)
{
    rp_ask_name key, text;
    double number = 0;
    int64_t whole = 0;
    bool yes = false;
    size_t count = 0;

    (void)state;
    assert_true(rp_body_open(
        body(
            " {\"a\": -1.5e2,\"b\":[true , false,null], \"c\":\"x\\u00e9\\ud83d\\ude00\\/\"} "),
        '{'));
    assert_true(rp_body_next_key(&in, &key));
    assert_string_equal(key.text, "a");
    assert_true(rp_body_number(&in, &number) && number == -150);
    assert_true(rp_body_next_key(&in, &key) && rp_body_open(&in, '['));
    assert_true(rp_body_next(&in) && rp_body_bool(&in, &yes) && yes);
    assert_true(rp_body_next(&in) && rp_body_bool(&in, &yes) && !yes);
    assert_true(rp_body_next(&in) && rp_body_null(&in));
    assert_false(rp_body_next(&in));
    assert_true(rp_body_next_key(&in, &key) && rp_body_text(&in, &text));
    assert_string_equal(text.text, "x\xc3\xa9\xf0\x9f\x98\x80/");
    assert_false(rp_body_next_key(&in, &key));
    assert_true(rp_body_end(&in));
    assert_true(rp_body_open(body("[1,-9223372036854775808,9223372036854775807,0]"), '['));
    while (rp_body_next(&in)) {
        assert_true(rp_body_whole(&in, &whole));
        if (count == 1) assert_true(whole == INT64_MIN);
        if (count == 2) assert_true(whole == INT64_MAX);
        count++;
    }
    assert_true(rp_body_end(&in) && count == 4);
}

static void valid_json_is_skipped(void **state)
{
    static const char *const valid[] = {
        "{}",
        "[]",
        " [ ] ",
        "0",
        "-0.5E+7",
        "\"\"",
        "null",
        "{\"a\":{\"b\":[1,2,{}]}}",
        "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\"",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(valid); i++) assert_true(skips(valid[i]));
}

static void mistakes_are_found(void **state)
{
    static const char *const invalid[] = {
        "",
        "{",
        "[1",
        "[1,]",
        "{\"a\":1,}",
        "{,}",
        "[,1]",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "nul",
        "truex",
        "\"",
        "\"\\x\"",
        "\"\n\"",
        "{a:1}",
        "{\"a\"}",
        "{\"a\" 1}",
        "[1 2]",
        "1 2",
        "]",
        "{]",
        "[}",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "{\"\":1}",
        "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(invalid); i++) {
        assert_false(skips(invalid[i]));
        assert_non_null(in.what);
        assert_true(in.byte <= strlen(invalid[i]));
    }
}

static void the_wrong_kind_is_a_mistake(void **state)
{
    rp_ask_name text;
    double number;
    int64_t whole;
    bool yes;

    (void)state;
    assert_false(rp_body_number(body("\"1\""), &number));
    assert_false(rp_body_number(body("1e999"), &number));
    assert_string_equal(in.what, "a number is too large");
    assert_false(rp_body_whole(body("1.0"), &whole));
    assert_false(rp_body_whole(body("9223372036854775808"), &whole));
    assert_false(rp_body_whole(body("-9223372036854775809"), &whole));
    assert_false(rp_body_bool(body("1"), &yes));
    assert_false(rp_body_text(body("\"a\\u0000b\""), &text));
    assert_false(rp_body_text(body("\"\""), &text));
    assert_false(rp_body_text(body("null"), &text));
    assert_false(rp_body_open(body("[]"), '{'));
    assert_false(rp_body_number(&in, &number)); /* after a mistake nothing is read */
    assert_string_equal(in.what, "an object is missing");
}

static void long_texts_are_refused(void **state)
{
    char text[RP_ASK_NAME_BYTES + 4];
    rp_ask_name out;

    (void)state;
    memset(text, 'a', sizeof text);
    text[0] = text[RP_ASK_NAME_BYTES + 1] = '"';
    text[RP_ASK_NAME_BYTES + 2] = '\0';
    assert_true(rp_body_text(body(text), &out) && out.size == RP_ASK_NAME_BYTES);
    memcpy(text + RP_ASK_NAME_BYTES + 1, "a\"", 3);
    assert_false(rp_body_text(body(text), &out));
    assert_true(skips(text));
}

RP_TESTS(body_json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_in_turn),
        cmocka_unit_test(valid_json_is_skipped),
        cmocka_unit_test(mistakes_are_found),
        cmocka_unit_test(the_wrong_kind_is_a_mistake),
        cmocka_unit_test(long_texts_are_refused),
    };

    return cmocka_run_group_tests_name("body_json", tests, NULL, NULL);
}
