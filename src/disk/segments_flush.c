/* SPDX-License-Identifier: Apache-2.0 */
/* Flush and sync. A thread that flushes while there is no worker becomes the worker, and writes
 * for all threads that wait. A thread that syncs does so beside the worker: others flush
 * meanwhile. Only the worker changes the writer, so the result of the sync is taken over by the
 * next worker. The worker itself syncs when a segment is full or too many bytes are not synced,
 * and then waits for a sync beside it first: a failed sync is reported once, and must not be
 * followed by one that succeeds. The invariants are in disk/segments_inside.h. */
#include <assert.h>

#include "disk/segments.h"
#include "disk/segments_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum {
    /* So many written bytes are synced at the latest. Entries stay in memory until then. The
     * kernel has written most of them by that time (rp_segment_writer_start_sync()). */
    SYNC_BYTES = 64 << 20,
    BATCH_ENTRIES = 2560,  /* passed to the writer at a time: 1 MiB of records of 400 bytes */
    RELEASE_AT_ONCE = 256, /* entries, under one lock */
    FAR = 24,              /* entries ahead whose chunk is prefetched, */
    NEAR = 12,             /* and the location of the chunk */
};

void rp_segments_deinit_batch(rp_segments *s)
{
    rp_release(&s->alloc, s->batch, BATCH_ENTRIES * sizeof *s->batch);
    s->batch = NULL;
}

/* How many new segments all entries need. */
static size_t segments_needed_locked(const rp_segments *s) RP_REQUIRES(s->mu)
{
    uint64_t offset = UINT64_MAX;
    size_t needed = 0;

    for (size_t i = 0; i < s->count; i++) {
        if (offset >= s->segment_bytes) {
            offset = RP_FILE_HEADER_BYTES;
            needed++;
        }
        offset += rp_entry_bytes(rp_entry_at(s, i));
    }
    return needed;
}

/* Moves an entry to the tail, and with it the location of its chunk, unless a later entry gives
 * that. */
static void move_entry_locked(rp_segments *s, rp_segment_entry *e) RP_REQUIRES(s->mu)
{
    uint64_t old = rp_location_pack(e->segment->number, e->offset);
    rp_store_location *current =
        e->chunk != NULL ? rp_store_location_of(e->chunk, s->index) : NULL;

    assert(s->tail != NULL && s->tail->is_held && s->tail_offset <= UINT32_MAX);
    e->segment = s->tail;
    e->offset = (uint32_t)s->tail_offset;
    if (e->chunk != NULL) s->tail->has_chunks = true;
    s->tail_offset += rp_entry_bytes(e);
    if (current == NULL || atomic_load_explicit(&current->where, memory_order_relaxed) != old)
        return;
    rp_segment_ref(e->segment);
    rp_segment_unref(current->segment);
    current->segment = e->segment;
    atomic_store_explicit(&current->where, rp_location_pack(e->segment->number, e->offset),
                          memory_order_release);
}

/* Releases the handle of an abandoned segment, unless a part of it is on stable storage. */
static void give_up_locked(rp_segments *s, rp_segment *segment) RP_REQUIRES(s->mu)
{
    if (segment != NULL && atomic_load_explicit(&segment->readable, memory_order_relaxed) == 0)
        rp_segments_unhold_locked(s, segment);
}

rp_status rp_segments_replace_locked(rp_segments *s)
{
    size_t needed = segments_needed_locked(s);
    rp_segment *fresh = NULL, *segment, *old = s->tail;

    if (needed > UINT32_MAX - s->next_number) return RP_NO_RESOURCE;
    /* First everything that can fail. */
    for (size_t i = 0; i < needed; i++) {
        segment = rp_segment_new(s->index, 0);
        if (segment == NULL) {
            while ((segment = fresh) != NULL) {
                fresh = segment->next;
                rp_segment_unref(segment);
            }
            return RP_NO_RESOURCE;
        }
        segment->next = fresh;
        fresh = segment;
    }
    s->tail = NULL;
    for (size_t i = 0; i < s->count; i++) {
        rp_segment_entry *e = rp_entry_at(s, i);

        if (e->segment != old) { /* all entries have left the segment before */
            if (i > 0) give_up_locked(s, old);
            old = e->segment;
        }
        if (s->tail == NULL || s->tail_offset >= s->segment_bytes) {
            assert(fresh != NULL); /* segments_needed_locked() counted them */
            s->tail = fresh;
            fresh = fresh->next;
            rp_segments_enter_locked(s, s->tail);
            s->tail_offset = RP_FILE_HEADER_BYTES;
        }
        move_entry_locked(s, e);
    }
    assert(fresh == NULL);
    give_up_locked(s, old);
    s->must_replace = false;
    s->generation++;
    RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    return RP_OK;
}

