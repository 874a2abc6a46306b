/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: who calls for a flush or a sync while there is none becomes it, and does what is
 * there for all who wait. */
#include <assert.h>

#include "disk/segments_inside.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    /* Written and not synced: then it is time. It is kept in memory until then, and the system
     * has been writing most of it for a while (rp_segment_writer_start_sync()). */
    SYNC_BYTES = 64 << 20,
    BATCH_ENTRIES = 2560, /* handed to the writer at a time: 1 MiB of records of 400 bytes */
    RELEASE_AT_ONCE = 256,
};

void rp_segments_deinit_batch(rp_segments *s)
{
    rp_release(&s->alloc, s->batch, BATCH_ENTRIES * sizeof *s->batch);
    s->batch = NULL;
}

/* How many segments the queue needs from scratch. */
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

/* Lets an entry be at the tail; its chunk's home, if it is told by this entry, with it. */
static void move_entry_locked(rp_segments *s, rp_segment_entry *e) RP_REQUIRES(s->mu)
{
    uint64_t old = rp_home_pack(e->segment->number, e->offset);
    rp_home *home = e->chunk != NULL ? rp_home_of(e->chunk, s->index) : NULL;

    e->segment = s->tail;
    e->offset = (uint32_t)s->tail_offset;
    s->tail_offset += rp_entry_bytes(e);
    if (home == NULL || atomic_load_explicit(&home->where, memory_order_relaxed) != old) return;
    rp_segment_ref(e->segment);
    rp_segment_unref(home->segment);
    home->segment = e->segment;
    atomic_store_explicit(&home->where, rp_home_pack(e->segment->number, e->offset),
                          memory_order_release);
}

/* A segment that was given up: it stays if something in it is safe. */
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
    /* All that can fail comes first. */
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

        if (e->segment != old) { /* the last of the one before has left it */
            if (i > 0) give_up_locked(s, old);
            old = e->segment;
        }
        if (s->tail == NULL || s->tail_offset >= s->segment_bytes) {
            assert(fresh != NULL); /* they were counted */
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
    return RP_OK;
}

/* The file failed: nothing in it that is not synced counts, and everything in the queue is to
 * be written elsewhere. */
static void condemn(rp_segments *s)
{
    rp_mutex_lock(&s->mu);
    s->queued_bytes += s->unsynced_bytes;
    s->put_bytes += s->unsynced_bytes; /* they are written once more */
    s->unsynced_bytes = 0;
    s->written = s->flushed = 0;
    s->open_number = 0;
    s->must_replace = true;
    (void)rp_segments_replace_locked(s); /* or when there is memory again */
    rp_mutex_unlock(&s->mu);
    rp_segment_writer_leave(&s->writer);
    /* A file that was removed keeps its space until it is closed. */
    rp_segment_index_bury(s->index);
}

/* Gives the chunk of a dropped entry the place that it had before: its old record if it was
 * being moved, otherwise none. Without a place the home keeps its segment, which has no file.
 */
static void undo_home_locked(rp_segments *s, const rp_segment_entry *e) RP_REQUIRES(s->mu)
{
    rp_home *home = e->chunk != NULL ? rp_home_of(e->chunk, s->index) : NULL;

    assert(e->segment != NULL);
    if (home == NULL || atomic_load_explicit(&home->where, memory_order_relaxed) !=
                            rp_home_pack(e->segment->number, e->offset))
        return;
    if (e->moved_from != 0) {
        rp_segment_unref(home->segment);
        home->segment = rp_segment_index_find(s->index, e->moved_from >> 32);
        atomic_store_explicit(&home->stored, true, memory_order_relaxed);
    }
    atomic_store_explicit(&home->where, e->moved_from, memory_order_release);
}

/* Whether the old segments of all chunks that are being moved are open. They are: a segment is
 * removed only after a checkpoint has succeeded, and that syncs the queue first. */
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

/* Ends the queue behind what is written. The entries behind that are the caller's then. */
static void drop_locked(rp_segments *s) RP_REQUIRES(s->mu)
{
    rp_segment *open = s->writer.segment, *last = NULL;

    for (size_t i = s->written; i < s->count; i++) {
        const rp_segment_entry *e = rp_entry_at(s, i);

        if (last != e->segment && last != open) give_up_locked(s, last);
        last = e->segment;
        undo_home_locked(s, e);
    }
    if (last != open) give_up_locked(s, last);
    s->count = s->written;
    s->put_bytes -= s->queued_bytes;
    s->queued_bytes = 0;
    s->tail = NULL; /* the open segment is sealed, so that compaction can free its dead part */
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
    }
    rp_cond_signal(&s->done); /* each wakes the next */
    rp_mutex_unlock(&s->mu);
    for (; from < to; from++) rp_entry_release(s, &old[(first + from) & (old_capacity - 1)]);
    rp_release(&s->alloc, old, old_capacity * sizeof *old);
    rp_segment_index_bury(s->index);
}

