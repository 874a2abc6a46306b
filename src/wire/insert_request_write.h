/* SPDX-License-Identifier: Apache-2.0 */
/* Writing an InsertStreamRequest, what insert_request.h reads:
 *
 *   InsertStreamRequest   1 ChunkData, repeated   2 PrioritizedItem, repeated
 *                         3 keep_chunk_keys, packed
 *
 * A message is an rp_reply to which parts are appended: chunks, items, keys to keep, each
 * function as often as one likes. The server takes all chunks of a message before its items, so
 * the order does not matter; chunks first is what everybody does. How large the message has
 * become is rp_insert_request_bytes(). False: no memory, the message is of no use any more. */
#ifndef RP_WIRE_INSERT_REQUEST_WRITE_H
#define RP_WIRE_INSERT_REQUEST_WRITE_H

#include "chunk/chunk_api.h"
#include "wire/reply.h"

/* An item to write; everything is borrowed for the time of the call. */
typedef struct rp_wire_insert {
    uint64_t key;
    const char *table; /* its name, no zero needed */
    size_t table_size;
    double priority;
    const rp_trajectory *trajectory;
} rp_wire_insert;

/* Appends chunks, as they travel. Those of RP_REPLY_COPY_BYTES and more are borrowed: a
 * trajectory that keeps them alive must be held (rp_reply_hold()), or they by the caller, until
 * the message is gone. */
RP_NODISCARD bool rp_insert_request_add_chunks(rp_reply *reply, rp_chunk *const *chunks,
                                               size_t count);

/* Appends items. Nothing of them is kept. */
RP_NODISCARD bool rp_insert_request_add_items(rp_reply *reply, const rp_wire_insert *items,
                                              size_t count);

/* Appends the keys of the chunks that the stream shall keep for later messages: each once, and
 * none that the stream does not have. */
RP_NODISCARD bool rp_insert_request_add_keep(rp_reply *reply, const uint64_t *keys,
                                             size_t count);

/* Bytes of the message so far. */
static inline size_t rp_insert_request_bytes(const rp_reply *reply)
{
    return reply->bytes.size + reply->borrowed - RP_GRPC_PREFIX;
}

#endif
