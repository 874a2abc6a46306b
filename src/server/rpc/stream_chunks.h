/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks that the client has sent on an insert stream and to which items of the stream may
 * still refer, by key.
 *
 * A key is private to its stream. Items mostly refer to chunks in the order in which these were
 * sent, so a lookup first tries the entry after the last one that was found, and then a hash
 * map.
 *
 * Invariants:
 *   C1  the map has the index of each entry under its key, once, and nothing else;
 *   C2  unused_bytes is the sum of the costs of all entries that are not `used`;
 *   C3  no entry has `kept` set, except within rp_stream_chunks_keep();
 *   C4  rp_chunk_keep() was called for the chunks of the first `marked` entries only: these are
 *       counted in the server's budget.kept, unless a table holds them (chunk/keep.h).
 *
 * Entries are marked only at the end of a turn of the loop, since most entries are dropped in
 * the turn in which they were added and need not be counted.
 *
 * A plain value. */
#ifndef RP_SERVER_RPC_STREAM_CHUNKS_H
#define RP_SERVER_RPC_STREAM_CHUNKS_H

#include "chunk/chunk_api.h"
#include "util/map.h"

typedef struct rp_stream_chunk {
    rp_chunk *chunk; /* a reference */
    bool used;       /* an item is assumed to refer to the chunk */
    bool kept;       /* in rp_stream_chunks_keep(): its key is among the keys to keep */
} rp_stream_chunk;

typedef struct rp_stream_chunks {
    rp_map map;
    rp_stream_chunk *entries;
    size_t count, capacity;
    size_t next;         /* the entry that is tried first */
    size_t unused_bytes; /* C2 */
    size_t marked;       /* C4 */
    size_t kept_change;  /* see rp_stream_chunks_take_change() */
} rp_stream_chunks;

void rp_stream_chunks_init(rp_stream_chunks *chunks, const rp_allocator *alloc, uint64_t seed);
/* Drops all chunks and frees the memory. May be called again. Call
 * rp_stream_chunks_take_change() after it. */
void rp_stream_chunks_deinit(rp_stream_chunks *chunks);

/* Marks all entries (C4), and shrinks an array that is much too large. Call it at the end of a
 * turn, when all items that arrived in the turn are in their tables or in a parked batch, which
 * waits for its table. rp_stream_chunks_must_settle() is false if there is nothing to do. */
bool rp_stream_chunks_must_settle(const rp_stream_chunks *chunks);
void rp_stream_chunks_settle(rp_stream_chunks *chunks);
/* Sets all chunks to unused that no table holds and to which no waiting item refers. Do not
 * call it while a batch is open, since the tables do not hold the chunks of its items yet. */
void rp_stream_chunks_update_use(rp_stream_chunks *chunks);
/* Returns by how much budget.kept must change, modulo SIZE_MAX + 1, because of the calls since
 * the last take. The caller applies the change. */
size_t rp_stream_chunks_take_change(rp_stream_chunks *chunks);

/* Finds a chunk by its key. Returns it borrowed, or NULL. Set `use` if an item refers to the
 * chunk from now on. */
rp_chunk *rp_stream_chunks_find(rp_stream_chunks *chunks, uint64_t key, bool use);

/* Adds a chunk, whose key must be new. Takes the caller's reference on RP_OK. RP_NO_RESOURCE.
 */
RP_NODISCARD rp_status rp_stream_chunks_add(rp_stream_chunks *chunks, rp_chunk *chunk);

/* Drops all chunks whose key is not among the `count` keys. False if a key has no chunk, or
 * occurs twice; the chunks are dropped all the same. */
bool rp_stream_chunks_keep(rp_stream_chunks *chunks, const uint64_t *keys, size_t count);

#endif
