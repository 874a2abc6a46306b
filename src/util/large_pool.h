/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of blocks of 32 KiB to 4 MiB for the default allocator. It keeps freed blocks for
 * reuse.
 *
 * Without the pool, the C library returns freed blocks of this size to the system, and the
 * system clears the pages of the next allocated block when they are first written to. Clearing
 * the pages takes longer than filling them, so each large chunk of a writer would cost this
 * time.
 *
 * The pool keeps at most RP_LARGE_KEPT_BYTES of idle blocks. Within this bound, it keeps a
 * freed block if the idle blocks, including this block, then have at most RP_LARGE_FIRST_BYTES,
 * or at most as many bytes as were in use before the call. Otherwise the freed block goes back
 * to the C library. When the pool has no idle block of a requested size, it drops idle blocks
 * of other sizes.
 *
 * There is one pool per process, in static variables. Any thread may use it. No call waits for
 * the pool's lock: while another thread holds the lock, blocks come from the C library and go
 * back to it. In the child of a fork, the lock stays held for ever if a thread of the parent
 * held it at the fork; the pool then remains unused. */
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

/* Returns `size` bytes (RP_LARGE_LEAST .. RP_LARGE_MOST), aligned to 16, uninitialised. Returns
 * NULL if there is no memory. */
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
