/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants before each element:
 *
 *   S1  dst[0, done) is decoded, done <= want;
 *   S2  src[at, size) is not read yet, at <= size;
 *   S3  nothing after dst + want has been written.
 *
 * Short pieces are copied in blocks of 16 bytes if both buffers have that much room (S2, S3),
 * because a copy of constant size is one load and one store. */
#include "chunk/snappy_decode.h"

#include <assert.h>
#include <string.h>

#include "chunk/protobuf.h"
#include "chunk/repeat.h"

enum {
    BLOCK = 16,
    LITERAL_LONG = 60,
    SHORT_SRC = 1 + BLOCK, /* read for a short element, at most */
    SHORT_DST = 64,        /* written for one, at most */
};

bool rp_snappy_head(const uint8_t *src, size_t size, size_t *raw_bytes, size_t *head_bytes)
{
    const uint8_t *at = src;
    uint64_t value;

    /* 32 bits need at most five bytes. */
    if (size == 0 || !rp_pb_get_varint(&at, src + (size < 5 ? size : 5), &value)) return false;
    if (value > UINT32_MAX) return false;
    *raw_bytes = (size_t)value;
    *head_bytes = (size_t)(at - src);
    return true;
}

/* Reads the length of the literal whose tag is at src[*at], and moves past both. */
static bool literal_length(const uint8_t *src, size_t size, size_t *at, size_t *length)
{
    size_t n = src[*at] >> 2, extra;

    ++*at;
    if (n >= LITERAL_LONG) {
        extra = n - LITERAL_LONG + 1;
        if (extra > size - *at) return false;
        n = 0;
        for (size_t i = 0; i < extra; i++) n |= (size_t)src[*at + i] << (8 * i);
        *at += extra;
    }
    *length = n + 1;
    return true;
}

const uint8_t *rp_snappy_literal(const uint8_t *src, size_t size, size_t raw_bytes)
{
    size_t declared, at, length;

    if (!rp_snappy_head(src, size, &declared, &at) || declared != raw_bytes) return NULL;
    if (raw_bytes == 0) return at == size ? src + at : NULL;
    if (at == size || (src[at] & 3) != 0) return NULL;
    if (!literal_length(src, size, &at, &length)) return NULL;
    return length == raw_bytes && size - at == raw_bytes ? src + at : NULL;
}

/* The number of bytes of the length of a literal after its tag. */
static size_t literal_extra(size_t raw_bytes)
{
    size_t n = raw_bytes - 1;
    return n < LITERAL_LONG ? 0 : n < 1u << 8 ? 1 : n < 1u << 16 ? 2 : n < 1u << 24 ? 3 : 4;
}

size_t rp_snappy_literal_head_size(size_t raw_bytes)
{
    if (raw_bytes == 0) return 1;
    return rp_pb_varint_size(raw_bytes) + 1 + literal_extra(raw_bytes);
}

uint8_t *rp_snappy_put_literal_head(uint8_t *at, size_t raw_bytes)
{
    size_t n = raw_bytes - 1, extra;

    at = rp_pb_put_varint(at, raw_bytes);
    if (raw_bytes == 0) return at;
    extra = literal_extra(raw_bytes);
    *at++ = (uint8_t)((extra == 0 ? n : LITERAL_LONG - 1 + extra) << 2);
    for (size_t i = 0; i < extra; i++) *at++ = (uint8_t)(n >> (8 * i));
    return at;
}

/* The state of the decoder (S1 to S3). */
typedef struct state {
    const uint8_t *src;
    size_t size, at;
    uint8_t *dst;
    size_t done, want, raw;
} state;

/* The number of bytes of an element of `length` bytes that are requested. */
static inline size_t wanted(const state *s, size_t length)
{
    return length < s->want - s->done ? length : s->want - s->done;
}

