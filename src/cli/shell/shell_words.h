/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a line into words, as shells do: spaces separate words, 'single' and "double" quotes
 * and a backslash keep spaces. Pure. */
#ifndef RP_CLI_SHELL_SHELL_WORDS_H
#define RP_CLI_SHELL_SHELL_WORDS_H

#include "cli/help/flags.h"
#include "cli/text/arena.h"

enum { RP_SHELL_WORDS = RP_MAX_WORDS + 2 * RP_MAX_FLAGS };

typedef struct rp_shell_words {
    char *words[RP_SHELL_WORDS + 1]; /* without quotes, in the arena; NULL after the last */
    size_t starts[RP_SHELL_WORDS];   /* offsets in the line */
    size_t count;
    bool ends_inside; /* the line ends within the last word, or within quotes */
    bool is_open;     /* the line ends within quotes */
} rp_shell_words;

/* Splits `line` into `out`. RP_NO_RESOURCE, RP_INVALID (too many words). */
RP_NODISCARD rp_status rp_shell_split(rp_arena *arena, const char *line, size_t size,
                                      rp_shell_words *out, rp_problem *problem);

/* RP_INVALID if the words are no command line: the line ends within quotes, or has an operator of
 * other shells, such as a pipe. */
RP_NODISCARD rp_status rp_shell_check(const rp_shell_words *words, const char *line,
                                      rp_problem *problem);

/* Returns the word with quotes, if it needs them to be one word; NULL if there is no memory. */
char *rp_shell_quote(rp_arena *arena, const char *word);

#endif
