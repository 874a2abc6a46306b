/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that came off the wire, counted: a message and every chunk that stays in it hold one
 * reference each. It grows as bytes arrive, while it has a single owner. */
#ifndef RP_WIRE_BLOCK_H
#define RP_WIRE_BLOCK_H

#include "reprise/alloc.h"
#include "util/refcount.h"

typedef struct rp_block {
    rp_refcount refs;
    rp_allocator alloc;
    rp_allocator data_alloc; /* `resize` NULL: the bytes stand behind the block */
    size_t size, capacity;
    uint8_t *data;
} rp_block;

/* An empty block with room for `capacity` bytes, or NULL. Returns owned. */
rp_block *rp_block_new(const rp_allocator *alloc, size_t capacity);

/* The same with its bytes, and nothing but its bytes (>= 1), from `data_alloc`. */
rp_block *rp_block_new_apart(const rp_allocator *alloc, const rp_allocator *data_alloc,
                             size_t capacity);

/* Makes room for `capacity` bytes: the block, perhaps elsewhere, or NULL, with nothing changed.
 * The caller must be the only owner. */
rp_block *rp_block_grow(rp_block *block, size_t capacity);

static inline rp_block *rp_block_ref(rp_block *block)
{
    rp_refcount_inc(&block->refs);
    return block;
}
void rp_block_unref(rp_block *block); /* NULL is fine */

#endif
