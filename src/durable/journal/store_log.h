/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a store: logs every change of its tables and its rollouts.
 *
 *   before the table lock   chunks are put into segments and get locations, without I/O
 *   under the table lock    the change is copied, with references to its trajectories
 *   on the journal thread   the change is encoded, with the locations that chunks have then
 *
 * Locations are resolved late because a chunk gets a new location if its segment is condemned
 * before it was synced. Then the journal encodes again all records that are not on stable
 * storage (disk/journal.h), with the new locations. The price is that trajectories stay in
 * memory until they are synced, for one interval at most. The gain is that nothing is encoded
 * under a table lock. */
#ifndef RP_DURABLE_JOURNAL_STORE_LOG_H
#define RP_DURABLE_JOURNAL_STORE_LOG_H

#include "disk/journal.h"
#include "store/store.h"
#include "table/table_log.h"

typedef struct rp_store_log rp_store_log;

typedef struct rp_store_log_options {
    const rp_allocator *alloc;
    rp_store *store;
    rp_files *files;
    rp_segments *segments;
    rp_store_id id;
    uint64_t next_lsn; /* >= 1 */
    bool sync;
    int64_t interval_ns;
    int64_t retry_ns;                /* 0: the default of the journal */
    uint64_t file_bytes, max_queued; /* 0: the default of the journal */
    /* As in rp_journal_options. */
    void (*on_safe)(void *ctx, uint64_t lsn);
    void (*on_trouble)(void *ctx, const rp_error *why);
    /* The reserve, for admission by disk space. NULL: none. */
    rp_reserve_wanted *reserve;
    /* As in rp_table_log; NULL: every table is admitted. */
    rp_status (*admit)(void *ctx, const rp_table_options *options, rp_error *err);
    /* Called when a table has been created, under the store's lock. May be NULL. */
    void (*on_created)(void *ctx, const rp_table_options *options);
    void *ctx;
    atomic_bool *uses_rollouts; /* set before the first record of rollouts; may be NULL */
} rp_store_log_options;

/* Starts the journal and logs all changes from now on. The state of the store at next_lsn - 1
 * must be on disk: in a checkpoint and the journal after it. Statuses as of
 * rp_journal_start(). */
RP_NODISCARD rp_status rp_store_log_start(const rp_store_log_options *options,
                                          rp_store_log **out, rp_error *err);
/* Stops logging, then the journal. No thread may wait in the store. Frees the log in every
 * case; returns the status of the last write. NULL is fine. */
RP_NODISCARD rp_status rp_store_log_stop(rp_store_log *log, rp_error *err);

/* Returns the journal of the log, valid as long as the log. */
/* True if changes without chunks must wait because of the backlog (rp_journal_is_behind()).
 * Then on_safe is called when the backlog is shorter. Any thread, any lock below rank 44. */
bool rp_store_log_is_behind(rp_store_log *log);
rp_journal *rp_store_log_journal(rp_store_log *log);

#endif
