/* SPDX-License-Identifier: Apache-2.0 */
/* A memory pool for targets that run in the fuzzing engine. Without the pool, the sanitizer's
 * allocator and the engine's hooks on it would cost a fifth of the time.
 *
 * The pool hides no errors: the memory after a block and in a freed block is poisoned. The
 * freed blocks of each size wait in a queue. The pool reuses a block only if the queue has many
 * blocks, and then takes the block that was freed first. With the pool, an error report of the
 * sanitizer does not say where a block was allocated and freed. The program replay_<target>
 * does not use the pool, so its reports contain this. Not thread-safe. */
#ifndef RP_FUZZ_POOL_H
#define RP_FUZZ_POOL_H

#include <sanitizer/asan_interface.h>

#include "fuzz.h"

enum {
    FUZZ_POOL_CLASSES = 14,
    FUZZ_POOL_SMALLEST = 64, /* block size of the first class; it doubles with each class */
    FUZZ_POOL_RING = 1024,   /* number of freed blocks that a class keeps */
    FUZZ_POOL_MARGIN = 16,   /* at least this many poisoned bytes after a block */
    FUZZ_POOL_FILLED = 4096, /* the most bytes of a new block that are filled with a pattern */
};

typedef struct fuzz_pool_class {
    void *ring[FUZZ_POOL_RING];
    size_t first, count;
} fuzz_pool_class;

static fuzz_pool_class fuzz_pool[FUZZ_POOL_CLASSES];

/* Returns the first class whose blocks have space for `size` bytes; FUZZ_POOL_CLASSES if there
 * is none. */
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
