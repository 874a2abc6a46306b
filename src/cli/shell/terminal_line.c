/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/terminal_line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static size_t width_of_terminal(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 10) return 80;
    return size.ws_col;
}

static bool enter_raw_mode(struct termios *before)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, before) != 0) return false;
    raw = *before;
    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IXON);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void draw(const rp_line_editor *e, const char *prompt)
{
    rp_text_buffer out = {0};
    size_t column;

    rp_line_editor_draw(e, prompt, width_of_terminal(), &out, &column);
    (void)printf("\r%s\033[K\r", rp_text_buffer_text(&out));
    if (column > 0) (void)printf("\033[%zuC", column);
    (void)fflush(stdout);
    rp_text_buffer_deinit(&out);
}

/* Prints candidates in columns, below the line. */
static void list(const rp_candidates *c)
{
    size_t widest = 1, per_line, shown = 0;

    for (size_t i = 0; i < c->count; i++) {
        rp_text_buffer safe = {0};
        size_t columns;

        rp_text_buffer_put_safe(&safe, c->list[i], strlen(c->list[i]));
        columns = rp_text_columns(rp_text_buffer_text(&safe), safe.size);
        if (columns > widest) widest = columns;
        rp_text_buffer_deinit(&safe);
    }
    per_line = width_of_terminal() / (widest + 2);
    if (per_line == 0) per_line = 1;
    (void)fputs("\n", stdout);
    for (size_t i = 0; i < c->count; i++) {
        rp_text_buffer safe = {0};
        bool is_last = ++shown % per_line == 0 || i + 1 == c->count;

        rp_text_buffer_put_safe(&safe, c->list[i], strlen(c->list[i]));
        (void)printf("%s", rp_text_buffer_text(&safe));
        if (is_last)
            (void)fputs("\n", stdout);
        else
            (void)printf(
                "%*s",
                (int)(widest + 2 - rp_text_columns(rp_text_buffer_text(&safe), safe.size)), "");
        rp_text_buffer_deinit(&safe);
    }
}

/* Completes the word before the cursor as far as all candidates agree; if they do not, lists
 * them. */
static void complete(rp_terminal_line *line)
{
    static rp_candidates found; /* too large for a stack */
    rp_line_editor *e = &line->editor;
    const char *text = NULL;
    rp_arena arena;

    rp_arena_init(&arena, NULL);
    rp_shell_complete(line->completer, &arena, e->text, e->cursor, &found);
    if (found.count == 1) {
        size_t length = strlen(found.list[0]);

        text = rp_shell_quote(&arena, found.list[0]);
        if (text != NULL && found.list[0][length - 1] != '/')
            text = rp_arena_format(&arena, "%s ", text);
    } else if (found.count > 1) {
        const char *common = rp_arena_text(&arena, found.list[0], found.common);
        const char *quoted = common != NULL ? rp_shell_quote(&arena, common) : NULL;

        /* A quoted beginning could not be continued. */
        if (quoted != NULL && strcmp(quoted, common) == 0 &&
            found.common > e->cursor - found.from)
            text = common;
        else
            list(&found);
    }
    if (text != NULL) rp_line_editor_replace(e, found.from, text);
    rp_arena_deinit(&arena);
}

/* Gets the next byte that was typed. Returns false at the end. */
static bool next_key(rp_terminal_line *line, const char *prompt, unsigned char *key)
{
    if (line->key_at == line->key_count) {
        ssize_t count;

        draw(&line->editor, prompt); /* all bytes so far have been handled */
        do count = read(STDIN_FILENO, line->keys, sizeof line->keys);
        while (count < 0 && errno == EINTR && *line->stop == 0);
        if (count <= 0) return false;
        line->key_count = (size_t)count;
        line->key_at = 0;
    }
    *key = line->keys[line->key_at++];
    return true;
}

rp_edit rp_terminal_line_read(rp_terminal_line *line, const char *prompt,
                              const rp_line_history *history)
{
    struct termios before;
    rp_edit edit = RP_EDIT_MORE;
    unsigned char key;

    if (!enter_raw_mode(&before)) return RP_EDIT_END;
    rp_line_editor_start(&line->editor, history);
    while (edit == RP_EDIT_MORE) {
        if (!next_key(line, prompt, &key)) {
            edit = RP_EDIT_END;
            break;
        }
        edit = rp_line_editor_feed(&line->editor, key);
        if (edit == RP_EDIT_COMPLETE) complete(line);
        if (edit == RP_EDIT_CLEAR) (void)fputs("\033[H\033[2J", stdout);
        if (edit == RP_EDIT_COMPLETE || edit == RP_EDIT_CLEAR) edit = RP_EDIT_MORE;
    }
    line->editor.cursor = line->editor.size;
    draw(&line->editor, prompt);
    (void)fputs(edit == RP_EDIT_CANCEL ? "^C\n" : "\n", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return edit;
}
