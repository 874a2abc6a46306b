/* SPDX-License-Identifier: Apache-2.0 */
/* The set of chunks that an insert stream has sent and that the server keeps for the stream.
 *
 * Every message with items names the chunks that the server is to keep for later messages. A
 * chunk is kept as long as its reference count shows holders other than this set and the items
 * already sent. Such holders are the history of a writer and items that are not sent yet. Items
 * that were sent hold their trajectory until they are confirmed, so the set counts, for each
 * chunk, how many of them hold it (`own`). A chunk that has no other holders when it is sent is
 * never added to the set, so items that share no chunks cost no lookup.
 *
 * A wrong count costs bytes only: a chunk dropped too early is sent again, a chunk kept too
 * long is dropped later. A plain value.
 *
 * Invariants:
 *   K1  the map has exactly the keys of the first `count` entries, each with its index;
 *   K2  `bytes` is the sum of the wire bytes of these chunks; count <= capacity. */
#ifndef RP_CLIENT_SINK_SENT_CHUNKS_H
#define RP_CLIENT_SINK_SENT_CHUNKS_H

#include "chunk/trajectory.h"
#include "util/map.h"

enum {
    /* Bounds of the set: servers limit the chunks that a stream keeps without an item. */
    RP_KEPT_BYTES = 32 << 20,
    RP_KEPT_CHUNKS = 32 << 10,
};

typedef struct rp_sent_chunk {
    rp_chunk *chunk; /* a reference */
    uint32_t own;    /* unconfirmed items, sent on this stream, that hold it */
} rp_sent_chunk;

typedef struct rp_sent_chunks {
    rp_map map;
    rp_sent_chunk *entries; /* in order of sending */
    size_t count, capacity;
    size_t bytes;   /* of all entries */
    uint64_t *keys; /* scratch for rp_sent_chunks_keep(), of `capacity` */
} rp_sent_chunks;

void rp_sent_chunks_init(rp_sent_chunks *chunks, const rp_allocator *alloc, uint64_t seed);
void rp_sent_chunks_deinit(rp_sent_chunks *chunks);

/* Empties the set, for a new stream. */
void rp_sent_chunks_clear(rp_sent_chunks *chunks);

/* Makes room for `more` chunks. Returns false if there is no memory. */
bool rp_sent_chunks_reserve(rp_sent_chunks *chunks, size_t more);

/* Returns true if the server has the chunk. */
bool rp_sent_chunks_has(const rp_sent_chunks *chunks, const rp_chunk *chunk);

/* Counts an item that is about to be sent and holds `chunk`. Returns true if the server has the
 * chunk. Otherwise the caller must send the chunk, and this adds it to the set unless only this
 * item holds it (`is_alone`). There must be room. */
bool rp_sent_chunks_use(rp_sent_chunks *chunks, rp_chunk *chunk, bool is_alone);

/* No longer counts an item that was sent and is confirmed now. Call it before its trajectory is
 * released. */
void rp_sent_chunks_on_confirmed(rp_sent_chunks *chunks, const rp_trajectory *trajectory);

/* Drops the chunks without other holders, and the oldest ones while the set exceeds the bounds
 * above. Sets `*keys` to the keys of the remaining chunks, which the server is to keep;
 * borrowed until the next call. Returns the number of keys. */
size_t rp_sent_chunks_keep(rp_sent_chunks *chunks, const uint64_t **keys);

#endif
