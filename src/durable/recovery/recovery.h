/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a data directory into a store (docs/checkpoint.md, "Recovery"):
 *
 *   1  CURRENT names a manifest; if it is not there or bad, the manifests are tried from the
 *      highest number down
 *   2  its blocks are read, then its segments from end to end: every record is checked, and the
 *      chunks that blocks refer to are parsed, each once
 *   3  tables are compared with those of the store, made where they are missing, and restored
 *   4  what failed before the one that loaded goes to quarantine; left-over temporary files go
 *
 * The journal is replayed between 3 and 4 by who asked for this, with the chunks that are
 * known.
 *
 * Nothing is changed on disk before something has been loaded whole: a directory of which
 * nothing can be loaded is refused, today and tomorrow. */
#ifndef RP_DURABLE_RECOVERY_RECOVERY_H
#define RP_DURABLE_RECOVERY_RECOVERY_H

#include "durable/checkpoint/checkpointer.h"
#include "durable/recovery/chunk_index.h"
#include "durable/tier/tier.h"

typedef struct rp_recovery {
    /* given */
    const rp_allocator *alloc;
    rp_files *files;
    rp_store *store;
    uint64_t segment_bytes;
    uint64_t max_memory; /* 0: no disk tier */
    bool salvage, accept_changes;
    rp_progress_meter *meter;
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void (*on_tier_event)(void *ctx, bool degraded, const char *text); /* for its whole life */
    void *ctx;
    /* found */
    bool is_fresh;        /* nothing was there */
    bool is_older;        /* a newer one could not be loaded */
    uint64_t wanted_lsn;  /* of the newest whose manifest could be read */
    uint64_t highest_lsn; /* of all manifests and journal files, put aside or not */
    bool is_whole;        /* the newest, and nothing of it was dropped or altered */
    bool is_same;         /* and the store has no tables or bounds that are not saved */
    rp_store_id id;
    rp_segments *segments; /* owned */
    rp_tier *tier;         /* owned; NULL: none */
    rp_chunk_index chunks; /* that were loaded, until they are let go */
    rp_catalogue catalogue;
    uint64_t checkpoint; /* that was loaded; 0: none */
    uint64_t last_number, lsn, next_segment;
    bool has_journal; /* files of one are there */
    uint64_t items, dropped;
    uint64_t *damaged; /* salvage: segments that are not whole, ascending */
    size_t damaged_count, damaged_capacity;
    /* private */
    size_t reported;
} rp_recovery;

/* On success the caller may take `segments`, `tier`, `damaged` and `catalogue`, and leave NULL
 * and an empty one behind; rp_recovery_deinit() releases the rest, after a failure too.
 * RP_CORRUPT,
 * RP_PRECONDITION, RP_NO_RESOURCE,
 * RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_recover(rp_recovery *r, rp_error *err);
/* Step 4, once the journal has been replayed as well: enters what is there in the catalogue. */
RP_NODISCARD rp_status rp_recovery_settle(rp_recovery *r, rp_error *err);
void rp_recovery_deinit(rp_recovery *r);

/* Tells a person; salvage says no more than 1,000 things. */
void rp_recovery_report(rp_recovery *r, const char *format, ...) RP_PRINTF(2, 3);

/* One checkpoint on its way into the store. */
typedef struct rp_loading rp_loading;

/* Takes neither. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_loading_new(rp_recovery *r, const rp_manifest *m, rp_loading **out,
                                      rp_error *err);
void rp_loading_free(rp_loading *l); /* NULL is fine */
/* Step 2; changes nothing in the store. */
RP_NODISCARD rp_status rp_loading_read(rp_loading *l, rp_error *err);
/* Step 3. If it fails some tables may have been filled: then there is no second try. */
RP_NODISCARD rp_status rp_loading_restore(rp_loading *l, rp_error *err);

#endif
