/* SPDX-License-Identifier: Apache-2.0 */
/* The log of rollouts. Rollouts are named buffers of groups of items (reprise/rollouts.h). The
 * log appends each change of the rollouts of a store to the journal (disk/journal.h). It is a
 * part of rp_store_log (store_log.h), which logs the changes of tables.
 *
 * A record of rollouts contains no disk locations, so it is encoded when it is appended, under
 * the lock of the rollouts. (Records of tables are encoded later, because they contain disk
 * locations of chunks, which can still change.) */
#ifndef RP_DURABLE_JOURNAL_ROLLOUT_LOG_H
#define RP_DURABLE_JOURNAL_ROLLOUT_LOG_H

#include <stdatomic.h>

#include "disk/journal.h"
#include "rollouts/rollout_set.h"
#include "store/rollout_journal.h"

typedef struct rp_rollout_logging {
    rp_rollout_log log; /* first member, since the callbacks receive a pointer to it */
    rp_rollout_journal admissions;
    rp_allocator alloc;
    rp_journal *journal;
    rp_rollout_set *set;
    bool sync;
    atomic_bool *was_behind; /* member of the store's log (invariant O2 in store_log.c) */
    atomic_bool *is_used;    /* set before the first record; may be NULL */
} rp_rollout_logging;

/* Initialises the object and sets it as the log of all rollouts of the store. Afterwards the
 * object must not move. */
void rp_rollout_logging_start(rp_rollout_logging *logging, rp_store *store);
/* Ends the logging. Waits until no thread is in a function of store/rollout_journal.h. */
void rp_rollout_logging_stop(rp_rollout_logging *logging, rp_store *store);

#endif
