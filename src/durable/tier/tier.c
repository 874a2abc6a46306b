/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop, chunks that enter and leave, and the spiller. */
#include "durable/tier/tier.h"

#include <assert.h>

#include "durable/tier/tier_inside.h"
#include "table/table.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum {
    DEFAULT_READERS = 16,
    MAX_READERS = 256,
    DROPS_AT_ONCE = 256,       /* chunks whose bytes are freed, under one lock */
    LOOKS_AT_ONCE = 1024,      /* chunks that are examined, under one lock */
    RETRY_NS = 1000000000,     /* after a failed write */
    PINNED_RETRY_NS = 5000000, /* if all clean chunks are pinned */
};

void rp_tier_list_append(rp_tier_list *list, rp_tier_chunk *entry)
{
    assert(entry->prev == NULL && entry->next == NULL && list->first != entry);
    entry->prev = list->last;
    entry->next = NULL;
    *(list->last == NULL ? &list->first : &list->last->next) = entry;
    list->last = entry;
}

void rp_tier_list_unlink(rp_tier_list *list, rp_tier_chunk *entry)
{
    assert(entry->prev == NULL ? list->first == entry : entry->prev->next == entry);
    assert(entry->next == NULL ? list->last == entry : entry->next->prev == entry);
    *(entry->prev == NULL ? &list->first : &entry->prev->next) = entry->next;
    *(entry->next == NULL ? &list->last : &entry->next->prev) = entry->prev;
    entry->prev = entry->next = NULL;
}

#ifndef NDEBUG
/* About how many entries the checker walks. */
static size_t entry_estimate(const rp_tier *t)
{
    return (size_t)((t->resident + t->cached) / 1024);
}
#endif

static rp_tier_chunk *entry_of(const rp_chunk *chunk)
{
    return (rp_tier_chunk *)atomic_load_explicit(&chunk->stay, memory_order_acquire);
}

static void free_entry(rp_chunk_tier_state *base)
{
    rp_tier_chunk *entry = (rp_tier_chunk *)base;

    assert(entry->loaded == NULL && entry->readers == NULL);
    rp_release(&entry->chunk->alloc, entry, sizeof *entry);
}

/* NULL if there is no memory. */
static rp_tier_chunk *new_entry_locked(rp_chunk *chunk)
{
    rp_tier_chunk *entry = rp_alloc_zero(&chunk->alloc, sizeof *entry);

    if (entry == NULL) return NULL;
    entry->base.free = free_entry;
    entry->chunk = chunk;
    atomic_store_explicit(&chunk->stay, &entry->base, memory_order_release);
    return entry;
}

/* The list for an entry, if it is held (S1). NULL: none. */
static rp_tier_list *list_of(rp_tier *t, const rp_tier_chunk *entry)
{
    return entry->state == RP_TIER_DIRTY   ? &t->dirty
           : entry->state == RP_TIER_CLEAN ? &t->clean
                                           : NULL;
}

static void prepend(rp_tier_list *list, rp_tier_chunk *entry)
{
    entry->prev = NULL;
    entry->next = list->first;
    *(list->first == NULL ? &list->last : &list->first->prev) = entry;
    list->first = entry;
}

static void list_locked(rp_tier *t, rp_tier_chunk *entry) RP_REQUIRES(t->mu)
{
    rp_tier_list *list = list_of(t, entry);

    if (list != NULL) rp_tier_list_append(list, entry);
}

static void unlist_locked(rp_tier *t, rp_tier_chunk *entry) RP_REQUIRES(t->mu)
{
    rp_tier_list *list = list_of(t, entry);

    if (list != NULL) rp_tier_list_unlink(list, entry);
}

static void count_in_locked(rp_tier *t, uint64_t bytes) RP_REQUIRES(t->mu)
{
    t->resident += bytes;
    (void)atomic_fetch_add(&t->spill.resident, bytes);
}

static void count_out_locked(rp_tier *t, uint64_t bytes) RP_REQUIRES(t->mu)
{
    assert(t->resident >= bytes); /* S2 */
    t->resident -= bytes;
    (void)atomic_fetch_sub(&t->spill.resident, bytes);
}

static void enter_locked(rp_tier *t, rp_tier_chunk *entry) RP_REQUIRES(t->mu)
{
    assert(!entry->held);
    entry->held = true;
    list_locked(t, entry);
    if (entry->state == RP_TIER_SPILLED)
        t->spilled += entry->chunk->wire_bytes;
    else
        count_in_locked(t, entry->chunk->wire_bytes);
}

