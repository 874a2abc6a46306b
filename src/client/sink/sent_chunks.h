/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks that an insert stream has sent and the server still keeps for it.
 *
 * Every message with items tells the server which chunks to keep for later ones. That is asked
 * of the reference counts: a chunk is worth keeping as long as somebody holds it other than
 * this set and the items that have gone out on the stream. Those have their trajectories until
 * they are confirmed, so the set counts for each chunk how many of them hold it (`own`); the
 * rest are a writer's history and items that wait. A chunk that nobody else holds when it goes
 * out is never entered: items that share nothing cost no look-up here.
 *
 * A count that is wrong costs bytes and nothing else: what was dropped too early is sent once
 * more, what is kept too long is dropped later. A plain value. */
#ifndef RP_CLIENT_SINK_SENT_CHUNKS_H
#define RP_CLIENT_SINK_SENT_CHUNKS_H

#include "chunk/trajectory.h"
#include "util/map.h"

enum {
    /* What a server is asked to keep: it has limits for what a stream holds and no item. */
    RP_KEPT_BYTES = 32 << 20,
    RP_KEPT_CHUNKS = 32 << 10,
};

typedef struct rp_sent_chunk {
    rp_chunk *chunk; /* a reference */
    uint32_t own;    /* items sent and not confirmed that hold it */
} rp_sent_chunk;

typedef struct rp_sent_chunks {
    rp_map map;
    rp_sent_chunk *entries; /* in the order in which they were sent */
    size_t count, capacity;
    size_t bytes;   /* of all of them */
    uint64_t *keys; /* as many as entries */
} rp_sent_chunks;

void rp_sent_chunks_init(rp_sent_chunks *chunks, const rp_allocator *alloc, uint64_t seed);
void rp_sent_chunks_deinit(rp_sent_chunks *chunks);

/* Forgets all: a new stream. */
void rp_sent_chunks_clear(rp_sent_chunks *chunks);

/* Makes room for `more` chunks. False: no memory. */
bool rp_sent_chunks_reserve(rp_sent_chunks *chunks, size_t more);

/* True if the server has the chunk. Changes nothing. */
bool rp_sent_chunks_has(const rp_sent_chunks *chunks, const rp_chunk *chunk);

/* An item that goes out holds `chunk`. True if the server has the chunk already; if not, it
 * must be sent, and is entered here unless it is the item's alone. There must be room. */
bool rp_sent_chunks_use(rp_sent_chunks *chunks, rp_chunk *chunk, bool is_alone);

/* An item that had gone out is confirmed, and about to let go of its trajectory. */
void rp_sent_chunks_on_confirmed(rp_sent_chunks *chunks, const rp_trajectory *trajectory);

/* Drops what is not worth keeping, and the oldest over the bounds above. What is left is what
 * the server shall keep: `*keys`, borrowed until the next call here. Returns how many. */
size_t rp_sent_chunks_keep(rp_sent_chunks *chunks, const uint64_t **keys);

#endif
