/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/line_editor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/unit.h"

static rp_line_editor editor;

/* Types keys into a new line. Returns the result of the last one. */
static rp_edit type(const char *keys, const rp_line_history *history)
{
    rp_edit edit = RP_EDIT_MORE;

    rp_line_editor_start(&editor, history);
    for (; *keys != '\0'; keys++) edit = rp_line_editor_feed(&editor, (unsigned char)*keys);
    return edit;
}

static void keys_edit_the_line(void **state)
{
    static const struct {
        const char *keys, *text;
        size_t cursor;
    } cases[] = {
        {"info", "info", 4},
        {"info\x02\x02-", "in-fo", 3},                 /* Ctrl-B */
        {"info\033[D\033[D-", "in-fo", 3},             /* left */
        {"info\033OD-", "inf-o", 4},                   /* left, of another mode */
        {"info\x01>\x05<", ">info<", 6},               /* Ctrl-A, Ctrl-E */
        {"info\033[H>\033[F<", ">info<", 6},           /* Home, End */
        {"info\033[1~>\033[4~<", ">info<", 6},         /* the same of other terminals */
        {"info\x7f\x08", "in", 2},                     /* backspace */
        {"info\x01\x04\033[3~", "fo", 0},              /* Ctrl-D, Delete */
        {"one two\x17", "one ", 4},                    /* Ctrl-W */
        {"one two\x01\x0b", "", 0},                    /* Ctrl-K */
        {"one two\x15\x19\x19", "one twoone two", 14}, /* Ctrl-U, Ctrl-Y */
        {"one two\033b\033b\033f-", "one- two", 4},    /* Alt-B, Alt-F */
        {"one two\033[1;5D-", "one -two", 5},          /* Ctrl and left */
        {"one two\x01\033d", " two", 0},               /* Alt-D */
        {"ab\x14", "ba", 2},                           /* Ctrl-T */
        {"a\xc3\xa4\xe2\x82\xac\x02\x02-", "a-\xc3\xa4\xe2\x82\xac", 2},
        {"a\xc3\xa4\x7f", "a", 1},
        {"x\033[99;99;99;99;99;99~y", "xy", 2}, /* a sequence that is too long */
        {"x\033[15~y", "xy", 2},                /* F5 */
        {"\x02\x7f\x17\x04", "", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)type(cases[i].keys, NULL);
        if (strcmp(cases[i].text, editor.text) != 0 || cases[i].cursor != editor.cursor)
            fail_msg("case %zu: '%s', cursor %zu", i, editor.text, editor.cursor);
    }
}

static void keys_that_end_a_line_say_how(void **state)
{
    (void)state;
    assert_int_equal(type("info\r", NULL), RP_EDIT_LINE);
    assert_string_equal(editor.text, "info");
    assert_int_equal(type("info\n", NULL), RP_EDIT_LINE);
    assert_int_equal(type("info\x03", NULL), RP_EDIT_CANCEL);
    assert_int_equal(type("\x04", NULL), RP_EDIT_END);
    assert_int_equal(type("in\t", NULL), RP_EDIT_COMPLETE);
    assert_int_equal(type("\x0c", NULL), RP_EDIT_CLEAR);
    assert_int_equal(type("info\033\r", NULL), RP_EDIT_LINE); /* after Escape, too */
    assert_int_equal(type("info\033[1\x03", NULL), RP_EDIT_CANCEL);
    assert_int_equal(type("info\033\033[Dx", NULL), RP_EDIT_MORE);
    assert_string_equal(editor.text, "infxo");
}

static void a_line_has_a_bound(void **state)
{
    (void)state;
    rp_line_editor_start(&editor, NULL);
    for (size_t i = 0; i < RP_EDIT_BYTES + 10; i++) (void)rp_line_editor_feed(&editor, 'x');
    assert_int_equal(editor.size, RP_EDIT_BYTES - 1);
    rp_line_editor_replace(&editor, editor.size - 2, "xyz"); /* a byte too long */
    assert_int_equal(editor.size, RP_EDIT_BYTES - 1);
    rp_line_editor_replace(&editor, editor.size - 2, "yz");
    assert_string_equal(editor.text + RP_EDIT_BYTES - 4, "xyz");
    rp_line_editor_replace(&editor, 0, "short");
    assert_string_equal(editor.text, "short");
}

static void arrows_and_searches_find_earlier_lines(void **state)
{
    static rp_line_history h;

    (void)state;
    rp_line_history_load(&h, NULL);
    rp_line_history_add(&h, "info replay");
    rp_line_history_add(&h, "top");
    rp_line_history_add(&h, "info queue");
    (void)type("\033[A\033[A", &h);
    assert_string_equal(editor.text, "top");
    (void)type("draft\x10\x10\x10\x10\x10", &h); /* Ctrl-P, further than there are lines */
    assert_string_equal(editor.text, "info replay");
    (void)type("draft\033[A\033[B\033[B", &h);
    assert_string_equal(editor.text, "draft");
    (void)type("\x12info", &h); /* Ctrl-R */
    assert_string_equal(editor.text, "info queue");
    (void)type("\x12info\x12", &h);
    assert_string_equal(editor.text, "info replay");
    assert_int_equal(type("\x12inforx\x7f\x7f\r", &h), RP_EDIT_LINE);
    assert_string_equal(editor.text, "info queue");
    rp_line_history_deinit(&h);
}

