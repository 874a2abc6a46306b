/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the numbers in the payloads of the records of a data directory. Small
 * numbers take few bytes.
 *
 *   number    varint, little-endian groups of seven bits (chunk/protobuf.h)
 *   change    zigzag varint of a difference modulo 2^64: 0, -1, 1, -2, ... become 0, 1, 2, 3,
 *             ...
 *   word      8 bytes, little-endian; a double is the word of its IEEE bits
 *
 * Errors are sticky: if bytes are missing or malformed, the reader becomes bad, and every
 * further number is read as zero. So a caller checks `bad` once, at the end. */
#ifndef RP_DURABLE_FORMAT_PACK_H
#define RP_DURABLE_FORMAT_PACK_H

#include <assert.h>
#include <string.h>

#include "chunk/protobuf.h"
#include "util/buf.h"

enum { RP_PACK_NUMBER_BYTES = 10 }; /* the most bytes of a number */

static inline void rp_pack_number(rp_buf *out, uint64_t value)
{
    uint8_t *at = rp_buf_reserve(out, RP_PACK_NUMBER_BYTES);

    if (at != NULL) out->size += (size_t)(rp_pb_put_varint(at, value) - at);
}

static inline void rp_pack_change(rp_buf *out, uint64_t value, uint64_t before)
{
    uint64_t change = value - before;

    rp_pack_number(out, change << 1 ^ (uint64_t) - (int64_t)(change >> 63));
}

static inline void rp_pack_word(rp_buf *out, uint64_t value)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    rp_buf_append(out, bytes, sizeof bytes);
}

static inline void rp_pack_double(rp_buf *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    rp_pack_word(out, bits);
}

typedef struct rp_unpack {
    const uint8_t *at, *end;
    bool bad;
} rp_unpack;

static inline rp_unpack rp_unpack_open(const uint8_t *data, size_t size)
{
    return (rp_unpack){data, size > 0 ? data + size : data, false};
}

static inline size_t rp_unpack_left(const rp_unpack *in)
{
    return in->bad ? 0 : (size_t)(in->end - in->at);
}

static inline uint64_t rp_unpack_number(rp_unpack *in)
{
    uint64_t value = 0;

    if (in->bad || !rp_pb_get_varint(&in->at, in->end, &value)) {
        in->bad = true;
        return 0;
    }
    return value;
}

/* Reads a number that must be at most `most`. A larger number makes the reader bad. */
static inline uint64_t rp_unpack_bounded(rp_unpack *in, uint64_t most)
{
    uint64_t value = rp_unpack_number(in);

    if (value <= most) return value;
    in->bad = true;
    return 0;
}

static inline uint64_t rp_unpack_change(rp_unpack *in, uint64_t before)
{
    uint64_t zigzag = rp_unpack_number(in);

    return in->bad ? 0 : before + (zigzag >> 1 ^ (uint64_t) - (int64_t)(zigzag & 1));
}

/* Returns the next `size` bytes, borrowed. If there are fewer, returns NULL and the reader
 * becomes bad. */
static inline const uint8_t *rp_unpack_bytes(rp_unpack *in, size_t size)
{
    const uint8_t *at = in->at;

    assert(at <= in->end);
    if (in->bad || (size_t)(in->end - at) < size) {
        in->bad = true;
        return NULL;
    }
    in->at += size;
    return at;
}

static inline uint64_t rp_unpack_word(rp_unpack *in)
{
    const uint8_t *at = rp_unpack_bytes(in, 8);
    uint64_t value = 0;

    if (at == NULL) return 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static inline double rp_unpack_double(rp_unpack *in)
{
    uint64_t bits = rp_unpack_word(in);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
