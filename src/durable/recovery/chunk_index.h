/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks by their places: what recovery keeps so that a chunk is read once and shared by all
 * items that refer to it. One thread.
 *
 * Compaction moves chunks, and a checkpoint and the journal behind it may name different places
 * of one. The record of a chunk that was moved says where it was first, and there it is
 * entered, too. */
#ifndef RP_DURABLE_RECOVERY_CHUNK_INDEX_H
#define RP_DURABLE_RECOVERY_CHUNK_INDEX_H

#include "disk/segments.h"

enum { RP_INDEX_SEGMENT_BITS = 32, RP_INDEX_OFFSET_BITS = 32 };

typedef struct rp_index_entry {
    uint64_t key;    /* 0: free */
    rp_chunk *chunk; /* a reference, or NULL: wanted, and not found yet */
} rp_index_entry;

typedef struct rp_chunk_index {
    rp_allocator alloc;
    rp_index_entry *entries; /* open addressing, at most three quarters full */
    size_t count, capacity;
    /* Set by the owner, or NULL: told of each chunk that was read, once. RP_NO_RESOURCE. */
    rp_status (*on_chunk)(void *ctx, rp_chunk *chunk);
    void *ctx;
} rp_chunk_index;

void rp_chunk_index_init(rp_chunk_index *index, const rp_allocator *alloc);
void rp_chunk_index_deinit(rp_chunk_index *index); /* lets go of the chunks */

/* Enters a place. RP_NO_RESOURCE, RP_CORRUPT (no segment is as large, or has that number). */
RP_NODISCARD rp_status rp_chunk_index_want(rp_chunk_index *index, const rp_place *place,
                                           rp_error *err);
/* The chunk at a place, borrowed, or NULL if it has not been read. */
rp_chunk *rp_chunk_index_find(const rp_chunk_index *index, const rp_place *place);

/* Goes through a segment, from its first record to its last, and parses the chunks that are
 * wanted. Every record is checked. RP_CORRUPT, also if fewer than `bytes` bytes are there and
 * good; what was found until then stays found. */
RP_NODISCARD rp_status rp_chunk_index_scan(rp_chunk_index *index, rp_files *files,
                                           rp_segments *segments, const rp_store_id *store,
                                           uint64_t number, uint64_t bytes,
                                           void (*on_bytes)(void *ctx, uint64_t bytes),
                                           void *ctx, rp_error *err);

/* The chunk at a place, borrowed, which is read if it is not there yet. RP_CORRUPT,
 * RP_NOT_FOUND, RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_index_get(rp_chunk_index *index, rp_segments *segments,
                                          const rp_place *place, rp_chunk **out, rp_error *err);

#endif
