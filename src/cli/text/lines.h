/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a file or a pipe, of bounded length, that Ctrl-C can end the wait for. */
#ifndef RP_CLI_TEXT_LINES_H
#define RP_CLI_TEXT_LINES_H

#include "cli/text/sheet.h"

enum { RP_LINE_BYTES = 256 << 20 };

typedef struct rp_lines {
    int fd;      /* borrowed */
    int wake_fd; /* borrowed: readable when it is to end; -1: nothing ends it */
    rp_sheet buffer;
    size_t begin; /* of the next line in it */
    size_t scanned;
    bool end;
} rp_lines;

typedef enum rp_lines_result {
    RP_LINES_ONE, /* a line, without its end */
    RP_LINES_END,
    RP_LINES_FAILED,   /* errno says why */
    RP_LINES_TOO_LONG, /* more than RP_LINE_BYTES, or than there is memory for */
    RP_LINES_WOKEN,
} rp_lines_result;

void rp_lines_init(rp_lines *lines, int fd, int wake_fd);
void rp_lines_deinit(rp_lines *lines);

/* The next line, valid until the next call. */
rp_lines_result rp_lines_next(rp_lines *lines, const char **line, size_t *size);

#endif
