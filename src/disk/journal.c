/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's thread, and what others ask of it.
 *
 *   append -> queue -- the thread, under the lock -> kept -- encode, write, sync -> released
 *
 * Numbers, all ascending: synced <= written <= last. `safe` is one of the three, by mode and
 * state. The lock (rank 46) guards what is under "guarded"; the rest is the thread's own.
 *
 *   J4  raw records over `synced` are in `kept` or in `queue`, without a gap, unless it is
 * lost;
 *   J5  `safe` goes up only. */
#include "disk/journal.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "disk/journal_file.h"
#include "disk/journal_queue.h"
#include "disk/journal_room.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/planted.h"
#include "util/thread.h"

enum {
    PIECE_BYTES = 4 << 20,   /* encoded and written in one go */
    MOST_TURNS = 8,          /* places that move while they are written down */
    DEFAULT_BYTES = 64 << 20 /* of a file; in the queue */
};
static const int64_t default_retry_ns = 1000000000;

/* Somebody who waits for a number. On his stack; in the list until he is woken or gives up. */
typedef struct waiter {
    rp_cancel_link link; /* first: on_fire gets this */
    struct waiter *prev, *next;
    uint64_t lsn;
    bool for_sync; /* until it is synced, not safe */
    rp_mutex mu;   /* rank 60 */
    rp_cond cv;
    bool is_over, is_cancelled RP_GUARDED_BY(mu);
} waiter;

struct rp_journal {
    rp_journal_options o;
    rp_allocator alloc;
    pthread_t thread;

    atomic_uint_fast64_t safe, last; /* written under the lock, read anywhere */
    atomic_uint_fast64_t queued;     /* bytes of raw records not written yet */
    atomic_bool is_degraded;         /* interval mode, and it cannot write */
    /* While a checkpoint frees a full disk, changes that take room wait for it, until this time
     * at most. 0: they do not wait. */
    atomic_int_fast64_t pause_until;
    rp_journal_room room;  /* of sync mode */
    atomic_bool is_lost;   /* records have been given up. Set under the lock */
    bool has_marker;       /* the thread's: SYNCED is to be written */
    bool begins_after_gap; /* the thread's: the next file begins with LOST */
    bool gave_way;         /* the thread's: it was lost because the disk was full */
    bool is_stopping RP_GUARDED_BY(mu);

    rp_mutex mu;
    rp_cond cv RP_GUARDED_BY(mu); /* wakes the thread */
    rp_raw_queue queue RP_GUARDED_BY(mu);
    rp_raw_batch *spare RP_GUARDED_BY(mu);
    uint64_t written, synced RP_GUARDED_BY(mu); /* changed by the thread */
    uint64_t reached RP_GUARDED_BY(mu);         /* no file has a record over this */
    uint64_t sync_wanted RP_GUARDED_BY(mu);     /* up to here, by somebody */
    uint64_t losses RP_GUARDED_BY(mu);          /* how often */
    uint64_t resume RP_GUARDED_BY(mu); /* the first number after those given up; 0: none were */
    uint64_t hold RP_GUARDED_BY(mu);   /* a checkpoint up to here must be complete first; 0 */
    waiter *waiters RP_GUARDED_BY(mu);
    uint64_t *files RP_GUARDED_BY(mu); /* first numbers, ascending */
    size_t file_count, file_capacity RP_GUARDED_BY(mu);
    rp_journal_info info RP_GUARDED_BY(mu); /* counts, and the trouble */

    /* the thread's own */
    rp_raw_queue kept; /* taken and not synced */
    rp_journal_file file;
    rp_journal_piece piece;
    uint64_t generation;      /* of the places in records written and not synced */
    uint64_t told_losses;     /* of `losses`, those that on_trouble was told of */
    uint64_t superseded;      /* condemned files have records up to here; 0: no more */
    uint64_t gave_way_at;     /* the last number when it last gave way for want of room */
    bool is_told;             /* on_trouble was told of trouble */
    int64_t retry_at, due_at; /* the next try after a failure; the next sync */
    int64_t look_at;          /* the next look for room, if somebody waits for it */
};

/* The journal whose thread this is. It runs what its owner is told, and that must not wait for
 * the thread itself. */
static _Thread_local const rp_journal *own_journal;

/* --- waiting --------------------------------------------------------------------------------------- */

static void cancel_waiter(rp_cancel_link *link)
{
    waiter *w = (waiter *)link;

    rp_mutex_lock(&w->mu);
    w->is_cancelled = true;
    rp_cond_signal(&w->cv);
    rp_mutex_unlock(&w->mu);
}

