/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits leaves the journal after each step, so that the journal can end while
 * threads wait. */
#include "store/rollout_journal.h"

#include "store/store.h"
#include "util/error.h"

#define STEP_NS (INT64_C(20) * 1000 * 1000)

/* A part of a wait. */
static rp_wait step_of(rp_wait wait, int64_t now_ns)
{
    rp_wait step = {now_ns + STEP_NS, wait.cancel};

    if (step.until_ns > wait.until_ns) step.until_ns = wait.until_ns;
    return step;
}

rp_status rp_store_rollouts_admit(rp_store *store, const rp_rollout_op *op, uint64_t *claimed,
                                  rp_error *err)
{
    rp_rollout_journal *journal = rp_store_enter_rollout_journal(store);
    rp_status st = RP_OK;

    *claimed = 0;
    if (journal != NULL) st = journal->admit(journal, op, claimed, err);
    rp_store_leave_rollout_journal(store);
    return st;
}

void rp_store_rollouts_unclaim(rp_store *store, uint64_t claimed)
{
    rp_rollout_journal *journal;

    if (claimed == 0) return;
    journal = rp_store_enter_rollout_journal(store);
    if (journal != NULL) journal->unclaim(journal, claimed);
    rp_store_leave_rollout_journal(store);
}

/* Sleeps for a step, until the next record is safe, or until the wait is cancelled. */
static rp_status sleep_step(rp_store *store, rp_wait step, rp_error *err)
{
    rp_rollout_journal *journal = rp_store_enter_rollout_journal(store);
    rp_status st = RP_OK;

    /* No record has this LSN yet, so the wait ends with the step, or is cancelled. */
    if (journal != NULL) st = journal->wait(journal, journal->last(journal) + 1, step, err);
    rp_store_leave_rollout_journal(store);
    return st == RP_DEADLINE ? RP_OK : st;
}

rp_status rp_store_rollouts_admit_wait(rp_store *store, const rp_rollout_op *op, rp_wait wait,
                                       uint64_t *claimed, rp_error *err)
{
    for (;;) {
        rp_status st = rp_store_rollouts_admit(store, op, claimed, err);
        int64_t now_ns = rp_now_ns();
        rp_error error;

        if (st != RP_UNAVAILABLE) return st;
        if (wait.until_ns <= now_ns) {
            if (err != NULL) err->code = RP_DEADLINE;
            return RP_DEADLINE;
        }
        st = sleep_step(store, step_of(wait, now_ns), &error);
        if (st == RP_OK) continue;
        if (err != NULL) *err = error;
        return st;
    }
}

rp_status rp_store_rollouts_wait(rp_store *store, uint64_t lsn, rp_wait wait, rp_error *err)
{
    rp_status st;

    if (lsn == 0) return RP_OK;
    do {
        rp_rollout_journal *journal = rp_store_enter_rollout_journal(store);

        if (journal != NULL)
            st = journal->wait(journal, lsn, step_of(wait, rp_now_ns()), err);
        else
            st = rp_fail(err, RP_UNAVAILABLE,
                         "the journal was closed before the operation was known to be safe");
        rp_store_leave_rollout_journal(store);
    } while (st == RP_DEADLINE && rp_now_ns() < wait.until_ns);
    return st;
}

uint64_t rp_store_rollouts_lsn(rp_store *store)
{
    rp_rollout_journal *journal = rp_store_enter_rollout_journal(store);
    uint64_t lsn = journal != NULL ? journal->last(journal) : 0;

    rp_store_leave_rollout_journal(store);
    return lsn;
}
