/* SPDX-License-Identifier: Apache-2.0 */
/* The copy that both of our decompressors are made of. */
#ifndef RP_CHUNK_REPEAT_H
#define RP_CHUNK_REPEAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies `length` bytes to `dst` from `offset` (>= 1) bytes before it. The two may overlap;
 * then the bytes between them repeat. There are `room` (>= length) bytes at `dst`; all of them
 * may be written.
 *
 * A copy of 16 bytes is one load and one store, so that is the way as long as the room allows
 * writing too far. It must not read what it writes: a pattern of fewer than 16 bytes is first
 * written out for 16, and then copied from as many whole patterns back as make 16 or more. Long
 * copies double what is there until it suffices. */
static inline void rp_repeat(uint8_t *dst, size_t offset, size_t length, size_t room)
{
    static const uint8_t whole_patterns[16] = {0,  16, 16, 18, 16, 20, 18, 21,
                                               16, 18, 20, 22, 24, 26, 28, 30};
    size_t i = 0;

    if (length > 64) {
        for (; length - i > offset; i += offset, offset *= 2)
            memcpy(dst + i, dst + i - offset, offset);
        memcpy(dst + i, dst + i - offset, length - i);
        return;
    }
    if (room - length < 15) {
        for (; i < length; i++) dst[i] = *(dst + i - offset);
        return;
    }
    if (offset < 16) {
        for (; i < 16; i++) dst[i] = *(dst + i - offset);
        offset = whole_patterns[offset];
    }
    for (; i < length; i += 16) memcpy(dst + i, dst + i - offset, 16);
}

#endif