static void leave_list_locked(rp_journal *j, waiter *w) RP_REQUIRES(j->mu)
{
    *(w->prev == NULL ? &j->waiters : &w->prev->next) = w->next;
    if (w->next != NULL) w->next->prev = w->prev;
}

static bool is_reached_locked(const rp_journal *j, const waiter *w) RP_REQUIRES(j->mu)
{
    return w->lsn <= (w->for_sync ? j->synced : atomic_load(&j->safe));
}

/* Wakes those whose number is reached, or all of them: it cannot be for now. */
static void wake_locked(rp_journal *j, bool all) RP_REQUIRES(j->mu)
{
    for (waiter *w = j->waiters, *next; w != NULL; w = next) {
        next = w->next;
        if (!all && !is_reached_locked(j, w)) continue;
        leave_list_locked(j, w);
        rp_mutex_lock(&w->mu);
        w->is_over = true;
        rp_cond_signal(&w->cv);
        rp_mutex_unlock(&w->mu); /* from here on it may be gone */
    }
}

/* True if it can be told at once how the wait ends. */
static bool is_settled_locked(rp_journal *j, const waiter *w, rp_status *st, rp_error *err)
    RP_REQUIRES(j->mu)
{
    *st = RP_OK;
    if (is_reached_locked(j, w)) return true;
    if (!j->info.in_trouble && !j->is_lost && j->hold == 0) return false;
    if (!j->o.sync && !w->for_sync) return false; /* it goes on without, in a moment */
    *st = rp_fail(err, RP_UNAVAILABLE, "the journal cannot be written: %.180s",
                  j->info.trouble.text);
    return true;
}

static rp_status sleep_until(rp_journal *j, waiter *w, rp_wait wait, rp_error *err)
{
    rp_status st = RP_OK;
    bool was_listed = true;

    rp_cancel_join(wait.cancel, &w->link);
    rp_mutex_lock(&w->mu);
    while (!w->is_over && !w->is_cancelled)
        if (!rp_cond_wait(&w->cv, &w->mu, wait.until_ns)) break;
    was_listed = !w->is_over;
    if (was_listed) st = w->is_cancelled ? RP_CANCELLED : RP_DEADLINE;
    rp_mutex_unlock(&w->mu);
    rp_cancel_part(wait.cancel, &w->link);
    rp_mutex_lock(&j->mu);
    rp_mutex_lock(&w->mu);
    if (!w->is_over) leave_list_locked(j, w);
    rp_mutex_unlock(&w->mu);
    if (is_reached_locked(j, w))
        st = RP_OK;
    else if (st == RP_OK && !is_settled_locked(j, w, &st, err))
        st = rp_fail(err, RP_UNAVAILABLE, "the journal could not be written for a while");
    rp_mutex_unlock(&j->mu);
    if (st == RP_DEADLINE)
        (void)rp_fail(err, st, "the journal was not written up to %" PRIu64 " in time", w->lsn);
    if (st == RP_CANCELLED) (void)rp_fail(err, st, "the wait for the journal was ended");
    return st;
}

static rp_status wait_for(rp_journal *j, uint64_t lsn, bool for_sync, rp_wait wait,
                          rp_error *err)
{
    waiter w = {.link = {.on_fire = cancel_waiter}, .lsn = lsn, .for_sync = for_sync};
    rp_status st;
    bool is_settled;

    rp_mutex_lock(&j->mu);
    if (for_sync) {
        w.lsn = atomic_load(&j->last);
        if (j->sync_wanted < w.lsn) j->sync_wanted = w.lsn;
        rp_cond_signal(&j->cv);
    }
    is_settled = is_settled_locked(j, &w, &st, err);
    if (!is_settled && wait.until_ns == RP_NOW) {
        st = rp_fail(err, RP_DEADLINE, "the journal is not written up to %" PRIu64 " yet",
                     w.lsn);
        is_settled = true;
    }
    if (!is_settled) {
        rp_mutex_init(&w.mu, RP_RANK_WAITER);
        rp_cond_init(&w.cv);
        w.next = j->waiters;
        if (w.next != NULL) w.next->prev = &w;
        j->waiters = &w;
    }
    rp_mutex_unlock(&j->mu);
    if (is_settled) return st;
    st = sleep_until(j, &w, wait, err);
    rp_cond_deinit(&w.cv);
    rp_mutex_deinit(&w.mu);
    return st;
}

rp_status rp_journal_wait(rp_journal *j, uint64_t lsn, rp_wait wait, rp_error *err)
{
    if (lsn <= atomic_load(&j->safe) || own_journal == j || RP_PLANTED(1)) return RP_OK;
    return wait_for(j, lsn, false, wait, err);
}

rp_status rp_journal_sync(rp_journal *j, rp_wait wait, rp_error *err)
{
    return wait_for(j, 0, true, wait, err);
}

