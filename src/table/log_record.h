/* SPDX-License-Identifier: Apache-2.0 */
/* Log records: a change to a table as a value, the interface of the log (the journal), and the
 * buffer in which a table collects small changes. The calls are in table_log.h. */
#ifndef RP_TABLE_LOG_RECORD_H
#define RP_TABLE_LOG_RECORD_H

#include <stdatomic.h>

#include "reprise/table.h"

typedef enum rp_log_record_kind {
    RP_LOGGED_INSERT = 0,
    RP_LOGGED_SAMPLE = 1,
    RP_LOGGED_UPDATE = 2, /* priorities by key, in order, of the keys that were found; also
                              priorities set by atomic extensions */
    RP_LOGGED_DELETE = 3,
    RP_LOGGED_EVICT = 4, /* evictions by the remover: of a trim, or for a lowered bound */
    RP_LOGGED_RESET = 5,
    RP_LOGGED_ALTER = 6,
    RP_LOGGED_PAUSE = 7,
    RP_LOGGED_RENUMBER = 8, /* an empty table has freed its slots: numbers restart from 0 */
} rp_log_record_kind;

typedef struct rp_inserted {
    uint64_t key;
    double priority;           /* as assigned */
    rp_trajectory *trajectory; /* borrowed; NULL: the key existed, only its priority was set */
    int32_t times_sampled;
    uint32_t evicted; /* items evicted before it because of byte limits. A redo evicts the items
                         over max_size by itself */
} rp_inserted;

typedef struct rp_log_record {
    rp_log_record_kind kind;
    int64_t wall_ns; /* insert */
    /* insert: the number of retired slots when it began. New items take the slots reclaimed
     * last, so a redo must reclaim slots at the same points. */
    size_t dead;
    const rp_inserted *inserted; /* insert */
    const rp_update *updates;    /* update */
    const uint64_t *keys;        /* delete */
    size_t count;                /* >= 1: entries of the array above (insert, update, delete),
                                    draws (sample) or evictions (evict) */
    bool distinct;               /* sample */
    bool by_extension; /* update: made by an extension; not counted in `updates` of the table */
    rp_table_alteration alter;
    uint32_t paused; /* pause: the new value */
} rp_log_record;

#define RP_LOG_ALL UINT64_MAX

/* The log of a store: the interface that the journal implements. */
typedef struct rp_table_log {
    /* Announces that the chunks of these trajectories will be logged. Called before an insert
     * acquires the table's lock; for a parked insert, under the lock. May be called for items
     * that are then not inserted. RP_NO_RESOURCE fails the insert. RP_UNAVAILABLE: the disk is
     * full, and the insert waits; the log calls rp_table_retry_parked() when the first of the
     * items fits. After RP_OK the log keeps `*claimed` bytes of disk space for the items until
     * `unclaim`, which is called once the items are in the table, or will not be inserted. */
    rp_status (*prepare)(struct rp_table_log *log, rp_trajectory *const *trajectories,
                         size_t count, uint64_t *claimed, rp_error *err);
    void (*unclaim)(struct rp_table_log *log, uint64_t claimed);
    /* Called before a table is created. RP_NO_RESOURCE: the disk has no space for it. Under the
     * store's lock. May be NULL. */
    rp_status (*admit)(struct rp_table_log *log, const rp_table_options *options,
                       rp_error *err);
    /* Appends a record. Under the table's lock. Returns the LSN (log sequence number) of the
     * record, > 0. Cannot fail: `wait` reports errors of the log. */
    uint64_t (*changed)(struct rp_table_log *log, const rp_table *table,
                        const rp_log_record *change);
    /* Logs a new table, or a dropped one. Under the store's lock. */
    uint64_t (*created)(struct rp_table_log *log, const rp_table *table);
    uint64_t (*dropped)(struct rp_table_log *log, const rp_table *table);
    /* True if operations must wait because of the backlog (the log calls
     * rp_table_retry_parked() later), or inserts because the disk is full. Under the table's
     * lock. */
    bool (*is_behind)(const struct rp_table_log *log, bool is_insert);
    /* Waits until the record `lsn`, or with RP_LOG_ALL each record so far, is as durable as the
     * mode promises. Called without a lock.
     * RP_DEADLINE, RP_CANCELLED, RP_UNAVAILABLE (the journal cannot write: the change was made,
     * but may be lost in a crash). */
    rp_status (*wait)(struct rp_table_log *log, uint64_t lsn, rp_wait wait, rp_error *err);
} rp_table_log;

enum { RP_LOG_BATCH = 256 };

/* Changes that are made but not logged. Empty whenever the table's lock is free (L1 of
 * table_log.c). Guarded by the table's lock. */
typedef struct rp_log_buffer {
    _Atomic(rp_table_log *) log; /* NULL: changes are not logged. Written under the lock; may be
                                    read without it */
    uint64_t lsn;                /* of the last record */
    int64_t wall_ns;             /* of the inserts in the buffer */
    size_t dead;                 /* number of retired slots before the first of these inserts */
    size_t inserted_count;
    size_t evicted; /* items evicted since the last insert, but not because of max_size: logged
                       with the next insert, or in a record of their own */
    size_t drawn;   /* draws of single items */
    size_t update_count;
    rp_inserted inserted[RP_LOG_BATCH];
    rp_update updates[RP_LOG_BATCH];
} rp_log_buffer;

#endif
