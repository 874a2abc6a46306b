/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC message to be sent. It has its own bytes, and pieces of borrowed bytes, which are not
 * copied.
 *
 *   bytes    | prefix (5) | own | own | own ...
 *                               ^ borrowed pieces are inserted between own bytes
 *
 * Borrowed bytes belong to chunks. So that the chunks stay in memory until the message has been
 * written to the socket, the message holds references to trajectories that refer to them. Small
 * chunks are copied, since a piece costs more than the copy. A pool keeps released messages for
 * reuse.
 *
 * Invariants:
 *   R1  `borrowed` is the sum of the sizes of all pieces; the values of `at` ascend;
 *   R2  after rp_message_close(), left <= given <= size;
 *   R3  idle_bytes is the memory of all idle messages of a pool.
 *
 * Only one thread at a time may use a message or a pool. */
#ifndef RP_WIRE_MESSAGE_H
#define RP_WIRE_MESSAGE_H

#include "reprise/trajectory.h"
#include "util/buf.h"

enum {
    RP_GRPC_PREFIX = 5,          /* compressed flag, then the length, big-endian */
    RP_MESSAGE_COPY_BYTES = 4096 /* chunks of at least this size are borrowed */
};

typedef struct rp_message_piece {
    size_t at; /* index of the own byte before which the piece is inserted */
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
    void *kept; /* the object of rp_reply_keep(), or NULL */
    void (*give_back)(void *kept);
    size_t borrowed; /* bytes of all pieces */
    size_t size;     /* after closing: bytes of the whole message with its prefix */
    /* `given` counts the bytes that were handed to the connection; `left` counts the bytes that
     * were written to the socket. The other three members are the position of the next byte to
     * hand over. */
    size_t own_given, piece_given, piece_part, given, left;
};

typedef struct rp_message_pool {
    rp_message *idle;
    size_t idle_count, idle_bytes;
    const rp_allocator *alloc;
} rp_message_pool;

void rp_message_pool_init(rp_message_pool *pool, const rp_allocator *alloc);
void rp_message_pool_deinit(rp_message_pool *pool);

/* Makes an empty message. Returns NULL if there is no memory. The caller returns it with
 * rp_message_release(). */
rp_message *rp_message_new(rp_message_pool *pool);
void rp_message_release(rp_message_pool *pool, rp_message *reply); /* NULL is fine */

/* Appends `size` bytes of a chunk, copied or borrowed. Returns false if there is no memory.
 * (The caller appends other bytes to reply->bytes.) */
bool rp_message_add(rp_message *reply, const uint8_t *data, size_t size);

/* Takes the caller's reference to `trajectory` and drops it when the message is released. If
 * there is no memory, returns false, and the caller keeps the reference. */
bool rp_message_hold(rp_message *reply, rp_trajectory *trajectory);

/* Calls give_back(kept) when the message is released, so that the object `kept` lives until
 * then. A message can keep only one object. */
void rp_reply_keep(rp_message *reply, void *kept, void (*give_back)(void *kept));

/* Completes the message: writes its prefix. Returns false if an append has failed, or if the
 * message is larger than 4 GiB. */
bool rp_message_close(rp_message *reply);

/* Returns the number of bytes that have not been handed to the connection. */
static inline size_t rp_message_remaining(const rp_message *reply)
{
    return reply->size - reply->given;
}

/* Hands the next contiguous bytes, at most `limit`, to the connection. Returns their number;
 * `*data` receives their address. */
size_t rp_message_take(rp_message *reply, size_t limit, const uint8_t **data);

#endif
