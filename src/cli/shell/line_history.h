/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a shell: the lines that the user has typed, in memory and in a file. */
#ifndef RP_CLI_SHELL_LINE_HISTORY_H
#define RP_CLI_SHELL_LINE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

enum { RP_HISTORY_LINES = 1000, RP_HISTORY_LINE_BYTES = 4096 };

typedef struct rp_line_history {
    char *lines[RP_HISTORY_LINES]; /* owned, oldest first */
    size_t count;
    const char *path; /* path of the file, borrowed; NULL: no file */
} rp_line_history;

/* Reads the last MiB of the file and makes the file private to its owner. Keeps the latest
 * RP_HISTORY_LINES lines in memory. If the file has more than 1 MiB, or more than twice
 * RP_HISTORY_LINES lines, replaces its contents by these lines. There is one exception: a file
 * without the header line that rp_line_history_add() writes is possibly not a history, and is
 * not replaced. Ignores a path that is not a regular file. */
void rp_line_history_load(rp_line_history *history, const char *path);
void rp_line_history_deinit(rp_line_history *history);

/* Adds a line to the history and to the file, which only its owner can read. Does not add a
 * line that is empty, is too long, begins with a space, repeats the previous line, or contains
 * the option --token. */
void rp_line_history_add(rp_line_history *history, const char *line);

#endif