/* Condemns the open segment after a failure: its unsynced part is void, and all entries are
 * written again to new segments. */
static void condemn(rp_segments *s)
{
    rp_mutex_lock(&s->mu);
    assert(s->is_working);
    s->queued_bytes += s->unsynced_bytes;
    s->put_bytes += s->unsynced_bytes; /* they are written a second time */
    s->unsynced_bytes = 0;
    s->written = s->flushed = 0;
    s->open_number = 0;
    s->must_replace = true;
    (void)rp_segments_replace_locked(s); /* without memory, the next call retries */
    rp_mutex_unlock(&s->mu);
    rp_segment_writer_leave(&s->writer);
    /* A removed file takes space until it is closed. */
    rp_segment_index_reclaim(s->index);
}

/* Gives the chunk of a dropped entry the location that it had before: its old record if it was
 * being moved, otherwise none. Without a location, the rp_store_location keeps its segment,
 * which has no file. */
static void undo_location_locked(rp_segments *s, const rp_segment_entry *e) RP_REQUIRES(s->mu)
{
    rp_store_location *current =
        e->chunk != NULL ? rp_store_location_of(e->chunk, s->index) : NULL;

    assert(e->segment != NULL);
    if (current == NULL || atomic_load_explicit(&current->where, memory_order_relaxed) !=
                               rp_location_pack(e->segment->number, e->offset))
        return;
    if (e->moved_from != 0) {
        rp_segment_unref(current->segment);
        current->segment = rp_segment_index_find(s->index, e->moved_from >> 32);
        atomic_store_explicit(&current->stored, true, memory_order_relaxed);
    }
    atomic_store_explicit(&current->where, e->moved_from, memory_order_release);
}

/* True if the old segments of all chunks that are being moved are open. That is always so: a
 * segment is removed only after a checkpoint has succeeded, which syncs the queue first. */
static bool can_undo_locked(rp_segments *s) RP_REQUIRES(s->mu)
{
    for (size_t i = s->written; i < s->count; i++) {
        const rp_segment_entry *e = rp_entry_at(s, i);
        rp_segment *old;

        if (e->moved_from == 0) continue;
        old = rp_segment_index_find(s->index, e->moved_from >> 32);
        rp_segment_unref(old);
        if (old == NULL) return false;
    }
    return true;
}

/* Cuts the queue off at `written`. The caller releases the entries behind it. */
static void drop_locked(rp_segments *s) RP_REQUIRES(s->mu)
{
    rp_segment *open = s->writer.segment, *last = NULL;

    for (size_t i = s->written; i < s->count; i++) {
        const rp_segment_entry *e = rp_entry_at(s, i);

        if (last != e->segment && last != open) give_up_locked(s, last);
        last = e->segment;
        undo_location_locked(s, e);
    }
    if (last != open) give_up_locked(s, last);
    s->count = s->written;
    assert(s->put_bytes >= s->queued_bytes);
    s->put_bytes -= s->queued_bytes;
    s->queued_bytes = 0;
    s->tail = NULL; /* seals the open segment, so that compaction can free its dead part */
    s->must_replace = false;
    s->is_full = false;
    s->generation++;
    s->drops++;
}

