/* SPDX-License-Identifier: Apache-2.0 */
/* Copying within the output, for the snappy and lz4 decoders. */
#ifndef RP_CHUNK_REPEAT_H
#define RP_CHUNK_REPEAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies `length` bytes to `dst` from the address `offset` (>= 1) bytes before `dst`. If
 * `offset` is less than `length`, the `offset` bytes before `dst` are a pattern that is written
 * repeatedly. The function is permitted to write to all `room` (>= length) bytes at `dst`.
 * `length` may be 0 only if `room` is 0.
 *
 * For a copy of up to 64 bytes, either 16 or 64 bytes are written, in blocks of 16 with one
 * load and one store each. If `room` is less than 64, single bytes are copied. A block must not
 * read bytes that it writes. So if `offset` is less than 16, the first 16 bytes are written one
 * by one, and for the rest `offset` is replaced by its smallest multiple that is at least 16.
 * Longer copies use memcpy() and double the length of the pattern each time.
 *
 * With `offset` 1, one byte is repeated, which is the most common copy in delta-encoded
 * frames. */
static inline void rp_repeat(uint8_t *dst, size_t offset, size_t length, size_t room)
{
    static const uint8_t whole_patterns[16] = {0,  16, 16, 18, 16, 20, 18, 21,
                                               16, 18, 20, 22, 24, 26, 28, 30};
    size_t i = 0;

    assert(offset >= 1 && length <= room);
    if (length > 64) {
        if (offset == 1) {
            memset(dst, dst[-1], length);
            return;
        }
        for (; length - i > offset; i += offset, offset *= 2)
            memcpy(dst + i, dst + i - offset, offset);
        memcpy(dst + i, dst + i - offset, length - i);
        return;
    }
    if (room < 64) {
        for (; i < length; i++) dst[i] = *(dst + i - offset);
        return;
    }
    if (offset == 1) {
        memset(dst, dst[-1], 64);
        return;
    }
    if (offset < 16) {
        for (; i < 16; i++) dst[i] = *(dst + i - offset);
        offset = whole_patterns[offset];
    } else {
        memcpy(dst, dst - offset, 16);
    }
    if (length <= 16) return;
    for (i = 16; i < 64; i += 16) memcpy(dst + i, dst + i - offset, 16);
}

#endif
