/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants before each sequence, as in snappy_decode.c:
 *
 *   S1  dst[0, done) is decoded, done <= want;
 *   S2  src[at, size) is not read yet, at <= size;
 *   S3  nothing after dst + want has been written.
 *
 * Most sequences are short: fewer than 15 literals and a match of at most 18 bytes that begins
 * 8 or more bytes back. While both buffers have room for the longest short sequence, short
 * sequences are copied in blocks of fixed size, which may write too far (decode_short()). All
 * other sequences, and the ends of the buffers, are copied exactly. */
#include "chunk/lz4_decode.h"

#include <assert.h>
#include <string.h>

#include "chunk/repeat.h"

enum {
    BLOCK = 16,
    LONG = 15,
    MIN_MATCH = 4,
    SHORT_MATCH = 18,
    SHORT_SRC = 1 + BLOCK + 2,          /* read for a short sequence, at most */
    SHORT_DST = LONG - 1 + SHORT_MATCH, /* written for one, at most */
};

typedef struct state {
    const uint8_t *src;
    size_t size, at;
    uint8_t *dst;
    size_t done, want, raw;
} state;

/* Adds the bytes that follow a length of 15. False if they are cut off, or if the length
 * exceeds the decoded size. */
static inline bool add_length(state *s, size_t *length)
{
    uint8_t byte;

    do {
        if (s->at == s->size || *length > s->raw) return false;
        byte = s->src[s->at++];
        *length += byte;
    } while (byte == 255);
    return true;
}

static inline bool put_literals(state *s, size_t length)
{
    size_t take;

    if (length == LONG && !add_length(s, &length)) return false;
    if (length > s->raw - s->done || length > s->size - s->at) return false;
    take = length < s->want - s->done ? length : s->want - s->done;
    if (length <= BLOCK && s->size - s->at >= BLOCK && s->want - s->done >= BLOCK)
        memcpy(s->dst + s->done, s->src + s->at, BLOCK);
    else
        memcpy(s->dst + s->done, s->src + s->at, take);
    s->at += length;
    s->done += take;
    return true;
}

static inline bool put_match(state *s, size_t length)
{
    size_t offset, take;

    if (s->size - s->at < 2) return false;
    offset = (size_t)s->src[s->at + 1] << 8 | s->src[s->at];
    s->at += 2;
    if (length == LONG && !add_length(s, &length)) return false;
    length += MIN_MATCH;
    if (offset == 0 || offset > s->done || length > s->raw - s->done) return false;
    take = length < s->want - s->done ? length : s->want - s->done;
    rp_repeat(s->dst + s->done, offset, take, s->want - s->done);
    s->done += take;
    return true;
}

/* Decodes sequences while they are short and both buffers have room. False if a sequence is
 * malformed. */
static inline bool decode_short(state *s)
{
    const uint8_t *at = s->src + s->at;
    uint8_t *dst = s->dst + s->done;
    size_t src_left = s->size - s->at, dst_left = s->want - s->done, literals, length, offset;

    while (src_left >= SHORT_SRC && dst_left >= SHORT_DST) {
        literals = *at >> 4;
        length = *at & 15;
        if (literals == LONG || length == LONG) break;
        offset = (size_t)at[literals + 2] << 8 | at[literals + 1];
        if (offset < 8) break;
        memcpy(dst, at + 1, BLOCK);
        dst += literals;
        if (offset > (size_t)(dst - s->dst)) return false;
        memcpy(dst, dst - offset, 8);
        memcpy(dst + 8, dst + 8 - offset, 8);
        memcpy(dst + 16, dst + 16 - offset, 2);
        dst += length + MIN_MATCH;
        at += literals + 3;
        src_left -= literals + 3;
        dst_left -= literals + length + MIN_MATCH;
    }
    s->at = (size_t)(at - s->src);
    s->done = (size_t)(dst - s->dst);
    assert(s->at <= s->size && s->done <= s->want); /* S1, S2 */
    return true;
}

rp_status rp_lz4_decode(const uint8_t *src, size_t size, size_t raw_bytes, uint8_t *dst,
                        size_t want)
{
    state s = {.src = src, .size = size, .dst = dst, .want = want, .raw = raw_bytes};
    bool whole = want == raw_bytes;

    assert(want <= raw_bytes);
    while (whole || s.done < want) {
        uint8_t token;
        if (!decode_short(&s)) return RP_CORRUPT;
        if (s.at == s.size) return RP_CORRUPT; /* a block ends after literals */
        token = s.src[s.at++];
        if (!put_literals(&s, token >> 4)) return RP_CORRUPT;
        if (s.at == s.size) return s.done == want ? RP_OK : RP_CORRUPT;
        if (!whole && s.done == want) return RP_OK;
        if (!put_match(&s, token & 15)) return RP_CORRUPT;
    }
    return RP_OK;
}
