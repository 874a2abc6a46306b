/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the progress of a long operation on standard error: as a bar if standard error is a
 * terminal, otherwise as a line every few seconds. Not thread-safe. */
#ifndef RP_CLI_TEXT_PROGRESS_BAR_H
#define RP_CLI_TEXT_PROGRESS_BAR_H

#include "cli/text/text_buffer.h"
#include "reprise/durable.h"

typedef struct rp_progress_bar {
    bool terminal;   /* standard error is a terminal */
    bool drawn;      /* a bar is on the screen */
    bool quiet;      /* nothing is printed */
    int64_t last_ns; /* when the last line was printed without a terminal */
} rp_progress_bar;

/* Initialises a bar. If `quiet` is true, the bar never prints anything. */
void rp_progress_bar_init(rp_progress_bar *bar, bool quiet);

/* Shows progress. This is an on_progress callback (reprise/durable.h); `ctx` is the bar. */
void rp_progress_bar_show(void *ctx, const rp_durable_progress *progress);

/* Removes the bar from the screen. */
void rp_progress_bar_end(rp_progress_bar *bar);

/* Writes a text such as "verifying  [#####-----]  52 %  812 MiB/s  3 s left". The bar has
 * `width` columns; if `width` is 0, there is no bar. */
void rp_progress_text(rp_text_buffer *out, const rp_durable_progress *progress, size_t width);

/* Writes a time span as "5 s", "12 min", "3 h" or "9 d". Returns `text`. */
char *rp_span_text(int64_t ns, char text[16]);

#endif
