/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/shell_words.h"

#include <string.h>

#include "support/unit.h"

static rp_shell_words words;
static rp_problem problem;

/* Splits a line and joins its words with '|'. */
static const char *split(rp_arena *arena, const char *line)
{
    char *text = "";

    assert_ok(rp_shell_split(arena, line, strlen(line), &words, &problem));
    assert_null(words.words[words.count]);
    for (size_t i = 0; i < words.count; i++)
        text = rp_arena_format(arena, "%s%s%s", text, i > 0 ? "|" : "", words.words[i]);
    return text;
}

static void words_end_at_spaces_outside_quotes(void **state)
{
    rp_arena arena;

    (void)state;
    rp_arena_init(&arena, NULL);
    assert_string_equal(split(&arena, ""), "");
    assert_string_equal(split(&arena, "   "), "");
    assert_string_equal(split(&arena, " info  replay "), "info|replay");
    assert_string_equal(split(&arena, "a 'b c' \"d 'e\" f\\ g 'h'\"i\"j"),
                        "a|b c|d 'e|f g|hij");
    assert_string_equal(split(&arena, "'a\\b' \"a\\\"b\" ''"), "a\\b|a\"b|");
    assert_int_equal(words.starts[1], 6);
    rp_arena_deinit(&arena);
}

static void the_last_word_may_be_incomplete(void **state)
{
    rp_arena arena;

    (void)state;
    rp_arena_init(&arena, NULL);
    (void)split(&arena, "info");
    assert_true(words.ends_inside && !words.is_open);
    (void)split(&arena, "info ");
    assert_true(!words.ends_inside && !words.is_open);
    assert_string_equal(split(&arena, "info 'my ta"), "info|my ta");
    assert_true(words.ends_inside && words.is_open);
    (void)split(&arena, "info 'my ");
    assert_true(words.ends_inside && words.is_open);
    rp_arena_deinit(&arena);
}

static void operators_of_other_shells_are_refused(void **state)
{
    static const char *const lines[] = {"info | grep x", "info >file", "info & top",
                                        "info ; top"};
    rp_arena arena;

    (void)state;
    rp_arena_init(&arena, NULL);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        (void)split(&arena, lines[i]);
        assert_int_equal(rp_shell_check(&words, lines[i], &problem), RP_INVALID);
        assert_non_null(strstr(problem.text, "need another shell"));
    }
    (void)split(&arena, "info '|' a;b");
    assert_ok(rp_shell_check(&words, "info '|' a;b", &problem));
    (void)split(&arena, "info 'x");
    assert_int_equal(rp_shell_check(&words, "info 'x", &problem), RP_INVALID);
    rp_arena_deinit(&arena);
}

static void quoted_words_are_split_into_themselves(void **state)
{
    static const char *const texts[] = {"replay", "my table", "a\"b\\c'd",
                                        "",       "|",        "t\xc3\xa4"};
    rp_arena arena;

    (void)state;
    rp_arena_init(&arena, NULL);
    assert_string_equal(rp_shell_quote(&arena, "replay"), "replay");
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const char *quoted = rp_shell_quote(&arena, texts[i]);

        assert_string_equal(split(&arena, quoted), texts[i]);
        assert_int_equal(words.count, 1);
        assert_ok(rp_shell_check(&words, quoted, &problem));
    }
    rp_arena_deinit(&arena);
}

static void words_have_a_bound(void **state)
{
    static char line[4 * RP_SHELL_WORDS];
    rp_arena arena;

    (void)state;
    rp_arena_init(&arena, NULL);
    for (size_t i = 0; i < 2 * (RP_SHELL_WORDS + 1); i += 2) memcpy(line + i, "x ", 2);
    assert_int_equal(rp_shell_split(&arena, line, 2 * (RP_SHELL_WORDS + 1), &words, &problem),
                     RP_INVALID);
    assert_ok(rp_shell_split(&arena, line, 2 * RP_SHELL_WORDS, &words, &problem));
    assert_int_equal(words.count, RP_SHELL_WORDS);
    rp_arena_deinit(&arena);
}

RP_TESTS(shell_words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_end_at_spaces_outside_quotes),
        cmocka_unit_test(the_last_word_may_be_incomplete),
        cmocka_unit_test(operators_of_other_shells_are_refused),
        cmocka_unit_test(quoted_words_are_split_into_themselves),
        cmocka_unit_test(words_have_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
