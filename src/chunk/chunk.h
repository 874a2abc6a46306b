/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a chunk (chunk_api.h), for codecs, tables and byte accounting.
 *
 * A chunk is one allocation: the struct, the columns, their places (column_place.h), and the
 * serialised message. A message of RP_CHUNK_APART_BYTES or more is in a separate block, so that
 * the message can be freed before the chunk; such a chunk is called apart. An adopted chunk
 * (rp_chunk_adopt()) borrows its message. At the end of its allocation it has an rp_chunk_owner
 * instead of the message.
 *
 *   | rp_chunk | rp_chunk_column x n | rp_column_place x n | wire bytes, or rp_chunk_owner |
 *
 * Invariants:
 *   K1  a chunk is not both adopted and apart;
 *   K2  pins >= -1. If `pins` is -1, the bytes of the message are freed, and `pins` stays -1;
 *   K3  columns and places have column_count >= 1 elements. */
#ifndef RP_CHUNK_CHUNK_H
#define RP_CHUNK_CHUNK_H

#include <assert.h>

#include "chunk/chunk_api.h"
#include "chunk/column_place.h"
#include "chunk/holders.h"
#include "reprise/codec.h"
#include "util/refcount.h"

/* The disk location of a chunk. disk/store_location.h defines it. It is freed with the
 * chunk. */
typedef struct rp_chunk_location {
    void (*free)(struct rp_chunk_location *home);
} rp_chunk_location;

/* The state of a chunk in the disk tier. durable/tier/tier_inside.h defines it. It is freed
 * with the chunk. */
typedef struct rp_chunk_tier_state {
    void (*free)(struct rp_chunk_tier_state *stay);
} rp_chunk_tier_state;

enum {
    RP_CHUNK_APART_BYTES = 1024,
    /* The bytes that byte limits count for a chunk in addition to its message: its block, its
     * part of the indexes of tables and of segments (files with chunks), and the rounding of
     * the allocator. */
    RP_CHUNK_FIXED_BYTES = 224,
    RP_CHUNK_COLUMN_BYTES = 128, /* bytes that byte limits count for each column */
};

/* Sampling and sending read only the first fields. Eviction reads the fields up to `apart`,
 * which are in the first two cache lines. Readers of rows read all fields. */
struct rp_chunk {
    rp_refcount refs;
    uint32_t column_count;
    size_t wire_bytes; /* size of the message at `wire` */
    const uint8_t *wire;
    rp_chunk_origin origin;
    rp_holders holders; /* tables change it, under their locks */
    rp_allocator alloc; /* the allocator of this block and of `wire` */
    size_t size_bytes;  /* size of this block; a separate message does not count */
    _Atomic(rp_chunk_location *) home; /* NULL until the chunk is written to disk */
    /* NULL until a table of a store with a disk tier holds the chunk. */
    _Atomic(rp_chunk_tier_state *) stay;
    atomic_int_least32_t pins; /* number of readers of the message; -1: it was freed */
    bool adopted;              /* `wire` belongs to an rp_chunk_owner */
    bool apart;                /* `wire` is a separate block */
    bool delta;
    rp_codec codec;
    rp_chunk_column *columns;
    rp_column_place *places;
    uint32_t keeps; /* how many times the chunk is kept outside tables (keep.h) */
    uint32_t waits; /* how many of the `keeps` are by items that wait for their table */
};

/* The owner of the bytes of an adopted chunk. */
typedef struct rp_chunk_owner {
    void (*release)(void *ctx);
    void *ctx;
} rp_chunk_owner;

/* Return a column of a chunk, or the place of a column. The arrays of columns and of places
 * follow the struct rp_chunk in the block. rp_chunk_column_at() reads nothing from the struct;
 * rp_chunk_place_at() reads column_count. */
static inline const rp_chunk_column *rp_chunk_column_at(const rp_chunk *chunk, size_t column)
{
    return (const rp_chunk_column *)(const void *)(chunk + 1) + column;
}
static inline const rp_column_place *rp_chunk_place_at(const rp_chunk *chunk, size_t column)
{
    return (const rp_column_place *)(const void *)rp_chunk_column_at(chunk,
                                                                     chunk->column_count) +
           column;
}

/* Returns the number of rows of a column. */
static inline size_t rp_chunk_rows(const rp_chunk *chunk, size_t column)
{
    assert(column < chunk->column_count);
    return (size_t)chunk->columns[column].shape.dims[0];
}

/* Returns the number of bytes that byte limits count for a chunk. The number depends only on
 * the message, so it is the same before and after a restart, in memory and on disk. */
static inline size_t rp_chunk_memory(const rp_chunk *chunk)
{
    return chunk->wire_bytes + RP_CHUNK_FIXED_BYTES +
           (size_t)chunk->column_count * RP_CHUNK_COLUMN_BYTES;
}

/* Allocates a chunk with uninitialised columns, places and message, which the caller fills in.
 * Sets `*wire` to the address of the message. Returns NULL if there is no memory. The caller
 * owns the result. */
rp_chunk *rp_chunk_alloc(const rp_allocator *alloc, size_t column_count, size_t wire_bytes,
                         uint8_t **wire);

/* Like rp_chunk_parse(), but copies nothing: the chunk borrows the bytes. When the last
 * reference is dropped, owner->release(owner->ctx) is called once, on any thread, with no lock
 * of the library held. Until then the bytes must not change. `owner` is copied. The chunk
 * counts against byte limits like any other chunk. On failure the caller keeps the bytes, and
 * `owner` is not called. The statuses are those of rp_chunk_parse(). */
RP_NODISCARD rp_status rp_chunk_adopt(const rp_allocator *alloc, const uint8_t *wire,
                                      size_t size, const rp_chunk_limits *limits,
                                      const rp_chunk_owner *owner, rp_chunk **out,
                                      rp_error *err);

/* Freeing the bytes of a chunk before the chunk.
 *
 * The disk tier frees the bytes (the message) of chunks that it has written to disk. Columns
 * and places stay in memory. A thread must pin a chunk before it reads the chunk's bytes,
 * unless it knows that no table holds the chunk. In a store without a disk tier the bytes are
 * never freed. */

/* Returns true if the bytes can be freed before the chunk. Returns false for a small chunk,
 * whose bytes are part of the chunk's block. */
static inline bool rp_chunk_can_spill(const rp_chunk *chunk)
{
    return chunk->apart || (chunk->adopted && chunk->wire_bytes >= RP_CHUNK_APART_BYTES);
}

/* Pins the bytes: the disk tier does not free them until rp_chunk_unpin(). Returns false if the
 * bytes have been freed already. Takes no lock. The caller must hold a reference to the chunk
 * until rp_chunk_unpin(). */
bool rp_chunk_pin(rp_chunk *chunk);
void rp_chunk_unpin(rp_chunk *chunk);

/* rp_chunk_claim_bytes() marks the bytes of a chunk, which must be on disk, as freed. It
 * returns false if a reader has pinned the bytes. After true, the caller must call
 * rp_chunk_free_bytes() with no lock held, and must hold a reference to the chunk until
 * then. */
bool rp_chunk_claim_bytes(rp_chunk *chunk);
void rp_chunk_free_bytes(rp_chunk *chunk);

/* Makes a view: a chunk that shares the bytes of `chunk` and belongs to no table. The view
 * holds a reference to `chunk` and a pin. The caller must have pinned `chunk`; the view takes
 * over this pin. If there is no memory, returns NULL, and the caller keeps the pin. */
rp_chunk *rp_chunk_view(const rp_allocator *alloc, rp_chunk *chunk);

#endif