static void history_is_kept_in_a_file_without_tokens(void **state)
{
    static rp_line_history h;
    char path[] = "/tmp/reprise-history-XXXXXX";
    int fd = mkstemp(path);
    struct stat st;

    (void)state;
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    rp_line_history_load(&h, path); /* there is no file yet */
    rp_line_history_add(&h, "info");
    rp_line_history_add(&h, "info");
    rp_line_history_add(&h, " secret");
    rp_line_history_add(&h, "top --token abc");
    rp_line_history_add(&h, "top --token-file abc");
    rp_line_history_add(&h, "");
    rp_line_history_add(&h, "info --token abc --output --token-file");
    rp_line_history_add(&h, "info --token=abc --token-file x");
    rp_line_history_add(&h, "info '--to'ken abc");
    rp_line_history_add(&h, "info 'x --token abc");
    rp_line_history_deinit(&h);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    rp_line_history_load(&h, path);
    assert_int_equal(h.count, 2);
    assert_string_equal(h.lines[0], "info");
    assert_string_equal(h.lines[1], "top --token-file abc");
    for (int i = 0; i < 2 * RP_HISTORY_LINES; i++) {
        char line[32];

        (void)snprintf(line, sizeof line, "line %d", i);
        rp_line_history_add(&h, line);
    }
    rp_line_history_deinit(&h);
    for (int round = 0; round < 2; round++) { /* the second reads what the first has cut */
        rp_line_history_load(&h, path);
        assert_int_equal(h.count, RP_HISTORY_LINES);
        assert_string_equal(h.lines[RP_HISTORY_LINES - 1], "line 1999");
        rp_line_history_deinit(&h);
    }
    (void)unlink(path);
}

/* Makes a file of lines, with a mode. */
static void write_lines(const char *path, const char *first, int count, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    (void)fprintf(file, "%s", first);
    for (int i = 0; i < count; i++)
        (void)fprintf(file, "%sline %d\n", i % 2 > 0 ? "  " : "", i);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void a_history_that_is_no_file_is_not_waited_for(void **state)
{
    static rp_line_history h;
    char path[] = "/tmp/reprise-history-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)alarm(20); /* ends the test if an open waits */
    rp_line_history_load(&h, path);
    rp_line_history_add(&h, "info");
    (void)alarm(0);
    assert_int_equal(h.count, 1);
    rp_line_history_deinit(&h);
    (void)unlink(path);
}

static void only_a_file_with_our_first_line_is_cut(void **state)
{
    static rp_line_history h;
    char path[] = "/tmp/reprise-history-XXXXXX";
    int fd = mkstemp(path);
    struct stat before, st;

    (void)state;
    assert_true(fd >= 0 && close(fd) == 0);
    write_lines(path, "", 5000, 0644);
    assert_int_equal(stat(path, &before), 0);
    rp_line_history_load(&h, path);
    assert_int_equal(h.count, RP_HISTORY_LINES);
    assert_string_equal(h.lines[RP_HISTORY_LINES - 1], "line 4998");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, before.st_size);
    assert_int_equal(st.st_mode & 0777, 0600);
    rp_line_history_deinit(&h);

    write_lines(path, "# history of reprise\n", 5000, 0644);
    rp_line_history_load(&h, path);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < before.st_size / 2);
    assert_int_equal(st.st_mode & 0777, 0600);
    rp_line_history_deinit(&h);
    (void)unlink(path);
}

static void draw(size_t width, const char *expected, size_t cursor)
{
    rp_text_buffer out = {0};
    size_t column;

    rp_line_editor_draw(&editor, "> ", width, &out, &column);
    if (strcmp(rp_text_buffer_text(&out), expected) != 0 || column != cursor)
        fail_msg("'%s', column %zu", rp_text_buffer_text(&out), column);
    rp_text_buffer_deinit(&out);
}

static void a_long_line_is_shown_around_the_cursor(void **state)
{
    (void)state;
    (void)type("info", NULL);
    draw(20, "> info", 6);
    (void)type("0123456789abcdefghij", NULL);
    draw(12, "> bcdefghij", 11);
    (void)rp_line_editor_feed(&editor, 0x01);
    draw(12, "> 012345678", 2);
    (void)type(
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4",
        NULL);
    draw(10, "> \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 9);
    (void)type("a\xc2\x9b\x7f", NULL); /* a control character that was pasted, and erased */
    draw(20, "> a", 3);
    draw(8, "a", 1); /* no room for the prompt */
    (void)type("\x12"
               "in",
               NULL);
    draw(30, "search 'in': ", 13);
}

RP_TESTS(line_editor)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_edit_the_line),
        cmocka_unit_test(keys_that_end_a_line_say_how),
        cmocka_unit_test(a_line_has_a_bound),
        cmocka_unit_test(arrows_and_searches_find_earlier_lines),
        cmocka_unit_test(history_is_kept_in_a_file_without_tokens),
        cmocka_unit_test(a_history_that_is_no_file_is_not_waited_for),
        cmocka_unit_test(only_a_file_with_our_first_line_is_cut),
        cmocka_unit_test(a_long_line_is_shown_around_the_cursor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
