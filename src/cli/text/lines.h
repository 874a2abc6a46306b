/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines from a file or a pipe. The caller can end a wait for input, for example on
 * Ctrl-C, by making the descriptor `wake_fd` readable. */
#ifndef RP_CLI_TEXT_LINES_H
#define RP_CLI_TEXT_LINES_H

#include "cli/text/text_buffer.h"

enum { RP_LINE_BYTES = 256 << 20 }; /* limit of the length of a line */

typedef struct rp_lines {
    int fd;      /* borrowed */
    int wake_fd; /* borrowed; -1: none */
    rp_text_buffer buffer;
    size_t begin;   /* offset of the next line in `buffer` */
    size_t scanned; /* there is no line end between `begin` and this offset; begin <= scanned <=
                       buffer.size */
    bool end;       /* the end of the file has been reached */
} rp_lines;

typedef enum rp_lines_result {
    RP_LINES_ONE,      /* a line was read */
    RP_LINES_END,      /* there are no more lines */
    RP_LINES_FAILED,   /* errno says why */
    RP_LINES_TOO_LONG, /* the line is longer than RP_LINE_BYTES, or memory ran out */
    RP_LINES_WOKEN,    /* `wake_fd` became readable */
} rp_lines_result;

void rp_lines_init(rp_lines *lines, int fd, int wake_fd);
void rp_lines_deinit(rp_lines *lines);

/* Reads the next line and points `*line` to it, without its line end. The line is valid
 * until the next call. */
rp_lines_result rp_lines_next(rp_lines *lines, const char **line, size_t *size);

#endif
