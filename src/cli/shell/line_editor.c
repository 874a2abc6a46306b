/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/line_editor.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ESCAPE = 0x1b, DELETE = 0x7f };
#define CONTROL(letter) ((letter)&0x1f)

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80; /* of UTF-8 */
}

static size_t before(const rp_line_editor *e, size_t at)
{
    if (at > 0) at--;
    while (at > 0 && is_inside_character(e->text[at])) at--;
    return at;
}

static size_t after(const rp_line_editor *e, size_t at)
{
    if (at < e->size) at++;
    while (at < e->size && is_inside_character(e->text[at])) at++;
    return at;
}

/* Returns the start of the word before a place, or the end of the word after it. */
static size_t word_before(const rp_line_editor *e, size_t at)
{
    while (at > 0 && e->text[at - 1] == ' ') at--;
    while (at > 0 && e->text[at - 1] != ' ') at--;
    return at;
}

static size_t word_after(const rp_line_editor *e, size_t at)
{
    while (at < e->size && e->text[at] == ' ') at++;
    while (at < e->size && e->text[at] != ' ') at++;
    return at;
}

static void set(rp_line_editor *e, const char *text)
{
    (void)snprintf(e->text, sizeof e->text, "%s", text);
    e->size = e->cursor = strlen(e->text);
}

static void erase(rp_line_editor *e, size_t from, size_t to, bool keep)
{
    assert(from <= to && to <= e->size);
    if (from == to) return;
    if (keep)
        (void)snprintf(e->killed, sizeof e->killed, "%.*s", (int)(to - from), e->text + from);
    memmove(e->text + from, e->text + to, e->size - to + 1);
    e->size -= to - from;
    e->cursor = from;
    assert(e->cursor <= e->size && e->text[e->size] == '\0'); /* E1 */
}

static void insert(rp_line_editor *e, const char *text, size_t size)
{
    if (size >= sizeof e->text - e->size) return; /* the line is full */
    memmove(e->text + e->cursor + size, e->text + e->cursor, e->size - e->cursor + 1);
    memcpy(e->text + e->cursor, text, size);
    e->size += size;
    e->cursor += size;
    assert(e->cursor <= e->size && e->size < sizeof e->text); /* E1 */
}

void rp_line_editor_start(rp_line_editor *e, const rp_line_history *history)
{
    e->text[0] = e->draft[0] = e->pattern[0] = '\0';
    e->size = e->cursor = e->key_count = 0;
    e->history = history;
    e->place = history != NULL ? history->count : 0;
    e->searching = false;
}

void rp_line_editor_replace(rp_line_editor *e, size_t from, const char *text)
{
    assert(from <= e->cursor);
    if (strlen(text) >= sizeof e->text - e->size + (e->cursor - from)) return;
    erase(e, from, e->cursor, false);
    insert(e, text, strlen(text));
}

/* Shows the line of the history at a place; at its end the draft. */
static void show(rp_line_editor *e, size_t place)
{
    size_t count = e->history != NULL ? e->history->count : 0;

    if (place > count) return;
    if (e->place == count) (void)snprintf(e->draft, sizeof e->draft, "%s", e->text);
    e->place = place;
    set(e, place < count ? e->history->lines[place] : e->draft);
}

/* Shows the newest line before `end` that has the pattern in it. */
static void search(rp_line_editor *e, size_t end)
{
    if (e->history == NULL) return;
    for (size_t i = end < e->history->count ? end : e->history->count; i > 0; i--) {
        if (strstr(e->history->lines[i - 1], e->pattern) == NULL) continue;
        show(e, i - 1);
        return;
    }
}

static void feed_search(rp_line_editor *e, unsigned char byte)
{
    size_t length = strlen(e->pattern);

    if (byte == CONTROL('R')) {
        search(e, e->place);
    } else if (byte == CONTROL('H') || byte == DELETE) {
        if (length > 0) e->pattern[length - 1] = '\0';
        search(e, SIZE_MAX);
    } else if (length + 1 < sizeof e->pattern) {
        e->pattern[length] = (char)byte;
        e->pattern[length + 1] = '\0';
        search(e, e->place < SIZE_MAX ? e->place + 1 : SIZE_MAX);
    }
}

/* Handles the letter at the end of an escape sequence, or the letter of Alt. */
static void feed_letter(rp_line_editor *e, char letter)
{
    switch (letter) {
    case 'A': show(e, e->place > 0 ? e->place - 1 : SIZE_MAX); break;
    case 'B': show(e, e->place + 1); break;
    case 'C': e->cursor = after(e, e->cursor); break;
    case 'D': e->cursor = before(e, e->cursor); break;
    case 'H': e->cursor = 0; break;
    case 'F': e->cursor = e->size; break;
    default: break;
    }
}

/* Handles a complete escape sequence. Its parameters are ignored, but for those of the keys
 * that have no letter, and of arrows with Ctrl or Alt. */
static void feed_sequence(rp_line_editor *e, const char *keys, size_t count)
{
    char last = keys[count - 1];
    bool modified = memchr(keys, ';', count) != NULL;

    if (last == '~') {
        int number = 0;

        for (size_t i = 1; keys[i] >= '0' && keys[i] <= '9'; i++)
            number = 10 * (number % 1000) + (keys[i] - '0');
        switch (number) {
        case 1:
        case 7: e->cursor = 0; break;
        case 3: erase(e, e->cursor, after(e, e->cursor), false); break;
        case 4:
        case 8: e->cursor = e->size; break;
        default: break;
        }
    } else if (modified && (last == 'C' || last == 'D')) {
        e->cursor = last == 'C' ? word_after(e, e->cursor) : word_before(e, e->cursor);
    } else {
        feed_letter(e, last);
    }
}

