/* SPDX-License-Identifier: Apache-2.0 */
/* The journal thread: when it writes, which records it gives up, what it reports. */
#include <assert.h>
#include <inttypes.h>

#include "disk/journal.h"
#include "disk/journal_inside.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/verify.h"

/* Gives up the kept records up to `lsn`. */
static void give_up(rp_journal *j, uint64_t lsn) RP_NO_THREAD_SAFETY_ANALYSIS
{
    (void)!rp_journal_end_sync(j, true, NULL);
    if (j->file.handle != NULL) {
        j->o.files->ops->close(j->file.handle); /* its synced part stays valid */
        j->file.handle = NULL;
    }
    j->superseded = 0;
    rp_journal_release_kept(j, lsn);
}

/* Recomputes `safe` and wakes waiters. Returns the LSN to report, or 0 if it has not changed.
 */
static uint64_t settle_safe_locked(rp_journal *j) RP_REQUIRES(j->mu)
{
    uint64_t safe = j->o.sync ? j->synced : j->written;
    bool is_well = !j->info.in_trouble && !j->is_lost && j->hold == 0;

    if (!is_well) safe = j->o.sync ? atomic_load(&j->safe) : atomic_load(&j->last);
    atomic_store(&j->is_degraded, !is_well && !j->o.sync);
    atomic_store(&j->queued, j->queue.bytes + j->kept.bytes);
    j->info.kept = j->kept.bytes;
    if (safe <= atomic_load(&j->safe)) safe = 0;
    if (safe > 0) atomic_store(&j->safe, safe);
    rp_journal_wake_locked(j, j->info.in_trouble || j->is_lost);
    RP_VERIFY(j->file_count, rp_journal_is_valid_locked(j));
    return safe;
}

/* Ends a pass: updates the state and calls the callbacks. */
static void report(rp_journal *j, rp_status st, const rp_error *err)
{
    bool was, is, is_news, is_short = j->short_since != 0;
    rp_error why = {.text = ""};
    uint64_t safe;

    rp_mutex_lock(&j->mu);
    was = j->info.in_trouble;
    if (err->code != RP_OK) j->info.trouble = *err;
    j->info.in_trouble = is = st != RP_OK || j->is_lost || j->hold > 0;
    why = j->info.trouble;
    /* A checkpoint that began before the last loss does not help, so each loss is reported. */
    is_news = (is && (!was || j->losses > j->reported_losses)) || (is_short && !j->is_reported);
    j->reported_losses = j->losses;
    was = j->is_reported;
    j->is_reported = is || is_short;
    if (is_news) { /* before `safe` moves: changes that count as safe may no longer be on disk
                    */
        rp_mutex_unlock(&j->mu);
        if (j->o.on_trouble != NULL) j->o.on_trouble(j->o.ctx, &why);
        rp_mutex_lock(&j->mu);
    }
    safe = settle_safe_locked(j);
    rp_mutex_unlock(&j->mu);
    if (was && !j->is_reported && j->o.on_trouble != NULL) j->o.on_trouble(j->o.ctx, NULL);
    if (safe > 0 && j->o.on_safe != NULL) j->o.on_safe(j->o.ctx, safe);
    if (j->o.on_pass != NULL) j->o.on_pass(j->o.ctx);
}

/* True if the checkpoint that the journal waited for is complete, so that the next pass can
 * write again. It may have completed during the last pass, which then reports no trouble. */
static bool must_go_on_locked(const rp_journal *j) RP_REQUIRES(j->mu)
{
    if (j->is_lost || j->hold > 0) return false;
    return (j->info.in_trouble && j->retry_at == 0) || j->gave_way ||
           (j->resume > 0 && j->synced < j->resume - 1);
}

/* Waits until there is work. Returns false if the thread must end. */
static bool wait_for_work(rp_journal *j)
{
    bool go_on;

    rp_mutex_lock(&j->mu);
    while (!j->is_stopping) {
        int64_t now = rp_now_ns(), until = RP_FOREVER;
        int64_t pause_until = atomic_load(&j->pause_until);
        bool is_idle = j->beside.state == RP_BESIDE_NONE;

        if (j->is_paused) {
            (void)rp_cond_wait(&j->cv, &j->mu, RP_FOREVER);
            continue;
        }
        if (j->queue.first != NULL || must_go_on_locked(j)) break;
        if (j->beside.state == RP_BESIDE_DONE) break;
        if (j->sync_wanted > j->synced && j->retry_at == 0 && !j->is_lost && !j->gave_way &&
            is_idle)
            break;
        if (atomic_load(&j->is_flush_wanted) && j->retry_at == 0 && !j->is_lost && j->hold == 0)
            break;
        if (j->losses > j->reported_losses || (j->is_lost && j->kept.first != NULL)) break;
        if (!j->is_lost && j->hold == 0) {
            if (rp_journal_is_space_wanted(j))
                until = j->look_at;
            else if (j->is_reported && !j->info.in_trouble)
                break; /* no insert waits any more */
        }
        /* While the journal waits for a checkpoint it neither retries nor syncs. The cut of the
         * checkpoint, or rp_journal_resume(), wakes the thread. */
        if (!j->is_lost && !(j->gave_way && j->hold > 0)) {
            if (j->retry_at != 0 && j->retry_at < until)
                until = j->retry_at;
            else if (j->retry_at == 0 && j->written > j->synced && is_idle && j->due_at < until)
                until = j->due_at;
        }
        if (pause_until != 0 && pause_until < until) until = pause_until;
        if (until <= now) break;
        (void)rp_cond_wait(&j->cv, &j->mu, until);
    }
    go_on = !j->is_stopping;
    assert(!j->is_paused);
    j->is_passing = true;
    rp_raw_queue_move(&j->kept, &j->queue);
    rp_mutex_unlock(&j->mu);
    return go_on;
}

