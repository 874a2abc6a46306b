/* SPDX-License-Identifier: Apache-2.0 */
/* An extension that counts the operations of its table.
 *
 * Events are delivered under the table's lock. Readers must not acquire that lock, so the
 * counts have a lock of a higher rank, which is held for a few additions per event. */
#include <assert.h>
#include <math.h>

#include "reprise/extension.h"
#include "util/mem.h"
#include "util/mutex.h"

typedef struct statistics {
    rp_allocator alloc;
    rp_mutex mu; /* rank 45 */
    rp_statistics counts RP_GUARDED_BY(mu);
    int64_t priorities RP_GUARDED_BY(mu);        /* counted in priority_min and priority_max */
    int64_t finite_priorities RP_GUARDED_BY(mu); /* counted in priority_mean */
} statistics;

static void add_priority_locked(statistics *s, double priority) RP_REQUIRES(s->mu)
{
    rp_statistics *c = &s->counts;

    if (s->priorities++ == 0) c->priority_min = c->priority_max = priority;
    c->priority_min = fmin(c->priority_min, priority);
    c->priority_max = fmax(c->priority_max, priority);
    /* The mean omits infinite priorities, which heaps allow. Finite ones are divided first,
     * since the difference of two may overflow. */
    if (isfinite(priority)) {
        double n = (double)++s->finite_priorities;

        c->priority_mean += priority / n - c->priority_mean / n;
    }
}

static void add_event_locked(statistics *s, const rp_event *event) RP_REQUIRES(s->mu)
{
    rp_statistics *c = &s->counts;

    switch (event->kind) {
    case RP_EVENT_INSERT:
        c->inserts++;
        add_priority_locked(s, event->priority);
        break;
    case RP_EVENT_UPDATE:
        c->updates++;
        add_priority_locked(s, event->priority);
        break;
    case RP_EVENT_SAMPLE: c->samples++; break;
    case RP_EVENT_DELETE:
        c->deletes++;
        assert(event->times_sampled >= 0);
        if (event->times_sampled == 0) c->deleted_unsampled++;
        c->times_sampled_mean +=
            (event->times_sampled - c->times_sampled_mean) / (double)c->deletes;
        break;
    case RP_EVENT_RESET: c->resets++; break;
    }
}

static void on_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    statistics *s = ctx;

    (void)view;
    rp_mutex_lock(&s->mu);
    for (size_t i = 0; i < count; i++) add_event_locked(s, &events[i]);
    rp_mutex_unlock(&s->mu);
}

static void free_statistics(void *ctx)
{
    statistics *s = ctx;
    rp_allocator alloc = s->alloc;

    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s, sizeof *s);
}

rp_status rp_statistics_extension(const rp_allocator *alloc, rp_extension *out)
{
    statistics *s;

    if (alloc == NULL) alloc = rp_allocator_default();
    s = rp_alloc_zero(alloc, sizeof *s);
    if (s == NULL) return RP_NO_RESOURCE;
    s->alloc = *alloc;
    rp_mutex_init(&s->mu, RP_RANK_EXTENSION);
    *out = (rp_extension){
        .name = "statistics", .ctx = s, .on_events = on_events, .free = free_statistics};
    return RP_OK;
}

void rp_statistics_read(const rp_extension *extension, rp_statistics *out)
{
    statistics *s = extension->ctx;

    rp_mutex_lock(&s->mu);
    *out = s->counts;
    rp_mutex_unlock(&s->mu);
}
