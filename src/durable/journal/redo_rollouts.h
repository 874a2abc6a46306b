/* SPDX-License-Identifier: Apache-2.0 */
/* Redo of rollouts: after a restart, applies the journal records of rollouts
 * (durable/format/rollout_records.h) to a store. A rollouts object is a named buffer of groups
 * of items (reprise/rollouts.h). The LSN (log sequence number) of a record is its number in the
 * journal. */
#ifndef RP_DURABLE_JOURNAL_REDO_ROLLOUTS_H
#define RP_DURABLE_JOURNAL_REDO_ROLLOUTS_H

#include "durable/format/rollouts_file.h"
#include "store/store.h"

typedef struct rp_rollouts_redo {
    const rp_allocator *alloc;
    rp_store *store;
    const rp_rollouts_found *found; /* the rollouts of the checkpoint; NULL: none */
    uint64_t lsn; /* an operation up to this LSN is skipped if the store lacks its rollouts */
    bool salvage; /* such an operation with a larger LSN is also skipped; false: it is
                     RP_CORRUPT */
} rp_rollouts_redo;

/* Applies a record. Skips it if the saved image of its rollouts already contains the operation,
 * or if the store lacks its rollouts and `lsn` or `salvage` permits it. Sets `*applied` to
 * whether the record was applied. Errors: RP_CORRUPT (the change is impossible),
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_redo_rollouts(const rp_rollouts_redo *redo, const rp_record *record,
                                        bool *applied, rp_error *err);

#endif
