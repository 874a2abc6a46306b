/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers: functions that read a message field by field, and functions that write
 * fields.
 *
 *   message   field*
 *   field     tag (varint: number << 3 | type), then
 *             type 0  varint            type 1  8 bytes
 *             type 2  varint n, n bytes type 5  4 bytes
 *
 * Reading never recurses: the caller opens a submessage with another reader. A reader never
 * reads past the end of its bytes, and refuses groups (types 3 and 4), which are obsolete. The
 * caller must ignore fields with a number or type that it does not know. */
#ifndef RP_CHUNK_PROTOBUF_H
#define RP_CHUNK_PROTOBUF_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum rp_pb_type {
    RP_PB_VARINT = 0,
    RP_PB_FIXED64 = 1,
    RP_PB_BYTES = 2,
    RP_PB_FIXED32 = 5,
} rp_pb_type;

/* One field of a message. */
typedef struct rp_pb_field {
    uint32_t number; /* >= 1 */
    rp_pb_type type;
    uint64_t value;      /* valid for the three number types */
    const uint8_t *data; /* `data` and `size` are valid for RP_PB_BYTES; borrowed */
    size_t size;
} rp_pb_field;

static inline uint64_t rp_pb_tag(uint32_t number, rp_pb_type type)
{
    return (uint64_t)number << 3 | (uint64_t)type;
}

/* A reader: the part of a message that was not read yet. It borrows the bytes, and may be
 * copied. */
typedef struct rp_pb_reader {
    const uint8_t *at, *end;
} rp_pb_reader;

typedef enum rp_pb_step {
    RP_PB_FIELD, /* `field` is filled in */
    RP_PB_END,   /* no bytes are left */
    RP_PB_BAD,   /* the bytes are not a valid message */
} rp_pb_step;

static inline rp_pb_reader rp_pb_open(const uint8_t *data, size_t size)
{
    return (rp_pb_reader){data, size > 0 ? data + size : data};
}

/* Both rp_pb_next() and rp_pb_next_any() read the next field. After RP_PB_BAD the reader must
 * not be used further. rp_pb_next() reads most fields inline: those with a tag of one byte and
 * a value or length of one or two bytes. It calls rp_pb_next_any() for all others.
 *
 * A message in shared memory can change at any time. Therefore each byte on which a decision
 * depends is read exactly once, with rp_pb_look(). */
rp_pb_step rp_pb_next_any(rp_pb_reader *reader, rp_pb_field *field);
static inline uint8_t rp_pb_look(const uint8_t *at)
{
    return *(const volatile uint8_t *)at;
}
static inline rp_pb_step rp_pb_next(rp_pb_reader *reader, rp_pb_field *field)
{
    const uint8_t *at = reader->at;
    size_t left = (size_t)(reader->end - at);
    uint8_t tag, low, high;

    assert(reader->at <= reader->end);
    if (left < 2) return left == 0 ? RP_PB_END : rp_pb_next_any(reader, field);
    tag = rp_pb_look(at);
    low = rp_pb_look(at + 1);
    if (tag >= 0x80 || tag < 8) return rp_pb_next_any(reader, field);
    field->value = low;
    at += 2;
    if (low >= 0x80) {
        if (left < 3 || (high = rp_pb_look(at)) >= 0x80) return rp_pb_next_any(reader, field);
        field->value = (low & 0x7fu) | (uint64_t)high << 7;
        at++;
    }
    field->number = tag >> 3;
    field->type = (rp_pb_type)(tag & 7);
    if (field->type == RP_PB_BYTES) {
        if (field->value > (size_t)(reader->end - at)) return RP_PB_BAD;
        field->data = at;
        field->size = (size_t)field->value;
        field->value = 0;
        reader->at = at + field->size;
        return RP_PB_FIELD;
    }
    if (field->type != RP_PB_VARINT) return rp_pb_next_any(reader, field);
    reader->at = at;
    return RP_PB_FIELD;
}

/* Reads one varint and returns the address after it. Returns NULL if the varint is truncated at
 * `end`, is longer than ten bytes, or does not fit into 64 bits. */
const uint8_t *rp_pb_read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value);

/* Reads one varint and moves `*at` past it. On failure returns false and leaves `*at`
 * unchanged. */
static inline bool rp_pb_get_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    const uint8_t *after = rp_pb_read_varint(*at, end, value);

    if (after == NULL) return false;
    *at = after;
    return true;
}

