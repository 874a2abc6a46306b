/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks that an insert stream has sent and whose keys its items may still use.
 *
 * A key is private to its stream. A keyed hash finds it; but items mostly refer to chunks in
 * the order in which these were sent, so the entry after the last one is tried first.
 *
 * Invariants:
 *   C1  the map has the index of each entry under its key, once, and nothing else;
 *   C2  unused_bytes is the cost of all entries that are not `used`;
 *   C3  no entry is `kept` between calls.
 *
 * A plain value. */
#ifndef RP_SERVER_RPC_STREAM_CHUNKS_H
#define RP_SERVER_RPC_STREAM_CHUNKS_H

#include "chunk/chunk_api.h"
#include "util/map.h"

typedef struct rp_stream_chunk {
    rp_chunk *chunk; /* a reference */
    bool used;       /* an item referred to it when it was kept last, or does since */
    bool kept;       /* while keys to keep are being matched */
} rp_stream_chunk;

typedef struct rp_stream_chunks {
    rp_map map;
    rp_stream_chunk *entries;
    size_t count, capacity;
    size_t next;         /* the entry that is tried first */
    size_t unused_bytes; /* C2 */
} rp_stream_chunks;

void rp_stream_chunks_init(rp_stream_chunks *chunks, const rp_allocator *alloc, uint64_t seed);
void rp_stream_chunks_deinit(rp_stream_chunks *chunks);

/* The chunk of that key, borrowed, or NULL. `use`: an item refers to it from now on. */
rp_chunk *rp_stream_chunks_find(rp_stream_chunks *chunks, uint64_t key, bool use);

/* Adds a chunk whose key is not there; takes the reference on RP_OK. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_stream_chunks_add(rp_stream_chunks *chunks, rp_chunk *chunk);

/* Drops all chunks whose key is not among the `count` keys. False if a key has no chunk, or
 * occurs twice; the chunks are dropped all the same. */
bool rp_stream_chunks_keep(rp_stream_chunks *chunks, const uint64_t *keys, size_t count);

#endif
