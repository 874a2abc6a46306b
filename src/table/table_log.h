/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a table, told in order: the journal's ear.
 *
 * A table with a log tells it of every change as it is made, under the table's lock, and what
 * it tells is enough to make the same change again, to the bit: rp_table_replay(). Without one,
 * this costs a branch. The rate limiter is not asked in a replay: what happened was allowed. */
#ifndef RP_TABLE_TABLE_LOG_H
#define RP_TABLE_TABLE_LOG_H

#include "table/table.h"

typedef enum rp_change_kind {
    RP_CHANGED_INSERT,
    RP_CHANGED_SAMPLE,
    RP_CHANGED_UPDATE, /* priorities by key, in order; those found only. Also what atomic
                          extensions do */
    RP_CHANGED_DELETE,
    RP_CHANGED_EVICT, /* by the remover: trim, and bounds that came down */
    RP_CHANGED_RESET,
    RP_CHANGED_ALTER,
    RP_CHANGED_PAUSE,
} rp_change_kind;

typedef struct rp_inserted {
    uint64_t key;
    double priority; /* what it got */
    rp_trajectory
        *trajectory; /* borrowed; NULL: the key was there and only its priority was set */
    int32_t times_sampled;
    uint32_t evicted; /* how many items had to go before it because of bytes; those over
                         max_size go by themselves */
} rp_inserted;

typedef struct rp_change {
    rp_change_kind kind;
    int64_t wall_ns;             /* insert */
    const rp_inserted *inserted; /* insert */
    const rp_update *updates;    /* update */
    const uint64_t *keys;        /* delete */
    size_t count;  /* of those; of a sample, draws asked of the sampler; of evictions */
    bool distinct; /* sample */
    rp_table_change alter;
    uint32_t paused; /* what it is now */
} rp_change;

/* One for a store. */
typedef struct rp_table_log {
    /* Before a table's lock is taken for an insert: the chunks of these trajectories will be
     * needed. May be called for items that are then not inserted. RP_NO_RESOURCE fails the
     * insert. */
    rp_status (*prepare)(struct rp_table_log *log, rp_trajectory *const *trajectories,
                         size_t count);
    /* Under the table's lock. Returns the change's number in the journal (LSN), > 0. Cannot
     * fail: a log that is in trouble says so later. */
    uint64_t (*changed)(struct rp_table_log *log, const rp_table *table,
                        const rp_change *change);
    /* Under the store's lock, for a new table and one that goes. */
    uint64_t (*created)(struct rp_table_log *log, const rp_table *table);
    uint64_t (*dropped)(struct rp_table_log *log, const rp_table *table);
    /* Under the table's lock: so much has to be written that operations wait (the log wakes
     * them with rp_table_nudge()). */
    bool (*is_behind)(const struct rp_table_log *log);
    /* Waits until `lsn` is as safe as the mode promises: called by blocking calls after they
     * have left the lock. RP_DEADLINE, RP_CANCELLED,
     * RP_UNAVAILABLE (the journal cannot write: what was done is done, but may not survive). */
    rp_status (*wait)(struct rp_table_log *log, uint64_t lsn, rp_wait wait, rp_error *err);
} rp_table_log;

/* Starts or stops (NULL) telling. */
void rp_table_set_log(rp_table *t, rp_table_log *log);
/* Gives parked operations another try. */
void rp_table_nudge(rp_table *t);

/* Makes a change again. For a table without a log that nobody else uses. RP_CORRUPT (it cannot
 * have happened: names what), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_table_replay(rp_table *t, const rp_change *change, rp_error *err);

#endif
