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
    atomic_uint_least32_t n; /* 4 bytes, so that 4 more fit before the next pointer */
} rp_refcount;

static inline void rp_refcount_init(rp_refcount *r)
{
    atomic_init(&r->n, 1);
}

static inline void rp_refcount_add(rp_refcount *r, uint32_t n)
{
    atomic_fetch_add_explicit(&r->n, n, memory_order_relaxed);
}

static inline void rp_refcount_inc(rp_refcount *r)
{
    rp_refcount_add(r, 1);
}

/* Drops `n` references. True if they were the last.
 *
 * If all that there are are ours, nobody else can take or drop one: then looking is enough, and
 * saves an atomic change. Looking acquires what those who dropped theirs before have released.
 */
static inline bool rp_refcount_sub(rp_refcount *r, uint32_t n)
{
    if (atomic_load_explicit(&r->n, memory_order_acquire) == n) return true;
    if (atomic_fetch_sub_explicit(&r->n, n, memory_order_release) != n) return false;
    (void)atomic_load_explicit(&r->n, memory_order_acquire); /* a fence that TSan understands */
    return true;
}

/* True if there is one reference left, ours: it stays so until we share it again. */
static inline bool rp_refcount_is_one(const rp_refcount *r)
{
    return atomic_load_explicit(&r->n, memory_order_relaxed) == 1;
}

/* How many there are, for who can live with a number that is old. */
static inline uint32_t rp_refcount_get(const rp_refcount *r)
{
    return (uint32_t)atomic_load_explicit(&r->n, memory_order_relaxed);
}

static inline bool rp_refcount_dec(rp_refcount *r)
{
    return rp_refcount_sub(r, 1);
}

#endif