/* The first `count` entries are on stable storage: lets go of them. */
static void pop(rp_segments *s, size_t count)
{
    rp_segment_entry gone[RELEASE_AT_ONCE];

    while (count > 0) {
        size_t n = count < RELEASE_AT_ONCE ? count : RELEASE_AT_ONCE;

        rp_mutex_lock(&s->mu);
        for (size_t i = 0; i < n; i++) {
            const rp_segment_entry *e = rp_entry_at(s, i);
            rp_home *home = e->chunk != NULL ? rp_home_of(e->chunk, s->index) : NULL;

            if (home != NULL && atomic_load_explicit(&home->where, memory_order_relaxed) ==
                                    rp_home_pack(e->segment->number, e->offset))
                atomic_store_explicit(&home->stored, true, memory_order_release);
            s->unsynced_bytes -= rp_entry_bytes(e);
            gone[i] = *e;
        }
        s->first = (s->first + n) & (s->capacity - 1);
        s->count -= n;
        s->written -= n;
        s->flushed -= n < s->flushed ? n : s->flushed;
        s->popped += n;
        rp_mutex_unlock(&s->mu);
        for (size_t i = 0; i < n; i++) rp_entry_release(s, &gone[i]);
        count -= n;
    }
}

/* A step that is to leave everything that was written safe: a sync or a seal. */
static rp_status make_safe(rp_segments *s, rp_status (*step)(rp_segment_writer *, rp_error *),
                           rp_error *err)
{
    rp_status st = step(&s->writer, err);
    size_t written;

    if (st != RP_OK) {
        if (s->writer.is_bad) condemn(s);
        return st;
    }
    rp_mutex_lock(&s->mu);
    written = s->written; /* nobody but us changes it */
    if (s->writer.segment == NULL) s->open_number = 0;
    rp_mutex_unlock(&s->mu);
    pop(s, written);
    rp_segment_writer_mark(&s->writer);
    return RP_OK;
}

/* Removes the open segment if nothing has been written to it, or what was is taken back. */
static bool leave_empty(rp_segments *s)
{
    if (s->writer.count > 0) return false;
    rp_mutex_lock(&s->mu);
    s->open_number = 0;
    give_up_locked(s, s->writer.segment);
    rp_mutex_unlock(&s->mu);
    rp_segment_writer_leave(&s->writer);
    rp_segment_index_bury(s->index); /* the file keeps its space until it is closed */
    return true;
}

typedef enum next_step { NOTHING, WRITE, SEAL } next_step;

/* What comes next; for WRITE copies the entries to be written to the batch. */
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
    s->written += taken;
    s->queued_bytes -= bytes;
    s->unsynced_bytes += bytes;
    is_time = s->unsynced_bytes >= SYNC_BYTES;
    rp_mutex_unlock(&s->mu);
    return is_time ? make_safe(s, rp_segment_writer_sync, err) : RP_OK;
}

/* Writes the entries up to number `target`, and syncs if asked to. */
static rp_status write_up_to(rp_segments *s, uint64_t target, bool sync, rp_error *err)
{
    rp_status st = RP_OK;
    size_t count = 0;

    rp_segment_index_bury(s->index);
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

/* Queues what was written and not flushed again, at the same places. Keeps the dead part of a
 * backlog that does not fit from filling the disk. */
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
    rp_mutex_unlock(&s->mu);
}

/* As the worker: writes all of it, or nothing. */
static rp_status work(rp_segments *s, uint64_t target, bool sync, rp_error *err)
{
    rp_status st = write_up_to(s, target, sync, err);

    if (st != RP_OK)
        rewind_queue(s);
    else
        rp_segment_writer_mark(&s->writer);
    rp_mutex_lock(&s->mu);
    s->flushed = s->written;
    s->is_full = st != RP_OK && s->writer.is_full;
    rp_mutex_unlock(&s->mu);
    return st;
}

static rp_status run(rp_segments *s, bool sync, rp_error *err)
{
    uint64_t target, drops;
    rp_status st = RP_OK;

    rp_mutex_lock(&s->mu);
    target = s->popped + s->count;
    drops = s->drops;
    while (st == RP_OK && s->drops == drops && s->popped + (sync ? 0 : s->flushed) < target) {
        if (s->is_working) {
            (void)rp_cond_wait(&s->done, &s->mu, INT64_MAX);
            continue;
        }
        s->is_working = true;
        rp_mutex_unlock(&s->mu);
        st = work(s, target, sync, err);
        rp_mutex_lock(&s->mu);
        s->is_working = false;
    }
    if (st == RP_OK && s->drops != drops)
        st = rp_fail(err, RP_UNAVAILABLE, "records were dropped before they were written");
    rp_cond_signal(&s->done); /* each wakes the next */
    rp_mutex_unlock(&s->mu);
    return st;
}

/* Becomes the worker. Returns the number behind the last entry. */
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
    s->is_working = false;
    rp_cond_signal(&s->done); /* each wakes the next */
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

rp_status rp_segments_end_open(rp_segments *s, rp_error *err)
{
    uint64_t target = begin_work(s, true);
    rp_status st = work(s, target, true, err);

    end_work(s);
    return st;
}

rp_status rp_segments_flush(rp_segments *s, rp_error *err)
{
    return run(s, false, err);
}

rp_status rp_segments_sync(rp_segments *s, rp_error *err)
{
    return run(s, true, err);
}
