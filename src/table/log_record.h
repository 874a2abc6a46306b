/* SPDX-License-Identifier: Apache-2.0 */
/* Log records: the structs by which a table reports its changes to the journal. A log record is
 * a change as a value; a redo applies it again after a restart. rp_table_log is the interface
 * that the journal implements. rp_log_buffer is the buffer in which a table collects small
 * changes. table_log.h has the functions. */
#ifndef RP_TABLE_LOG_RECORD_H
#define RP_TABLE_LOG_RECORD_H

#include <stdatomic.h>

#include "reprise/table.h"

typedef enum rp_log_record_kind {
    RP_LOGGED_INSERT = 0,
    RP_LOGGED_SAMPLE = 1,
    RP_LOGGED_UPDATE = 2, /* new priorities of the keys that were found, in order; also those
                             that atomic extensions set */
    RP_LOGGED_DELETE = 3,
    RP_LOGGED_EVICT = 4, /* evictions by the remover, for a trim or a lowered bound */
    RP_LOGGED_RESET = 5,
    RP_LOGGED_ALTER = 6,
    RP_LOGGED_PAUSE = 7,
    RP_LOGGED_RENUMBER = 8, /* an empty table restarts its slot numbers from 0 */
} rp_log_record_kind;

typedef struct rp_inserted {
    uint64_t key;
    double priority;           /* as the table has assigned it */
    rp_trajectory *trajectory; /* borrowed; NULL: the key existed, only its priority was set */
    int32_t times_sampled;
    uint32_t evicted; /* number of items evicted before this insert because of byte limits. A
                         redo evicts the items over max_size by itself */
} rp_inserted;

typedef struct rp_log_record {
    rp_log_record_kind kind;
    int64_t wall_ns; /* insert */
    /* insert: the number of retired slots (slots.h) when the insert began. New items take the
     * slots reclaimed last, so a redo must reclaim slots at the same points. */
    size_t dead;
    const rp_inserted *inserted; /* insert */
    const rp_update *updates;    /* update */
    const uint64_t *keys;        /* delete */
    size_t count;                /* >= 1: entries of the array above (insert, update, delete),
                                    draws (sample) or evictions (evict) */
    bool distinct;               /* sample */
    bool by_extension; /* update: made by an extension, so not counted in rp_table.updates */
    rp_table_alteration alter;
    uint32_t paused; /* pause: the new value */
} rp_log_record;

#define RP_LOG_ALL UINT64_MAX

/* The log of a store: the interface that the journal implements. */
typedef struct rp_table_log {
    /* Announces that the chunks of these trajectories will be logged. Called before an insert
     * acquires the table's lock; for a parked insert, under the lock. The items may then not be
     * inserted after all. RP_NO_RESOURCE makes the insert fail. RP_UNAVAILABLE if the disk is
     * full: the insert waits, and the log calls rp_table_retry_parked() when the first of the
     * items fits. After RP_OK the log reserves `*claimed` bytes of disk space for the items
     * until `unclaim`. The table calls `unclaim` once the items are in the table, or will not
     * be inserted. */
    rp_status (*prepare)(struct rp_table_log *log, rp_trajectory *const *trajectories,
                         size_t count, uint64_t *claimed, rp_error *err);
    void (*unclaim)(struct rp_table_log *log, uint64_t claimed);
    /* Called under the store's lock before a table is created. RP_NO_RESOURCE if the disk has
     * no space for the table. May be NULL. */
    rp_status (*admit)(struct rp_table_log *log, const rp_table_options *options,
                       rp_error *err);
    /* Appends a record. Called under the table's lock. Returns the LSN (log sequence number) of
     * the record, > 0. Cannot fail: `wait` reports errors of the log. */
    uint64_t (*changed)(struct rp_table_log *log, const rp_table *table,
                        const rp_log_record *change);
    /* Log a new table, and a dropped table. Called under the store's lock. Return the LSN. */
    uint64_t (*created)(struct rp_table_log *log, const rp_table *table);
    uint64_t (*dropped)(struct rp_table_log *log, const rp_table *table);
    /* Returns true if operations must wait because the backlog is at its bound, or if
     * `is_insert` and the disk is full. The log then calls rp_table_retry_parked() later.
     * Called under the table's lock. */
    bool (*is_behind)(const struct rp_table_log *log, bool is_insert);
    /* Waits until the record `lsn` is as durable as the journal's mode promises. RP_LOG_ALL
     * stands for all records so far. Called without a lock. RP_DEADLINE, RP_CANCELLED,
     * RP_UNAVAILABLE (the journal cannot write: the change was made, but may be lost in a
     * crash). */
    rp_status (*wait)(struct rp_table_log *log, uint64_t lsn, rp_wait wait, rp_error *err);
} rp_table_log;

enum { RP_LOG_BATCH = 256 };

/* Changes that the table has made and not logged yet. The buffer is empty whenever the table's
 * lock is free (L1 of table_log.c). The table's lock guards it. */
typedef struct rp_log_buffer {
    _Atomic(rp_table_log *) log; /* NULL: none. Written under the lock, read without */
    uint64_t lsn;                /* LSN of the last record */
    int64_t wall_ns;             /* time of the inserts in the buffer */
    size_t dead;                 /* number of retired slots before the first of these inserts */
    size_t inserted_count;
    size_t evicted; /* items evicted since the last insert for another reason than max_size.
                       They are logged with the next insert or in their own record */
    size_t drawn;   /* number of draws of single items */
    size_t update_count;
    rp_inserted inserted[RP_LOG_BATCH];
    rp_update updates[RP_LOG_BATCH];
} rp_log_buffer;

#endif
