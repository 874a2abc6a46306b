/* SPDX-License-Identifier: Apache-2.0 */
/* An extension that copies an item into another table when it is sampled for the first time.
 *
 * Deferred: it inserts with no lock held, on the thread of a caller of the first table. The
 * items of one call are inserted together, with one timeout. A table refuses a whole batch if
 * it refuses one of the items; then the items are inserted one by one, and only the refused one
 * is discarded. */
#include <assert.h>
#include <stdatomic.h>

#include "table/table_log.h"
#include "util/error.h"
#include "util/mem.h"

enum { BATCH = 64 };

typedef struct copier {
    rp_allocator alloc;
    rp_table *target; /* owned */
    int64_t timeout_ms;
    /* The counters order no other data: relaxed order is enough. */
    atomic_int_fast64_t copied, dropped;
} copier;

static void count(atomic_int_fast64_t *counter, size_t n)
{
    atomic_fetch_add_explicit(counter, (int_fast64_t)n, memory_order_relaxed);
}

/* Inserts the items that are left one at a time. */
static void insert_each(copier *c, const rp_insert *items, size_t n, rp_wait wait)
{
    size_t inserted, copied = 0;
    uint64_t lsn; /* ignored: no caller waits until the copies are durable */

    for (size_t i = 0; i < n; i++)
        if (rp_table_insert_logged(c->target, &items[i], 1, wait, &inserted, &lsn, NULL) ==
            RP_OK)
            copied++;
    count(&c->copied, copied);
    count(&c->dropped, n - copied);
}

static void insert_batch(copier *c, const rp_insert *items, size_t n, rp_wait wait)
{
    size_t inserted = 0;
    uint64_t lsn;
    rp_status st = rp_table_insert_logged(c->target, items, n, wait, &inserted, &lsn, NULL);

    assert(inserted <= n);
    count(&c->copied, inserted);
    if (st == RP_INVALID || st == RP_NO_RESOURCE)
        insert_each(c, items + inserted, n - inserted, wait);
    else
        count(&c->dropped, n - inserted);
}

static void on_events(void *ctx, rp_table_view *view, const rp_event *events,
                      size_t event_count)
{
    copier *c = ctx;
    rp_insert items[BATCH];
    rp_wait wait = rp_wait_none();
    size_t n = 0;

    (void)view;
    for (size_t i = 0; i < event_count; i++) {
        const rp_event *e = &events[i];
        if (e->kind != RP_EVENT_SAMPLE || e->times_sampled != 1) continue;
        /* One timeout for the whole call. Reads the clock only if there is an item. */
        if (wait.until_ns == RP_NOW && c->timeout_ms > 0) wait = rp_wait_ms(c->timeout_ms);
        items[n++] = (rp_insert){.key = e->key,
                                 .priority = e->priority,
                                 .trajectory = e->trajectory,
                                 .times_sampled = 1};
        if (n < BATCH) continue;
        insert_batch(c, items, n, wait);
        n = 0;
    }
    if (n > 0) insert_batch(c, items, n, wait);
}

static void free_copier(void *ctx)
{
    copier *c = ctx;
    rp_allocator alloc = c->alloc;

    rp_table_unref(c->target);
    rp_release(&alloc, c, sizeof *c);
}

rp_status rp_insert_on_sample_extension(const rp_allocator *alloc, rp_table *target,
                                        int64_t timeout_ms, rp_extension *out, rp_error *err)
{
    static const int64_t max_timeout_ms = INT64_MAX / 1000000 / 2; /* 146 years */
    copier *c;

    if (target == NULL) return rp_fail(err, RP_INVALID, "insert_on_sample: no target table");
    if (timeout_ms < 0)
        return rp_fail(err, RP_INVALID, "insert_on_sample: timeout_ms must be >= 0, got %lld",
                       (long long)timeout_ms);
    if (alloc == NULL) alloc = rp_allocator_default();
    c = rp_alloc_zero(alloc, sizeof *c);
    if (c == NULL) return rp_fail_memory(err, sizeof *c);
    c->alloc = *alloc;
    c->target = rp_table_ref(target);
    c->timeout_ms = timeout_ms < max_timeout_ms ? timeout_ms : max_timeout_ms;
    *out = (rp_extension){.name = "insert_on_sample",
                          .deferred = true,
                          .ctx = c,
                          .on_events = on_events,
                          .free = free_copier};
    return RP_OK;
}

void rp_insert_on_sample_read(const rp_extension *extension, int64_t *copied, int64_t *dropped)
{
    copier *c = extension->ctx;

    *copied = (int64_t)atomic_load_explicit(&c->copied, memory_order_relaxed);
    *dropped = (int64_t)atomic_load_explicit(&c->dropped, memory_order_relaxed);
}
