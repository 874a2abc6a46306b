/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the rollouts of a store: appends each change to the journal. It is a part of
 * rp_store_log.
 *
 * A record is encoded when it is appended, under the lock of the rollouts. It does not refer to
 * segments, so its raw form is its payload (durable/format/rollout_records.h). */
#ifndef RP_DURABLE_JOURNAL_ROLLOUT_LOG_H
#define RP_DURABLE_JOURNAL_ROLLOUT_LOG_H

#include <stdatomic.h>

#include "disk/journal.h"
#include "rollouts/rollout_set.h"
#include "store/rollout_journal.h"

typedef struct rp_rollout_logging {
    rp_rollout_log log; /* first: the calls of the rollouts get this */
    rp_rollout_journal admissions;
    rp_allocator alloc;
    rp_journal *journal;
    rp_rollout_set *set;
    bool sync;
    atomic_bool *was_behind; /* of the store's log (O2) */
    atomic_bool *is_used;    /* set before the first record; may be NULL */
} rp_rollout_logging;

/* Initialises the object, which must not move afterwards, and sets it as the log of all
 * rollouts of the store. */
void rp_rollout_logging_start(rp_rollout_logging *logging, rp_store *store);
/* Waits until no thread is in a call of store/rollout_journal.h. */
void rp_rollout_logging_stop(rp_rollout_logging *logging, rp_store *store);

#endif
