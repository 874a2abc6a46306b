/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a line into words by the rules of shells. Spaces separate words. A space within
 * 'single' or "double" quotes, or after a backslash, is part of its word. Pure functions. */
#ifndef RP_CLI_SHELL_SHELL_WORDS_H
#define RP_CLI_SHELL_SHELL_WORDS_H

#include "cli/help/flags.h"
#include "cli/text/arena.h"

enum { RP_SHELL_WORDS = RP_MAX_WORDS + 2 * RP_MAX_FLAGS };

typedef struct rp_shell_words {
    char *words[RP_SHELL_WORDS + 1]; /* without their quotes, in the arena; ends with NULL */
    size_t starts[RP_SHELL_WORDS];   /* offsets of the words in the line */
    size_t count;
    bool ends_inside; /* no space follows the last word, so the user may still be typing it */
    bool is_open;     /* the last quote is not closed */
} rp_shell_words;

/* Splits the `size` bytes of `line` into `out`. Returns RP_INVALID if there are too many words.
 * Other errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shell_split(rp_arena *arena, const char *line, size_t size,
                                      rp_shell_words *out, rp_problem *problem);

/* Returns RP_INVALID if the shell cannot run the line: a quote is not closed, or the line
 * contains an operator of other shells, such as a pipe. */
RP_NODISCARD rp_status rp_shell_check(const rp_shell_words *words, const char *line,
                                      rp_problem *problem);

/* Returns `word` as it must stand in a command line: in quotes, if a shell would otherwise
 * split it. Returns NULL if memory runs out. */
char *rp_shell_quote(rp_arena *arena, const char *word);

#endif