/* --- appending and asking ---------------------------------------------------------------------------- */

static void release(const rp_journal *j, rp_record_kind kind, const void *raw, size_t size)
{
    if (j->o.release != NULL) j->o.release(j->o.ctx, kind, raw, size);
}

static void lose_locked(rp_journal *j) RP_REQUIRES(j->mu)
{
    j->is_lost = true;
    j->losses++;
}

uint64_t rp_journal_append(rp_journal *j, rp_record_kind kind, const rp_bytes *parts,
                           size_t count, bool *is_kept)
{
    uint64_t lsn, before;
    bool ok;

    rp_mutex_lock(&j->mu);
    lsn = atomic_load_explicit(&j->last, memory_order_relaxed) + 1;
    before = j->queue.bytes;
    ok = rp_raw_queue_append(&j->queue, &j->alloc, &j->spare, lsn, kind, parts, count);
    if (!ok && !j->is_lost) {
        lose_locked(j);
        (void)rp_fail(&j->info.trouble, RP_NO_RESOURCE,
                      "no memory for a record: it needs a checkpoint to go on");
    }
    (void)atomic_fetch_add_explicit(&j->queued, j->queue.bytes - before, memory_order_relaxed);
    atomic_store_explicit(&j->last, lsn, memory_order_relaxed);
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
    if (is_kept != NULL) *is_kept = ok;
    return lsn;
}

uint64_t rp_journal_append_nothing(rp_journal *j)
{
    static const rp_bytes too_much = {NULL, (size_t)RP_MAX_RECORD_BYTES + 1};

    return rp_journal_append(j, RP_RECORD_SEAL, &too_much, 1, NULL);
}

bool rp_journal_is_lost(rp_journal *j)
{
    return atomic_load(&j->is_lost);
}

bool rp_journal_is_behind(rp_journal *j, bool takes_room)
{
    uint64_t bytes = atomic_load(&j->queued);
    int64_t pause_until = atomic_load(&j->pause_until);

    if (takes_room && pause_until != 0 && rp_now_ns() < pause_until) return true;
    if (atomic_load(&j->is_degraded)) return false; /* it gives up, and holds up nobody */
    if (j->o.segments != NULL) bytes += rp_segments_queued(j->o.segments);
    return bytes >= j->o.max_queued;
}

bool rp_journal_has_room(rp_journal *j, uint64_t bytes, uint64_t least)
{
    if (rp_journal_room_has(&j->room, atomic_load(&j->queued), bytes, least)) return true;
    rp_mutex_lock(&j->mu);
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
    return false;
}

bool rp_journal_is_short(const rp_journal *j)
{
    return rp_journal_room_is_wanted(&j->room);
}

uint64_t rp_journal_last(rp_journal *j)
{
    return atomic_load(&j->last);
}

uint64_t rp_journal_reached(rp_journal *j)
{
    uint64_t reached;

    rp_mutex_lock(&j->mu);
    reached = j->reached;
    rp_mutex_unlock(&j->mu);
    return reached;
}

uint64_t rp_journal_safe(rp_journal *j)
{
    return atomic_load(&j->safe);
}

uint64_t rp_journal_cut(rp_journal *j)
{
    uint64_t last;

    rp_mutex_lock(&j->mu);
    last = atomic_load_explicit(&j->last, memory_order_relaxed);
    if (j->is_lost) {
        j->is_lost = false;
        j->resume = last + 1;
        j->hold = last;
        rp_cond_signal(&j->cv);
    }
    rp_mutex_unlock(&j->mu);
    return last;
}

rp_status rp_journal_trim(rp_journal *j, uint64_t covered, uint64_t base, rp_error *err)
{
    char path[RP_JOURNAL_PATH_BYTES];
    rp_status first = RP_OK;
    bool more = true;

    while (more) {
        uint64_t file = 0;
        rp_error why;
        rp_status st;

        rp_mutex_lock(&j->mu);
        more = j->file_count > 1 && j->files[1] - 1 <= base;
        if (RP_PLANTED(9)) more = j->file_count > 0 && j->files[0] <= covered;
        if (more) {
            file = j->files[0];
            j->file_count--;
            memmove(j->files, j->files + 1, j->file_count * sizeof *j->files);
        }
        rp_mutex_unlock(&j->mu);
        if (!more) break;
        RP_KILL_POINT("journal.trim");
        st = j->o.files->ops->remove(j->o.files, rp_journal_path(path, file), &why);
        if (st == RP_OK || st == RP_NOT_FOUND || first != RP_OK) continue;
        first = st; /* the next start finds it again */
        if (err != NULL) *err = why;
    }
    return first;
}