void rp_segments_drop_queue(rp_segments *s, bool always)
{
    size_t capacity = 64, old_capacity = 0, first = 0, from = 0, to = 0;
    rp_segment_entry *ring = NULL, *old = NULL;

    rp_mutex_lock(&s->mu);
    while (s->is_working) (void)rp_cond_wait(&s->done, &s->mu, INT64_MAX);
    while (capacity < s->written) capacity *= 2;
    if ((s->is_full || (always && s->written < s->count)) && can_undo_locked(s))
        ring = rp_alloc_array(&s->alloc, capacity, sizeof *ring);
    if (ring != NULL) {
        for (size_t i = 0; i < s->written; i++) ring[i] = *rp_entry_at(s, i);
        from = s->written;
        to = s->count;
        drop_locked(s);
        old = s->ring;
        old_capacity = s->capacity;
        first = s->first;
        s->ring = ring;
        s->capacity = capacity;
        s->first = 0;
        RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    }
    rp_mutex_unlock(&s->mu);
    for (; from < to; from++) rp_entry_release(s, &old[(first + from) & (old_capacity - 1)]);
    rp_release(&s->alloc, old, old_capacity * sizeof *old);
    rp_segment_index_reclaim(s->index);
}

/* Prefetches what pop() changes. An entry is passed twice: the second time the chunk is in the
 * cache, and its location is fetched. */
static void prefetch_entry(const rp_segment_entry *e, bool is_near)
{
    rp_chunk_location *home;

    if (e->chunk == NULL) return;
    if (!is_near) {
        __builtin_prefetch(&e->chunk->refs, 1);
        __builtin_prefetch(&e->chunk->home);
        return;
    }
    home = atomic_load_explicit(&e->chunk->home, memory_order_relaxed);
    if (home != NULL) __builtin_prefetch(home, 1);
}

/* Removes the first `count` entries, which are on stable storage. */
static void pop(rp_segments *s, size_t count)
{
    rp_segment_entry gone[RELEASE_AT_ONCE];

    while (count > 0) {
        size_t n = count < RELEASE_AT_ONCE ? count : RELEASE_AT_ONCE;

        rp_mutex_lock(&s->mu);
        assert(n <= s->written && s->written <= s->count);
        for (size_t i = 0; i < n; i++) {
            const rp_segment_entry *e = rp_entry_at(s, i);
            rp_store_location *current =
                e->chunk != NULL ? rp_store_location_of(e->chunk, s->index) : NULL;

            if (i + FAR < s->written) prefetch_entry(rp_entry_at(s, i + FAR), false);
            if (i + NEAR < s->written) prefetch_entry(rp_entry_at(s, i + NEAR), true);
            if (current != NULL &&
                atomic_load_explicit(&current->where, memory_order_relaxed) ==
                    rp_location_pack(e->segment->number, e->offset))
                atomic_store_explicit(&current->stored, true, memory_order_release);
            assert(s->unsynced_bytes >= rp_entry_bytes(e));
            s->unsynced_bytes -= rp_entry_bytes(e);
            gone[i] = *e;
        }
        s->first = (s->first + n) & (s->capacity - 1);
        s->count -= n;
        s->written -= n;
        s->flushed -= n < s->flushed ? n : s->flushed;
        s->popped += n;
        RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
        rp_mutex_unlock(&s->mu);
        for (size_t i = 0; i < n; i++) rp_entry_release(s, &gone[i]);
        count -= n;
    }
}

/* Waits for the sync beside the worker, if one runs, and takes over its result. The caller is
 * the worker. Returns the status of the sync, if the open segment was synced. */
static rp_status take_side(rp_segments *s, rp_error *err)
{
    rp_side_sync side;
    size_t count;

    rp_mutex_lock(&s->mu);
    assert(s->is_working);
    while (s->side.state == RP_SIDE_RUNNING) (void)rp_cond_wait(&s->done, &s->mu, INT64_MAX);
    side = s->side;
    s->side = (rp_side_sync){0};
    count = side.until > s->popped ? (size_t)(side.until - s->popped) : 0;
    rp_mutex_unlock(&s->mu);
    if (side.state == RP_SIDE_NONE) return RP_OK;
    if (s->writer.segment != side.segment) { /* it was condemned meanwhile: all is void (S6) */
        rp_segment_unref(side.segment);
        return RP_OK;
    }
    rp_segment_unref(side.segment); /* the writer has a reference */
    if (side.status == RP_OK) {
        rp_segment_writer_note_synced(&s->writer, side.bytes);
        pop(s, count);
        return RP_OK;
    }
    s->writer.is_bad = true;
    condemn(s);
    if (err != NULL) *err = side.why;
    return side.status;
}