static void leave_locked(rp_tier *t, rp_tier_chunk *entry) RP_REQUIRES(t->mu)
{
    assert(entry->held);
    entry->held = false;
    unlist_locked(t, entry);
    if (entry->state != RP_TIER_SPILLED) {
        count_out_locked(t, entry->chunk->wire_bytes);
        return;
    }
    assert(t->spilled >= entry->chunk->wire_bytes); /* S2 */
    t->spilled -= entry->chunk->wire_bytes;
    if (entry->loaded != NULL) rp_tier_uncache_locked(t, entry);
}

/* The high or low mark of the spiller, lowered so that the largest waiting insert fits. */
static uint64_t mark_locked(const rp_tier *t, uint64_t mark) RP_REQUIRES(t->mu)
{
    assert(t->wanted <= t->spill.limit);
    return mark < t->spill.limit - t->wanted ? mark : t->spill.limit - t->wanted;
}

static void wake_spiller_locked(rp_tier *t) RP_REQUIRES(t->mu)
{
    uint64_t high = mark_locked(t, t->high);

    if (t->spiller_waits && (atomic_load(&t->spill.resident) > high || t->uncached != NULL)) {
        t->spiller_waits = false;
        rp_cond_signal(&t->spill_cv);
    }
}

/* Called once after every change of a chunk between held and not held. Calls for one chunk may
 * come out of order, so each call looks at the current state; the last one sees the final
 * state. */
static void on_moved(rp_spill *spill, rp_chunk *const *chunks, size_t count)
{
    rp_tier *t = (rp_tier *)spill;

    rp_mutex_lock(&t->mu);
    for (size_t i = 0; i < count; i++) {
        rp_tier_chunk *entry = entry_of(chunks[i]);
        bool is_held = rp_holders_count(&chunks[i]->holders) > 0;

        if (entry == NULL && is_held) entry = new_entry_locked(chunks[i]);
        if (entry == NULL || entry->held == is_held) continue; /* without memory: not counted */
        if (is_held)
            enter_locked(t, entry);
        else
            leave_locked(t, entry);
    }
    RP_VERIFY(entry_estimate(t), rp_tier_is_valid_locked(t));
    wake_spiller_locked(t); /* also to release uncached chunks: a table lock is held here */
    rp_mutex_unlock(&t->mu);
}

static void make_room(rp_spill *spill, uint64_t bytes)
{
    rp_tier *t = (rp_tier *)spill;

    rp_mutex_lock(&t->mu);
    if (t->wanted < bytes) t->wanted = bytes;
    wake_spiller_locked(t);
    rp_mutex_unlock(&t->mu);
}

rp_status rp_tier_admit(rp_tier *t, rp_chunk *chunk)
{
    rp_tier_chunk *entry;
    bool goes;

    if (!rp_chunk_can_spill(chunk)) return RP_OK;
    rp_mutex_lock(&t->mu);
    entry = entry_of(chunk);
    if (entry == NULL) entry = new_entry_locked(chunk);
    goes = entry != NULL && !entry->held && t->admitted + chunk->wire_bytes > t->low &&
           rp_chunk_claim_bytes(chunk);
    if (entry != NULL && !entry->held) {
        entry->state = goes ? RP_TIER_SPILLED : RP_TIER_CLEAN;
        if (!goes) t->admitted += chunk->wire_bytes;
    }
    rp_mutex_unlock(&t->mu);
    if (entry == NULL) return RP_NO_RESOURCE;
    if (goes) rp_chunk_free_bytes(chunk);
    return RP_OK;
}

/* Takes the oldest dirty chunks, with references. Takes only one if the last batch failed:
 * segments still have the chunks of that batch in their queue, which must not grow with each
 * retry. */
static size_t take_dirty_locked(rp_tier *t, uint64_t *bytes) RP_REQUIRES(t->mu)
{
    size_t count = 0;

    *bytes = 0;
    while (t->dirty.first != NULL && count < RP_TIER_BATCH && *bytes < RP_TIER_BATCH_BYTES &&
           (count == 0 || (*bytes < t->spill.limit / 8 && !t->degraded))) {
        rp_tier_chunk *s = t->dirty.first;

        rp_tier_list_unlink(&t->dirty, s);
        s->state = RP_TIER_WRITING;
        *bytes += s->chunk->wire_bytes;
        t->batch[count++] = rp_chunk_ref(s->chunk);
    }
    return count;
}