void rp_journal_resume(rp_journal *j, uint64_t covered)
{
    rp_mutex_lock(&j->mu);
    if (j->hold > 0 && covered >= j->hold) {
        j->hold = 0;
        rp_cond_signal(&j->cv);
    }
    rp_mutex_unlock(&j->mu);
}

void rp_journal_get_info(rp_journal *j, rp_journal_info *out)
{
    rp_mutex_lock(&j->mu);
    *out = j->info;
    out->last = atomic_load(&j->last);
    out->safe = atomic_load(&j->safe);
    out->synced = j->synced;
    out->queued = atomic_load(&j->queued);
    out->files = j->file_count;
    out->is_lost = j->is_lost || j->hold > 0;
    rp_mutex_unlock(&j->mu);
}

/* --- the thread: writing ------------------------------------------------------------------------------- */

static uint64_t generation_of(const rp_journal *j)
{
    return j->o.segments != NULL ? rp_segments_generation(j->o.segments) : 0;
}

/* Lets go of batches that are not needed any more: all of whose numbers are <= lsn. */
static void release_kept(rp_journal *j, uint64_t lsn)
{
    while (j->kept.first != NULL && j->kept.first->last <= lsn) {
        rp_raw_batch *batch = rp_raw_queue_take(&j->kept);
        rp_raw_cursor at = {batch, 0};
        const rp_raw *raw;

        while ((raw = rp_raw_next(&at)) != NULL)
            release(j, (rp_record_kind)raw->kind, rp_raw_payload(raw), raw->size);
        rp_buf_clear(&batch->buf);
        rp_mutex_lock(&j->mu);
        if (j->spare == NULL) {
            j->spare = batch;
            batch = NULL;
        }
        rp_mutex_unlock(&j->mu);
        rp_raw_batch_free(batch, &j->alloc);
    }
}

static void set_written(rp_journal *j, uint64_t written, uint64_t synced)
{
    rp_mutex_lock(&j->mu);
    j->written = written;
    j->synced = synced;
    rp_mutex_unlock(&j->mu);
}

/* The file cannot be trusted with what was not synced: all of that goes again into a new one.
 */
static void condemn(rp_journal *j) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (j->file.handle == NULL) return;
    if (j->superseded < j->written) j->superseded = j->written;
    rp_journal_file_condemn(&j->file, &j->o);
    rp_mutex_lock(&j->mu);
    j->info.condemned++;
    rp_mutex_unlock(&j->mu);
    set_written(j, j->synced, j->synced);
    j->has_marker = false;
}

/* Remembers a file that is about to be made. RP_NO_RESOURCE. */
static rp_status list_file(rp_journal *j, uint64_t first)
{
    rp_status st = RP_OK;

    rp_mutex_lock(&j->mu);
    if (j->file_count == 0 || j->files[j->file_count - 1] < first) {
        if (j->file_count == j->file_capacity) {
            size_t capacity = j->file_capacity < 16 ? 16 : 2 * j->file_capacity;

            if (rp_resize_array(&j->alloc, &j->files, j->file_capacity, capacity,
                                sizeof *j->files))
                j->file_capacity = capacity;
            else
                st = RP_NO_RESOURCE;
        }
        if (st == RP_OK) j->files[j->file_count++] = first;
    }
    rp_mutex_unlock(&j->mu);
    return st;
}

/* Makes bytes of the next records, up to a piece. `*last` is the last of them. */
static rp_status encode_piece(rp_journal *j, bool is_sync, uint64_t *last,
                              rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_raw_cursor at = rp_raw_seek(&j->kept, j->written);
    rp_journal_piece *piece = &j->piece;
    const rp_raw *raw = NULL;
    rp_status st = rp_journal_piece_begin(piece, &j->file, j->written + 1, &j->o.store);
    rp_journal_options plain = j->o;

    plain.encode = NULL;
    *last = j->written;
    if (st == RP_OK && j->file.handle == NULL && j->begins_after_gap)
        st = rp_journal_piece_add(piece, &plain, RP_RECORD_LOST, j->written, NULL, 0);
    if (st == RP_OK && j->has_marker)
        st = rp_journal_piece_add(piece, &plain, RP_RECORD_SYNCED, j->synced, NULL, 0);
    while (st == RP_OK && piece->bytes.size < PIECE_BYTES && (raw = rp_raw_next(&at)) != NULL) {
        st = rp_journal_piece_add(piece, &j->o, (rp_record_kind)raw->kind, raw->lsn,
                                  rp_raw_payload(raw), raw->size);
        if (st == RP_OK) *last = raw->lsn;
    }
    if (st == RP_OK && is_sync) st = rp_journal_piece_pad(piece, &j->file, *last);
    if (st != RP_OK)
        return rp_fail(err, st, "the journal has no memory for the bytes of a record");
    return RP_OK;
}

