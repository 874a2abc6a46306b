/* SPDX-License-Identifier: Apache-2.0 */
/* A change to a table as a value, who is told of it, and what a table keeps for telling. The
 * calls are in table_log.h. */
#ifndef RP_TABLE_CHANGE_H
#define RP_TABLE_CHANGE_H

#include <stdatomic.h>

#include "reprise/table.h"

typedef enum rp_change_kind {
    RP_CHANGED_INSERT = 0,
    RP_CHANGED_SAMPLE = 1,
    RP_CHANGED_UPDATE = 2, /* priorities by key, in order; those found only. Also what atomic
                              extensions do */
    RP_CHANGED_DELETE = 3,
    RP_CHANGED_EVICT = 4, /* by the remover: trim, and bounds that came down */
    RP_CHANGED_RESET = 5,
    RP_CHANGED_ALTER = 6,
    RP_CHANGED_PAUSE = 7,
    RP_CHANGED_RENUMBER = 8, /* an empty table has given back its slots: they are numbered from
                                0 again */
} rp_change_kind;

typedef struct rp_inserted {
    uint64_t key;
    double priority;           /* what it got */
    rp_trajectory *trajectory; /* borrowed; NULL: the key was there and only its priority was
                                  set */
    int32_t times_sampled;
    uint32_t evicted; /* how many items had to go before it because of bytes; those over
                         max_size go by themselves */
} rp_inserted;

typedef struct rp_change {
    rp_change_kind kind;
    int64_t wall_ns; /* insert */
    /* insert: items that have left the table and whose slots are not free yet. New items go
     * into the slots freed last, so when these are freed is part of what happened. */
    size_t dead;
    const rp_inserted *inserted; /* insert */
    const rp_update *updates;    /* update */
    const uint64_t *keys;        /* delete */
    size_t count;  /* of those, >= 1; of a sample, draws asked of the sampler; of evictions */
    bool distinct; /* sample */
    bool by_extension; /* update: it does not count among the table's updates */
    rp_table_change alter;
    uint32_t paused; /* what it is now */
} rp_change;

/* One for a store. */
typedef struct rp_table_log {
    /* Before a table's lock is taken for an insert (but under it for one that was left
     * waiting): the chunks of these trajectories will be needed. May be called for items that
     * are then not inserted. RP_NO_RESOURCE fails the insert: there is no memory, or the disk
     * can never have room for the first of them; `err` says which. RP_UNAVAILABLE: the disk has
     * no room for them, and the insert waits; the log wakes it with rp_table_nudge() when there
     * is room for the first of them. */
    rp_status (*prepare)(struct rp_table_log *log, rp_trajectory *const *trajectories,
                         size_t count, rp_error *err);
    /* Under the table's lock. Returns the change's number in the journal (LSN), > 0. Cannot
     * fail: a log that is in trouble says so later. */
    uint64_t (*changed)(struct rp_table_log *log, const rp_table *table,
                        const rp_change *change);
    /* Under the store's lock, for a new table and one that goes. */
    uint64_t (*created)(struct rp_table_log *log, const rp_table *table);
    uint64_t (*dropped)(struct rp_table_log *log, const rp_table *table);
    /* Under the table's lock: so much has to be written that operations wait (the log wakes
     * them with rp_table_nudge()); or the disk is full, and inserts wait. */
    bool (*is_behind)(const struct rp_table_log *log, bool is_insert);
    /* Waits until `lsn` is as safe as the mode promises: called by blocking calls after they
     * have left the lock. RP_DEADLINE, RP_CANCELLED,
     * RP_UNAVAILABLE (the journal cannot write: what was done is done, but may not survive). */
    rp_status (*wait)(struct rp_table_log *log, uint64_t lsn, rp_wait wait, rp_error *err);
} rp_table_log;

enum { RP_TOLD_AT_ONCE = 256 };

/* What a table has done and not told yet: never anything when the lock is left. Guarded by the
 * table's lock. */
typedef struct rp_telling {
    _Atomic(rp_table_log *) log; /* NULL: nobody is told. Changed under the lock, read without
                                    it before it is taken */
    uint64_t lsn;                /* of the last change told */
    int64_t wall_ns;             /* of the inserts to be told */
    size_t dead;                 /* before the first of them */
    size_t inserted_count;
    size_t evicted; /* by the remover, and not told with an item */
    size_t drawn;   /* one at a time */
    size_t update_count;
    rp_inserted inserted[RP_TOLD_AT_ONCE];
    rp_update updates[RP_TOLD_AT_ONCE];
} rp_telling;

#endif