/* Writes the batch and syncs it: the segments keep chunks in memory until they are synced. */
static rp_status write_batch(rp_tier *t, size_t count, rp_error *err)
{
    rp_status st = RP_OK;
    rp_disk_location location;

    for (size_t i = 0; i < count && st == RP_OK; i++) {
        st = rp_segments_put_chunk(t->segments, t->batch[i], &location);
        if (st != RP_OK) (void)rp_fail(err, st, "no memory to queue chunks for the disk");
    }
    return st == RP_OK ? rp_segments_sync(t->segments, err) : st;
}

static void end_batch_locked(rp_tier *t, size_t count, bool ok) RP_REQUIRES(t->mu)
{
    for (size_t i = 0; i < count; i++) {
        rp_tier_chunk *entry = entry_of(t->batch[i]);

        assert(entry->state == RP_TIER_WRITING);
        /* A checkpoint on a full disk may have dropped it from the queue. */
        entry->state = ok && rp_segments_has_stored(t->segments, t->batch[i]) ? RP_TIER_CLEAN
                                                                              : RP_TIER_DIRTY;
        if (entry->held && entry->state == RP_TIER_CLEAN) list_locked(t, entry);
    }
    for (size_t i = count; i-- > 0;) { /* the next batch begins with the oldest again */
        rp_tier_chunk *entry = entry_of(t->batch[i]);

        if (entry->held && entry->state == RP_TIER_DIRTY) prepend(&t->dirty, entry);
    }
}

static void report(rp_tier *t, bool degraded, const char *text)
{
    if (t->on_event != NULL) t->on_event(t->ctx, degraded, text);
}

/* Writes the oldest dirty chunks. Returns true if they are on stable storage now, or there were
 * none. If the last batch failed, also writes an empty one: its sync writes the rest of the
 * failed batch and so shows whether the disk can be written again. `*wrote`: a batch was
 * written, and the lock was released meanwhile. */
static bool write_some_locked(rp_tier *t, bool *wrote) RP_REQUIRES(t->mu)
{
    rp_error err = {0};
    uint64_t bytes;
    size_t count = take_dirty_locked(t, &bytes);
    bool was_degraded = t->degraded, ok;

    *wrote = count > 0 || was_degraded;
    if (!*wrote) return true;
    rp_mutex_unlock(&t->mu);
    ok = write_batch(t, count, &err) == RP_OK;
    rp_mutex_lock(&t->mu);
    end_batch_locked(t, count, ok);
    t->degraded = !ok;
    atomic_store(&t->spill.is_failing, !ok);
    if (ok) t->written += bytes;
    rp_mutex_unlock(&t->mu);
    for (size_t i = 0; i < count; i++) rp_chunk_unref(t->batch[i]);
    if (!ok && !was_degraded)
        report(t, true, err.text);
    else if (ok && was_degraded)
        report(t, false, "the disk tier writes again");
    rp_mutex_lock(&t->mu);
    return ok;
}

/* Frees the bytes of clean chunks, oldest first, down to the low mark. Returns the number of
 * chunks. Pinned chunks go to the end of the list. */
static size_t drop_some_locked(rp_tier *t) RP_REQUIRES(t->mu)
{
    uint64_t low = mark_locked(t, t->low), bytes = 0;
    size_t count = 0;

    for (size_t looks = 0; looks < LOOKS_AT_ONCE && count < DROPS_AT_ONCE; looks++) {
        rp_tier_chunk *s = t->clean.first;

        if (s == NULL || atomic_load(&t->spill.resident) - bytes <= low) break;
        rp_tier_list_unlink(&t->clean, s);
        if (!rp_chunk_claim_bytes(s->chunk)) {
            rp_tier_list_append(&t->clean, s);
            continue;
        }
        assert(s->state == RP_TIER_CLEAN && s->held && s->loaded == NULL);
        s->state = RP_TIER_SPILLED;
        bytes += s->chunk->wire_bytes;
        t->spilled += s->chunk->wire_bytes;
        t->batch[count++] = rp_chunk_ref(s->chunk);
    }
    if (count == 0) return 0;
    rp_mutex_unlock(&t->mu);
    for (size_t i = 0; i < count; i++) {
        rp_chunk_free_bytes(t->batch[i]);
        rp_chunk_unref(t->batch[i]);
    }
    rp_mutex_lock(&t->mu);
    count_out_locked(t, bytes); /* after they are freed: an insert may use the space at once */
    rp_mutex_unlock(&t->mu);
    rp_budget_wake_waiters(t->budget);
    rp_mutex_lock(&t->mu);
    return count;
}