static rp_status settle_segments(const rp_journal *j, bool is_sync, rp_error *err)
{
    if (j->o.segments == NULL) return RP_OK;
    return is_sync ? rp_segments_sync(j->o.segments, err)
                   : rp_segments_flush(j->o.segments, err);
}

/* Syncs everything written. */
static rp_status sync_file(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t generation = j->generation;
    bool is_full = j->file.handle != NULL && j->file.offset >= j->o.file_bytes;
    rp_status st;

    if (j->file.handle == NULL || (j->synced == j->written && !is_full)) return RP_OK;
    if (j->file.is_hidden) return RP_OK;
    st = settle_segments(j, true, err);
    if (st != RP_OK) return st;
    if (generation_of(j) != generation)
        return rp_fail(err, RP_UNAVAILABLE, "places have moved"); /* the caller looks */
    st = rp_journal_piece_begin(&j->piece, &j->file, 0, &j->o.store);
    if (st == RP_OK && !is_full) st = rp_journal_piece_pad(&j->piece, &j->file, j->written);
    if (st != RP_OK) return rp_fail_memory(err, RP_JOURNAL_SECTOR);
    st = rp_journal_file_write(&j->file, &j->o, 0, false, &j->piece, err);
    if (st == RP_OK)
        st = is_full ? rp_journal_file_seal(&j->file, &j->o, j->written, err)
                     : rp_journal_file_sync(&j->file, &j->o, err);
    if (st != RP_OK && RP_PLANTED(22) && j->file.handle != NULL)
        st = rp_journal_file_sync(&j->file, &j->o, err);
    if (st != RP_OK) {
        if (j->file.is_bad) condemn(j);
        return st;
    }
    RP_KILL_POINT("journal.synced");
    rp_mutex_lock(&j->mu);
    j->info.syncs++;
    j->synced = j->written;
    rp_mutex_unlock(&j->mu);
    j->has_marker = !is_full;
    j->begins_after_gap = false;
    release_kept(j, j->written);
    return RP_OK;
}

/* Writes the next piece. `*done` if there is no more. */
static rp_status write_piece(rp_journal *j, bool is_sync, bool *done,
                             rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t generation = generation_of(j), last, first;
    rp_raw_cursor at;
    rp_status st;
    bool hide;

    if (j->written > j->synced && generation != j->generation) condemn(j);
    at = rp_raw_seek(&j->kept, j->written);
    *done = rp_raw_next(&at) == NULL;
    if (*done) return RP_OK;
    first = j->written + 1;
    st = encode_piece(j, is_sync, &last, err);
    if (st == RP_OK) st = settle_segments(j, is_sync, err);
    if (st != RP_OK) return st;
    if (generation_of(j) != generation) return RP_OK; /* once more, with places as they are */
    hide = j->superseded >= first || j->piece.says_lost;
    if (j->file.handle == NULL && !hide) st = list_file(j, first);
    if (st != RP_OK) return rp_fail_memory(err, sizeof first);
    RP_KILL_POINT("journal.flushed");
    st = rp_journal_file_write(&j->file, &j->o, first, hide, &j->piece, err);
    rp_mutex_lock(&j->mu);
    if ((st == RP_OK || j->file.is_bad) && j->reached < last) j->reached = last;
    rp_mutex_unlock(&j->mu);
    if (st != RP_OK) {
        if (j->file.is_bad) condemn(j);
        return st;
    }
    RP_KILL_POINT("journal.written");
    j->generation = generation;
    j->has_marker = false;
    rp_mutex_lock(&j->mu);
    j->info.writes++;
    j->info.bytes += j->piece.bytes.size;
    j->written = last;
    rp_mutex_unlock(&j->mu);
    return RP_OK;
}

/* Gives a hidden file its name, once it has all that condemned files have (J2). Only then is it
 * listed: trimming removes a file once the next in the list has what is needed. */
static rp_status reveal_file(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st;

    if (j->file.handle == NULL || !j->file.is_hidden || j->written < j->superseded)
        return RP_OK;
    st = rp_journal_file_reveal(&j->file, &j->o, err);
    if (st == RP_OK && list_file(j, j->file.first) != RP_OK)
        st = rp_fail_memory(err, sizeof j->file.first);
    if (st == RP_OK)
        j->superseded = 0;
    else
        condemn(j);
    return st;
}