/* Handles a loss. While the journal is lost, all kept records are given up; after the cut,
 * those up to it. Returns true if nothing is to be written now: on a full disk that is so until
 * the checkpoint is complete, since it needs the free space. */
static bool skip_lost(rp_journal *j)
{
    uint64_t resume, up_to, bytes = j->kept.bytes;
    bool is_lost, is_held;

    if (j->o.segments != NULL && !j->o.sync) bytes += rp_segments_queued(j->o.segments);
    rp_mutex_lock(&j->mu);
    j->gave_way = j->gave_way && (j->is_lost || j->hold > 0);
    is_held = j->gave_way && !j->is_lost;
    if (!j->gave_way || rp_now_ns() >= atomic_load(&j->pause_until))
        atomic_store(&j->pause_until, 0);
    if (!j->is_lost && j->resume > 0 && j->synced < j->resume - 1)
        j->retry_at = 0; /* nothing has failed since the cut */
    if (!j->is_lost && (is_held || (j->retry_at != 0 && !j->o.sync)) &&
        bytes >= j->o.max_queued)
        rp_journal_lose_locked(j); /* info.trouble has the reason */
    is_lost = j->is_lost;
    resume = j->resume;
    up_to = is_lost ? atomic_load(&j->last) : resume > 0 ? resume - 1 : 0;
    rp_mutex_unlock(&j->mu);
    if (is_lost) {
        give_up(j, up_to);
        return true;
    }
    if (resume > 0 && j->synced < up_to) { /* records that are written and not synced go too */
        give_up(j, up_to);
        rp_journal_set_written(j, up_to, up_to);
        j->begins_after_gap = true;
        j->has_marker = false;
    }
    return is_held;
}

/* Bytes of chunks put since the last sync. The kept records refer to them, so they are in
 * memory, even if no table has them any more. */
static uint64_t unsynced_chunks(const rp_journal *j)
{
    uint64_t put = rp_journal_put_bytes(j);

    return put > j->put_synced ? put - j->put_synced : 0;
}

static bool is_sync_due(rp_journal *j)
{
    bool is_due = unsynced_chunks(j) >= j->o.max_queued;

    rp_mutex_lock(&j->mu);
    is_due = is_due || j->o.sync || j->sync_wanted > j->synced || j->is_stopping ||
             j->kept.bytes > j->o.max_queued / 4 ||
             (j->written > j->synced && rp_now_ns() >= j->due_at);
    if (j->beside.state != RP_BESIDE_NONE) is_due = false; /* the next one begins after it */
    rp_mutex_unlock(&j->mu);
    return is_due;
}

static bool is_disk_full(const rp_journal *j)
{
    return j->file.is_full || (j->o.segments != NULL && rp_segments_is_full(j->o.segments));
}

/* On a full disk: gives up the records that are not written. A checkpoint contains their effect
 * and needs space for live items only, while the backlog may be of deleted items. Records that
 * are written may have been acknowledged, so they are synced first. */
static void yield_to_checkpoint(rp_journal *j) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t generation;
    rp_status st = RP_OK;

    (void)!rp_journal_end_sync(j, true, NULL);
    generation = j->generation;
    if (j->o.segments != NULL) st = rp_segments_sync_flushed(j->o.segments, NULL);
    /* A failed sync makes the file bad. skip_lost() closes it then, since records that are
     * written and not synced are given up (J3). */
    if (st == RP_OK && j->written > j->synced && j->file.handle != NULL && !j->file.is_hidden &&
        !j->file.is_bad && rp_journal_generation(j) == generation &&
        rp_journal_file_sync(&j->file, &j->o, NULL) == RP_OK)
        rp_journal_set_written(j, j->written, j->written);
    j->gave_way = true;
    atomic_store(&j->pause_until, j->o.sync ? RP_FOREVER : rp_now_ns() + j->o.retry_ns);
    rp_mutex_lock(&j->mu);
    rp_journal_lose_locked(j);
    rp_mutex_unlock(&j->mu);
}

enum {
    MOST_YIELDS = 3, /* the first checkpoint finds the dead bytes, the second moves the live
                        ones out of the same segments, the third removes the segments */
    REST = 8         /* times retry_ns, until the next yield if nothing was deleted since */
};

