/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of a data directory: the checkpoints that are kept, the segments of this store,
 * and the locations of the blocks of the last checkpoint (a block has 256 slots of a table).
 * Manifests and segments that are not in the catalogue are never removed. A cut is the snapshot
 * of all tables that a checkpoint takes. A checkpoint in quarantine is one that recovery could
 * not load. Invariants:
 *
 *   K1  every segment that a checkpoint in the catalogue needs is in the catalogue;
 *   K2  checkpoints and segments are ascending, without duplicates;
 *   K3  a block has one share for each segment that it needs: the segment that holds the block
 *       and the segments that hold its chunks.
 *
 * Only the thread that writes checkpoints uses the catalogue. */
#ifndef RP_DURABLE_CHECKPOINT_CATALOGUE_H
#define RP_DURABLE_CHECKPOINT_CATALOGUE_H

#include "durable/format/manifest.h"

/* A share: the part of a segment that a block needs. */
typedef struct rp_share {
    uint64_t segment, bytes;
    uint64_t end; /* offset of the first byte after the last byte that the block needs */
} rp_share;

typedef struct rp_kept_block {
    rp_manifest_block at;
    rp_share *shares;
    uint32_t share_count;
    /* True if the block was written for the checkpoint in progress. A fresh block owns its
     * shares. A block that is not fresh has not changed, and borrows its shares from the last
     * checkpoint. */
    bool fresh;
} rp_kept_block;

typedef struct rp_kept_table {
    rp_table *table; /* a reference */
    rp_kept_block *blocks;
    size_t block_count;
} rp_kept_table;

/* The blocks of a checkpoint. */
typedef struct rp_kept_tables {
    rp_kept_table *tables;
    size_t count;
} rp_kept_tables;

typedef struct rp_kept_checkpoint {
    uint64_t number, lsn;
    rp_manifest_segment *segments; /* ascending */
    size_t segment_count;
} rp_kept_checkpoint;

typedef struct rp_owned_segment {
    uint64_t number;
    /* A segment is dead if it is no longer written and no chunk in memory has its location in
     * it. dead_at is the number of the first checkpoint before whose cut the segment was dead;
     * 0: the segment is alive. */
    uint64_t dead_at;
    bool is_revoked; /* it was revoked: it is dead because its chunks have lost their locations
                        (rp_segments_revoke()) */
    bool is_spared;  /* tables have chunks in it, so it must not be revoked. Set anew by each
                        checkpoint */
    uint64_t live;   /* bytes that tables need; valid if rp_checkpointer.knows_live is set */
} rp_owned_segment;

typedef struct rp_catalogue {
    rp_allocator alloc;
    rp_kept_checkpoint *checkpoints;
    size_t checkpoint_count, checkpoint_capacity;
    /* The segments of this store with numbers below rp_checkpointer.next_segment. A newer
     * segment is added when it is no longer written. */
    rp_owned_segment *segments;
    size_t segment_count, segment_capacity;
    uint64_t *held; /* numbers of segments that quarantined checkpoints need: never removed */
    size_t held_count, held_capacity;
    rp_kept_tables last;
} rp_catalogue;

void rp_catalogue_init(rp_catalogue *c, const rp_allocator *alloc);
void rp_catalogue_deinit(rp_catalogue *c);

/* Adds a checkpoint and its segments. Copies the list of segments. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_catalogue_add_checkpoint(rp_catalogue *c, uint64_t number,
                                                   uint64_t lsn,
                                                   const rp_manifest_segment *segments,
                                                   size_t count);
void rp_catalogue_drop_checkpoint(rp_catalogue *c, size_t index);
/* Adds a segment if the catalogue does not have it. The caller may add segments in any order.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_catalogue_add_segment(rp_catalogue *c, uint64_t number);
void rp_catalogue_drop_segment(rp_catalogue *c, uint64_t number);

/* Adds segments to `held`, so that they are never removed. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_catalogue_hold(rp_catalogue *c, const rp_manifest_segment *segments,
                                         size_t count);

/* Returns the index of a segment in `segments`, or the index at which it would be inserted. */
size_t rp_catalogue_position(const rp_catalogue *c, uint64_t number);
/* Returns true if a checkpoint in quarantine needs the segment. */
bool rp_catalogue_holds(const rp_catalogue *c, uint64_t number);
/* Returns true if a checkpoint in the catalogue, or in quarantine, needs the segment. */
bool rp_catalogue_needs(const rp_catalogue *c, uint64_t number);

/* Finds a segment in the list of a checkpoint. Returns NULL if the list does not have it. */
const rp_manifest_segment *rp_find_segment(const rp_manifest_segment *segments, size_t count,
                                           uint64_t number);

/* Frees the tables and their blocks. `only_fresh` must be set for a checkpoint that was not
 * finished. If it is set, frees only the shares of fresh blocks, since other blocks borrow
 * their shares. */
void rp_kept_tables_free(const rp_allocator *alloc, rp_kept_tables *tables, bool only_fresh);
/* Finds the blocks of a table. Returns NULL if `tables` does not have the table. */
const rp_kept_table *rp_kept_tables_find(const rp_kept_tables *tables, const rp_table *table);

#endif
