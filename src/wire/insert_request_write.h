/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an InsertStreamRequest, which insert_request.h reads:
 *
 *   InsertStreamRequest   1 ChunkData, repeated   2 PrioritizedItem, repeated
 *                         3 keep_chunk_keys, packed
 *
 * A message is an rp_message to which chunks, items and keys to keep are appended, in any order
 * and number: the server reads all chunks of a message before its items. If a function that
 * appends returns false, there is no memory, and the message must not be sent. */
#ifndef RP_WIRE_INSERT_REQUEST_WRITE_H
#define RP_WIRE_INSERT_REQUEST_WRITE_H

#include "chunk/chunk_api.h"
#include "wire/message.h"

/* An item to write. Its pointers are borrowed during the call. */
typedef struct rp_wire_insert {
    uint64_t key;
    const char *table; /* name of the table, not terminated */
    size_t table_size;
    double priority;
    const rp_trajectory *trajectory;
} rp_wire_insert;

/* Appends chunks, in their wire form, to `request`. Chunks of RP_MESSAGE_COPY_BYTES
 * and more are borrowed until the message has been written: until then the message must hold a
 * trajectory that refers to them (rp_message_hold()), or the caller must keep them. */
RP_NODISCARD bool rp_insert_request_add_chunks(rp_message *request, rp_chunk *const *chunks,
                                               size_t count);

/* Appends items, which are copied. */
RP_NODISCARD bool rp_insert_request_add_items(rp_message *request, const rp_wire_insert *items,
                                              size_t count);

/* Appends the keys of the chunks that the stream shall keep for later messages: each once, and
 * none that the stream does not have. */
RP_NODISCARD bool rp_insert_request_add_keep(rp_message *request, const uint64_t *keys,
                                             size_t count);

/* Bytes of the message so far. */
static inline size_t rp_insert_request_bytes(const rp_message *request)
{
    return request->bytes.size + request->borrowed - RP_GRPC_PREFIX;
}

#endif
