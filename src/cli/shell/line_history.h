/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that were typed in a shell, in memory and in a file. */
#ifndef RP_CLI_SHELL_LINE_HISTORY_H
#define RP_CLI_SHELL_LINE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

enum { RP_HISTORY_LINES = 1000 };

typedef struct rp_line_history {
    char *lines[RP_HISTORY_LINES]; /* the oldest first; owned */
    size_t count;
    const char *path; /* borrowed; NULL: no file */
} rp_line_history;

/* Reads the file, if there is one. Lines over the bound are dropped, the oldest first, also
 * from the file. */
void rp_line_history_load(rp_line_history *history, const char *path);
void rp_line_history_deinit(rp_line_history *history);

/* Adds a line, and appends it to the file, which only its owner can read. Lines that are empty,
 * begin with a space, repeat the line before, or have a token in them are not added. */
void rp_line_history_add(rp_line_history *history, const char *line);

#endif
