/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/json_tree.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

static rp_arena arena;
static rp_json *root;
static rp_json_error error;

static int open_arena(void **state)
{
    (void)state;
    rp_arena_init(&arena, NULL);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    rp_arena_deinit(&arena);
    return 0;
}

static rp_status parse(const char *text)
{
    return rp_json_parse(&arena, text, strlen(text), &root, &error);
}

static void values_are_read(void **state)
{
    (void)state;
    assert_ok(
        parse(" {\"a\": [1, -2.5e1, true, false, null], \"b\": {\"c\": \"x\"}, \"d\": []} "));

    assert_int_equal(root->kind, RP_JSON_OBJECT);
    assert_int_equal(root->u.count, 3);
    const rp_json *a = rp_json_find(root, "a");
    assert_int_equal(a->u.count, 5);
    assert_int_equal(a->child->kind, RP_JSON_INTEGER);
    assert_int_equal(a->child->u.integer, 1);
    assert_true(a->child->next->u.number == -25.0);
    assert_int_equal(a->child->next->next->kind, RP_JSON_TRUE);
    assert_string_equal(rp_json_find(rp_json_find(root, "b"), "c")->u.string.text, "x");
    assert_int_equal(rp_json_find(root, "d")->u.count, 0);
    assert_null(rp_json_find(root, "e"));
    assert_null(rp_json_find(a, "e"));
}

static void whole_numbers_keep_all_their_digits(void **state)
{
    (void)state;
    assert_ok(parse("9223372036854775807"));
    assert_int_equal(root->u.integer, INT64_MAX);
    assert_ok(parse("-9223372036854775808"));
    assert_true(root->u.integer == INT64_MIN);
    assert_ok(parse("18446744073709551615"));
    assert_int_equal(root->kind, RP_JSON_UNSIGNED);
    assert_true(root->u.number_unsigned == UINT64_MAX);
    assert_ok(parse("18446744073709551616"));
    assert_int_equal(root->kind, RP_JSON_NUMBER);
    assert_ok(parse("-0"));
    assert_int_equal(root->kind, RP_JSON_NUMBER);
    assert_true(root->u.number == 0 && signbit(root->u.number));
}

static void escapes_become_utf8(void **state)
{
    (void)state;
    assert_ok(parse("\"\\u00e9\\ud83d\\ude00\\n\\/\\u0000z\""));
    assert_int_equal(root->u.string.size, 2 + 4 + 1 + 1 + 1 + 1);
    assert_memory_equal(root->u.string.text, "\xc3\xa9\xf0\x9f\x98\x80\n/\0z", 10);
}

static void errors_have_line_and_column(void **state)
{
    static const struct {
        const char *text;
        size_t offset;
        const char *what;
    } bad[] = {
        {"", 0, "expected a value"},
        {"{", 1, "expected a key in quotes"},
        {"[1,]", 3, "expected a value"},
        {"[1 2]", 3, "expected ',' or ']'"},
        {"{\"a\":1,}", 7, "expected a key in quotes"},
        {"{\"a\" 1}", 5, "expected ':'"},
        {"{\"a\":1,\"a\":2}", 10, "the key 'a' is given twice"},
        {"1 2", 2, "unexpected text after the value"},
        {"01", 1, "a number begins with 0"},
        {"1.", 2, "expected a digit"},
        {"1e", 2, "expected a digit"},
        {"-", 1, "expected a value"},
        {"1e999", 5, "a number is too large"},
        {"NaN", 0,
         "JSON has no NaN and no Infinity: data may have them as texts, \"NaN\", a priority "
         "may not"},
        {"[-Infinity]", 2,
         "JSON has no NaN and no Infinity: data may have them as texts, \"NaN\", a priority "
         "may not"},
        {"nul", 0, "expected a value"},
        {"\"a", 2, "a string has no end"},
        {"\"\\", 2, "unknown escape in a string"},
        {"\"\\x\"", 2, "unknown escape in a string"},
        {"\"\\ud800\"", 7, "half of a surrogate pair"},
        {"\"\\udc00\"", 7, "half of a surrogate pair"},
        {"\"\\u12\"", 3, "expected four hexadecimal digits"},
        {"\"\n\"", 1, "a control character in a string: escape it"},
        {"\"\xff\"", 1, "bytes that are not UTF-8"},
        {"'a'", 0, "expected a value"},
        {"[1]]", 3, "unexpected text after the value"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(parse(bad[i].text), RP_INVALID);
        if (strcmp(error.what, bad[i].what) != 0 || error.offset != bad[i].offset)
            fail_msg("%s: %s at %zu", bad[i].text, error.what, error.offset);
    }
}

static void a_tree_is_written_with_escapes(void **state)
{
    static const char good[] =
        "{\"a\": [null, true, false, -1, 18446744073709551615, 0.5, []], "
        "\"\\u001b[31m\": \"\\u0007\xc2\x9b\", \"o\": {}}";
    rp_text_buffer out = {0};

    (void)state;
    assert_ok(parse(good));
    rp_json_put_tree(&out, root);
    assert_string_equal(rp_text_buffer_text(&out),
                        "{\"a\":[null,true,false,-1,18446744073709551615,0.5,[]],"
                        "\"\\u001b[31m\":\"\\u0007\\u009b\",\"o\":{}}");
    rp_text_buffer_deinit(&out);
}

static void depth_is_bounded(void **state)
{
    char text[2 * 1000 + 1];

    (void)state;
    memset(text, '[', 1000);
    memset(text + 1000, ']', 1000);
    text[2000] = '\0';
    assert_int_equal(parse(text), RP_INVALID);
    assert_string_equal(error.what, "more than 64 levels");
    assert_int_equal(error.offset, 65);
    assert_ok(parse(text + 1000 - RP_JSON_MAX_DEPTH - 1) == RP_INVALID ? RP_OK : RP_INTERNAL);
}

static rp_status scenario(const rp_allocator *alloc)
{
    static const char text[] = "{\"a\": [\"x\", {\"b\": 1}]}";
    rp_json_error e;
    rp_arena own;
    rp_json *out;
    rp_status st;

    rp_arena_init(&own, alloc);
    st = rp_json_parse(&own, text, sizeof text - 1, &out, &e);
    rp_arena_deinit(&own);
    return st;
}

static void parsing_without_memory_fails(void **state)
{
    (void)state;
    rp_test_survives_oom(scenario);
}

RP_TESTS(json_tree)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_are_read, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(whole_numbers_keep_all_their_digits, open_arena,
                                        close_arena),
        cmocka_unit_test_setup_teardown(escapes_become_utf8, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(errors_have_line_and_column, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(depth_is_bounded, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(a_tree_is_written_with_escapes, open_arena,
                                        close_arena),
        cmocka_unit_test(parsing_without_memory_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
