/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an InsertStreamRequest, with which a client inserts items. insert_request.h reads it.
 *
 *   InsertStreamRequest   1 ChunkData, repeated   2 PrioritizedItem, repeated
 *                         3 keep_chunk_keys, packed
 *
 * The caller appends chunks, items and keys of chunks to an rp_message, any number of each in
 * any order: the server reads all chunks of a message before its items. If an append returns
 * false, there is no memory, and the caller must not send the message. */
#ifndef RP_WIRE_INSERT_REQUEST_WRITE_H
#define RP_WIRE_INSERT_REQUEST_WRITE_H

#include "chunk/chunk_api.h"
#include "wire/message.h"

/* An item to write. Its pointers are borrowed for the call. */
typedef struct rp_wire_insert {
    uint64_t key;
    const char *table; /* name of the table, not terminated */
    size_t table_size;
    double priority;
    const rp_trajectory *trajectory;
} rp_wire_insert;

/* Appends chunks, in their wire form, to `request`. Chunks of RP_MESSAGE_COPY_BYTES and more
 * are borrowed until the message has been written to the socket. Until then the message must
 * hold a trajectory that refers to them (rp_message_hold()), or the caller must keep them
 * alive. */
RP_NODISCARD bool rp_insert_request_add_chunks(rp_message *request, rp_chunk *const *chunks,
                                               size_t count);

/* Appends items. Everything is copied. */
RP_NODISCARD bool rp_insert_request_add_items(rp_message *request, const rp_wire_insert *items,
                                              size_t count);

/* Appends the keys of the chunks that the server keeps for later messages of the stream. No key
 * may occur twice, and the client must have sent the chunk of each key on this stream. */
RP_NODISCARD bool rp_insert_request_add_keep(rp_message *request, const uint64_t *keys,
                                             size_t count);

/* Returns the number of bytes of the message so far, without the gRPC prefix. */
static inline size_t rp_insert_request_bytes(const rp_message *request)
{
    return request->bytes.size + request->borrowed - RP_GRPC_PREFIX;
}

#endif