/* Syncs what is flushed while other threads flush more. Returns with the lock held. */
static rp_status sync_beside_locked(rp_segments *s, rp_error *err) RP_REQUIRES(s->mu)
{
    rp_side_sync *side = &s->side;
    rp_segment *segment = s->writer.segment;
    bool is_new = s->writer.is_new, folder_is_new = s->writer.folder_is_new;
    rp_error why = {.text = ""};
    rp_status st;

    assert(!s->is_working && side->state == RP_SIDE_NONE && segment != NULL);
    assert(s->flushed == s->written && s->writer.written > s->writer.synced);
    *side = (rp_side_sync){.state = RP_SIDE_RUNNING,
                           .segment = segment,
                           .bytes = s->writer.written,
                           .until = s->popped + s->flushed};
    rp_segment_ref(segment);
    rp_mutex_unlock(&s->mu);
    st = rp_segment_sync_file(segment, s->files, is_new, folder_is_new, &why);
    rp_mutex_lock(&s->mu);
    side->status = st;
    side->why = why;
    side->state = RP_SIDE_DONE;
    rp_cond_broadcast(&s->done);
    while (s->is_working) (void)rp_cond_wait(&s->done, &s->mu, INT64_MAX);
    if (st != RP_OK && err != NULL) *err = why;
    return st; /* run() takes over the result, unless a worker has */
}

/* Runs a step that puts everything written on stable storage: a sync or a seal. */
static rp_status make_safe(rp_segments *s, rp_status (*step)(rp_segment_writer *, rp_error *),
                           rp_error *err)
{
    rp_status st = take_side(s, err);
    size_t written;

    if (st != RP_OK) return st;
    st = step(&s->writer, err);
    if (st != RP_OK) {
        if (s->writer.is_bad) condemn(s);
        return st;
    }
    rp_mutex_lock(&s->mu);
    written = s->written; /* only the worker changes it */
    if (s->writer.segment == NULL) s->open_number = 0;
    rp_mutex_unlock(&s->mu);
    pop(s, written);
    rp_segment_writer_mark(&s->writer);
    return RP_OK;
}

/* Removes the open segment if it has no records, or all of them were rewound. Returns false if
 * it has some. */
static bool leave_empty(rp_segments *s)
{
    if (s->writer.count > 0) return false;
    rp_mutex_lock(&s->mu);
    s->open_number = 0;
    give_up_locked(s, s->writer.segment);
    rp_mutex_unlock(&s->mu);
    rp_segment_writer_leave(&s->writer);
    rp_segment_index_reclaim(s->index); /* the removed file takes space until it is closed */
    return true;
}

typedef enum next_step { NOTHING, WRITE, SEAL } next_step;

/* Chooses the next step; for WRITE copies the entries to be written to the batch. */
static next_step choose(rp_segments *s, uint64_t target, size_t *count)
{
    const rp_segment *open = s->writer.segment;
    next_step step = NOTHING;
    size_t left;

    rp_mutex_lock(&s->mu);
    left = s->count - s->written;
    if (open != NULL &&
        (left > 0 ? rp_entry_at(s, s->written)->segment != open : s->tail != open)) {
        step = SEAL;
    } else if (left > 0 && s->popped + s->written < target) {
        const rp_segment *segment = rp_entry_at(s, s->written)->segment;
        size_t n = 0;

        for (; n < left && n < BATCH_ENTRIES; n++) {
            const rp_segment_entry *e = rp_entry_at(s, s->written + n);
            if (e->segment != segment) break;
            s->batch[n] = *e;
        }
        s->open_number = segment->number;
        *count = n;
        step = WRITE;
    }
    rp_mutex_unlock(&s->mu);
    return step;
}

static rp_status write_batch(rp_segments *s, size_t count, rp_error *err)
{
    size_t taken = 0;
    rp_status st = rp_segment_writer_write(&s->writer, s->batch, count, &taken, err);
    uint64_t bytes = 0;
    bool is_time;

    if (st != RP_OK) {
        if (s->writer.is_bad) condemn(s);
        return st;
    }
    rp_segment_writer_start_sync(&s->writer);
    for (size_t i = 0; i < taken; i++) bytes += rp_entry_bytes(&s->batch[i]);
    rp_mutex_lock(&s->mu);
    assert(s->is_working && taken <= s->count - s->written && bytes <= s->queued_bytes);
    s->written += taken;
    s->queued_bytes -= bytes;
    s->unsynced_bytes += bytes;
    is_time = s->unsynced_bytes >= SYNC_BYTES;
    rp_mutex_unlock(&s->mu);
    return is_time ? make_safe(s, rp_segment_writer_sync, err) : RP_OK;
}

