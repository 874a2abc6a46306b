/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until a record is safe, or synced. */
#include <assert.h>
#include <inttypes.h>

#include "disk/journal.h"
#include "disk/journal_inside.h"
#include "util/error.h"
#include "util/verify.h"

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
    assert(w->prev == NULL ? j->waiters == w : w->prev->next == w); /* J8 */
    assert(w->next == NULL || w->next->prev == w);
    *(w->prev == NULL ? &j->waiters : &w->prev->next) = w->next;
    if (w->next != NULL) w->next->prev = w->prev;
}

static bool is_reached_locked(const rp_journal *j, const waiter *w) RP_REQUIRES(j->mu)
{
    return w->lsn <= (w->for_sync ? j->synced : atomic_load(&j->safe));
}

void rp_journal_wake_locked(rp_journal *j, bool all)
{
    for (waiter *w = j->waiters, *next; w != NULL; w = next) {
        next = w->next;
        if (!all && !is_reached_locked(j, w)) continue;
        leave_list_locked(j, w);
        rp_mutex_lock(&w->mu);
        assert(!w->is_over);
        w->is_over = true;
        rp_cond_signal(&w->cv);
        rp_mutex_unlock(&w->mu); /* the waiter may be gone now */
    }
}

/* True if the result of the wait is known already. */
static bool is_settled_locked(rp_journal *j, const waiter *w, rp_status *st, rp_error *err)
    RP_REQUIRES(j->mu)
{
    *st = RP_OK;
    if (is_reached_locked(j, w)) return true;
    if (!j->info.in_trouble && !j->is_lost && j->hold == 0) return false;
    if (!j->o.sync && !w->for_sync) return false; /* the thread is about to make it safe */
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
        RP_VERIFY(j->file_count, rp_journal_is_valid_locked(j));
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
    if (lsn <= atomic_load(&j->safe) || rp_journal_is_own_thread(j)) return RP_OK;
    return wait_for(j, lsn, false, wait, err);
}

rp_status rp_journal_sync(rp_journal *j, rp_wait wait, rp_error *err)
{
    return wait_for(j, 0, true, wait, err);
}
