/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a store: logs every change of its tables and its rollouts.
 *
 *   before the table lock   chunks are put into segments and get locations, without I/O
 *   under the table lock    the change is copied, with references to its trajectories
 *   on the journal thread   the change is encoded, with the locations that chunks have then
 *
 * Locations are looked up late, on the journal thread, because a chunk gets a new location if
 * its segment is condemned (given up after a failed write or sync). In that case the journal
 * encodes all records that are not on stable storage again (disk/journal.h), with the new
 * locations. As a result, trajectories stay in memory until their records are synced, usually
 * for at most one interval. No record is encoded under a table lock. */
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
    /* Like the members of rp_journal_options (disk/journal_options.h) with these names. */
    void (*on_safe)(void *ctx, uint64_t lsn);
    void (*on_trouble)(void *ctx, const rp_error *why);
    /* Returns the size of the reserve, for admission by disk space (disk/journal_space.h).
     * NULL: there is no reserve. */
    rp_reserve_wanted *reserve;
    /* Like rp_table_log.admit (table/log_record.h). NULL: every table is admitted. */
    rp_status (*admit)(void *ctx, const rp_table_options *options, rp_error *err);
    /* Called under the store's lock when a table has been created. May be NULL. */
    void (*on_created)(void *ctx, const rp_table_options *options);
    void *ctx;
    atomic_bool *uses_rollouts; /* set before the first record of rollouts; may be NULL */
} rp_store_log_options;

/* Starts the journal, and logs all changes from now on. The present state of the store must be
 * on disk: in a checkpoint and the journal records after it, up to next_lsn - 1. Errors: as for
 * rp_journal_start(). */
RP_NODISCARD rp_status rp_store_log_start(const rp_store_log_options *options,
                                          rp_store_log **out, rp_error *err);
/* Stops the logging, and then the journal. The caller must ensure that no thread waits in a
 * function of the store. Frees the log in every case. Returns the status of the last write.
 * `log` may be NULL. */
RP_NODISCARD rp_status rp_store_log_stop(rp_store_log *log, rp_error *err);

/* Returns true if changes without chunks must wait because of the backlog
 * (rp_journal_is_behind()). After true, on_safe is called when the backlog is shorter. Any
 * thread may call this function, and may hold any lock below rank 44 (util/mutex.h). */
bool rp_store_log_is_behind(rp_store_log *log);
/* Returns the journal of the log, which is valid as long as the log. */
rp_journal *rp_store_log_journal(rp_store_log *log);

#endif
