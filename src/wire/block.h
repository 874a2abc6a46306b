/* SPDX-License-Identifier: Apache-2.0 */
/* A reference counted buffer for received bytes: a message and every chunk in it hold one
 * reference each. It grows as bytes arrive, while it has a single owner.
 *
 * Invariants:
 *   B1  size <= capacity;
 *   B2  a block in a pool has no reference and no home; the pool's `bytes` is their capacity;
 *   B3  a pool exists as long as a block refers to it. */
#ifndef RP_WIRE_BLOCK_H
#define RP_WIRE_BLOCK_H

#include "reprise/alloc.h"
#include "util/refcount.h"

typedef struct rp_block_pool rp_block_pool;

typedef struct rp_block {
    rp_refcount refs;
    rp_allocator alloc;
    rp_allocator data_alloc; /* `resize` NULL: the bytes follow the block */
    size_t size, capacity;
    rp_block_pool *home;   /* the pool that it returns to; a reference, or NULL */
    struct rp_block *next; /* private */
    uint8_t *data;
} rp_block;

/* An empty block with room for `capacity` bytes, or NULL. Returns owned. */
rp_block *rp_block_new(const rp_allocator *alloc, size_t capacity);

/* The same with its bytes, and nothing but its bytes (>= 1), from `data_alloc`. */
rp_block *rp_block_new_apart(const rp_allocator *alloc, const rp_allocator *data_alloc,
                             size_t capacity);

/* Makes room for `capacity` bytes. Returns the block, which may have moved, or NULL, with
 * nothing changed. The caller must be the only owner. */
rp_block *rp_block_grow(rp_block *block, size_t capacity);

static inline rp_block *rp_block_ref(rp_block *block)
{
    rp_refcount_inc(&block->refs);
    return block;
}
void rp_block_unref(rp_block *block); /* NULL is fine */

/* A pool keeps large blocks for reuse. Without it the system would unmap each of them and clear
 * the pages of the next one, which takes longer than the copy into it. A pool keeps at most
 * RP_POOL_KEPT_BYTES of the blocks that it has returned, and exists until the last of them is
 * freed. Blocks may be dropped on any thread. */

enum {
    RP_POOLED_BYTES = 256 << 10, /* the least capacity of a pooled block */
    RP_POOLED_MOST = 4 << 20,    /* and the most */
    RP_POOL_KEPT_BYTES = 32 << 20,
};

/* NULL if there is no memory. Returns owned. */
rp_block_pool *rp_block_pool_new(const rp_allocator *alloc);
void rp_block_pool_unref(rp_block_pool *pool); /* NULL is fine */

/* The same as rp_block_new(); the block may have room for more. `pool` NULL is fine. */
rp_block *rp_block_pool_get(rp_block_pool *pool, const rp_allocator *alloc, size_t capacity);

#endif
