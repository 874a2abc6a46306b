/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/progress_bar.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/text/units.h"
#include "reprise/wait.h"

enum { BAR_COLUMNS = 30 };

static const int64_t second = 1000000000;
/* Without a terminal: time between lines, and before the first, so that short work prints none.
 */
static const int64_t line_every_ns = 5000000000;

void rp_progress_bar_init(rp_progress_bar *bar, bool quiet)
{
    *bar = (rp_progress_bar){
        .terminal = isatty(STDERR_FILENO) != 0, .quiet = quiet, .last_ns = rp_now_ns()};
}

char *rp_span_text(int64_t ns, char text[16])
{
    int64_t s = ns > 0 ? ns / second : 0;

    if (s < 100)
        (void)snprintf(text, 16, "%" PRId64 " s", s);
    else if (s < 100 * 60)
        (void)snprintf(text, 16, "%" PRId64 " min", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(text, 16, "%" PRId64 " h", s / 3600);
    else
        (void)snprintf(text, 16, "%" PRId64 " d", s / 86400);
    return text;
}

void rp_progress_text(rp_text_buffer *out, const rp_durable_progress *p, size_t width)
{
    double part = p->total > 0 ? (double)p->done / (double)p->total : 0;
    size_t filled;
    char text[32];

    if (part > 1) part = 1;
    filled = (size_t)(part * (double)width);
    assert(filled <= width);
    rp_text_buffer_put(out, p->what != NULL ? p->what : "");
    if (width > 0 && p->total > 0) {
        rp_text_buffer_put(out, "  [");
        rp_text_buffer_repeat(out, '#', filled);
        rp_text_buffer_repeat(out, '-', width - filled);
        rp_text_buffer_put(out, "]");
    }
    if (p->total > 0)
        rp_text_buffer_format(out, "  %d %%", (int)(100 * part));
    else
        rp_text_buffer_format(out, "  %s", rp_size_text(p->done, text, sizeof text));
    if (p->elapsed_ns > 0)
        rp_text_buffer_format(
            out, "  %s/s",
            rp_size_text(rp_per_second(p->done, p->elapsed_ns), text, sizeof text));
    if (p->left_ns >= 0 && p->done < p->total)
        rp_text_buffer_format(out, "  %s left", rp_span_text(p->left_ns, text));
}

void rp_progress_bar_show(void *ctx, const rp_durable_progress *progress)
{
    rp_progress_bar *bar = ctx;
    rp_text_buffer buffer = {0};
    int64_t now = rp_now_ns();

    if (bar->quiet || progress->what == NULL) return;
    if (!bar->terminal && now - bar->last_ns < line_every_ns) return;
    bar->last_ns = now;
    rp_progress_text(&buffer, progress, bar->terminal ? BAR_COLUMNS : 0);
    if (bar->terminal)
        (void)fprintf(stderr, "\r%s\x1b[K", rp_text_buffer_text(&buffer));
    else
        (void)fprintf(stderr, "%s\n", rp_text_buffer_text(&buffer));
    (void)fflush(stderr);
    bar->drawn = bar->terminal;
    rp_text_buffer_deinit(&buffer);
}

void rp_progress_bar_end(rp_progress_bar *bar)
{
    assert(!bar->drawn || (bar->terminal && !bar->quiet));
    if (bar->drawn) (void)fputs("\r\x1b[K", stderr);
    bar->drawn = false;
}