/* Writes the entries up to number `target`, and syncs them if `sync`. */
static rp_status write_up_to(rp_segments *s, uint64_t target, bool sync, rp_error *err)
{
    rp_status st = RP_OK;
    size_t count = 0;

    rp_segment_index_reclaim(s->index);
    if (s->batch == NULL) s->batch = rp_alloc(&s->alloc, BATCH_ENTRIES * sizeof *s->batch);
    if (s->batch == NULL) return rp_fail_memory(err, BATCH_ENTRIES * sizeof *s->batch);
    rp_mutex_lock(&s->mu);
    if (s->must_replace) st = rp_segments_replace_locked(s);
    rp_mutex_unlock(&s->mu);
    if (st != RP_OK) return rp_fail_memory(err, sizeof(rp_segment));
    for (;;) {
        next_step step = choose(s, target, &count);

        if (step == NOTHING) break;
        if (step == SEAL && leave_empty(s)) continue;
        st = step == SEAL ? make_safe(s, rp_segment_writer_seal, err)
                          : write_batch(s, count, err);
        if (st != RP_OK) return st;
    }
    return sync ? make_safe(s, rp_segment_writer_sync, err) : RP_OK;
}

/* Queues the entries again that are written and not flushed, at the same locations. Otherwise a
 * backlog of dead records that does not fit would fill the disk. */
static void rewind_queue(rp_segments *s)
{
    uint64_t bytes = 0;

    rp_segment_writer_rewind(&s->writer);
    if (s->writer.is_bad) {
        condemn(s);
        return;
    }
    rp_mutex_lock(&s->mu);
    for (size_t i = s->flushed; i < s->written; i++) bytes += rp_entry_bytes(rp_entry_at(s, i));
    s->written = s->flushed;
    s->queued_bytes += bytes;
    s->unsynced_bytes -= bytes;
    RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    rp_mutex_unlock(&s->mu);
}

/* Writes all entries up to `target`, or none. The caller is the worker. */
static rp_status work(rp_segments *s, uint64_t target, bool sync, rp_error *err)
{
    rp_status st = write_up_to(s, target, sync, err);

    if (st != RP_OK)
        rewind_queue(s);
    else
        rp_segment_writer_mark(&s->writer);
    rp_mutex_lock(&s->mu);
    assert(s->is_working);
    s->flushed = s->written;
    s->is_full = st != RP_OK && s->writer.is_full;
    rp_mutex_unlock(&s->mu);
    return st;
}

static void end_work_locked(rp_segments *s) RP_REQUIRES(s->mu)
{
    assert(s->is_working);
    s->is_working = false;
    rp_cond_broadcast(&s->done);
}

/* Takes over the result of a sync beside the worker, if it is still there. Its status is
 * known. */
static void take_done_locked(rp_segments *s) RP_REQUIRES(s->mu)
{
    assert(!s->is_working);
    s->is_working = true;
    rp_mutex_unlock(&s->mu);
    (void)!take_side(s, NULL);
    rp_mutex_lock(&s->mu);
    end_work_locked(s);
}

static rp_status run(rp_segments *s, bool sync, rp_error *err)
{
    uint64_t target, drops;
    rp_status st = RP_OK;

    rp_mutex_lock(&s->mu);
    target = s->popped + s->count;
    drops = s->drops;
    while (st == RP_OK && s->drops == drops && s->popped + (sync ? 0 : s->flushed) < target) {
        bool is_flushed = s->popped + s->flushed >= target;

        if (s->is_working || (is_flushed && s->side.state == RP_SIDE_RUNNING)) {
            (void)rp_cond_wait(&s->done, &s->mu, INT64_MAX);
        } else if (is_flushed) {
            if (s->side.state == RP_SIDE_NONE) st = sync_beside_locked(s, err);
            if (s->side.state == RP_SIDE_DONE) take_done_locked(s);
        } else {
            s->is_working = true;
            rp_mutex_unlock(&s->mu);
            st = work(s, target, false, err);
            rp_mutex_lock(&s->mu);
            end_work_locked(s);
        }
    }
    if (st == RP_OK && s->drops != drops)
        st = rp_fail(err, RP_UNAVAILABLE, "records were dropped before they were written");
    rp_mutex_unlock(&s->mu);
    return st;
}