/* Collects an escape sequence: ESC and a letter (Alt), or ESC, '[' or 'O', and all bytes up to
 * a letter or '~'. */
static void feed_escape(rp_line_editor *e, unsigned char byte)
{
    size_t cursor = e->cursor;

    e->keys[e->key_count++] = (char)byte;
    if (e->key_count == 2 && byte != '[' && byte != 'O') {
        e->key_count = 0;
        if (byte == 'b') e->cursor = word_before(e, cursor);
        if (byte == 'f') e->cursor = word_after(e, cursor);
        if (byte == 'd') erase(e, cursor, word_after(e, cursor), true);
        if (byte == DELETE) erase(e, word_before(e, cursor), cursor, true);
        return;
    }
    if (e->key_count > 2 && byte >= 0x40 && byte < DELETE) {
        feed_sequence(e, e->keys + 1, e->key_count - 1);
        e->key_count = 0;
    } else if (e->key_count == sizeof e->keys) {
        e->key_count--; /* no key that is known: its end is what matters */
    }
}

static void swap(rp_line_editor *e)
{
    size_t right = e->cursor < e->size ? e->cursor : before(e, e->size);
    size_t left = before(e, right), end = after(e, right);
    char text[16];

    if (right == 0 || end - left >= sizeof text) return;
    memcpy(text, e->text + right, end - right);
    memcpy(text + (end - right), e->text + left, right - left);
    memcpy(e->text + left, text, end - left);
    e->cursor = end;
}

static rp_edit feed_key(rp_line_editor *e, unsigned char byte)
{
    char letter = (char)byte;

    switch (byte) {
    case '\r':
    case '\n': return RP_EDIT_LINE;
    case '\t': return RP_EDIT_COMPLETE;
    case ESCAPE:
        e->keys[0] = ESCAPE;
        e->key_count = 1;
        break;
    case CONTROL('A'): e->cursor = 0; break;
    case CONTROL('B'): feed_letter(e, 'D'); break;
    case CONTROL('C'): return RP_EDIT_CANCEL;
    case CONTROL('D'):
        if (e->size == 0) return RP_EDIT_END;
        erase(e, e->cursor, after(e, e->cursor), false);
        break;
    case CONTROL('E'): e->cursor = e->size; break;
    case CONTROL('F'): feed_letter(e, 'C'); break;
    case CONTROL('H'):
    case DELETE: erase(e, before(e, e->cursor), e->cursor, false); break;
    case CONTROL('K'): erase(e, e->cursor, e->size, true); break;
    case CONTROL('L'): return RP_EDIT_CLEAR;
    case CONTROL('N'): feed_letter(e, 'B'); break;
    case CONTROL('P'): feed_letter(e, 'A'); break;
    case CONTROL('R'):
        e->searching = true;
        e->pattern[0] = '\0';
        break;
    case CONTROL('T'): swap(e); break;
    case CONTROL('U'): erase(e, 0, e->cursor, true); break;
    case CONTROL('W'): erase(e, word_before(e, e->cursor), e->cursor, true); break;
    case CONTROL('Y'): insert(e, e->killed, strlen(e->killed)); break;
    default:
        if (byte >= ' ') insert(e, &letter, 1);
    }
    return RP_EDIT_MORE;
}

rp_edit rp_line_editor_feed(rp_line_editor *e, unsigned char byte)
{
    assert(e->cursor <= e->size && e->text[e->size] == '\0'); /* E1 */
    if (e->key_count > 0 && byte >= ' ') {
        feed_escape(e, byte);
        return RP_EDIT_MORE;
    }
    e->key_count = 0; /* Enter, Ctrl-C and the like end a sequence and do their work */
    if (e->searching && (byte >= ' ' || byte == CONTROL('R') || byte == CONTROL('H'))) {
        feed_search(e, byte);
        return RP_EDIT_MORE;
    }
    e->searching = false; /* any other key keeps the line that was found, and does its work */
    return feed_key(e, byte);
}

void rp_line_editor_draw(const rp_line_editor *e, const char *prompt, size_t width,
                         rp_text_buffer *out, size_t *column)
{
    rp_text_buffer head = {0}, left = {0}, right = {0};
    size_t used, columns, skip = 0;

    if (e->searching) {
        rp_text_buffer_put(&head, "search '");
        rp_text_buffer_put_safe(&head, e->pattern, strlen(e->pattern));
        rp_text_buffer_put(&head, "': ");
    } else {
        rp_text_buffer_put_safe(&head, prompt, strlen(prompt));
    }
    rp_text_buffer_put_safe(&left, e->text, e->cursor);
    rp_text_buffer_put_safe(&right, e->text + e->cursor, e->size - e->cursor);
    used = rp_text_columns(rp_text_buffer_text(&head), head.size);
    if (used + 8 > width) used = 0; /* a narrow window has no prompt */
    if (used > 0) rp_text_buffer_add(out, rp_text_buffer_text(&head), head.size);
    columns = rp_text_columns(rp_text_buffer_text(&left), left.size);
    /* The last column stays free: terminals wrap after it. */
    while (skip < left.size && used + columns + 1 > width) {
        skip++;
        while (skip < left.size && is_inside_character(left.text[skip])) skip++;
        columns--;
    }
    rp_text_buffer_add(out, rp_text_buffer_text(&left) + skip, left.size - skip);
    *column = used + columns;
    rp_text_buffer_add(out, rp_text_buffer_text(&right),
                       rp_text_fit(rp_text_buffer_text(&right), right.size,
                                   width > *column + 1 ? width - *column - 1 : 0));
    if (head.failed || left.failed || right.failed) out->failed = true;
    rp_text_buffer_deinit(&head);
    rp_text_buffer_deinit(&left);
    rp_text_buffer_deinit(&right);
}
