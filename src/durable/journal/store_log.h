/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a store: tables tell it what happens, and it makes it happen again.
 *
 *   before the lock   chunks are put into segments (a place each, no I/O)
 *   under the lock    the change is copied as it is, with references to its trajectories
 *   on the journal's thread   it is made into bytes, with the places as they are then
 *
 * Places are resolved late, for a chunk moves if its segment is condemned before it was synced:
 * then the journal makes the bytes again of every record that is not on stable storage
 * (disk/journal.h), and this is all it takes. The price is that trajectories stay in memory
 * until then, for an interval at most; the gain is that under the table's lock nothing is
 * encoded. */
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
    int64_t retry_ns;                /* 0: the journal's own */
    uint64_t file_bytes, max_queued; /* 0: the journal's own */
    /* The journal's, see there. */
    void (*on_safe)(void *ctx, uint64_t lsn);
    void (*on_trouble)(void *ctx, const rp_error *why);
    void *ctx;
} rp_store_log_options;

/* Starts the journal and telling it. What the store has must be what a checkpoint, or a
 * checkpoint and the journal, has at next_lsn - 1. The same statuses as rp_journal_start(). */
RP_NODISCARD rp_status rp_store_log_start(const rp_store_log_options *options,
                                          rp_store_log **out, rp_error *err);
/* Stops telling, then the journal. Nobody may be waiting in the store. Frees it in every case;
 * the status is that of what could not be written. NULL is fine. */
RP_NODISCARD rp_status rp_store_log_stop(rp_store_log *log, rp_error *err);

/* Valid as long as the log. */
rp_journal *rp_store_log_journal(rp_store_log *log);

/* Makes again what a journal has. For one thread, and a store that nobody else uses and that
 * tells no log. */
typedef struct rp_replayer rp_replayer;

typedef struct rp_replayer_options {
    const rp_allocator *alloc;
    rp_store *store;
    /* The chunk at a place, borrowed until the next call. RP_NOT_FOUND or RP_CORRUPT: it is not
     * there, or not whole. */
    rp_status (*chunk)(void *ctx, const rp_place *place, rp_chunk **out, rp_error *err);
    void *ctx;
} rp_replayer_options;

RP_NODISCARD rp_status rp_replayer_new(const rp_replayer_options *options, rp_replayer **out,
                                       rp_error *err);
/* Frees the slots of what has gone in all tables, then itself. NULL is fine. */
void rp_replayer_free(rp_replayer *r);
/* Of changes that were made. */
uint64_t rp_replayer_count(const rp_replayer *r);

/* A rp_journal_visit: `ctx` is the replayer. RP_NOT_FOUND (a chunk is not there; nothing was
 * changed), RP_CORRUPT (it cannot have happened: names the record), RP_PRECONDITION (a table
 * that was made has other selectors here), RP_NO_RESOURCE, RP_UNAVAILABLE. */
rp_status rp_replayer_visit(void *ctx, const rp_record *record, rp_error *err);

#endif