/* Returns at once if the tier stops: stop() may have signalled while the lock was released. */
static void wait_locked(rp_tier *t, int64_t for_ns) RP_REQUIRES(t->mu)
{
    int64_t until_ns = for_ns == RP_FOREVER ? RP_FOREVER : rp_now_ns() + for_ns;

    if (t->stopping) return;
    t->spiller_waits = for_ns == RP_FOREVER;
    (void)rp_cond_wait(&t->spill_cv, &t->mu, until_ns);
    t->spiller_waits = false;
}

static void unref_uncached_locked(rp_tier *t) RP_REQUIRES(t->mu)
{
    while (t->uncached != NULL) {
        rp_loaded *uncached = t->uncached;

        t->uncached = NULL;
        rp_mutex_unlock(&t->mu);
        rp_tier_unref_loaded(uncached);
        rp_mutex_lock(&t->mu);
    }
}

/* Wakes the inserts that wait for space. Those that still do not fit set `wanted` again. */
static void forget_wanted_locked(rp_tier *t) RP_REQUIRES(t->mu)
{
    if (t->wanted == 0) return;
    t->wanted = 0;
    rp_mutex_unlock(&t->mu);
    rp_budget_wake_waiters(t->budget);
    rp_mutex_lock(&t->mu);
}

static void *run_spiller(void *arg)
{
    rp_tier *t = arg;
    bool is_spilling = false;

    rp_mutex_lock(&t->mu);
    while (!t->stopping) {
        bool wrote, ok;

        unref_uncached_locked(t);
        is_spilling =
            atomic_load(&t->spill.resident) > mark_locked(t, is_spilling ? t->low : t->high);
        if (!is_spilling && t->wanted > 0) {
            forget_wanted_locked(t);
            continue;
        }
        if (!is_spilling && !t->degraded) {
            wait_locked(t, RP_FOREVER);
            continue;
        }
        if (is_spilling && drop_some_locked(t) > 0) continue;
        ok = write_some_locked(t, &wrote);
        if (ok && wrote) continue;
        wait_locked(t, !ok                                       ? RETRY_NS
                       : t->clean.first != NULL || t->wanted > 0 ? PINNED_RETRY_NS
                                                                 : RP_FOREVER);
        forget_wanted_locked(t);
    }
    rp_mutex_unlock(&t->mu);
    return NULL;
}

static bool start_load(rp_spill *spill, rp_sample_load *load)
{
    return rp_tier_start_load((rp_tier *)spill, load);
}

rp_status rp_tier_load_now(rp_tier *t, rp_sample *samples, size_t count, rp_error *err)
{
    return rp_spill_load(&t->spill, samples, count, err);
}

static rp_status check_options(const rp_tier_options *o, rp_error *err)
{
    const rp_budget *b = rp_store_budget(o->store);

    if (o->max_memory == 0 || o->max_memory > INT64_MAX)
        return rp_fail(err, RP_INVALID, "max_memory must be in 1 .. 2^63 - 1");
    if (o->cache_bytes >= o->max_memory)
        return rp_fail(err, RP_INVALID, "the read cache must be smaller than max_memory");
    if (o->readers > MAX_READERS)
        return rp_fail(err, RP_INVALID, "readers must be <= %d, got %zu", MAX_READERS,
                       o->readers);
    if (b->spill != NULL || rp_budget_used(b) > 0)
        return rp_fail(err, RP_PRECONDITION, "the store has items or a disk tier already");
    return RP_OK;
}

static uint64_t cache_share(const rp_tier_options *o)
{
    return o->cache_bytes > 0 ? o->cache_bytes : o->max_memory / 8;
}

static void set_up(rp_tier *t, const rp_tier_options *o)
{
    t->budget = rp_budget_ref(rp_store_budget(o->store));
    t->segments = o->segments;
    t->on_event = o->on_event;
    t->ctx = o->ctx;
    t->cache_limit = cache_share(o);
    t->spill.limit = o->max_memory - t->cache_limit;
    t->high = t->spill.limit / 4 * 3;
    t->low = t->spill.limit / 5 * 3;
    assert(t->low <= t->high && t->high <= t->spill.limit);
    t->spill.moved = on_moved;
    t->spill.make_room = make_room;
    t->spill.start_load = start_load;
    atomic_init(&t->spill.resident, 0);
    atomic_init(&t->spill.small, 0);
    atomic_init(&t->spill.is_failing, false);
    rp_mutex_init(&t->mu, RP_RANK_TIER);
    rp_cond_init(&t->spill_cv);
}

