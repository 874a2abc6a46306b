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
    block->data_alloc = (rp_allocator){NULL, NULL};
    block->size = 0;
    block->capacity = capacity;
    block->data = (uint8_t *)(block + 1);
    return block;
}

rp_block *rp_block_new_apart(const rp_allocator *alloc, const rp_allocator *data_alloc,
                             size_t capacity)
{
    rp_block *block = rp_block_new(alloc, 0);

    if (block == NULL) return NULL;
    block->data = rp_alloc(data_alloc, capacity);
    if (block->data == NULL) {
        rp_block_unref(block);
        return NULL;
    }
    block->data_alloc = *data_alloc;
    block->capacity = capacity;
    return block;
}

static rp_block *grow_apart(rp_block *block, size_t capacity)
{
    const rp_allocator *a = &block->data_alloc;
    uint8_t *data = a->resize(a->ctx, block->data, block->capacity, capacity);

    if (data == NULL) return NULL;
    block->data = data;
    block->capacity = capacity;
    return block;
}

rp_block *rp_block_grow(rp_block *block, size_t capacity)
{
    size_t bytes;
    rp_block *grown;

    if (capacity <= block->capacity) return block;
    if (block->data_alloc.resize != NULL) return grow_apart(block, capacity);
    if (!rp_size_add(sizeof *block, capacity, &bytes)) return NULL;
    grown =
        block->alloc.resize(block->alloc.ctx, block, sizeof *block + block->capacity, bytes);
    if (grown == NULL) return NULL;
    grown->capacity = capacity;
    grown->data = (uint8_t *)(grown + 1);
    return grown;
}

void rp_block_unref(rp_block *block)
{
    rp_allocator alloc;
    size_t bytes = sizeof *block;

    if (block == NULL || !rp_refcount_dec(&block->refs)) return;
    alloc = block->alloc;
    if (block->data_alloc.resize != NULL)
        rp_release(&block->data_alloc, block->data, block->capacity);
    else
        bytes += block->capacity;
    rp_release(&alloc, block, bytes);
}
