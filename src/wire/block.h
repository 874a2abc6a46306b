/* SPDX-License-Identifier: Apache-2.0 */
/* A refcounted buffer for received bytes. A received message holds a reference to the block
 * with its bytes, and so does every chunk of the message that was not copied. While a block has
 * only one reference, it can grow as bytes arrive.
 *
 * Invariants:
 *   B1  size <= capacity;
 *   B2  an idle block (one that a pool keeps for reuse) has no reference, and its `home` is
 *       NULL. The pool's `bytes` is the sum of the capacities of its idle blocks;
 *   B3  a pool exists as long as a block refers to it. */
#ifndef RP_WIRE_BLOCK_H
#define RP_WIRE_BLOCK_H

#include "reprise/alloc.h"
#include "util/refcount.h"

typedef struct rp_block_pool rp_block_pool;

typedef struct rp_block {
    rp_refcount refs;
    rp_allocator alloc;
    /* The allocator of `data`. If data_alloc.resize is NULL, struct and data are one
     * allocation: the data follows the struct. */
    rp_allocator data_alloc;
    size_t size, capacity;
    rp_block_pool *home;   /* the pool that the block returns to; a reference, or NULL */
    struct rp_block *next; /* private */
    uint8_t *data;
} rp_block;

/* Makes an empty block with room for `capacity` bytes. Returns NULL if there is no memory. The
 * caller owns the result. */
rp_block *rp_block_new(const rp_allocator *alloc, size_t capacity);

/* As rp_block_new(), but memory for the data comes from `data_alloc`, and only the struct from
 * `alloc`. `capacity` must be at least 1. */
rp_block *rp_block_new_apart(const rp_allocator *alloc, const rp_allocator *data_alloc,
                             size_t capacity);

/* Makes room for `capacity` bytes. Returns the block, whose address may have changed. If there
 * is no memory, returns NULL and changes nothing. The caller must hold the only reference. */
rp_block *rp_block_grow(rp_block *block, size_t capacity);

static inline rp_block *rp_block_ref(rp_block *block)
{
    rp_refcount_inc(&block->refs);
    return block;
}
void rp_block_unref(rp_block *block); /* NULL is fine */

/* A pool keeps large blocks for reuse. Without a pool, the system would unmap each freed block
 * and clear the pages of each new block. Clearing the pages takes longer than copying the data.
 * A pool keeps at most RP_POOL_KEPT_BYTES of idle blocks, and exists until the last block that
 * it has handed out is freed. A reference to a block may be dropped on any thread. */

enum {
    RP_POOLED_BYTES = 256 << 10, /* the least capacity of a pooled block */
    RP_POOLED_MOST = 4 << 20,    /* the largest capacity of a pooled block */
    RP_POOL_KEPT_BYTES = 32 << 20,
};

/* Makes a pool. Returns NULL if there is no memory. The caller owns the result. */
rp_block_pool *rp_block_pool_new(const rp_allocator *alloc);
void rp_block_pool_unref(rp_block_pool *pool); /* NULL is fine */

/* As rp_block_new(), but can return a block from the pool, whose capacity can be larger than
 * `capacity`. `pool` may be NULL. */
rp_block *rp_block_pool_get(rp_block_pool *pool, const rp_allocator *alloc, size_t capacity);

#endif