rp_status rp_tier_new(const rp_tier_options *options, rp_tier **out, rp_error *err)
{
    const rp_allocator *alloc =
        options->alloc != NULL ? options->alloc : rp_store_allocator(options->store);
    rp_status st = check_options(options, err);
    rp_tier *t;

    if (st != RP_OK) return st;
    t = rp_alloc_zero(alloc, sizeof *t);
    if (t == NULL) return rp_fail_memory(err, sizeof *t);
    t->alloc = *alloc;
    set_up(t, options);
    t->has_spiller = rp_thread_start(&t->spiller, "rp-spill", run_spiller, t);
    if (!t->has_spiller ||
        !rp_tier_start_readers(t, options->readers > 0 ? options->readers : DEFAULT_READERS)) {
        rp_tier_free(t);
        return rp_fail(err, RP_NO_RESOURCE,
                       "the threads of the disk tier could not be started");
    }
    t->budget->spill = &t->spill;
    *out = t;
    return RP_OK;
}

static void stop(rp_tier *t)
{
    rp_mutex_lock(&t->mu);
    t->stopping = true;
    rp_cond_signal(&t->spill_cv);
    rp_mutex_unlock(&t->mu);
    if (t->has_spiller) (void)pthread_join(t->spiller, NULL);
    rp_tier_stop_readers(t);
}

void rp_tier_free(rp_tier *t)
{
    rp_allocator alloc;

    if (t == NULL) return;
    stop(t);
    if (t->budget->spill == &t->spill) t->budget->spill = NULL;
    rp_mutex_lock(&t->mu);
    while (t->dirty.first != NULL) rp_tier_list_unlink(&t->dirty, t->dirty.first);
    while (t->clean.first != NULL) rp_tier_list_unlink(&t->clean, t->clean.first);
    while (t->ring.first != NULL) rp_tier_uncache_locked(t, t->ring.first);
    unref_uncached_locked(t);
    rp_mutex_unlock(&t->mu);
    rp_budget_unref(t->budget);
    rp_cond_deinit(&t->spill_cv);
    rp_mutex_deinit(&t->mu);
    alloc = t->alloc;
    rp_release(&alloc, t, sizeof *t);
}

void rp_tier_get_info(rp_tier *t, rp_tier_info *out)
{
    rp_mutex_lock(&t->mu);
    *out = (rp_tier_info){
        .limit = t->spill.limit,
        .resident_bytes = atomic_load(&t->spill.resident),
        .spilled_bytes = t->spilled,
        .cached_bytes = t->cached,
        .loads = t->loads,
        .load_bytes = t->load_bytes,
        .cache_hits = t->hits,
        .written_bytes = t->written,
        .degraded = t->degraded,
    };
    rp_mutex_unlock(&t->mu);
}

static uint64_t check_list_locked(const rp_tier_list *list, rp_tier_state state, bool *ok)
{
    uint64_t bytes = 0;

    for (const rp_tier_chunk *s = list->first; s != NULL; s = s->next) {
        *ok &= s->held && s->state == state;
        *ok &= (s->loaded != NULL) == (state == RP_TIER_SPILLED); /* S3 */
        bytes += s->chunk->wire_bytes;
    }
    return bytes;
}

bool rp_tier_is_valid_locked(rp_tier *t)
{
    bool ok = true;
    uint64_t bytes;

    bytes = check_list_locked(&t->dirty, RP_TIER_DIRTY, &ok);
    bytes += check_list_locked(&t->clean, RP_TIER_CLEAN, &ok);
    ok &= bytes <= t->resident && t->resident <= atomic_load(&t->spill.resident); /* S1, S2 */
    ok &= check_list_locked(&t->ring, RP_TIER_SPILLED, &ok) == t->cached;         /* S3 */
    return ok;
}

bool rp_tier_check(rp_tier *t)
{
    bool ok;

    rp_mutex_lock(&t->mu);
    ok = rp_tier_is_valid_locked(t);
    rp_mutex_unlock(&t->mu);
    return ok;
}
