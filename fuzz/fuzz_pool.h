/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the fuzzing engine's programs, from a pool of their own: the sanitizer's allocator
 * and the engine's hooks on it cost a fifth of the time.
 *
 * Nothing goes unseen for it: around a block and in one that was given back the memory is
 * poisoned, and of each size the one that was given back first is used first, behind some
 * others that rest. Only the report says less, not who allocated and freed; replay_<target>,
 * which does without the pool, says that. One thread. */
#ifndef RP_FUZZ_POOL_H
#define RP_FUZZ_POOL_H

#include <sanitizer/asan_interface.h>

#include "fuzz.h"

enum {
    FUZZ_POOL_CLASSES = 14,
    FUZZ_POOL_SMALLEST = 64, /* bytes, of the first class; each next one has twice as many */
    FUZZ_POOL_RING = 1024,   /* blocks kept of a class */
    FUZZ_POOL_MARGIN = 16,   /* poisoned bytes behind a block, at least */
    FUZZ_POOL_FILLED = 4096, /* bytes of a new block that are never somebody else's */
};

typedef struct fuzz_pool_class {
    void *ring[FUZZ_POOL_RING];
    size_t first, count;
} fuzz_pool_class;

static fuzz_pool_class fuzz_pool[FUZZ_POOL_CLASSES];

/* The class whose blocks have room for `size` bytes; FUZZ_POOL_CLASSES if none has. */
static inline size_t fuzz_pool_find(size_t size)
{
    size_t i = 0;

    while (i < FUZZ_POOL_CLASSES && size + FUZZ_POOL_MARGIN > (size_t)FUZZ_POOL_SMALLEST << i)
        i++;
    return i;
}

static inline void *fuzz_pool_get(size_t size)
{
    size_t class = fuzz_pool_find(size), room = (size_t)FUZZ_POOL_SMALLEST << class;
    fuzz_pool_class *c = &fuzz_pool[class];
    void *block;

    if (class == FUZZ_POOL_CLASSES) return malloc(size);
    if (c->count > (room <= 4096 ? 64u : room <= 1 << 16 ? 4u : 1u)) {
        block = c->ring[c->first++ % FUZZ_POOL_RING];
        c->count--;
    } else {
        block = malloc(room);
        fuzz_check(block != NULL);
        ASAN_POISON_MEMORY_REGION(block, room);
    }
    ASAN_UNPOISON_MEMORY_REGION(block, size);
    memset(block, 0xbe, size < FUZZ_POOL_FILLED ? size : FUZZ_POOL_FILLED);
    return block;
}

static inline void fuzz_pool_put(void *block, size_t size)
{
    size_t class = fuzz_pool_find(size), room = (size_t)FUZZ_POOL_SMALLEST << class;
    fuzz_pool_class *c = &fuzz_pool[class];

    if (class < FUZZ_POOL_CLASSES) ASAN_POISON_MEMORY_REGION(block, room);
    if (class < FUZZ_POOL_CLASSES && c->count < FUZZ_POOL_RING) {
        c->ring[(c->first + c->count++) % FUZZ_POOL_RING] = block;
        return;
    }
    if (class < FUZZ_POOL_CLASSES) ASAN_UNPOISON_MEMORY_REGION(block, room);
    free(block);
}

#endif
