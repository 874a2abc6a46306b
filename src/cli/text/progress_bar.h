/* SPDX-License-Identifier: Apache-2.0 */
/* Shows progress on standard error: a bar on a terminal, otherwise a line every few seconds.
 * One thread. */
#ifndef RP_CLI_TEXT_PROGRESS_BAR_H
#define RP_CLI_TEXT_PROGRESS_BAR_H

#include "cli/text/text_buffer.h"
#include "reprise/durable.h"

typedef struct rp_progress_bar {
    bool terminal;
    bool drawn; /* a bar is on the screen */
    bool quiet;
    int64_t last_ns; /* when a plain line was printed */
} rp_progress_bar;

/* `quiet`: prints nothing. */
void rp_progress_bar_init(rp_progress_bar *bar, bool quiet);

/* Shows progress. An on_progress callback of the library; `ctx` is the bar. */
void rp_progress_bar_show(void *ctx, const rp_durable_progress *progress);

/* Clears the bar. */
void rp_progress_bar_end(rp_progress_bar *bar);

/* Writes "verifying  [#####-----]  52 %  812 MiB/s  3 s left". The bar has `width` columns; 0:
 * no bar. */
void rp_progress_text(rp_text_buffer *out, const rp_durable_progress *progress, size_t width);

/* Writes a time as "5 s", "12 min", "3 h" or "9 d". Returns `text`. */
char *rp_span_text(int64_t ns, char text[16]);

#endif
