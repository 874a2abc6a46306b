/* SPDX-License-Identifier: Apache-2.0 */
/* Redo of rollouts: after a restart, applies the journal records of rollouts
 * (durable/format/rollout_records.h) to a store. Rollouts are a named buffer of groups of items
 * (reprise/rollouts.h). */
#ifndef RP_DURABLE_JOURNAL_REDO_ROLLOUTS_H
#define RP_DURABLE_JOURNAL_REDO_ROLLOUTS_H

#include "durable/format/rollouts_file.h"
#include "store/store.h"

typedef struct rp_rollouts_redo {
    const rp_allocator *alloc;
    rp_store *store;
    const rp_rollouts_found *found; /* the rollouts of the checkpoint; NULL: none */
    uint64_t lsn;                   /* rp_redo_options.rollouts_lsn */
    bool salvage;
} rp_rollouts_redo;

/* Applies a record or skips it; sets `*applied` to whether it was applied. RP_CORRUPT (the
 * change is impossible), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_redo_rollouts(const rp_rollouts_redo *redo, const rp_record *record,
                                        bool *applied, rp_error *err);

#endif
