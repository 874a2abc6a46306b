/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC message to be sent: its own bytes, and borrowed bytes, which are not copied.
 *
 *   bytes    | prefix (5) | own | own | own ...
 *                               ^ borrowed pieces are inserted between own bytes
 *
 * Borrowed bytes are in chunks. The message holds trajectories of these chunks until it was
 * written. Small chunks are copied, as a separate piece costs more than the copy. A pool keeps
 * replies for reuse.
 *
 * Invariants:
 *   R1  `borrowed` is the sum of the sizes of all pieces, whose `at` ascend;
 *   R2  once closed: left <= given <= size;
 *   R3  idle_bytes is the memory of all idle replies of a pool.
 *
 * One thread. */
#ifndef RP_WIRE_REPLY_H
#define RP_WIRE_REPLY_H

#include "reprise/trajectory.h"
#include "util/buf.h"

enum {
    RP_GRPC_PREFIX = 5,        /* compressed flag, then the length, big-endian */
    RP_REPLY_COPY_BYTES = 4096 /* borrowed from here on */
};

typedef struct rp_reply_piece {
    size_t at; /* inserted before this own byte */
    const uint8_t *data;
    size_t size;
} rp_reply_piece;

typedef struct rp_reply rp_reply;
struct rp_reply {
    rp_reply *next;
    rp_buf bytes;
    rp_reply_piece *pieces;
    size_t piece_count, piece_capacity;
    rp_trajectory **holds;
    size_t hold_count, hold_capacity;
    size_t borrowed; /* bytes of all pieces */
    size_t size;     /* once closed: of everything, prefix included */
    /* bytes that were handed to the connection, and bytes of them that were written */
    size_t own_given, piece_given, piece_part, given, left;
};

typedef struct rp_reply_pool {
    rp_reply *idle;
    size_t idle_count, idle_bytes;
    const rp_allocator *alloc;
} rp_reply_pool;

void rp_reply_pool_init(rp_reply_pool *pool, const rp_allocator *alloc);
void rp_reply_pool_deinit(rp_reply_pool *pool);

/* An empty message, or NULL. Return it with rp_reply_release(). */
rp_reply *rp_reply_new(rp_reply_pool *pool);
void rp_reply_release(rp_reply_pool *pool, rp_reply *reply); /* NULL is fine */

/* Appends `size` bytes of a chunk, copied or borrowed. False if there is no memory. Own bytes
 * are appended to reply->bytes. */
bool rp_reply_add(rp_reply *reply, const uint8_t *data, size_t size);

/* Takes the reference to `trajectory`, and holds it until the reply is released. False if there
 * is no memory; then the caller keeps the reference. */
bool rp_reply_hold(rp_reply *reply, rp_trajectory *trajectory);

/* Writes the prefix. False if an append failed before, or 4 GiB are exceeded. */
bool rp_reply_close(rp_reply *reply);

/* Bytes that have not been handed to the connection. */
static inline size_t rp_reply_remaining(const rp_reply *reply)
{
    return reply->size - reply->given;
}

/* Hands over the next run of bytes, at most `limit`. Returns their number; `*data` points at
 * them. */
size_t rp_reply_take(rp_reply *reply, size_t limit, const uint8_t **data);

#endif