/* Writes what is kept and not written, and syncs if that is wanted or due. */
static rp_status write_out(rp_journal *j, bool is_sync,
                           rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = RP_OK;
    bool done = false;

    for (int turns = 0; st == RP_OK && turns < MOST_TURNS; turns++) {
        uint64_t before = j->written;

        st = write_piece(j, is_sync, &done, err);
        if (st == RP_OK && j->written > before) turns = 0;
        if (st == RP_OK) st = reveal_file(j, err);
        if (st == RP_OK && j->file.handle != NULL && j->file.offset >= j->o.file_bytes)
            st = sync_file(j, err);
        if (st != RP_OK || !done) continue;
        if (is_sync) st = sync_file(j, err);
        /* Places that moved behind our back: what was written is condemned next time round. */
        if (generation_of(j) != j->generation && j->written > j->synced) {
            st = RP_OK;
            continue;
        }
        return st;
    }
    return st != RP_OK ? st
                       : rp_fail(err, RP_UNAVAILABLE,
                                 "segments fail again and again while the journal is written");
}

/* --- the thread: when ------------------------------------------------------------------------------------ */

/* Forgets what is kept: up to `lsn`, all of it. */
static void give_up(rp_journal *j, uint64_t lsn) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (j->file.handle != NULL) {
        j->o.files->ops->close(j->file.handle); /* what was synced of it stays good */
        j->file.handle = NULL;
    }
    j->superseded = 0;
    release_kept(j, lsn);
}

/* What the numbers mean now. Returns the number to tell of, or 0. */
static uint64_t settle_safe_locked(rp_journal *j) RP_REQUIRES(j->mu)
{
    uint64_t safe = j->o.sync ? j->synced : j->written;
    bool is_well = !j->info.in_trouble && !j->is_lost && j->hold == 0;

    if (!is_well) safe = j->o.sync ? atomic_load(&j->safe) : atomic_load(&j->last);
    atomic_store(&j->is_degraded, !is_well && !j->o.sync);
    atomic_store(&j->queued,
                 j->queue.bytes + (j->written < atomic_load(&j->last) ? j->kept.bytes : 0));
    j->info.kept = j->kept.bytes;
    if (safe <= atomic_load(&j->safe)) safe = 0;
    if (safe > 0) atomic_store(&j->safe, safe);
    wake_locked(j, j->info.in_trouble || j->is_lost);
    return safe;
}

/* After a pass: tells whoever has to know. */
static void report(rp_journal *j, rp_status st, const rp_error *err)
{
    bool was, is, is_news, is_short = rp_journal_is_short(j);
    rp_error why = {.text = ""};
    uint64_t safe;

    rp_mutex_lock(&j->mu);
    was = j->info.in_trouble;
    if (err->code != RP_OK) j->info.trouble = *err;
    j->info.in_trouble = is = st != RP_OK || j->is_lost || j->hold > 0;
    why = j->info.trouble;
    /* A checkpoint that began before it gave up again will not do: so that is told as well. */
    is_news = (is && (!was || j->losses > j->told_losses)) || (is_short && !j->is_told);
    j->told_losses = j->losses;
    was = j->is_told;
    j->is_told = is || is_short;
    if (is_news) { /* first: what counts as safe from here on is safe in name only */
        rp_mutex_unlock(&j->mu);
        if (j->o.on_trouble != NULL) j->o.on_trouble(j->o.ctx, &why);
        rp_mutex_lock(&j->mu);
    }
    safe = settle_safe_locked(j);
    rp_mutex_unlock(&j->mu);
    if (was && !j->is_told && j->o.on_trouble != NULL) j->o.on_trouble(j->o.ctx, NULL);
    if (safe > 0 && j->o.on_safe != NULL) j->o.on_safe(j->o.ctx, safe);
    if (j->o.on_pass != NULL) j->o.on_pass(j->o.ctx);
}

/* Waits until there is something to do. False: it is to end. */
static bool wait_for_work(rp_journal *j)
{
    bool go_on;

    rp_mutex_lock(&j->mu);
    while (!j->is_stopping) {
        int64_t now = rp_now_ns(), until = RP_FOREVER;
        int64_t pause_until = atomic_load(&j->pause_until);
        bool is_held = !j->is_lost && j->hold == 0 && j->info.in_trouble && j->retry_at == 0;

        if (j->queue.first != NULL || is_held) break;
        if (j->sync_wanted > j->synced && j->retry_at == 0 && !j->is_lost && !j->gave_way)
            break;
        if (j->losses > j->told_losses || (j->is_lost && j->kept.first != NULL)) break;
        if (rp_journal_is_short(j)) until = j->look_at;
        /* While a checkpoint is waited for, nothing is tried or synced: its cut, or
         * rp_journal_resume(), wakes the thread. */
        if (!j->is_lost && !(j->gave_way && j->hold > 0)) {
            if (j->retry_at != 0 && j->retry_at < until)
                until = j->retry_at;
            else if (j->retry_at == 0 && j->written > j->synced && j->due_at < until)
                until = j->due_at;
        }
        if (pause_until != 0 && pause_until < until) until = pause_until;
        if (until <= now) break;
        (void)rp_cond_wait(&j->cv, &j->mu, until);
    }
    go_on = !j->is_stopping;
    rp_raw_queue_move(&j->kept, &j->queue);
    rp_mutex_unlock(&j->mu);
    return go_on;
}

