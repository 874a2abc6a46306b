/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines of bounded length from a file or a pipe. The wait for a line ends when `wake_fd`
 * becomes readable, as it does on Ctrl-C. */
#ifndef RP_CLI_TEXT_LINES_H
#define RP_CLI_TEXT_LINES_H

#include "cli/text/text_buffer.h"

enum { RP_LINE_BYTES = 256 << 20 };

typedef struct rp_lines {
    int fd;      /* borrowed */
    int wake_fd; /* borrowed: becomes readable to end the wait; -1: none */
    rp_text_buffer buffer;
    size_t begin;   /* of the next line in `buffer` */
    size_t scanned; /* bytes of `buffer` known to have no line end; begin <= scanned <= size */
    bool end;       /* the end of the file was read */
} rp_lines;

typedef enum rp_lines_result {
    RP_LINES_ONE, /* a line, without its end */
    RP_LINES_END,
    RP_LINES_FAILED,   /* errno says why */
    RP_LINES_TOO_LONG, /* more than RP_LINE_BYTES, or more than memory allows */
    RP_LINES_WOKEN,    /* `wake_fd` became readable */
} rp_lines_result;

void rp_lines_init(rp_lines *lines, int fd, int wake_fd);
void rp_lines_deinit(rp_lines *lines);

/* Reads the next line, valid until the next call. */
rp_lines_result rp_lines_next(rp_lines *lines, const char **line, size_t *size);

#endif
