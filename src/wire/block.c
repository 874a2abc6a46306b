/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/block.h"

#include <assert.h>

#include "util/mem.h"
#include "util/mutex.h"

struct rp_block_pool {
    rp_refcount refs; /* one for its owner, and one for each block whose home it is */
    rp_allocator alloc;
    rp_mutex mu; /* rank 85 */
    rp_block *first RP_GUARDED_BY(mu);
    size_t bytes RP_GUARDED_BY(mu); /* capacities of the idle blocks */
};

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
    block->home = NULL;
    block->next = NULL;
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

    assert(block->size <= block->capacity && rp_refcount_is_one(&block->refs)); /* B1 */
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

static void release(rp_block *block)
{
    rp_allocator alloc = block->alloc;
    size_t bytes = sizeof *block;

    if (block->data_alloc.resize != NULL)
        rp_release(&block->data_alloc, block->data, block->capacity);
    else
        bytes += block->capacity;
    rp_release(&alloc, block, bytes);
}

/* Keeps an unused block. False if the pool is full, the block is too large, or the lock is
 * held. It does not wait for the lock: after a fork, the thread that holds it may not exist. */
static bool keep(rp_block_pool *pool, rp_block *block)
{
    bool is_kept = false;

    if (block->capacity > RP_POOLED_MOST) return false;
    if (!rp_mutex_try_lock(&pool->mu)) return false;
    if (pool->bytes + block->capacity <= RP_POOL_KEPT_BYTES) {
        block->home = NULL;
        block->next = pool->first;
        pool->first = block;
        pool->bytes += block->capacity;
        assert(pool->bytes <= RP_POOL_KEPT_BYTES); /* B2 */
        is_kept = true;
    }
    rp_mutex_unlock(&pool->mu);
    return is_kept;
}

void rp_block_unref(rp_block *block)
{
    rp_block_pool *home;

    if (block == NULL || !rp_refcount_dec(&block->refs)) return;
    assert(block->size <= block->capacity); /* B1 */
    home = block->home;
    if (home == NULL || !keep(home, block)) release(block);
    rp_block_pool_unref(home);
}

rp_block_pool *rp_block_pool_new(const rp_allocator *alloc)
{
    rp_block_pool *pool = rp_alloc_zero(alloc, sizeof *pool);

    if (pool == NULL) return NULL;
    rp_refcount_init(&pool->refs);
    pool->alloc = *alloc;
    rp_mutex_init(&pool->mu, RP_RANK_RUNTIME);
    return pool;
}

void rp_block_pool_unref(rp_block_pool *pool) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_allocator alloc;

    if (pool == NULL || !rp_refcount_dec(&pool->refs)) return;
    while (pool->first != NULL) {
        rp_block *block = pool->first;
        pool->first = block->next;
        assert(pool->bytes >= block->capacity); /* B2 */
        pool->bytes -= block->capacity;
        release(block);
    }
    assert(pool->bytes == 0);
    rp_mutex_deinit(&pool->mu);
    alloc = pool->alloc;
    rp_release(&alloc, pool, sizeof *pool);
}

/* Takes a block that is large enough; the latest first, which may still be in the cache. */
static rp_block *take(rp_block_pool *pool, size_t capacity)
{
    rp_block **at, *block;

    rp_mutex_lock(&pool->mu);
    for (at = &pool->first; *at != NULL && (*at)->capacity < capacity;) at = &(*at)->next;
    block = *at;
    if (block != NULL) {
        assert(pool->bytes >= block->capacity && block->home == NULL); /* B2 */
        *at = block->next;
        pool->bytes -= block->capacity;
    }
    rp_mutex_unlock(&pool->mu);
    return block;
}

rp_block *rp_block_pool_get(rp_block_pool *pool, const rp_allocator *alloc, size_t capacity)
{
    rp_block *block;

    if (pool == NULL || capacity < RP_POOLED_BYTES) return rp_block_new(alloc, capacity);
    block = take(pool, capacity);
    if (block == NULL) block = rp_block_new(alloc, capacity);
    if (block == NULL) return NULL;
    rp_refcount_init(&block->refs);
    block->size = 0;
    rp_refcount_inc(&pool->refs);
    block->home = pool;
    return block;
}