/* Reads eight bytes as a little-endian number. */
static inline uint64_t rp_pb_load64(const uint8_t *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Returns true if `field` has this number and type. */
static inline bool rp_pb_is(const rp_pb_field *field, uint32_t number, rp_pb_type type)
{
    return field->number == number && field->type == type;
}

/* Reading fields in the expected order.
 *
 * Writers of protocol buffers usually write the fields in ascending order, each field once. In
 * such a message, one comparison of the next byte identifies a field whose number is at most
 * 15. The argument `number` of these functions must be at most 15. If the message has another
 * order or is malformed, one of these functions returns false, or bytes remain at the end. The
 * caller must then read the message again from its beginning with rp_pb_next(). The functions
 * are always inlined, which keeps the reader in registers and halves the time. */
#define RP_PB_INLINE inline __attribute__((always_inline))

static RP_PB_INLINE bool rp_pb_begins(rp_pb_reader *r, uint32_t number, rp_pb_type type)
{
    if (r->at == r->end || *r->at != rp_pb_tag(number, type)) return false;
    r->at++;
    return true;
}

static RP_PB_INLINE bool rp_pb_take_number(rp_pb_reader *r, uint64_t *value)
{
    if (r->at == r->end || *r->at >= 0x80) return rp_pb_get_varint(&r->at, r->end, value);
    *value = *r->at++;
    return true;
}

static RP_PB_INLINE bool rp_pb_take_bytes(rp_pb_reader *r, rp_pb_reader *bytes)
{
    uint64_t size;

    if (!rp_pb_take_number(r, &size) || size > (size_t)(r->end - r->at)) return false;
    *bytes = rp_pb_open(r->at, (size_t)size);
    r->at += size;
    return true;
}

/* Read an optional field. If the next field is not this one, read nothing and set `*value` to
 * 0. Return false if the field is malformed. */
static RP_PB_INLINE bool rp_pb_take_if(rp_pb_reader *r, uint32_t number, uint64_t *value)
{
    *value = 0;
    return !rp_pb_begins(r, number, RP_PB_VARINT) || rp_pb_take_number(r, value);
}

static RP_PB_INLINE bool rp_pb_take_double_if(rp_pb_reader *r, uint32_t number, double *value)
{
    uint64_t bits;

    *value = 0;
    if (!rp_pb_begins(r, number, RP_PB_FIXED64)) return true;
    if (r->end - r->at < 8) return false;
    bits = rp_pb_load64(r->at);
    memcpy(value, &bits, sizeof bits);
    r->at += 8;
    return true;
}

/* Returns the size of a varint, 1 to 10 bytes: one byte per seven bits, rounded up. The code
 * uses 9/64 as an approximation of 1/7. */
static inline size_t rp_pb_varint_size(uint64_t value)
{
    return ((size_t)(63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}

/* The inverse of rp_pb_load64(). */
static inline void rp_pb_store64(uint8_t *at, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(at, &value, sizeof value);
}

/* Spreads the lower 56 bits over eight bytes, seven bits to each byte. */
static inline uint64_t rp_pb_spread56(uint64_t v)
{
    v = (v & 0x000000000fffffff) | (v & 0x00fffffff0000000) << 4;
    v = (v & 0x00003fff00003fff) | (v & 0x0fffc0000fffc000) << 2;
    return (v & 0x007f007f007f007f) | (v & 0x3f803f803f803f80) << 1;
}

/* Writes a varint and returns the address after it. The first eight bytes of a value of 2^56 or
 * more, such as a key, are written at once. */
static inline uint8_t *rp_pb_put_varint(uint8_t *at, uint64_t value)
{
    if (value >= (uint64_t)1 << 56) {
        rp_pb_store64(at, rp_pb_spread56(value) | 0x8080808080808080);
        at += 8;
        value >>= 56;
    }
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Writes eight bytes and returns the address after them. */
static inline uint8_t *rp_pb_put_fixed64(uint8_t *at, uint64_t value)
{
    rp_pb_store64(at, value);
    return at + 8;
}

/* Return the size of a whole field. The first is for a varint field (tag and varint), the
 * second for a field of `size` bytes (tag, length and bytes). */
static inline size_t rp_pb_varint_field_size(uint32_t number, uint64_t value)
{
    return rp_pb_varint_size(rp_pb_tag(number, RP_PB_VARINT)) + rp_pb_varint_size(value);
}

static inline size_t rp_pb_bytes_field_size(uint32_t number, size_t size)
{
    return rp_pb_varint_size(rp_pb_tag(number, RP_PB_BYTES)) + rp_pb_varint_size(size) + size;
}

/* The first writes a varint field. The second writes only the tag and the length of a field of
 * `size` bytes. Both return the address after the written bytes. */
static inline uint8_t *rp_pb_put_varint_field(uint8_t *at, uint32_t number, uint64_t value)
{
    return rp_pb_put_varint(rp_pb_put_varint(at, rp_pb_tag(number, RP_PB_VARINT)), value);
}

static inline uint8_t *rp_pb_put_bytes_head(uint8_t *at, uint32_t number, size_t size)
{
    return rp_pb_put_varint(rp_pb_put_varint(at, rp_pb_tag(number, RP_PB_BYTES)), size);
}

#endif
