/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/protobuf.h"

enum { MAX_FIELD_NUMBER = (1 << 29) - 1 };

/* Packs the low seven bits of each byte. */
static uint64_t gather_sevens(uint64_t v)
{
    v = (v & 0x007f007f007f007f) | (v & 0x7f007f007f007f00) >> 1;
    v = (v & 0x00003fff00003fff) | (v & 0x3fff00003fff0000) >> 2;
    return (v & 0x000000000fffffff) | (v & 0x0fffffff00000000) >> 4;
}

/* Reads a varint from at least ten bytes. Random keys mostly take nine or ten. */
static inline const uint8_t *read_long_varint(const uint8_t *at, uint64_t *value)
{
    uint64_t v = rp_pb_load64(at), stops = ~v & 0x8080808080808080;

    if (stops != 0) {
        unsigned bits = (unsigned)__builtin_ctzll(stops) + 1; /* of the varint */
        *value = gather_sevens(v & (UINT64_MAX >> (64 - bits)));
        return at + bits / 8;
    }
    v = gather_sevens(v) | (uint64_t)(at[8] & 0x7f) << 56;
    if (at[8] < 0x80) {
        *value = v;
        return at + 9;
    }
    if (at[9] > 1) return NULL; /* the tenth byte has room for one bit */
    *value = v | (uint64_t)at[9] << 63;
    return at + 10;
}

const uint8_t *rp_pb_read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t v = 0;

    if (end - at >= 10) return read_long_varint(at, value);
    for (unsigned shift = 0; shift < 63; shift += 7) {
        uint8_t byte;
        if (at == end) return NULL;
        byte = *at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = v;
            return at;
        }
    }
    return NULL;
}

/* Numbers of fixed width are little-endian on the wire. */
static bool get_fixed(rp_pb_reader *reader, unsigned bytes, uint64_t *value)
{
    *value = 0;
    if ((size_t)(reader->end - reader->at) < bytes) return false;
    if (bytes == 8) {
        *value = rp_pb_load64(reader->at);
        reader->at += 8;
        return true;
    }
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

/* Reads a number whose tag is one byte, if at least eleven bytes are left. */
static rp_pb_step next_number(rp_pb_reader *reader, rp_pb_field *field)
{
    const uint8_t *at = reader->at + 1;

    assert(reader->end - reader->at > 10);
    *field = (rp_pb_field){.number = *reader->at >> 3, .type = (rp_pb_type)(*reader->at & 7)};
    if (field->type == RP_PB_FIXED64) {
        field->value = rp_pb_load64(at);
        reader->at = at + 8;
        return RP_PB_FIELD;
    }
    at = read_long_varint(at, &field->value);
    if (at == NULL) return RP_PB_BAD;
    reader->at = at;
    return RP_PB_FIELD;
}

rp_pb_step rp_pb_next_any(rp_pb_reader *reader, rp_pb_field *field)
{
    uint64_t tag;
    bool ok = false;

    if (reader->at == reader->end) return RP_PB_END;
    if (reader->end - reader->at > 10 && *reader->at >= 8 && *reader->at < 0x80 &&
        (*reader->at & 7) <= RP_PB_FIXED64)
        return next_number(reader, field);
    if (!rp_pb_get_varint(&reader->at, reader->end, &tag)) return RP_PB_BAD;
    if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD_NUMBER) return RP_PB_BAD;
    *field = (rp_pb_field){.number = (uint32_t)(tag >> 3), .type = (rp_pb_type)(tag & 7)};
    switch (tag & 7) {
    case RP_PB_VARINT: ok = rp_pb_get_varint(&reader->at, reader->end, &field->value); break;
    case RP_PB_FIXED64: ok = get_fixed(reader, 8, &field->value); break;
    case RP_PB_BYTES: ok = get_bytes(reader, field); break;
    case RP_PB_FIXED32: ok = get_fixed(reader, 4, &field->value); break;
    default: break; /* groups, and the two undefined types */
    }
    return ok ? RP_PB_FIELD : RP_PB_BAD;
}
