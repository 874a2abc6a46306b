/* SPDX-License-Identifier: Apache-2.0 */
/* Places many arrays in one allocated block. The caller makes the same sequence of
 * rp_place_array() calls twice, each time beginning with `*end` 0: first with a NULL block,
 * after which `*end` is the size of the block, then with the block itself, to get the
 * arrays. */
#ifndef RP_AGENTS_PLACE_H
#define RP_AGENTS_PLACE_H

#include <stddef.h>
#include <stdint.h>

/* Places an array of `count` elements of `size` bytes at offset `*end`, and advances `*end` to
 * the next multiple of 64 bytes behind the array. Returns the array, or NULL if `block` is
 * NULL. */
static inline void *rp_place_array(uint8_t *block, size_t *end, size_t count, size_t size)
{
    size_t at = *end;

    *end += (count * size + 63) & ~(size_t)63;
    return block != NULL ? block + at : NULL;
}

#endif
