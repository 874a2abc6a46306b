/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of an insert stream, found by key: chunks (encoded columns of steps) that the
 * client has sent on the stream, and to which later items of the stream can refer.
 *
 * A key is private to its stream. Items mostly refer to chunks in the order in which the chunks
 * were sent. So a lookup first tries the entry after the one that was found last, and then a
 * hash map.
 *
 * Invariants:
 *   C1  the map has the index of each entry under the key of the entry's chunk, and nothing
 *       else;
 *   C2  unused_bytes is the sum of the costs of the chunks of all entries that are not `used`;
 *   C3  outside rp_stream_chunks_keep(), no entry has `kept` set;
 *   C4  the first `marked` entries, and no others, are marked: rp_chunk_keep() was called for
 *       their chunks. While no table holds one of these chunks, the store's budget counts it in
 *       budget.kept (chunk/keep.h).
 *
 * Entries are marked at the end of a turn (iteration) of the event loop. Most entries are
 * dropped in the turn in which they were added, and are never marked.
 *
 * Only one thread at a time may use an rp_stream_chunks. */
#ifndef RP_SERVER_RPC_STREAM_CHUNKS_H
#define RP_SERVER_RPC_STREAM_CHUNKS_H

#include "chunk/chunk_api.h"
#include "util/map.h"

typedef struct rp_stream_chunk {
    rp_chunk *chunk; /* a reference */
    bool used;       /* whether an item is assumed to refer to the chunk */
    bool kept;       /* in rp_stream_chunks_keep(): whether the key is among the keys to keep */
} rp_stream_chunk;

typedef struct rp_stream_chunks {
    rp_map map;
    rp_stream_chunk *entries;
    size_t count, capacity;
    size_t next;         /* index of the entry that a lookup tries first */
    size_t unused_bytes; /* invariant C2 */
    size_t marked;       /* invariant C4 */
    size_t kept_change;  /* change for rp_stream_chunks_take_change() */
} rp_stream_chunks;

void rp_stream_chunks_init(rp_stream_chunks *chunks, const rp_allocator *alloc, uint64_t seed);
/* Drops all chunks and frees the memory. May be called more than once. The caller must call
 * rp_stream_chunks_take_change() afterwards. */
void rp_stream_chunks_deinit(rp_stream_chunks *chunks);

/* rp_stream_chunks_settle() marks all entries (C4), and shrinks `entries` if the array is much
 * too large. Must be called at the end of a turn, when each item that arrived in the turn is in
 * its table or in a parked batch, which waits for its table. rp_stream_chunks_must_settle()
 * returns false if there is nothing to do. */
bool rp_stream_chunks_must_settle(const rp_stream_chunks *chunks);
void rp_stream_chunks_settle(rp_stream_chunks *chunks);
/* Sets `used` to false for each chunk that no table holds and to which no waiting item refers.
 * Must not be called while a batch is open, since the tables do not hold the chunks of its
 * items yet. */
void rp_stream_chunks_update_use(rp_stream_chunks *chunks);
/* Returns the change that the caller must apply to budget.kept, modulo SIZE_MAX + 1, for the
 * calls since the last rp_stream_chunks_take_change(). */
size_t rp_stream_chunks_take_change(rp_stream_chunks *chunks);

/* Finds a chunk by its key. Returns a borrowed pointer, or NULL if the stream has no such
 * chunk. The caller must set `use` to true if an item refers to the chunk from now on. */
rp_chunk *rp_stream_chunks_find(rp_stream_chunks *chunks, uint64_t key, bool use);

/* Adds a chunk, whose key must be new. On RP_OK, takes the caller's reference. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_stream_chunks_add(rp_stream_chunks *chunks, rp_chunk *chunk);

/* Drops all chunks whose key is not among the `count` keys at `keys`. Returns false if the
 * stream has no chunk for one of the keys, or if a key occurs twice. Even then, the chunks are
 * dropped. */
bool rp_stream_chunks_keep(rp_stream_chunks *chunks, const uint64_t *keys, size_t count);

#endif
