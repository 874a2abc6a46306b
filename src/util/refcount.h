/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counts (L4). Taking a reference needs no ordering: the caller already holds one, so
 * the object is alive and visible. Dropping one releases the caller's writes, and whoever drops
 * the last acquires those of everybody before destroying the object. */
#ifndef RP_UTIL_REFCOUNT_H
#define RP_UTIL_REFCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rp_refcount {
    atomic_uint_fast32_t n;
} rp_refcount;

static inline void rp_refcount_init(rp_refcount *r)
{
    atomic_init(&r->n, 1);
}

static inline void rp_refcount_inc(rp_refcount *r)
{
    atomic_fetch_add_explicit(&r->n, 1, memory_order_relaxed);
}

/* True if that was the last reference. The acquiring load instead of a fence is what TSan
 * understands; only the last owner pays for it. */
static inline bool rp_refcount_dec(rp_refcount *r)
{
    if (atomic_fetch_sub_explicit(&r->n, 1, memory_order_release) != 1) return false;
    (void)atomic_load_explicit(&r->n, memory_order_acquire);
    return true;
}

#endif
