/* SPDX-License-Identifier: Apache-2.0 */
/* Interval mode: a second thread syncs, so that the journal thread goes on writing meanwhile.
 *
 *   NONE     -- rp_journal_begin_sync() -->  RUNNING
 *   RUNNING  -- the second thread       -->  DONE
 *   DONE     -- rp_journal_end_sync()   -->  NONE
 *
 * The journal thread begins and ends syncs, one at a time. Before it closes, seals or syncs the
 * file itself it waits for the end: a failed sync is reported once, and must not be followed by
 * one that succeeds. */
#include <assert.h>

#include "disk/journal_inside.h"
#include "util/clock.h"
#include "util/error.h"

/* Syncs the segments, then the journal file. */
static void sync_both(rp_journal *j, rp_beside *b)
{
    b->status = RP_OK;
    if (j->o.segments != NULL) {
        uint64_t waiting, put = rp_segments_put_bytes(j->o.segments, &waiting), now;

        b->status = rp_segments_sync(j->o.segments, &b->why);
        now = rp_segments_put_bytes(j->o.segments, &waiting);
        b->put = put < now - waiting ? put : now - waiting; /* some may have been dropped */
        if (b->status == RP_OK && rp_journal_generation(j) != b->generation)
            b->status = rp_fail(&b->why, RP_UNAVAILABLE, "locations have changed");
    }
    if (b->status != RP_OK) return;
    b->status = rp_journal_handle_sync(b->handle, &j->o, b->is_named, &b->why);
    b->is_bad = b->status != RP_OK;
}

void *rp_journal_run_beside(void *arg)
{
    rp_journal *j = arg;

    rp_mutex_lock(&j->mu);
    for (;;) {
        rp_beside b;

        if (j->beside.state != RP_BESIDE_RUNNING) {
            if (j->beside_is_ending) break;
            (void)rp_cond_wait(&j->beside_cv, &j->mu, RP_FOREVER);
            continue;
        }
        b = j->beside;
        rp_mutex_unlock(&j->mu);
        sync_both(j, &b);
        rp_mutex_lock(&j->mu);
        b.state = RP_BESIDE_DONE;
        j->beside = b;
        atomic_store(&j->beside_since, 0);
        rp_cond_signal(&j->cv);
    }
    rp_mutex_unlock(&j->mu);
    return NULL;
}

static rp_beside_state state_of(rp_journal *j)
{
    rp_beside_state state;

    rp_mutex_lock(&j->mu);
    state = j->beside.state;
    rp_mutex_unlock(&j->mu);
    return state;
}

rp_status rp_journal_begin_sync(rp_journal *j, rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t put = rp_journal_put_bytes(j);
    rp_status st;

    if (j->file.handle == NULL || j->file.is_hidden || j->synced == j->written ||
        state_of(j) != RP_BESIDE_NONE)
        return RP_OK;
    st = rp_journal_write_pad(j, err);
    if (st != RP_OK) return st;
    rp_mutex_lock(&j->mu);
    j->beside = (rp_beside){.state = RP_BESIDE_RUNNING,
                            .handle = j->file.handle,
                            .is_named = j->file.is_named,
                            .lsn = j->written,
                            .generation = j->generation,
                            .put = put};
    atomic_store(&j->beside_since, rp_now_ns());
    rp_cond_signal(&j->beside_cv);
    rp_mutex_unlock(&j->mu);
    return RP_OK;
}

rp_status rp_journal_end_sync(rp_journal *j, bool is_waiting,
                              rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    uint64_t put = rp_journal_put_bytes(j);
    rp_beside b;

    rp_mutex_lock(&j->mu);
    /* Kept records refer to the chunks put since it began: the memory of these has a bound. */
    if (put >= j->beside.put + j->o.max_queued) is_waiting = true;
    while (is_waiting && j->beside.state == RP_BESIDE_RUNNING)
        (void)rp_cond_wait(&j->cv, &j->mu, RP_FOREVER);
    b = j->beside;
    if (b.state == RP_BESIDE_DONE) j->beside = (rp_beside){0};
    rp_mutex_unlock(&j->mu);
    if (b.state != RP_BESIDE_DONE) return RP_OK;
    assert(b.handle == j->file.handle);
    if (b.status == RP_OK) {
        j->file.is_named = true;
        rp_journal_note_synced(j, b.lsn, b.put);
        j->has_marker = true;
        return RP_OK;
    }
    if (b.is_bad) {
        j->file.is_bad = true;
        rp_journal_condemn(j);
    }
    if (err != NULL) *err = b.why;
    return b.status;
}
