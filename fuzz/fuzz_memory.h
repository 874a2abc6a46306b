/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator for fuzz targets. It counts the blocks in use, checks the size when a block is
 * freed, and fails at allocations that the fuzz input chooses. Not thread-safe. */
#ifndef RP_FUZZ_MEMORY_H
#define RP_FUZZ_MEMORY_H

#include "fuzz.h"
#include "reprise/alloc.h"

#ifdef FUZZ_POOL
#include "fuzz_pool.h"
#else
static inline void *fuzz_pool_get(size_t size)
{
    return malloc(size);
}

static inline void fuzz_pool_put(void *block, size_t size)
{
    (void)size;
    free(block);
}
#endif

typedef struct fuzz_memory {
    size_t live, live_bytes; /* blocks in use, and their bytes */
    size_t until;  /* number of allocations that still succeed before the first failure */
    size_t failed; /* number of allocations that have failed so far */
    bool fails;    /* false: no allocation ever fails */
    bool for_good; /* all allocations after the first failure fail too; false: only one fails */
} fuzz_memory;

typedef union fuzz_block {
    size_t size;
    max_align_t align;
} fuzz_block;

static inline bool fuzz_memory_refuses(fuzz_memory *m)
{
    if (!m->fails) return false;
    if (m->until > 0) {
        m->until--;
        return false;
    }
    if (!m->for_good && m->failed > 0) return false;
    m->failed++;
    return true;
}

static inline void *fuzz_memory_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    fuzz_memory *m = ctx;
    fuzz_block *old = ptr != NULL ? (fuzz_block *)ptr - 1 : NULL, *block;

    fuzz_check(old == NULL || old->size == old_size);
    if (new_size == 0) {
        if (old == NULL) return NULL;
        m->live--;
        m->live_bytes -= old_size;
        fuzz_pool_put(old, sizeof *old + old_size);
        return NULL;
    }
    if (fuzz_memory_refuses(m)) return NULL;
    /* Always moves the block, so that the use of a stale pointer is found. */
    block = fuzz_pool_get(sizeof *block + new_size);
    fuzz_check(block != NULL);
    block->size = new_size;
    m->live++;
    m->live_bytes += new_size;
    if (old != NULL) {
        memcpy(block + 1, ptr, old_size < new_size ? old_size : new_size);
        m->live--;
        m->live_bytes -= old_size;
        fuzz_pool_put(old, sizeof *old + old_size);
    }
    return block + 1;
}

static inline rp_allocator fuzz_memory_allocator(fuzz_memory *m)
{
    return (rp_allocator){fuzz_memory_resize, m};
}

#endif
