/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/watch.h"

enum { TELL_NS = 100000000 };

void rp_watch_start(rp_watch *w,
                    void (*on_progress)(void *ctx, const rp_durable_progress *progress),
                    void *ctx, const char *what, uint64_t total)
{
    *w = (rp_watch){on_progress, ctx, what, total, rp_now_ns(), 0};
}

void rp_watch_tell(rp_watch *w, uint64_t done)
{
    rp_durable_progress p = {w->what, done < w->total ? done : w->total, w->total, 0, -1};
    int64_t now;

    if (w->on_progress == NULL) return;
    now = rp_now_ns();
    if (w->told_ns != 0 && now - w->told_ns < TELL_NS && done < w->total) return;
    w->told_ns = now;
    p.elapsed_ns = now - w->started_ns;
    if (p.done > 0)
        p.left_ns =
            (int64_t)((double)p.elapsed_ns * (double)(p.total - p.done) / (double)p.done);
    w->on_progress(w->ctx, &p);
}
