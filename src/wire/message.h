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
#ifndef RP_WIRE_MESSAGE_H
#define RP_WIRE_MESSAGE_H

#include "reprise/trajectory.h"
#include "util/buf.h"

enum {
    RP_GRPC_PREFIX = 5,          /* compressed flag, then the length, big-endian */
    RP_MESSAGE_COPY_BYTES = 4096 /* borrowed from here on */
};

typedef struct rp_message_piece {
    size_t at; /* inserted before this own byte */
    const uint8_t *data;
    size_t size;
} rp_message_piece;

typedef struct rp_message rp_message;
struct rp_message {
    rp_message *next;
    rp_buf bytes;
    rp_message_piece *pieces;
    size_t piece_count, piece_capacity;
    rp_trajectory **holds;
    size_t hold_count, hold_capacity;
    void *kept; /* with the function that gives it back; or NULL */
    void (*give_back)(void *kept);
    size_t borrowed; /* bytes of all pieces */
    size_t size;     /* once closed: of everything, prefix included */
    /* bytes that were handed to the connection, and bytes of them that were written */
    size_t own_given, piece_given, piece_part, given, left;
};

typedef struct rp_message_pool {
    rp_message *idle;
    size_t idle_count, idle_bytes;
    const rp_allocator *alloc;
} rp_message_pool;

void rp_message_pool_init(rp_message_pool *pool, const rp_allocator *alloc);
void rp_message_pool_deinit(rp_message_pool *pool);

/* An empty message, or NULL. Return it with rp_message_release(). */
rp_message *rp_message_new(rp_message_pool *pool);
void rp_message_release(rp_message_pool *pool, rp_message *reply); /* NULL is fine */

/* Appends `size` bytes of a chunk, copied or borrowed. False if there is no memory. Own bytes
 * are appended to reply->bytes. */
bool rp_message_add(rp_message *reply, const uint8_t *data, size_t size);

/* Takes the reference to `trajectory`, and holds it until the reply is released. False if there
 * is no memory; then the caller keeps the reference. */
bool rp_message_hold(rp_message *reply, rp_trajectory *trajectory);

/* Keeps one thing more until the message is gone: then `give_back` is called with it. */
void rp_reply_keep(rp_message *reply, void *kept, void (*give_back)(void *kept));

/* Writes the prefix. False if an append failed before, or 4 GiB are exceeded. */
bool rp_message_close(rp_message *reply);

/* Bytes that have not been handed to the connection. */
static inline size_t rp_message_remaining(const rp_message *reply)
{
    return reply->size - reply->given;
}

/* Hands over the next run of bytes, at most `limit`. Returns their number; `*data` points at
 * them. */
size_t rp_message_take(rp_message *reply, size_t limit, const uint8_t **data);

#endif
