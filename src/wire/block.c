/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/block.h"

#include "util/mem.h"

rp_block *rp_block_new(const rp_allocator *alloc, size_t capacity)
{
    size_t bytes;
    rp_block *block;

    if (!rp_size_add(sizeof *block, capacity, &bytes)) return NULL;
    block = rp_alloc(alloc, bytes);
    if (block == NULL) return NULL;
    rp_refcount_init(&block->refs);
    block->alloc = *alloc;
    block->size = 0;
    block->capacity = capacity;
    return block;
}

rp_block *rp_block_grow(rp_block *block, size_t capacity)
{
    size_t bytes;
    rp_block *grown;

    if (capacity <= block->capacity) return block;
    if (!rp_size_add(sizeof *block, capacity, &bytes)) return NULL;
    grown =
        block->alloc.resize(block->alloc.ctx, block, sizeof *block + block->capacity, bytes);
    if (grown == NULL) return NULL;
    grown->capacity = capacity;
    return grown;
}

void rp_block_unref(rp_block *block)
{
    if (block == NULL || !rp_refcount_dec(&block->refs)) return;
    rp_allocator alloc = block->alloc;
    rp_release(&alloc, block, sizeof *block + block->capacity);
}
