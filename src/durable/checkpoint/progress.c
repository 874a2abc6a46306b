/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/checkpoint/progress.h"

#include <assert.h>

#include "util/clock.h"

enum { REPORT_EVERY_NS = 100 * 1000 * 1000 };

static void report(rp_progress_meter *m, int64_t now_ns)
{
    m->reported_ns = now_ns;
    m->now.elapsed_ns = now_ns - m->started_ns;
    m->now.left_ns = -1;
    if (m->now.total > 0 && m->now.done >= m->now.total)
        m->now.left_ns = 0;
    else if (m->now.total > 0 && m->now.done > 0) {
        /* A total may be the size of a sparse file, so the estimate may exceed INT64_MAX. */
        double left_ns = (double)m->now.elapsed_ns *
                         ((double)(m->now.total - m->now.done) / (double)m->now.done);
        m->now.left_ns = left_ns < 0x1p62 ? (int64_t)left_ns : INT64_C(1) << 62;
    }
    if (m->on_progress != NULL) m->on_progress(m->ctx, &m->now);
}

void rp_progress_begin(rp_progress_meter *m, const char *what, uint64_t total)
{
    int64_t now_ns = rp_now_ns();

    assert(what != NULL);
    m->now = (rp_durable_progress){.what = what, .total = total, .left_ns = -1};
    m->started_ns = now_ns;
    report(m, now_ns);
}

void rp_progress_add(rp_progress_meter *m, uint64_t done)
{
    int64_t now_ns = rp_now_ns();

    m->now.done += done;
    if (now_ns - m->reported_ns >= REPORT_EVERY_NS || m->now.done == m->now.total)
        report(m, now_ns);
}

void rp_progress_end(rp_progress_meter *m)
{
    m->now.what = NULL;
    if (m->on_progress != NULL) m->on_progress(m->ctx, &m->now);
}
