/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that were typed in a shell, in memory and in a file. */
#ifndef RP_CLI_SHELL_LINE_HISTORY_H
#define RP_CLI_SHELL_LINE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

enum { RP_HISTORY_LINES = 1000, RP_HISTORY_LINE_BYTES = 4096 };

typedef struct rp_line_history {
    char *lines[RP_HISTORY_LINES]; /* the oldest first; owned */
    size_t count;
    const char *path; /* borrowed; NULL: no file */
} rp_line_history;

/* Reads the last MiB of the file, if it is a regular file, and takes its permissions away from
 * all but its owner. Lines over the bound are dropped, the oldest first; also from the file, if
 * it begins with the first line that rp_line_history_add() writes. */
void rp_line_history_load(rp_line_history *history, const char *path);
void rp_line_history_deinit(rp_line_history *history);

/* Adds a line, and appends it to the file, which only its owner can read. Lines that are empty
 * or too long, begin with a space, repeat the line before, or have the option --token are not
 * added. */
void rp_line_history_add(rp_line_history *history, const char *line);

#endif
