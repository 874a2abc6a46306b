/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's thread: when it writes, what it gives up, whom it tells. */
#include <inttypes.h>

#include "disk/journal_inside.h"
#include "util/clock.h"
#include "util/error.h"

/* Forgets what is kept: up to `lsn`, all of it. */
static void give_up(rp_journal *j, uint64_t lsn) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (j->file.handle != NULL) {
        j->o.files->ops->close(j->file.handle); /* what was synced of it stays good */
        j->file.handle = NULL;
    }
    j->superseded = 0;
    rp_journal_release_kept(j, lsn);
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
    rp_journal_wake_locked(j, j->info.in_trouble || j->is_lost);
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

/* A checkpoint has ended what it waited for: the next pass goes on from there. That may have
 * happened in the middle of the pass before, which then reports that all is well. */
static bool must_go_on_locked(const rp_journal *j) RP_REQUIRES(j->mu)
{
    if (j->is_lost || j->hold > 0) return false;
    return (j->info.in_trouble && j->retry_at == 0) || j->gave_way ||
           (j->resume > 0 && j->synced < j->resume - 1);
}

/* Waits until there is something to do. False: it is to end. */
static bool wait_for_work(rp_journal *j)
{
    bool go_on;

    rp_mutex_lock(&j->mu);
    while (!j->is_stopping) {
        int64_t now = rp_now_ns(), until = RP_FOREVER;
        int64_t pause_until = atomic_load(&j->pause_until);

        if (j->queue.first != NULL || must_go_on_locked(j)) break;
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
        rp_journal_lose_locked(j); /* the trouble says why */
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
        rp_journal_set_written(j, up_to, up_to);
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
        rp_journal_generation(j) == generation &&
        rp_journal_file_sync(&j->file, &j->o, NULL) == RP_OK)
        rp_journal_set_written(j, j->written, j->written);
    j->gave_way = true;
    atomic_store(&j->pause_until, j->o.sync ? RP_FOREVER : rp_now_ns() + j->o.retry_ns);
    rp_mutex_lock(&j->mu);
    rp_journal_lose_locked(j);
    rp_mutex_unlock(&j->mu);
}

/* True if all that was let in is on stable storage. Where changes come all the time, it is
 * enough after a while that all chunks are written. */
static bool has_settled(rp_journal *j, int64_t now_ns)
{
    bool is_empty;

    rp_mutex_lock(&j->mu);
    is_empty = j->queue.first == NULL && j->written == j->synced;
    rp_mutex_unlock(&j->mu);
    return is_empty ||
           (now_ns - j->short_since > j->o.retry_ns && rp_segments_queued(j->o.segments) == 0);
}

/* One checkpoint finds out what is dead, the next moves what is alive beside it, and the third
 * removes the segments. More of them free nothing unless something has changed. */
enum { MOST_YIELDS = 3 };

/* Looks for room that somebody waits for. If there is none, and all that was let in is safe,
 * gives way to a checkpoint, which may free some. */
static void look_for_room(rp_journal *j, bool can_yield,
                          rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t last = atomic_load(&j->last);
    int64_t now_ns = rp_now_ns();

    if (rp_journal_room_look(&j->room, atomic_load(&j->queued))) {
        j->short_since = 0;
        return;
    }
    if (j->short_since == 0) j->short_since = now_ns;
    j->look_at = now_ns + j->o.retry_ns;
    (void)rp_fail(err, RP_NO_RESOURCE,
                  "the disk is full: %" PRIu64 " bytes are free, an insert needs %" PRIu64
                  " and those of what waits before it; delete items or make room",
                  j->room.available, (uint64_t)atomic_load(&j->room.wanted));
    if (j->gave_way_at != last) j->yields = 0;
    if (!can_yield || j->yields == MOST_YIELDS || !has_settled(j, now_ns)) return;
    yield_to_checkpoint(j);
    j->gave_way_at = last;
    j->yields++;
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
    st = rp_journal_write_out(j, is_sync, &err);
    is_full = st == RP_NO_RESOURCE && is_disk_full(j);
    if (is_full) { /* once more: the room may have been of a file that is being removed */
        st = rp_journal_write_out(j, is_sync, &err);
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

/* The journal whose thread this is. */
static _Thread_local const rp_journal *own_journal;

bool rp_journal_is_own_thread(const rp_journal *j)
{
    return own_journal == j;
}

void *rp_journal_run(void *arg)
{
    rp_journal *j = arg;

    own_journal = j;
    while (wait_for_work(j)) pass(j, false);
    pass(j, true);
    return NULL;
}
