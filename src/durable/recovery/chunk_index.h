/* SPDX-License-Identifier: Apache-2.0 */
/* An index from disk locations to chunks. With it, recovery reads each chunk once and shares it
 * among all items that refer to it. Only one thread may use an index.
 *
 * Compaction (durable/checkpoint/checkpoint.h) moves chunks, so a checkpoint and the journal
 * after it can name different locations of one chunk. The record of a moved chunk contains the
 * first location of the chunk. The index contains a moved chunk twice: under its first and
 * under its current location.
 *
 * Invariants:
 *
 *   X1  count is the number of entries with a key, and at most three quarters of the capacity.
 *       The capacity is 0 or a power of two;
 *   X2  an entry with a key has a reference to its chunk, or its `chunk` is NULL: the chunk is
 *       wanted and not read yet. */
#ifndef RP_DURABLE_RECOVERY_CHUNK_INDEX_H
#define RP_DURABLE_RECOVERY_CHUNK_INDEX_H

#include "disk/segments.h"

enum { RP_INDEX_SEGMENT_BITS = 32, RP_INDEX_OFFSET_BITS = 32 };

typedef struct rp_index_entry {
    uint64_t key; /* the packed location (disk/location.h); 0: the entry is free */
    rp_chunk *chunk;
} rp_index_entry;

typedef struct rp_chunk_index {
    rp_allocator alloc;
    rp_index_entry *entries; /* open addressing */
    size_t count, capacity;
    /* Set by the owner of the index; may be NULL. Called once for each chunk that is read.
     * Returns RP_OK or RP_NO_RESOURCE. */
    rp_status (*on_chunk)(void *ctx, rp_chunk *chunk);
    void *ctx;
} rp_chunk_index;

void rp_chunk_index_init(rp_chunk_index *index, const rp_allocator *alloc);
void rp_chunk_index_deinit(rp_chunk_index *index); /* releases the chunks */

/* Marks the chunk at a location as wanted: rp_chunk_index_scan() will parse it. Errors:
 * RP_NO_RESOURCE, RP_CORRUPT (segment or offset are out of range). */
RP_NODISCARD rp_status rp_chunk_index_want(rp_chunk_index *index,
                                           const rp_disk_location *location, rp_error *err);
/* Returns the chunk at a location, borrowed, or NULL if it has not been read. */
rp_chunk *rp_chunk_index_find(const rp_chunk_index *index, const rp_disk_location *location);

typedef struct rp_chunk_scan_options {
    rp_files *files;
    rp_segments *segments;
    const rp_store_id *store;
    uint64_t number;                             /* number of the segment */
    uint64_t bytes;                              /* size of the part that must be good */
    void (*on_bytes)(void *ctx, uint64_t bytes); /* called with the size of each record */
    void *ctx;
} rp_chunk_scan_options;

/* Scans a segment from its first record to its last, checks every record, and parses the chunks
 * that are wanted. Returns RP_CORRUPT if a record is bad, or if fewer than options->bytes bytes
 * are good; the chunks before the bad record stay in the index. */
RP_NODISCARD rp_status rp_chunk_index_scan(rp_chunk_index *index,
                                           const rp_chunk_scan_options *options, rp_error *err);

/* Returns the chunk at a location, borrowed. If it is not in the index, reads it. Errors:
 * RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_index_get(rp_chunk_index *index, rp_segments *segments,
                                          const rp_disk_location *location, rp_chunk **out,
                                          rp_error *err);

#endif
