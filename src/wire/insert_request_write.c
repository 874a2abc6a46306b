/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/insert_request_write.h"

#include <assert.h>

#include "wire/fields.h"
#include "wire/item_wire.h"

enum { REQUEST_CHUNK = 1, REQUEST_ITEM = 2, REQUEST_KEEP = 3, HEAD_BYTES = 16 };

bool rp_insert_request_add_chunks(rp_message *request, rp_chunk *const *chunks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rp_chunk *chunk = chunks[i];
        uint8_t *at = rp_buf_reserve(&request->bytes, HEAD_BYTES);

        if (at == NULL) return false;
        at = rp_pb_put_bytes_head(at, REQUEST_CHUNK, chunk->wire_bytes);
        request->bytes.size = (size_t)(at - request->bytes.data);
        if (!rp_message_add(request, chunk->wire, chunk->wire_bytes)) return false;
    }
    return true;
}

static bool add_item(rp_buf *out, const rp_wire_insert *item)
{
    size_t trajectory = rp_item_trajectory_size(item->trajectory), size;
    uint8_t *at;

    size = rp_item_varint_size(item->key) + rp_item_double_size(item->priority) +
           rp_pb_bytes_field_size(RP_ITEM_TRAJECTORY, trajectory);
    if (item->table_size > 0) size += rp_pb_bytes_field_size(RP_ITEM_TABLE, item->table_size);
    at = rp_buf_reserve(out, HEAD_BYTES + size);
    if (at == NULL) return false;
    at = rp_pb_put_bytes_head(at, REQUEST_ITEM, size);
    at = rp_item_put_varint(at, RP_ITEM_KEY, item->key);
    if (item->table_size > 0) {
        at = rp_pb_put_bytes_head(at, RP_ITEM_TABLE, item->table_size);
        memcpy(at, item->table, item->table_size);
        at += item->table_size;
    }
    at = rp_item_put_double(at, RP_ITEM_PRIORITY, item->priority);
    at = rp_pb_put_bytes_head(at, RP_ITEM_TRAJECTORY, trajectory);
    at = rp_item_put_trajectory(at, item->trajectory);
    out->size = (size_t)(at - out->data);
    assert(out->size <= out->capacity);
    return true;
}

bool rp_insert_request_add_items(rp_message *request, const rp_wire_insert *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!add_item(&request->bytes, &items[i])) return false;
    return true;
}

bool rp_insert_request_add_keep(rp_message *request, const uint64_t *keys, size_t count)
{
    rp_wire_put_packed(&request->bytes, REQUEST_KEEP, keys, count);
    return !request->bytes.bad;
}
