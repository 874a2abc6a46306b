/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a data directory into a store (docs/checkpoint.md, "Recovery"):
 *
 *   1  chooses a manifest: the manifest that CURRENT names. If CURRENT or this manifest is
 *      missing or bad, tries the other manifests from the highest number down
 *   2  reads its blocks (256 slots of a table each), then its segments from beginning to end:
 *      checks every record, and parses once each chunk that a block refers to
 *   3  gives the tables of the store the saved selectors, creates missing tables, and restores
 *      all tables
 *   4  moves checkpoints that could not be loaded to quarantine, and removes left-over
 *      temporary files
 *
 * Between steps 3 and 4 the caller redoes the journal with the same chunk index.
 *
 * Nothing on disk is changed before a checkpoint has been loaded completely. If no checkpoint
 * can be loaded, the directory is refused and stays as it is. */
#ifndef RP_DURABLE_RECOVERY_RECOVERY_H
#define RP_DURABLE_RECOVERY_RECOVERY_H

#include "durable/checkpoint/checkpointer.h"
#include "durable/format/rollouts_file.h"
#include "durable/recovery/chunk_index.h"
#include "durable/tier/tier.h"

typedef struct rp_recovery {
    /* Set by the caller. */
    const rp_allocator *alloc;
    rp_files *files;
    rp_store *store;
    uint64_t segment_bytes;
    uint64_t max_memory; /* 0: no disk tier */
    bool salvage;
    rp_progress_meter *meter;
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void (*on_tier_event)(void *ctx, bool degraded, const char *text); /* passed to the tier */
    void *ctx;
    /* Results. */
    bool is_fresh;              /* the directory was empty */
    bool is_older;              /* a newer checkpoint could not be loaded */
    uint64_t failed_checkpoint; /* if is_older: number of the newest one that failed */
    uint64_t wanted_lsn;  /* log sequence number (LSN) of the newest checkpoint whose manifest
                             could be read */
    uint64_t highest_lsn; /* highest LSN in any manifest, rollouts file or journal file,
                             quarantined ones included */
    bool is_whole; /* the newest checkpoint was loaded, and nothing was dropped or altered */
    bool is_same;  /* every table of the store is in the checkpoint */
    rp_store_id id;
    rp_segments *segments; /* owned */
    rp_tier *tier;         /* owned; NULL: none */
    rp_chunk_index chunks; /* all chunks that were loaded */
    rp_catalogue catalogue;
    uint64_t checkpoint;              /* number of the loaded checkpoint; 0: none */
    rp_manifest_rollouts rollouts_at; /* the record ROLLOUTS of its manifest */
    rp_rollouts_found rollouts;       /* the loaded rollouts, which are in the store */
    /* `last_number` is the highest number of any checkpoint in the directory, `lsn` the LSN of
     * the loaded checkpoint, and `next_segment` the number of the first new segment. */
    uint64_t last_number, lsn, next_segment;
    bool has_journal;  /* journal files exist */
    uint64_t dropped;  /* with `salvage`: how many items or whole blocks were lost */
    uint64_t *damaged; /* with `salvage`: numbers of the damaged segments, ascending */
    size_t damaged_count, damaged_capacity;
    /* private */
    size_t reported; /* number of texts reported by rp_recovery_report() */
} rp_recovery;

/* Does steps 1 to 3. On success the caller may take over `segments`, `tier`, `damaged` and
 * `catalogue`; it must then set the pointers to NULL and leave an empty catalogue.
 * rp_recovery_deinit() releases everything else, and must also be called after a failure.
 * Errors: RP_CORRUPT, RP_PRECONDITION, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_recover(rp_recovery *r, rp_error *err);
/* Does step 4. Must be called after the redo of the journal. Also fills the catalogue. */
RP_NODISCARD rp_status rp_recovery_settle(rp_recovery *r, rp_error *err);
void rp_recovery_deinit(rp_recovery *r);

/* Reports a text through on_event, at most 1,000 times. */
void rp_recovery_report(rp_recovery *r, const char *format, ...) RP_PRINTF(2, 3);

/* A checkpoint that is being loaded. */
typedef struct rp_loading rp_loading;

/* Starts to load the checkpoint with the manifest `m`. Borrows `r` and `m`. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_loading_new(rp_recovery *r, const rp_manifest *m, rp_loading **out,
                                      rp_error *err);
void rp_loading_free(rp_loading *l); /* NULL is fine */
/* Does step 2. Does not change the store. */
RP_NODISCARD rp_status rp_loading_read(rp_loading *l, rp_error *err);
/* Does step 3. After a failure some tables are possibly filled, so no other checkpoint can be
 * tried. */
RP_NODISCARD rp_status rp_loading_restore(rp_loading *l, rp_error *err);

#endif