/* Deals with what was given up: nothing that is kept is of use, or only what comes after. True
 * if there is nothing to be written for now. On a full disk that is so until the checkpoint is
 * complete: what room there is, the checkpoint needs. */
static bool skip_lost(rp_journal *j)
{
    uint64_t resume, up_to, bytes = j->kept.bytes;
    bool is_lost, is_held;

    if (j->o.segments != NULL) bytes += rp_segments_queued(j->o.segments);
    rp_mutex_lock(&j->mu);
    j->gave_way = j->gave_way && (j->is_lost || j->hold > 0);
    is_held = j->gave_way && !j->is_lost;
    if (!j->gave_way || rp_now_ns() >= atomic_load(&j->pause_until))
        atomic_store(&j->pause_until, 0);
    if (!j->is_lost && j->resume > 0 && j->synced < j->resume - 1)
        j->retry_at = 0; /* since the cut nothing has failed yet */
    if (!j->is_lost && (j->retry_at != 0 || is_held) && !j->o.sync && bytes > j->o.max_queued)
        lose_locked(j); /* the trouble says why */
    is_lost = j->is_lost;
    resume = j->resume;
    up_to = is_lost ? atomic_load(&j->last) : resume > 0 ? resume - 1 : 0;
    rp_mutex_unlock(&j->mu);
    if (is_lost) {
        give_up(j, up_to);
        return true;
    }
    if (resume > 0 && j->synced < up_to) { /* also what is written and not synced */
        give_up(j, up_to);
        set_written(j, up_to, up_to);
        j->begins_after_gap = true;
        j->has_marker = false;
    }
    return is_held;
}

static bool is_sync_due(rp_journal *j)
{
    bool is_due;

    rp_mutex_lock(&j->mu);
    is_due = j->o.sync || j->sync_wanted > j->synced || j->is_stopping ||
             j->kept.bytes > j->o.max_queued / 4 ||
             (j->written > j->synced && rp_now_ns() >= j->due_at);
    rp_mutex_unlock(&j->mu);
    return is_due;
}

static bool is_disk_full(const rp_journal *j)
{
    return j->file.is_full || (j->o.segments != NULL && rp_segments_is_full(j->o.segments));
}

/* The disk is full: gives up what waits to be written. A checkpoint has it as well, and fits
 * where the items that are alive do, which a backlog of items that are gone may not. What is
 * written was acknowledged, and is synced first. */
static void yield_to_checkpoint(rp_journal *j) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t generation = j->generation;
    rp_status st = RP_OK;

    if (j->o.segments != NULL) st = rp_segments_sync_flushed(j->o.segments, NULL);
    if (st == RP_OK && j->file.handle != NULL && !j->file.is_hidden && !j->file.is_bad &&
        generation_of(j) == generation && rp_journal_file_sync(&j->file, &j->o, NULL) == RP_OK)
        set_written(j, j->written, j->written);
    j->gave_way = true;
    atomic_store(&j->pause_until, j->o.sync ? RP_FOREVER : rp_now_ns() + j->o.retry_ns);
    rp_mutex_lock(&j->mu);
    lose_locked(j);
    rp_mutex_unlock(&j->mu);
}

/* Looks for room that somebody waits for. If there is none, all that came in is safe, and there
 * were changes since it last did so, gives way to a checkpoint, which may free some. */
static void look_for_room(rp_journal *j, bool can_yield,
                          rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t last = atomic_load(&j->last);

    if (rp_journal_room_look(&j->room, atomic_load(&j->queued))) return;
    j->look_at = rp_now_ns() + j->o.retry_ns;
    (void)rp_fail(err, RP_NO_RESOURCE,
                  "the disk is full: %" PRIu64 " bytes are free, an insert needs %" PRIu64
                  " and those of what waits before it; delete items or make room",
                  j->room.available, (uint64_t)atomic_load(&j->room.wanted));
    if (!can_yield || j->written != j->synced || j->gave_way_at == last) return;
    yield_to_checkpoint(j);
    j->gave_way_at = last;
}

