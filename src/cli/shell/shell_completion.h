/* SPDX-License-Identifier: Apache-2.0 */
/* Completes the word before the cursor of the shell. A candidate is a command, an action of a
 * command, an option, a value of an option, a table of the server, or a file. */
#ifndef RP_CLI_SHELL_SHELL_COMPLETION_H
#define RP_CLI_SHELL_SHELL_COMPLETION_H

#include "cli/shell/shell_words.h"

enum { RP_MOST_CANDIDATES = 512 };

typedef struct rp_candidates {
    const char *list[RP_MOST_CANDIDATES]; /* texts in the arena, or static ones */
    size_t count;
    size_t from;   /* offset of the word to complete in the line */
    size_t common; /* length of the longest prefix that all candidates share */
} rp_candidates;

/* Adds `word` if it begins with `prefix`. A candidate beyond RP_MOST_CANDIDATES is not listed,
 * but still shortens `common`. */
void rp_candidates_add(rp_candidates *candidates, const char *word, const char *prefix);

/* Like rp_candidates_add(), for the name of a table or a file, which another user has possibly
 * chosen. Skips a name that begins with '-', because the command would parse the name as an
 * option. */
void rp_candidates_add_name(rp_candidates *candidates, const char *name, const char *prefix);

/* What can be completed. */
typedef struct rp_completer {
    const rp_command *const *commands;
    size_t command_count;
    const char *const *builtins; /* commands of the shell itself; ends with NULL */
    /* Adds the server's tables that begin with `prefix`, by rp_candidates_add_name(). Must
     * return quickly even if the server does not respond, because the user waits. */
    void (*add_tables)(void *ctx, const char *prefix, rp_candidates *out);
    void *ctx;
} rp_completer;

/* Finds the candidates for the last word in the first `size` bytes of a line. Finds none if
 * memory runs out. */
void rp_shell_complete(const rp_completer *completer, rp_arena *arena, const char *line,
                       size_t size, rp_candidates *out);

#endif
