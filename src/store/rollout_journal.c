/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rollout_journal.h"

#include "store/store.h"
#include "util/error.h"

#define STEP_NS (INT64_C(20) * 1000 * 1000) /* between attempts, if no record becomes safe */

rp_status rp_store_rollouts_admit(rp_store *store, const rp_rollout_op *op, uint64_t *claimed,
                                  rp_error *err)
{
    rp_rollout_journal *journal = rp_store_rollout_journal(store);

    *claimed = 0;
    return journal != NULL ? journal->admit(journal, op, claimed, err) : RP_OK;
}

void rp_store_rollouts_unclaim(rp_store *store, uint64_t claimed)
{
    rp_rollout_journal *journal = rp_store_rollout_journal(store);

    if (journal != NULL && claimed > 0) journal->unclaim(journal, claimed);
}

rp_status rp_store_rollouts_admit_wait(rp_store *store, const rp_rollout_op *op, rp_wait wait,
                                       uint64_t *claimed, rp_error *err)
{
    rp_rollout_journal *journal = rp_store_rollout_journal(store);
    rp_error ignored;

    for (;;) {
        rp_status st = rp_store_rollouts_admit(store, op, claimed, err), slept;
        int64_t now_ns = rp_now_ns();
        rp_wait step = {now_ns + STEP_NS, wait.cancel};

        if (st != RP_UNAVAILABLE || journal == NULL) return st;
        if (wait.until_ns <= now_ns) {
            if (err != NULL) err->code = RP_DEADLINE;
            return RP_DEADLINE;
        }
        if (step.until_ns > wait.until_ns) step.until_ns = wait.until_ns;
        /* No record has this LSN yet, so the wait ends with the step, or is cancelled. */
        slept = journal->wait(journal, journal->last(journal) + 1, step, &ignored);
        if (slept == RP_OK || slept == RP_DEADLINE) continue;
        if (err != NULL) *err = ignored;
        return slept;
    }
}

rp_status rp_store_rollouts_wait(rp_store *store, uint64_t lsn, rp_wait wait, rp_error *err)
{
    rp_rollout_journal *journal = rp_store_rollout_journal(store);

    if (journal == NULL || lsn == 0) return RP_OK;
    return journal->wait(journal, lsn, wait, err);
}

uint64_t rp_store_rollouts_lsn(rp_store *store)
{
    rp_rollout_journal *journal = rp_store_rollout_journal(store);

    return journal != NULL ? journal->last(journal) : 0;
}
