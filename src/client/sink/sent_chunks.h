/* SPDX-License-Identifier: Apache-2.0 */
/* The set of chunks (serialised rows of columns, chunk/chunk_api.h) that a client has sent on
 * an insert stream and that the server keeps for later items of the stream. Items share chunks.
 * With this set, a remote sink (remote_sink.h) sends each chunk only once.
 *
 * Each message with items lists the chunks that the server must keep. The server must keep a
 * chunk as long as a later item could need it, that is, as long as a writer's history or an
 * item not sent yet has a reference to it. To find out, the set compares the chunk's reference
 * count with the number of references that do not matter: the set's own reference, and the
 * references of the `own` items that were sent and are not confirmed. A chunk without other
 * references when it is sent is never added to the set. Items that share no chunks therefore
 * cost no lookup.
 *
 * A wrong count costs only bytes: a chunk that was dropped too early is sent again, and a chunk
 * that was kept too long is dropped later. Not thread-safe.
 *
 * Invariants:
 *   K1  the map contains exactly the keys of the first `count` entries, each with its index;
 *   K2  `bytes` is the sum of the wire bytes of these chunks; count <= capacity. */
#ifndef RP_CLIENT_SINK_SENT_CHUNKS_H
#define RP_CLIENT_SINK_SENT_CHUNKS_H

#include "chunk/trajectory.h"
#include "util/map.h"

enum {
    /* Bounds of the set. Servers limit the chunks that they keep for a stream. */
    RP_KEPT_BYTES = 32 << 20,
    RP_KEPT_CHUNKS = 32 << 10,
};

typedef struct rp_sent_chunk {
    rp_chunk *chunk; /* a reference */
    uint32_t own;    /* number of unconfirmed items, sent on this stream, that refer to the
                        chunk */
} rp_sent_chunk;

typedef struct rp_sent_chunks {
    rp_map map;
    rp_sent_chunk *entries; /* in order of sending */
    size_t count, capacity;
    size_t bytes;   /* invariant K2 */
    uint64_t *keys; /* scratch buffer for rp_sent_chunks_keep(): `capacity` keys */
} rp_sent_chunks;

void rp_sent_chunks_init(rp_sent_chunks *chunks, const rp_allocator *alloc, uint64_t seed);
void rp_sent_chunks_deinit(rp_sent_chunks *chunks);

/* Empties the set, for a new stream. */
void rp_sent_chunks_clear(rp_sent_chunks *chunks);

/* Makes room for `more` further chunks. Returns false if memory runs out. */
bool rp_sent_chunks_reserve(rp_sent_chunks *chunks, size_t more);

/* Returns true if the chunk is in the set. */
bool rp_sent_chunks_has(const rp_sent_chunks *chunks, const rp_chunk *chunk);

/* Counts an item that refers to `chunk` and is about to be sent. Returns true if the chunk is
 * in the set, so that the server has it. Otherwise returns false: the caller must send the
 * chunk, and the function adds the chunk to the set, which must have room. There is one
 * exception: if `is_alone` (no other item uses this item's trajectory) and the trajectory has
 * the only reference to the chunk, no later item can need the chunk, and the function does not
 * add it. */
bool rp_sent_chunks_use(rp_sent_chunks *chunks, rp_chunk *chunk, bool is_alone);

/* Stops counting an item, which has been confirmed. Must be called before its trajectory is
 * released. */
void rp_sent_chunks_on_confirmed(rp_sent_chunks *chunks, const rp_trajectory *trajectory);

/* Drops the chunks that no later item can need, and, while the set exceeds its bounds, the
 * oldest chunks. Sets `*keys` to the keys of the remaining chunks, which the server must keep,
 * and returns their number. `*keys` is valid until the next call. */
size_t rp_sent_chunks_keep(rp_sent_chunks *chunks, const uint64_t **keys);

#endif
