/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/chunk_rekey.h"

#include <assert.h>
#include <string.h>

#include "chunk/chunk.h"
#include "chunk/chunk_wire.h"
#include "chunk/protobuf.h"
#include "util/error.h"
#include "util/mem.h"

/* Writes the message with another key to `out`, which has room for a field more. Returns its
 * size. */
static size_t write_message(const rp_chunk *chunk, uint64_t key, uint8_t *out)
{
    rp_pb_reader reader = rp_pb_open(chunk->wire, chunk->wire_bytes);
    uint8_t *at = rp_pb_put_varint_field(out, RP_PB_CHUNK_KEY, key);
    const uint8_t *from = reader.at;
    rp_pb_step step;
    rp_pb_field f;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        size_t size = (size_t)(reader.at - from);

        if (f.number != RP_PB_CHUNK_KEY) {
            memcpy(at, from, size);
            at += size;
        }
        from = reader.at;
    }
    assert(step == RP_PB_END); /* the message was parsed before */
    return (size_t)(at - out);
}

rp_status rp_chunk_rekey(const rp_allocator *alloc, const rp_chunk *chunk, uint64_t key,
                         rp_chunk **out, rp_error *err)
{
    const rp_chunk_limits limits = {SIZE_MAX, SIZE_MAX, RP_MAX_COLUMNS};
    size_t room = chunk->wire_bytes + 16; /* a tag and a number */
    uint8_t *message = rp_alloc(alloc, room);
    rp_status st;

    if (message == NULL) return rp_fail_memory(err, room);
    st = rp_chunk_parse(alloc, message, write_message(chunk, key, message), &limits, out, err);
    rp_release(alloc, message, room);
    assert(st == RP_OK || st == RP_NO_RESOURCE);
    return st;
}
