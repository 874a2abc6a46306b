/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/text_buffer.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

static rp_text_buffer buffer;

static int empty_buffer(void **state)
{
    (void)state;
    rp_text_buffer_deinit(&buffer);
    return 0;
}

static void assert_buffer(const char *expected)
{
    assert_false(buffer.failed);
    assert_string_equal(rp_text_buffer_text(&buffer), expected);
    assert_int_equal(buffer.size, strlen(expected));
    rp_text_buffer_clear(&buffer);
}

static void text_grows_as_it_is_added(void **state)
{
    char expected[4097];
    size_t used = 0;

    (void)state;
    assert_buffer("");
    for (size_t i = 0; i < 64; i++) {
        rp_text_buffer_format(&buffer, "%s%c",
                              "0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
                              "abcde",
                              'z');
        used = buffer.size;
    }
    assert_int_equal(used, 4096);
    memcpy(expected, rp_text_buffer_text(&buffer), 4097);
    rp_text_buffer_clear(&buffer);
    rp_text_buffer_format(&buffer, "%s", expected); /* longer than what is tried first */
    assert_buffer(expected);
    rp_text_buffer_repeat(&buffer, '-', 3);
    assert_buffer("---");
}

static void unprintable_characters_are_escaped(void **state)
{
    static const char bad[] = "a\033[31m\xc3\xa9\xff\xc2\x9b\x7f\n";

    (void)state;
    rp_text_buffer_put_safe(&buffer, bad, sizeof bad - 1);
    assert_buffer("a\\x1b[31m\xc3\xa9\\xff\\u009b\\x7f\\n");
    assert_int_equal(rp_text_columns("a\xc3\xa9", 3), 2);
}

static void a_word_of_a_command_line_is_quoted_if_it_must_be(void **state)
{
    (void)state;
    rp_text_buffer_put_word(&buffer, "replay_1.2");
    assert_buffer("replay_1.2");
    rp_text_buffer_put_word(&buffer, "");
    assert_buffer("''");
    rp_text_buffer_put_word(&buffer, "$(touch x)\033`");
    assert_buffer("'$(touch x)\\x1b`'");
    rp_text_buffer_put_word(&buffer, "a'; b'");
    assert_buffer("'a'\\''; b'\\'''");
}

static void cells_are_as_wide_as_their_column(void **state)
{
    rp_grid g;

    (void)state;
    rp_grid_init(&g, 3, 2);
    rp_grid_cell(&g, "NAME");
    rp_grid_cell(&g, "N");
    rp_grid_cell(&g, "LAST");
    rp_grid_cell(&g, "\xc3\xa9");
    rp_grid_cell(&g, "%d", 1234);
    rp_grid_cell(&g, "x");
    rp_grid_write(&g, &buffer);
    rp_grid_deinit(&g);
    assert_buffer("NAME     N  LAST\n\xc3\xa9     1234  x\n");
}

static void json_has_its_commas(void **state)
{
    (void)state;
    rp_json_open(&buffer, '{');
    rp_json_key(&buffer, "a");
    rp_json_open(&buffer, '[');
    rp_json_put_integer(&buffer, -1);
    rp_json_put_unsigned(&buffer, UINT64_MAX);
    rp_json_put_number(&buffer, 0.1);
    rp_json_put_number(&buffer, NAN);
    rp_json_put_number(&buffer, -INFINITY);
    rp_json_open(&buffer, '[');
    rp_json_close(&buffer, ']');
    rp_json_open(&buffer, '[');
    rp_json_close(&buffer, ']');
    rp_json_close(&buffer, ']');
    rp_json_key(&buffer, "b");
    rp_json_put_text(&buffer, NULL);
    rp_json_key(&buffer, "c");
    rp_json_put_boolean(&buffer, true);
    rp_json_close(&buffer, '}');
    assert_buffer("{\"a\":[-1,18446744073709551615,0.1,\"NaN\",\"-Infinity\",[],[]],\"b\":null,"
                  "\"c\":true}");
}

static void json_strings_are_escaped(void **state)
{
    static const char bad[] = "\"\\\n\t\0\xc3\xa9\xff\xc2\x85";

    (void)state;
    rp_json_put_string(&buffer, bad, sizeof bad - 1);
    assert_buffer("\"\\\"\\\\\\n\\t\\u0000\xc3\xa9\\ufffd\\u0085\"");
}

RP_TESTS(text_buffer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(text_grows_as_it_is_added, empty_buffer),
        cmocka_unit_test_teardown(unprintable_characters_are_escaped, empty_buffer),
        cmocka_unit_test_teardown(a_word_of_a_command_line_is_quoted_if_it_must_be,
                                  empty_buffer),
        cmocka_unit_test_teardown(cells_are_as_wide_as_their_column, empty_buffer),
        cmocka_unit_test_teardown(json_has_its_commas, empty_buffer),
        cmocka_unit_test_teardown(json_strings_are_escaped, empty_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