static void pass(rp_journal *j, bool is_last) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_error err = {.text = ""};
    rp_status st = RP_OK;
    bool is_sync, was_synced, is_full;

    if (skip_lost(j)) {
        if (rp_journal_is_short(j)) look_for_room(j, false, &err);
        report(j, RP_OK, &err);
        return;
    }
    if (j->retry_at != 0 && rp_now_ns() < j->retry_at && !is_last) {
        err = j->info.trouble; /* only we write it */
        report(j, err.code, &err);
        return;
    }
    was_synced = j->written == j->synced;
    is_sync = is_sync_due(j);
    st = write_out(j, is_sync, &err);
    is_full = st == RP_NO_RESOURCE && is_disk_full(j);
    if (is_full) { /* once more: the room may have been of a file that is being removed */
        st = write_out(j, is_sync, &err);
        is_full = st == RP_NO_RESOURCE && is_disk_full(j);
    }
    if (is_full)
        yield_to_checkpoint(j);
    else
        atomic_store(&j->pause_until, 0);
    j->retry_at = st != RP_OK && !is_full ? rp_now_ns() + j->o.retry_ns : 0;
    if (is_sync || was_synced) j->due_at = rp_now_ns() + j->o.interval_ns;
    if (st == RP_OK) err.code = RP_OK;
    look_for_room(j, st == RP_OK && !is_last, st == RP_OK ? &err : NULL);
    report(j, st, &err);
}

static void *run(void *arg)
{
    rp_journal *j = arg;

    own_journal = j;
    while (wait_for_work(j)) pass(j, false);
    pass(j, true);
    return NULL;
}

/* --- beginning and end ------------------------------------------------------------------------------------ */

/* The thread has ended, or never began. */
static void free_journal(rp_journal *j) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_allocator alloc = j->alloc;

    rp_raw_queue_move(&j->kept, &j->queue);
    release_kept(j, UINT64_MAX);
    if (j->file.handle != NULL) j->o.files->ops->close(j->file.handle);
    rp_raw_batch_free(j->spare, &alloc);
    rp_buf_deinit(&j->piece.bytes);
    rp_release(&alloc, j->files, j->file_capacity * sizeof *j->files);
    rp_cond_deinit(&j->cv);
    rp_mutex_deinit(&j->mu);
    rp_release(&alloc, j, sizeof *j);
}

rp_status rp_journal_start(const rp_journal_options *options, rp_journal **out,
                           rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_journal *j = rp_alloc_zero(options->alloc, sizeof *j);
    rp_status st;

    if (j == NULL) return rp_fail_memory(err, sizeof *j);
    j->o = *options;
    j->alloc = *options->alloc;
    j->o.alloc = &j->alloc;
    if (j->o.file_bytes == 0) j->o.file_bytes = DEFAULT_BYTES;
    if (j->o.max_queued == 0) j->o.max_queued = DEFAULT_BYTES;
    if (j->o.retry_ns == 0) j->o.retry_ns = default_retry_ns;
    rp_mutex_init(&j->mu, RP_RANK_JOURNAL);
    rp_cond_init(&j->cv);
    rp_buf_init(&j->piece.bytes, &j->alloc);
    j->written = j->synced = j->reached = options->next_lsn - 1;
    atomic_init(&j->last, options->next_lsn - 1);
    atomic_init(&j->safe, options->next_lsn - 1);
    j->due_at = RP_FOREVER;
    j->gave_way_at = UINT64_MAX;
    rp_journal_room_init(&j->room, j->o.files, j->o.sync ? j->o.segments : NULL);
    (void)rp_journal_room_look(&j->room, 0);
    st = rp_journal_take_over(&j->o, &j->files, &j->file_count, &j->file_capacity, err);
    if (st == RP_OK && !rp_thread_start(&j->thread, "journal", run, j))
        st = rp_fail(err, RP_NO_RESOURCE, "there is no thread for the journal");
    if (st != RP_OK) {
        free_journal(j);
        return st;
    }
    *out = j;
    return RP_OK;
}

/* Makes the last file a whole one. */
static rp_status seal(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = RP_OK;

    if (j->info.in_trouble) {
        if (err != NULL) *err = j->info.trouble;
        return j->info.trouble.code;
    }
    if (j->file.handle != NULL) st = rp_journal_file_seal(&j->file, &j->o, j->written, err);
    return st;
}

rp_status rp_journal_stop(rp_journal *j, rp_error *err)
{
    rp_status st;

    if (j == NULL) return RP_OK;
    rp_mutex_lock(&j->mu);
    j->is_stopping = true;
    rp_cond_signal(&j->cv);
    rp_mutex_unlock(&j->mu);
    (void)pthread_join(j->thread, NULL);
    st = seal(j, err);
    free_journal(j);
    return st;
}