/* True if all admitted changes are on stable storage. If changes keep coming, it is enough
 * after retry_ns that all chunks are written. */
static bool has_settled(rp_journal *j, int64_t now_ns)
{
    bool is_empty;

    rp_mutex_lock(&j->mu);
    is_empty = j->queue.first == NULL && j->written == j->synced;
    rp_mutex_unlock(&j->mu);
    return is_empty ||
           (now_ns - j->short_since > j->o.retry_ns && rp_segments_queued(j->o.segments) == 0);
}

/* Yields to a checkpoint that may free space, unless it has yielded for the same state of the
 * disk already. Reports what is safe first: nothing becomes safe while it waits for the
 * checkpoint. */
static void yield_for_room(rp_journal *j, int64_t now_ns)
{
    uint64_t safe, freed;

    rp_mutex_lock(&j->mu);
    freed = j->freed;
    safe = settle_safe_locked(j);
    rp_mutex_unlock(&j->mu);
    if (safe > 0 && j->o.on_safe != NULL) j->o.on_safe(j->o.ctx, safe);
    if (freed != j->yielded_at) j->yields = 0;
    if (j->yields >= MOST_YIELDS && now_ns < j->yield_at) return;
    assert(j->o.sync); /* only sync mode admits chunks by space */
    yield_to_checkpoint(j);
    j->yielded_at = freed;
    j->yields++;
    j->yield_at = now_ns + REST * j->o.retry_ns;
}

/* Checks for the space that an insert waits for. If it is missing and all admitted changes are
 * safe, yields to a checkpoint, which may free some. `err` may be NULL. */
static void look_for_room(rp_journal *j, bool can_yield,
                          rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    int64_t now_ns = rp_now_ns();

    if (rp_journal_space_update(&j->space, atomic_load(&j->queued))) {
        j->short_since = 0;
        j->yields = 0;
        return;
    }
    if (j->short_since == 0) j->short_since = now_ns;
    j->look_at = now_ns + j->o.retry_ns;
    (void)rp_fail(err, RP_NO_RESOURCE,
                  "the disk is full: %" PRIu64 " bytes are free, an insert needs %" PRIu64
                  " and those of what waits before it, and the reserve for checkpoints lacks "
                  "%" PRIu64 "; delete items or make room",
                  j->space.available, (uint64_t)atomic_load(&j->space.wanted),
                  rp_journal_space_lack(&j->space));
    if (!can_yield || !has_settled(j, now_ns)) return;
    if (j->info.in_trouble)
        j->look_at =
            now_ns; /* the next pass yields, after the end of the trouble is reported */
    else
        yield_for_room(j, now_ns);
}

/* Writes the records, and the chunks that inserts without records wait for. In interval mode
 * the second thread syncs, except at the end. */
static rp_status write_and_sync(rp_journal *j, bool is_sync, bool is_last, rp_error *err)
{
    bool is_beside = j->has_second && !is_last;
    bool is_flush = atomic_exchange(&j->is_flush_wanted, false);
    rp_status st = rp_journal_write_out(j, is_sync && !is_beside, err);

    if (st == RP_OK && is_flush) st = rp_segments_flush(j->o.segments, err);
    if (st == RP_OK && is_sync && is_beside) st = rp_journal_begin_sync(j, err);
    if (st != RP_OK && is_flush) atomic_store(&j->is_flush_wanted, true);
    return st;
}

static void pass(rp_journal *j, bool is_last) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_error err = {.text = ""};
    rp_status st = RP_OK;
    bool is_sync, was_synced, is_full;

    st = rp_journal_end_sync(j, is_last, &err);
    if (skip_lost(j)) {
        err.code = RP_OK;
        report(j, RP_OK, &err);
        return;
    }
    if (j->retry_at != 0 && rp_now_ns() < j->retry_at && !is_last) {
        err = j->info.trouble; /* only this thread writes it */
        if (rp_journal_is_space_wanted(j)) look_for_room(j, false, NULL);
        report(j, err.code, &err);
        return;
    }
    was_synced = j->written == j->synced;
    is_sync = is_sync_due(j);
    if (st == RP_OK || is_last) st = write_and_sync(j, is_sync, is_last, &err);
    is_full = st == RP_NO_RESOURCE && is_disk_full(j);
    if (is_full) { /* retry once: the space may be that of a file that is being removed */
        st = write_and_sync(j, is_sync, is_last, &err);
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

/* The journal that this thread serves. */
static _Thread_local const rp_journal *own_journal;

bool rp_journal_is_own_thread(const rp_journal *j)
{
    return own_journal == j;
}

void *rp_journal_run(void *arg)
{
    rp_journal *j = arg;

    assert(own_journal == NULL);
    own_journal = j;
    while (wait_for_work(j)) {
        atomic_store(&j->pass_since, rp_now_ns());
        pass(j, false);
        atomic_store(&j->pass_since, 0);
        rp_mutex_lock(&j->mu);
        j->is_passing = false;
        rp_cond_broadcast(&j->idle);
        rp_mutex_unlock(&j->mu);
    }
    pass(j, true);
    return NULL;
}
