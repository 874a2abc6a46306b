/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of small blocks for the default allocator.
 *
 * Tables allocate one or two small objects for every item and free them much later, often on
 * another thread. The pool mostly allocates or frees a block in a few instructions, without a
 * lock and without atomic operations.
 *
 *   thread              many at once        depot              one at a time    system
 *   a cache,        <------------------>    slabs of      <------------------>  regions of
 *   two stacks a class                      64 KiB, one class each              2 MiB
 *
 * Blocks have 32 sizes, which are called classes: multiples of 16 bytes up to 256, of 64 up to
 * 1024, and of 256 up to 2048. For each class, a thread caches up to 256 KiB of free blocks in
 * two stacks. When both are full, it returns one full stack to the depot of the class. The
 * depot keeps up to twelve full stacks of a class, and gives one to the next thread whose cache
 * of this class is empty. A slab without a block in use goes back to its region and can be used
 * for another class. The pool keeps as many empty regions as it has regions in use, but at
 * least one; it unmaps further empty regions. So the pool holds at most twice the memory of the
 * regions in use.
 *
 * There is one pool per process, with static state. A thread that ends returns its cache. Any
 * thread may use the pool, also in the child of a fork. */
#ifndef RP_UTIL_MEM_POOL_H
#define RP_UTIL_MEM_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* The largest block of the pool. */
enum { RP_POOL_MAX_BYTES = 2048 };

/* Returns `size` bytes (1 .. RP_POOL_MAX_BYTES), aligned to 16, uninitialised. Returns NULL if
 * there is no memory. */
void *rp_pool_alloc(size_t size);

/* Frees a block. `size` must be the size with which it was allocated. */
void rp_pool_free(void *ptr, size_t size);

/* Returns empty memory to the system: empty regions, empty slabs, and blocks in the depots.
 * Leaves the caches of threads as they are. Takes a few milliseconds per GiB that it
 * returns. */
void rp_pool_trim(void);

typedef struct rp_pool_info {
    size_t held_bytes; /* bytes of all regions */
    size_t used_bytes; /* bytes of the regions that have a slab in use */
} rp_pool_info;

void rp_pool_get_info(rp_pool_info *out);

/* For tests: returns true if every invariant (mem_pool.c) holds. */
bool rp_pool_check(void);

#endif
