/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocators.
 *
 * Every allocation of the library goes through an rp_allocator. If there is no memory, a call
 * returns RP_NO_RESOURCE; the library never aborts. A call that returns this status has changed
 * nothing, unless its comment says otherwise. */
#ifndef REPRISE_ALLOC_H
#define REPRISE_ALLOC_H

#include "reprise/status.h"

RP_BEGIN_DECLS

/* An allocator is one function that allocates, resizes and frees. The library calls the
 * function from several threads, so the function must be thread-safe. The library passes `ctx`
 * to each call of the function.
 *
 *   ptr == NULL            allocate new_size bytes
 *   new_size == 0          free ptr (which holds old_size bytes, exactly); the result is
 *                          ignored
 *   otherwise              resize ptr from old_size to new_size bytes, keeping the contents
 *
 * The function must return memory aligned for any type. If it fails, it must return NULL and
 * leave the block at ptr unchanged. */
typedef struct rp_allocator {
    void *(*resize)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    void *ctx;
} rp_allocator;

/* Returns the allocator of the process. Small blocks come from the library's pool, which is
 * faster than malloc() and uses huge pages. Large blocks come from the C library. The pool
 * keeps at most as much unused memory as is in use. Static. */
RP_API const rp_allocator *rp_allocator_default(void);

RP_END_DECLS

#endif
