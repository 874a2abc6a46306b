/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the rollouts of a store and its journal, for callers that change
 * rollouts. The order of the calls is:
 *
 *   st = rp_store_rollouts_admit(store, op, &claimed, err);
 *   if (st == RP_OK) st = rp_rollouts_apply(rollouts, op, &result, err);
 *   rp_store_rollouts_unclaim(store, claimed);
 *   ... respond when all records up to result.lsn are safe ...
 *
 * The order is the same for rp_rollout_set_create(), with `op` NULL. rp_rollout_set_drop()
 * needs no admission, since it frees disk space. Without a journal the functions do nothing,
 * and LSNs (log sequence numbers) are 0. */
#ifndef RP_STORE_ROLLOUT_JOURNAL_H
#define RP_STORE_ROLLOUT_JOURNAL_H

#include "reprise/store.h"
#include "rollouts/rollout_op.h"

/* The interface that the journal implements. */
typedef struct rp_rollout_journal {
    rp_status (*admit)(struct rp_rollout_journal *journal, const rp_rollout_op *op,
                       uint64_t *claimed, rp_error *err);
    void (*unclaim)(struct rp_rollout_journal *journal, uint64_t claimed);
    rp_status (*wait)(struct rp_rollout_journal *journal, uint64_t lsn, rp_wait wait,
                      rp_error *err);
    uint64_t (*last)(struct rp_rollout_journal *journal);
} rp_rollout_journal;

/* Must be called before an operation. On RP_OK the journal reserves `*claimed` bytes of disk
 * space until rp_store_rollouts_unclaim(). The caller must call that function after the
 * operation, even if the operation failed. An operation that adds no data reserves nothing, and
 * does not wait for disk space. RP_UNAVAILABLE if the backlog of the journal is at its bound,
 * or the disk is full. Then nothing was changed, and the caller may try again when the
 * listeners of rp_durable_listen() are called. RP_NO_RESOURCE if the disk is too small. */
RP_NODISCARD rp_status rp_store_rollouts_admit(rp_store *store, const rp_rollout_op *op,
                                               uint64_t *claimed, rp_error *err);
void rp_store_rollouts_unclaim(rp_store *store, uint64_t claimed);
/* As rp_store_rollouts_admit(), but waits until the journal can take the operation.
 * RP_DEADLINE, RP_CANCELLED. RP_UNAVAILABLE if the journal cannot be written. */
RP_NODISCARD rp_status rp_store_rollouts_admit_wait(rp_store *store, const rp_rollout_op *op,
                                                    rp_wait wait, uint64_t *claimed,
                                                    rp_error *err);

/* Waits until all records up to `lsn` are as durable as the journal's mode promises.
 * RP_DEADLINE, RP_CANCELLED. RP_UNAVAILABLE if the journal cannot be written, or was closed:
 * the operation was done, but may be lost in a crash. */
RP_NODISCARD rp_status rp_store_rollouts_wait(rp_store *store, uint64_t lsn, rp_wait wait,
                                              rp_error *err);
/* Returns the LSN of the last record; 0 without a journal. */
uint64_t rp_store_rollouts_lsn(rp_store *store);

#endif
