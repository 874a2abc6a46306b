/* SPDX-License-Identifier: Apache-2.0 */
/* Small blocks for the default allocator.
 *
 * Tables live on small objects, one or two for every item, which are made in one place and
 * freed much later in another, often by another thread. Here that costs a few instructions
 * each, no lock and no atomic.
 *
 *   thread              many at once        depot              one at a time    system
 *   a cache,        <------------------>    slabs of      <------------------>  regions of
 *   two stacks a class                      64 KiB, one class each              2 MiB
 *
 * Blocks come in 32 sizes: multiples of 16 bytes up to 256, of 64 up to 1024, of 256 up to
 * 2048. A thread keeps up to 256 KiB of free blocks of a size and gives back half of that at
 * once; the depot keeps twelve such halves as they are, for the next thread that has none. A
 * slab without a block in use goes back to its region and can become one of another size. As
 * many regions as are in use, or one, may be kept empty; the others go back to the system. So a
 * pool holds at most twice what lies in regions that are in use.
 *
 * There is one pool for the process, as there is one heap, and like that it never goes: its
 * state is static, and a thread that ends hands in its cache. Safe from any thread, and after a
 * fork. */
#ifndef RP_UTIL_MEM_POOL_H
#define RP_UTIL_MEM_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* The largest block there is. */
enum { RP_POOL_MAX_BYTES = 2048 };

/* `size` bytes (1 .. RP_POOL_MAX_BYTES), aligned to 16, uninitialised. NULL if there are none.
 */
void *rp_pool_alloc(size_t size);

/* Frees a block. `size` must be what it was allocated with. */
void rp_pool_free(void *ptr, size_t size);

/* Gives back to the system what is empty: regions, slabs in regions that are in use, and what
 * threads have handed in. What threads keep for themselves stays. Takes a few milliseconds for
 * each GiB that is empty. */
void rp_pool_trim(void);

typedef struct rp_pool_info {
    size_t held_bytes; /* of all regions */
    size_t used_bytes; /* of those that have a slab in use */
} rp_pool_info;

void rp_pool_get_info(rp_pool_info *out);

/* True if every invariant holds: for tests. */
bool rp_pool_check(void);

#endif
