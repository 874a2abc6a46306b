/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 32 KiB to 4 MiB for the default allocator, kept for reuse when they are freed.
 *
 * The C library returns freed blocks of this size to the system. The system clears the pages of
 * the next block when they are first written to, which takes longer than filling them. So a
 * writer of large chunks would pay for new pages with each chunk.
 *
 * The pool keeps at most RP_LARGE_KEPT_BYTES of idle blocks. It keeps a freed block if the idle
 * blocks then have no more bytes than the blocks that were in use before the call, or no more
 * than RP_LARGE_FIRST_BYTES. When other blocks are freed, an idle block stays in the pool,
 * since a writer may soon need it again. When the pool has no idle block of a requested size,
 * it drops idle blocks of other sizes.
 *
 * There is one pool per process, with static state. Any thread may use it. No call waits for
 * the pool's lock: while another thread holds the lock, blocks come from the C library and
 * return to it. The same holds in the child of a fork, if a thread of the parent held the lock
 * at the fork. */
#ifndef RP_UTIL_LARGE_POOL_H
#define RP_UTIL_LARGE_POOL_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RP_LARGE_LEAST = 32 << 10, /* the smallest size of a block, in bytes */
    RP_LARGE_MOST = 4 << 20,   /* the largest size */
    RP_LARGE_KEPT_BYTES = 64 << 20,
    RP_LARGE_FIRST_BYTES = 4 << 20,
};

static inline bool rp_large_is_pooled(size_t size)
{
    return size >= RP_LARGE_LEAST && size <= RP_LARGE_MOST;
}

/* Returns `size` bytes (RP_LARGE_LEAST .. RP_LARGE_MOST), aligned to 16, uninitialised. NULL if
 * there is no memory. */
void *rp_large_alloc(size_t size);

/* Frees a block. `size` must be the size with which it was allocated. */
void rp_large_free(void *ptr, size_t size);

/* Frees all idle blocks. */
void rp_large_trim(void);

typedef struct rp_large_info {
    size_t used_bytes; /* bytes of the blocks in use, rounded up to the pool's block sizes */
    size_t idle_bytes;
} rp_large_info;

rp_large_info rp_large_get_info(void);

#endif