static inline bool put_literal(state *s)
{
    size_t length, take;

    if (!literal_length(s->src, s->size, &s->at, &length)) return false;
    if (length > s->raw - s->done || length > s->size - s->at) return false;
    if (length <= BLOCK && s->size - s->at >= BLOCK && s->want - s->done >= BLOCK) {
        memcpy(s->dst + s->done, s->src + s->at, BLOCK);
        take = length;
    } else {
        take = wanted(s, length);
        memcpy(s->dst + s->done, s->src + s->at, take);
    }
    s->at += length;
    s->done += take;
    return true;
}

/* Reads the length and offset of the copy whose tag is at src[at], and moves past them. */
static inline bool copy_shape(state *s, size_t *length, size_t *offset)
{
    const uint8_t *p = s->src + s->at;
    size_t left = s->size - s->at;

    switch (p[0] & 3) {
    case 1:
        if (left < 2) return false;
        *length = (size_t)((p[0] >> 2) & 7) + 4;
        *offset = (size_t)(p[0] >> 5) << 8 | p[1];
        s->at += 2;
        return true;
    case 2:
        if (left < 3) return false;
        *length = (size_t)(p[0] >> 2) + 1;
        *offset = (size_t)p[2] << 8 | p[1];
        s->at += 3;
        return true;
    default:
        if (left < 5) return false;
        *length = (size_t)(p[0] >> 2) + 1;
        *offset = (size_t)p[4] << 24 | (size_t)p[3] << 16 | (size_t)p[2] << 8 | p[1];
        s->at += 5;
        return true;
    }
}

static inline bool put_copy(state *s)
{
    size_t length, offset, take;

    if (!copy_shape(s, &length, &offset)) return false;
    if (offset == 0 || offset > s->done || length > s->raw - s->done) return false;
    take = wanted(s, length);
    rp_repeat(s->dst + s->done, offset, take, s->want - s->done);
    s->done += take;
    return true;
}

/* Decodes elements while they are neither long literals nor far copies and both buffers have
 * room for the longest such element. False if one is malformed. */
static inline bool decode_short(state *s)
{
    const uint8_t *at = s->src + s->at;
    uint8_t *dst = s->dst + s->done;
    size_t src_left = s->size - s->at, dst_left = s->want - s->done;

    while (src_left >= SHORT_SRC && dst_left >= SHORT_DST) {
        size_t length, offset, used;
        uint8_t tag = *at;
        if ((tag & 3) == 0) {
            length = (size_t)(tag >> 2) + 1;
            if (length > BLOCK) break;
            memcpy(dst, at + 1, BLOCK);
            used = 1 + length;
        } else {
            if ((tag & 3) == 3) break;
            length = (tag & 3) == 1 ? (size_t)((tag >> 2) & 7) + 4 : (size_t)(tag >> 2) + 1;
            offset =
                (tag & 3) == 1 ? (size_t)(tag >> 5) << 8 | at[1] : (size_t)at[2] << 8 | at[1];
            if (offset == 0 || offset > (size_t)(dst - s->dst)) return false;
            rp_repeat(dst, offset, length, dst_left);
            used = (size_t)(tag & 3) + 1;
        }
        at += used;
        src_left -= used;
        dst += length;
        dst_left -= length;
    }
    s->at = (size_t)(at - s->src);
    s->done = (size_t)(dst - s->dst);
    assert(s->at <= s->size && s->done <= s->want); /* S1, S2 */
    return true;
}

rp_status rp_snappy_decode(const uint8_t *src, size_t size, size_t raw_bytes, uint8_t *dst,
                           size_t want)
{
    state s = {.src = src, .size = size, .dst = dst, .want = want, .raw = raw_bytes};
    size_t declared;

    assert(want <= raw_bytes);
    if (!rp_snappy_head(src, size, &declared, &s.at) || declared != raw_bytes)
        return RP_CORRUPT;
    while (s.done < s.want) {
        if (!decode_short(&s)) return RP_CORRUPT;
        if (s.at == s.size) return RP_CORRUPT;
        if (!((s.src[s.at] & 3) == 0 ? put_literal(&s) : put_copy(&s))) return RP_CORRUPT;
    }
    return want < raw_bytes || s.at == s.size ? RP_OK : RP_CORRUPT;
}
