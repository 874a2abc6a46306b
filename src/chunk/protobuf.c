/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/protobuf.h"

enum { MAX_FIELD_NUMBER = (1 << 29) - 1 };

bool rp_pb_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    const uint8_t *p = *at;
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte;
        if (p == end) return false;
        byte = *p++;
        if (shift == 63 && byte > 1) return false; /* the tenth byte has room for one bit */
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *at = p;
            *value = v;
            return true;
        }
    }
    return false;
}

/* Numbers of fixed width are little-endian on the wire. */
static bool get_fixed(rp_pb_reader *reader, unsigned bytes, uint64_t *value)
{
    *value = 0;
    if ((size_t)(reader->end - reader->at) < bytes) return false;
    for (unsigned i = 0; i < bytes; i++) *value |= (uint64_t)*reader->at++ << (8 * i);
    return true;
}

static bool get_bytes(rp_pb_reader *reader, rp_pb_field *field)
{
    uint64_t size;

    if (!rp_pb_get_varint(&reader->at, reader->end, &size)) return false;
    if (size > (size_t)(reader->end - reader->at)) return false;
    field->data = reader->at;
    field->size = (size_t)size;
    reader->at += size;
    return true;
}

rp_pb_step rp_pb_next(rp_pb_reader *reader, rp_pb_field *field)
{
    uint64_t tag;
    bool ok = false;

    if (reader->at == reader->end) return RP_PB_END;
    if (!rp_pb_get_varint(&reader->at, reader->end, &tag)) return RP_PB_BAD;
    if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD_NUMBER) return RP_PB_BAD;
    *field = (rp_pb_field){.number = (uint32_t)(tag >> 3), .type = (rp_pb_type)(tag & 7)};
    switch (tag & 7) {
    case RP_PB_VARINT: ok = rp_pb_get_varint(&reader->at, reader->end, &field->value); break;
    case RP_PB_FIXED64: ok = get_fixed(reader, 8, &field->value); break;
    case RP_PB_BYTES: ok = get_bytes(reader, field); break;
    case RP_PB_FIXED32: ok = get_fixed(reader, 4, &field->value); break;
    default: break; /* groups, and the two types that mean nothing */
    }
    return ok ? RP_PB_FIELD : RP_PB_BAD;
}
