/* SPDX-License-Identifier: Apache-2.0 */
/* Log records: the structs by which a table reports its changes to the journal. A log record
 * describes one change completely, so that a redo can repeat the change after a restart. (A
 * redo executes the records of the journal again, in their order.) rp_table_log is the
 * interface that the journal implements. rp_log_buffer is the buffer in which a table collects
 * small changes. table_log.h has the functions. */
#ifndef RP_TABLE_LOG_RECORD_H
#define RP_TABLE_LOG_RECORD_H

#include <stdatomic.h>

#include "reprise/table.h"

typedef enum rp_log_record_kind {
    RP_LOGGED_INSERT = 0,
    RP_LOGGED_SAMPLE = 1,
    /* New priorities of existing items, in the order in which they were set. Atomic extensions
     * (reprise/extension.h) also set priorities; these have records of their own
     * (by_extension). */
    RP_LOGGED_UPDATE = 2,
    RP_LOGGED_DELETE = 3,
    /* Evictions: the remover, the selector that chooses the items to evict, picked items, and
     * the table removed them. An insert record has the evictions for its inserts in `evicted`.
     * This record has all other evictions that a redo cannot derive: by a trim, by a lowered
     * bound, to free bytes for other tables, and because of byte limits for an insert that then
     * had to wait. */
    RP_LOGGED_EVICT = 4,
    RP_LOGGED_RESET = 5,
    RP_LOGGED_ALTER = 6,
    RP_LOGGED_PAUSE = 7,
    RP_LOGGED_RENUMBER = 8, /* an empty table restarts its slot numbers from 0 */
} rp_log_record_kind;

typedef struct rp_inserted {
    uint64_t key;
    double priority; /* the priority that the insert has set */
    /* Borrowed. NULL: the key existed, and the insert has only set its priority. */
    rp_trajectory *trajectory;
    int32_t times_sampled;
    /* Number of items evicted for this insert because of byte limits. Items evicted because of
     * max_size do not count, since a redo of the insert evicts them again without a count. */
    uint32_t evicted;
} rp_inserted;

typedef struct rp_log_record {
    rp_log_record_kind kind;
    /* Each comment below begins with the kinds of record that use the field. */
    int64_t wall_ns; /* insert: the time of the inserts by the wall clock */
    /* insert: the number of slots that were retired (not reclaimed yet, slots.h) when the
     * insert began. A redo first reclaims slots until only this number is retired. So the new
     * items get the same slots as before, since an insert takes the slot that was reclaimed
     * last. */
    size_t dead;
    const rp_inserted *inserted; /* insert: the items */
    const rp_update *updates;    /* update: the keys and their priorities */
    const uint64_t *keys;        /* delete: the keys */
    size_t count;                /* insert, update, delete: entries of the array above; sample:
                                    draws; evict: evictions. >= 1 */
    bool distinct;               /* sample: the draws are of distinct items */
    bool by_extension; /* update: an extension set the priorities, so rp_table.updates does not
                          count them */
    rp_table_alteration alter; /* alter: the change of the options */
    uint32_t paused;           /* pause: the sides that are paused now, bits RP_SIDE_... */
} rp_log_record;

#define RP_LOG_ALL UINT64_MAX

/* The log of a store: the interface that the journal implements. */
typedef struct rp_table_log {
    /* Announces that items with these trajectories are about to be inserted, so that the log
     * can write their chunks. Usually called before an insert acquires the table's lock. Called
     * under the lock if the insert is parked (waits in a queue of the table, op.h). The
     * announced items are possibly never inserted.
     *
     * If this returns RP_NO_RESOURCE, the insert fails. Returns RP_UNAVAILABLE if the disk is
     * full: the insert waits, and the log calls rp_table_retry_parked() when the disk has space
     * for the first of the items. After RP_OK, the log has reserved `*claimed` bytes of disk
     * space for the items. The table calls `unclaim` with this number once the items are in the
     * table, or when they will not be inserted. */
    rp_status (*prepare)(struct rp_table_log *log, rp_trajectory *const *trajectories,
                         size_t count, uint64_t *claimed, rp_error *err);
    void (*unclaim)(struct rp_table_log *log, uint64_t claimed);
    /* Called under the store's lock before a table is created. Returns RP_NO_RESOURCE if the
     * disk has no space for the table. The pointer may be NULL. */
    rp_status (*admit)(struct rp_table_log *log, const rp_table_options *options,
                       rp_error *err);
    /* Appends a record. Called under the table's lock. Returns the LSN (log sequence number) of
     * the record, > 0. Cannot fail: `wait` reports errors of the log. */
    uint64_t (*changed)(struct rp_table_log *log, const rp_table *table,
                        const rp_log_record *change);
    /* Append the record of a new table, and of a dropped table. Called under the store's lock.
     * Return the LSN of the record. */
    uint64_t (*created)(struct rp_table_log *log, const rp_table *table);
    uint64_t (*dropped)(struct rp_table_log *log, const rp_table *table);
    /* Returns true if operations must wait because the backlog, the records that are not
     * written yet, is at its bound. For an insert (`is_insert`), also returns true if the disk
     * is full. The log then calls rp_table_retry_parked() later. Called under the table's
     * lock. */
    bool (*is_behind)(const struct rp_table_log *log, bool is_insert);
    /* Waits until the record with the LSN `lsn` is as durable as the journal's mode promises
     * (reprise/durable.h). If `lsn` is RP_LOG_ALL, waits for all records so far. Called without
     * a lock. Errors: RP_DEADLINE, RP_CANCELLED, RP_UNAVAILABLE (the journal cannot write: the
     * change was made, but a crash can lose it). */
    rp_status (*wait)(struct rp_table_log *log, uint64_t lsn, rp_wait wait, rp_error *err);
} rp_table_log;

enum { RP_LOG_BATCH = 256 };

/* Changes that the table has made and not logged yet. The buffer is empty whenever the table's
 * lock is free (invariant L1 of table_log.c). The table's lock guards it. */
typedef struct rp_log_buffer {
    /* NULL: no log. Written under the table's lock, but read without it. */
    _Atomic(rp_table_log *) log;
    uint64_t lsn;    /* LSN of the last record */
    int64_t wall_ns; /* time of the inserts in the buffer */
    size_t dead;     /* number of retired slots before the first of these inserts */
    size_t inserted_count;
    /* Items evicted since the last insert in the buffer, except those evicted because of
     * max_size. If an insert follows, its record gets this number (rp_inserted.evicted).
     * Otherwise the flush of the buffer writes an RP_LOGGED_EVICT record. */
    size_t evicted;
    size_t drawn; /* number of draws of single items; a draw of several items is logged at once,
                     not buffered */
    size_t update_count;
    rp_inserted inserted[RP_LOG_BATCH];
    rp_update updates[RP_LOG_BATCH];
} rp_log_buffer;

#endif
