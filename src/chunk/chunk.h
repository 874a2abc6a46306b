/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a chunk, for the modules below the tables and for byte accounting.
 *
 * One allocation: this header, the columns, their places, the serialised message; or, if that
 * is somebody else's memory, whom to tell when it is no longer needed. From
 * RP_CHUNK_APART_BYTES on the message has a block of its own, so that it can go before the
 * chunk does.
 *
 *   | rp_chunk | rp_chunk_column x n | rp_column_place x n | wire bytes, or rp_chunk_owner | */
#ifndef RP_CHUNK_CHUNK_H
#define RP_CHUNK_CHUNK_H

#include "chunk/holders.h"
#include "reprise/chunk.h"
#include "util/refcount.h"

/* How the bytes of a column stand in the message. */
typedef enum rp_column_form {
    RP_FORM_CODED,         /* compressed or delta encoded: decode to read */
    RP_FORM_STORED,        /* plain rows: read where they are */
    RP_FORM_STRING_LIST,   /* string_list.h */
    RP_FORM_STRING_VALUES, /* string_list.h; the place is that of the whole TensorProto */
} rp_column_form;

/* Where a column stands in the message. */
typedef struct rp_column_place {
    size_t content_at; /* offset of its stored_bytes */
    size_t rows_at;    /* offset of the first plain row; RP_FORM_STORED only */
    size_t row_bytes;  /* of a decoded row; of strings, elements * sizeof(rp_string) */
    rp_column_form form;
    bool delta; /* the rows are differences */
} rp_column_place;

/* What a chunk's place on disk is kept in: made and known by disk/segments.c, freed with the
 * chunk. */
typedef struct rp_chunk_home {
    void (*free)(struct rp_chunk_home *home);
} rp_chunk_home;

/* What the disk tier knows of a chunk: made by durable/tier/tier.c, freed with the chunk. */
typedef struct rp_chunk_stay {
    void (*free)(struct rp_chunk_stay *stay);
} rp_chunk_stay;

enum {
    RP_CHUNK_APART_BYTES = 1024,
    /* What a chunk counts for besides its message: this block, its share of the indexes of
     * tables and segments, and what the allocator rounds up. */
    RP_CHUNK_FIXED_BYTES = 224,
    RP_CHUNK_COLUMN_BYTES = 128, /* for each column */
};

/* Sampling and sending read the first fields, eviction also those up to `apart`, which are in
 * the first two cache lines, and readers of rows all of them. */
struct rp_chunk {
    rp_refcount refs;
    uint32_t column_count;
    size_t wire_bytes; /* of the message at `wire` */
    const uint8_t *wire;
    rp_chunk_origin origin;
    rp_holders holders;            /* counted by tables, under their locks */
    rp_allocator alloc;            /* it came from here */
    size_t size_bytes;             /* of this block; a message that is apart is not in it */
    _Atomic(rp_chunk_home *) home; /* NULL until it is put on disk */
    _Atomic(rp_chunk_stay *) stay; /* NULL until a table with a disk tier holds it */
    atomic_int_least32_t pins;     /* readers of bytes that may go; -1: they have gone */
    bool adopted;                  /* `wire` is its owner's */
    bool apart;                    /* `wire` is a block of its own */
    bool delta;
    rp_codec codec;
    rp_chunk_column *columns;
    rp_column_place *places;
    uint32_t keeps, waits; /* chunk/keep.h; of the thread that inserts it */
};

/* Who owns the bytes of an adopted chunk. */
typedef struct rp_chunk_owner {
    void (*release)(void *ctx);
    void *ctx;
} rp_chunk_owner;

/* Rows of a column. */
static inline size_t rp_chunk_rows(const rp_chunk *chunk, size_t column)
{
    return (size_t)chunk->columns[column].shape.dims[0];
}

/* The memory that a chunk counts for in byte limits. Depends on the message alone, so that a
 * chunk counts for the same before and after a restart, wherever its bytes are. */
static inline size_t rp_chunk_memory(const rp_chunk *chunk)
{
    return chunk->wire_bytes + RP_CHUNK_FIXED_BYTES +
           (size_t)chunk->column_count * RP_CHUNK_COLUMN_BYTES;
}

/* An allocated chunk with room for so many columns and bytes, all still to be filled in,
 * `*wire` first. NULL if there is no memory. Owned: hand it out, or rp_chunk_unref() it. */
rp_chunk *rp_chunk_alloc(const rp_allocator *alloc, size_t column_count, size_t wire_bytes,
                         uint8_t **wire);

/* Like rp_chunk_parse(), but copies nothing: the chunk borrows the bytes where they are. They
 * must stay as they are until owner->release(owner->ctx) is called, once, when the last
 * reference is dropped: on any thread, with no lock of the library held. Of `owner` itself a
 * copy is kept. The chunk counts for the bytes of its message, as any other. On failure the
 * bytes are the caller's as before and `owner` is not called. The same statuses. */
RP_NODISCARD rp_status rp_chunk_adopt(const rp_allocator *alloc, const uint8_t *wire,
                                      size_t size, const rp_chunk_limits *limits,
                                      const rp_chunk_owner *owner, rp_chunk **out,
                                      rp_error *err);

/* Bytes that go before their chunk does.
 *
 * For the disk tier, and for whoever reads a chunk that a table may hold. In a store without a
 * tier bytes never go. The columns stay. */

/* True if its bytes can go at all: small ones lie in the chunk itself. */
static inline bool rp_chunk_can_go(const rp_chunk *chunk)
{
    return chunk->apart || (chunk->adopted && chunk->wire_bytes >= RP_CHUNK_APART_BYTES);
}

/* True: the bytes are there and stay until rp_chunk_unpin(). False: they have gone. Takes no
 * lock. The caller has a reference, which it keeps as long as the pin. */
bool rp_chunk_pin(rp_chunk *chunk);
void rp_chunk_unpin(rp_chunk *chunk);

/* Decides that the bytes go: false if somebody has them pinned. They must be readable elsewhere
 * by then. After true, rp_chunk_free_bytes() with no lock held; until then a reference. */
bool rp_chunk_give_up_bytes(rp_chunk *chunk);
void rp_chunk_free_bytes(rp_chunk *chunk);

/* A chunk that reads as `chunk` does, and holds it, pinned, as long as its own bytes are there.
 * Of no table yet. The bytes must be pinned by the caller already, who hands the pin over; on
 * failure it stays the caller's. NULL if there is no memory. */
rp_chunk *rp_chunk_view(const rp_allocator *alloc, rp_chunk *chunk);

#endif
