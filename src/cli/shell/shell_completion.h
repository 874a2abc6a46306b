/* SPDX-License-Identifier: Apache-2.0 */
/* Completes the word before the cursor of a shell: commands, actions, options, their values,
 * tables of the server, and files. */
#ifndef RP_CLI_SHELL_SHELL_COMPLETION_H
#define RP_CLI_SHELL_SHELL_COMPLETION_H

#include "cli/shell/shell_words.h"

enum { RP_MOST_CANDIDATES = 512 };

typedef struct rp_candidates {
    const char *list[RP_MOST_CANDIDATES]; /* in the arena, or static */
    size_t count;
    size_t from;   /* offset in the line of the word that they complete */
    size_t common; /* bytes that all of them have in common */
} rp_candidates;

/* Adds a candidate that begins with `prefix`. One over the bound counts for `common` only. */
void rp_candidates_add(rp_candidates *candidates, const char *word, const char *prefix);

/* The same for names that are not ours, of tables and files. One that begins with '-' is left
 * out: the command would read it as an option, such as --server. */
void rp_candidates_add_name(rp_candidates *candidates, const char *name, const char *prefix);

typedef struct rp_completer {
    const rp_command *const *commands;
    size_t command_count;
    const char *const *builtins; /* commands of the shell itself, terminated by NULL */
    /* Adds the tables, by rp_candidates_add_name(), that begin with `prefix`, for as long as a
     * user does not mind. */
    void (*add_tables)(void *ctx, const char *prefix, rp_candidates *out);
    void *ctx;
} rp_completer;

/* Completes the last word of `size` bytes of a line. Nothing is found if there is no memory. */
void rp_shell_complete(const rp_completer *completer, rp_arena *arena, const char *line,
                       size_t size, rp_candidates *out);

#endif
