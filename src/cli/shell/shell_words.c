/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/shell_words.h"

#include <assert.h>
#include <string.h>

/* Copies a word without its quotes to `to`, which has room for it. Returns the offset after the
 * word. */
static size_t take_word(const char *line, size_t size, size_t at, char *to, bool *is_open)
{
    char quote = '\0';

    for (; at < size && (quote != '\0' || line[at] != ' '); at++) {
        char c = line[at];

        if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == quote && quote != '\0') {
            quote = '\0';
        } else if (c == '\\' && quote != '\'' && at + 1 < size) {
            *to++ = line[++at];
        } else {
            *to++ = c;
        }
    }
    *to = '\0';
    *is_open = quote != '\0';
    return at;
}

rp_status rp_shell_split(rp_arena *arena, const char *line, size_t size, rp_shell_words *out,
                         rp_problem *problem)
{
    char *room = rp_arena_take(arena, 2 * size + 2);
    size_t at = 0;

    out->count = 0;
    out->ends_inside = out->is_open = false;
    if (room == NULL) return rp_problem_memory(problem);
    for (;;) {
        while (at < size && line[at] == ' ') at++;
        if (at == size) break;
        if (out->count == RP_SHELL_WORDS)
            return rp_problem_set(problem, NULL, "a line of more than %d words",
                                  RP_SHELL_WORDS);
        out->starts[out->count] = at;
        out->words[out->count++] = room;
        at = take_word(line, size, at, room, &out->is_open);
        out->ends_inside = at == size;
        room += strlen(room) + 1;
    }
    if (size > 0 && line[size - 1] == ' ' && !out->is_open) out->ends_inside = false;
    out->words[out->count] = NULL;
    assert(out->count <= RP_SHELL_WORDS);
    return RP_OK;
}

rp_status rp_shell_check(const rp_shell_words *w, const char *line, rp_problem *problem)
{
    static const char operators[] = "|<>&;";

    if (w->is_open) return rp_problem_set(problem, NULL, "a quote is not closed");
    for (size_t i = 0; i < w->count; i++)
        if (line[w->starts[i]] != '\0' && strchr(operators, line[w->starts[i]]) != NULL)
            return rp_problem_set(
                problem, NULL,
                "'%c': pipes, redirections and lists need another shell; quote "
                "the word if it is an argument",
                line[w->starts[i]]);
    return RP_OK;
}

char *rp_shell_quote(rp_arena *arena, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:=@%+,-~[]";
    size_t length = strlen(word);
    char *quoted, *to;

    if (length > 0 && strspn(word, plain) == length) return rp_arena_text(arena, word, length);
    quoted = to = rp_arena_take(arena, 2 * length + 3);
    if (quoted == NULL) return NULL;
    *to++ = '"';
    for (const char *c = word; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') *to++ = '\\';
        *to++ = *c;
    }
    *to++ = '"';
    *to = '\0';
    return quoted;
}
