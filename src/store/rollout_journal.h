/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the rollout buffers of a store (rollouts/rollout_set.h) and the store's
 * journal, for callers that change rollout buffers. The order of the calls is:
 *
 *   st = rp_store_rollouts_admit(store, op, &claimed, err);
 *   if (st == RP_OK) st = rp_rollouts_apply(rollouts, op, &result, err);
 *   rp_store_rollouts_unclaim(store, claimed);
 *   ... respond when all records up to result.lsn are safe ...
 *
 * For rp_rollout_set_create() the order is the same, and `op` is NULL. rp_rollout_set_drop()
 * needs no admission, since it frees disk space. If the store has no journal, the functions do
 * nothing, and LSNs (log sequence numbers) are 0. */
#ifndef RP_STORE_ROLLOUT_JOURNAL_H
#define RP_STORE_ROLLOUT_JOURNAL_H

#include "reprise/store.h"
#include "rollouts/rollout_op.h"

/* The interface that the journal implements. The functions below call these functions, and the
 * comments of the functions below describe them. rp_store_rollouts_lsn() calls `last`. */
typedef struct rp_rollout_journal {
    rp_status (*admit)(struct rp_rollout_journal *journal, const rp_rollout_op *op,
                       uint64_t *claimed, rp_error *err);
    void (*unclaim)(struct rp_rollout_journal *journal, uint64_t claimed);
    rp_status (*wait)(struct rp_rollout_journal *journal, uint64_t lsn, rp_wait wait,
                      rp_error *err);
    uint64_t (*last)(struct rp_rollout_journal *journal);
} rp_rollout_journal;

/* Must be called before an operation on a rollout buffer. On RP_OK the journal reserves
 * `*claimed` bytes of disk space until rp_store_rollouts_unclaim(). The caller must call that
 * function after the operation, even if the operation failed. An operation that adds no data
 * reserves nothing, and is admitted even if the disk is full. Returns RP_UNAVAILABLE if the
 * backlog of the journal (records that are not written yet) is at its bound, or if the disk is
 * full. After RP_UNAVAILABLE the caller can try again when the listeners of rp_durable_listen()
 * (durable/async.h) are called. Returns RP_NO_RESOURCE if the disk is too small for the
 * operation. */
RP_NODISCARD rp_status rp_store_rollouts_admit(rp_store *store, const rp_rollout_op *op,
                                               uint64_t *claimed, rp_error *err);
void rp_store_rollouts_unclaim(rp_store *store, uint64_t claimed);
/* Like rp_store_rollouts_admit(), but waits until the journal admits the operation. Errors:
 * RP_DEADLINE, RP_CANCELLED, RP_NO_RESOURCE, RP_UNAVAILABLE (the journal cannot be written). */
RP_NODISCARD rp_status rp_store_rollouts_admit_wait(rp_store *store, const rp_rollout_op *op,
                                                    rp_wait wait, uint64_t *claimed,
                                                    rp_error *err);

/* Waits until all records up to `lsn` are as durable as the journal's mode promises. Errors:
 * RP_DEADLINE, RP_CANCELLED, RP_UNAVAILABLE (the journal cannot be written, or was closed: the
 * operation was done, but a crash can lose it). */
RP_NODISCARD rp_status rp_store_rollouts_wait(rp_store *store, uint64_t lsn, rp_wait wait,
                                              rp_error *err);
/* Returns the LSN of the journal's last record, or 0 if the store has no journal. */
uint64_t rp_store_rollouts_lsn(rp_store *store);

#endif
