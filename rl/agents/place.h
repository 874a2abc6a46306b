/* SPDX-License-Identifier: Apache-2.0 */
/* Many arrays in one block: a function places them twice, first with a NULL block to count the
 * bytes, then in the block. */
#ifndef RP_AGENTS_PLACE_H
#define RP_AGENTS_PLACE_H

#include <stddef.h>
#include <stdint.h>

/* Places an array at `*end` of the block, on a cache line, and moves `*end` behind it. NULL if
 * there is no block yet. */
static inline void *rp_place_array(uint8_t *block, size_t *end, size_t count, size_t size)
{
    size_t at = *end;

    *end += (count * size + 63) & ~(size_t)63;
    return block != NULL ? block + at : NULL;
}

#endif
