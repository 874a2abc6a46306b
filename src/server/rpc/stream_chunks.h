/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks that an insert stream has sent and may still refer to.
 *
 * A key is private to its stream. Looking up is a keyed hash; but items mostly refer to chunks
 * in the order in which these came, so the next one is looked at first. A plain value.
 *
 * A chunk that stays after its message is marked: then it counts in the budget's `kept` while
 * no table holds it (chunk/keep.h). Not before, as most chunks leave the stream in the turn in
 * which they came. */
#ifndef RP_SERVER_RPC_STREAM_CHUNKS_H
#define RP_SERVER_RPC_STREAM_CHUNKS_H

#include "reprise/chunk.h"
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
    size_t next;         /* the entry that is looked at first */
    size_t unused_bytes; /* that chunks take which no item refers to, when last looked at */
    size_t marked;       /* the first so many entries are */
    size_t kept_change;  /* of the budget's `kept`, which it does not know yet */
} rp_stream_chunks;

void rp_stream_chunks_init(rp_stream_chunks *chunks, const rp_allocator *alloc, uint64_t seed);
/* Drops all and gives back the memory. There is a change to be taken; it may be called again.
 */
void rp_stream_chunks_deinit(rp_stream_chunks *chunks);

/* Marks the chunks that are not, and gives back memory for others: at the end of a turn, when
 * the items that came in it are in their tables, or wait. True: there is something to do. */
bool rp_stream_chunks_must_settle(const rp_stream_chunks *chunks);
void rp_stream_chunks_settle(rp_stream_chunks *chunks);
/* Looks for chunks that no table holds any more and that no insert waits with: they are unused.
 * While no batch is open. */
void rp_stream_chunks_look(rp_stream_chunks *chunks);
/* What is to be told to rp_budget_add_kept(). */
size_t rp_stream_chunks_take_change(rp_stream_chunks *chunks);

/* The chunk of that key, borrowed, or NULL. `use`: an item refers to it from now on. */
rp_chunk *rp_stream_chunks_find(rp_stream_chunks *chunks, uint64_t key, bool use);

/* Adds a chunk whose key is not there; takes the reference on RP_OK. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_stream_chunks_add(rp_stream_chunks *chunks, rp_chunk *chunk);

/* Drops all chunks whose key is not among the `count` keys. False if a key was not there, or
 * stands twice; the drop is done all the same. */
bool rp_stream_chunks_keep(rp_stream_chunks *chunks, const uint64_t *keys, size_t count);

#endif