void rp_segments_end_tail(rp_segments *s)
{
    rp_mutex_lock(&s->mu);
    s->tail = NULL;
    rp_mutex_unlock(&s->mu);
}

/* Becomes the worker. Returns the number behind that of the last entry. */
static uint64_t begin_work(rp_segments *s, bool end_tail)
{
    uint64_t target;

    rp_mutex_lock(&s->mu);
    while (s->is_working) (void)rp_cond_wait(&s->done, &s->mu, INT64_MAX);
    s->is_working = true;
    if (end_tail) s->tail = NULL;
    target = s->popped + s->count;
    rp_mutex_unlock(&s->mu);
    return target;
}

static void end_work(rp_segments *s)
{
    rp_mutex_lock(&s->mu);
    end_work_locked(s);
    rp_mutex_unlock(&s->mu);
}

rp_status rp_segments_sync_flushed(rp_segments *s, rp_error *err)
{
    rp_status st;

    (void)begin_work(s, false);
    st = make_safe(s, rp_segment_writer_sync, err);
    end_work(s);
    return st;
}

/* Ends the open segment without a seal, for which the disk has no space. Everything in it is
 * synced. RP_NO_RESOURCE if more records wait. */
static rp_status end_unsealed(rp_segments *s, rp_error *err)
{
    rp_status st = make_safe(s, rp_segment_writer_sync, err);

    if (st != RP_OK) return st;
    rp_mutex_lock(&s->mu);
    if (s->count > 0 || s->writer.segment == NULL)
        st = RP_NO_RESOURCE; /* `err` has the reason */
    else
        s->open_number = 0;
    if (st == RP_OK) s->is_full = false;
    rp_mutex_unlock(&s->mu);
    if (st == RP_OK) rp_segment_writer_leave(&s->writer);
    return st;
}

rp_status rp_segments_end_open(rp_segments *s, rp_error *err)
{
    uint64_t target = begin_work(s, true);
    rp_status st = work(s, target, true, err);

    if (st == RP_NO_RESOURCE && s->writer.is_full) st = end_unsealed(s, err);
    end_work(s);
    return st;
}

/* Removes the open segment if it is one from `first` on and has no chunk. */
static void discard_open(rp_segments *s, uint64_t first)
{
    rp_segment *open;
    bool is_left;

    (void)begin_work(s, true);
    /* Releases the entries that are written. A failure condemns the segment: then none is
     * open. */
    (void)!make_safe(s, rp_segment_writer_sync, NULL);
    rp_mutex_lock(&s->mu);
    open = s->writer.segment;
    is_left = open != NULL && open->number >= first && !open->has_chunks && s->written == 0 &&
              (s->count == 0 || rp_entry_at(s, 0)->segment != open);
    if (is_left) {
        s->open_number = 0;
        rp_segments_unhold_locked(s, open);
    }
    rp_mutex_unlock(&s->mu);
    if (is_left) rp_segment_writer_remove(&s->writer);
    end_work(s);
}

/* True if a segment of this process has no chunk. */
static bool has_no_chunk(rp_segments *s, uint64_t number)
{
    rp_segment *segment = rp_segment_index_find(s->index, number);
    bool has_none;

    if (segment == NULL) return false;
    rp_mutex_lock(&s->mu);
    has_none = !segment->has_chunks && !segment->is_old;
    rp_mutex_unlock(&s->mu);
    rp_segment_unref(segment);
    return has_none;
}

void rp_segments_discard(rp_segments *s, uint64_t first)
{
    uint64_t end;

    rp_segments_drop_queue(s, true);
    discard_open(s, first);
    end = rp_segments_writing(s);
    for (; first < end; first++)
        if (has_no_chunk(s, first)) (void)!rp_segments_remove(s, first, NULL);
    rp_segment_index_reclaim(s->index); /* a removed file takes space until it is closed */
}

rp_status rp_segments_flush(rp_segments *s, rp_error *err)
{
    return run(s, false, err);
}

rp_status rp_segments_sync(rp_segments *s, rp_error *err)
{
    return run(s, true, err);
}
