/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counts. Adding a reference needs no memory order: the caller already holds a
 * reference, so the object exists and its contents are visible. Dropping a reference is a
 * release operation for the caller's writes. The thread that drops the last reference acquires
 * the writes of all other threads before it destroys the object.
 *
 * Invariant: the count is >= 1 as long as any thread can add or drop a reference. */
#ifndef RP_UTIL_REFCOUNT_H
#define RP_UTIL_REFCOUNT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rp_refcount {
    atomic_uint_least32_t n; /* 4 bytes, so another field of 4 bytes fits before an aligned
                                pointer */
} rp_refcount;

static inline void rp_refcount_init(rp_refcount *r)
{
    atomic_init(&r->n, 1);
}

static inline void rp_refcount_add(rp_refcount *r, uint32_t n)
{
    uint_least32_t before = atomic_fetch_add_explicit(&r->n, n, memory_order_relaxed);

    assert(before > 0 && before <= UINT32_MAX - n);
    (void)before;
}

static inline void rp_refcount_inc(rp_refcount *r)
{
    rp_refcount_add(r, 1);
}

/* Drops `n` references. Returns true if they were the last.
 *
 * If the caller holds all references, no other thread can add or drop one. Then a load is
 * enough, which is cheaper than a read-modify-write operation. The load acquires the writes
 * that other threads released when they dropped their references. */
static inline bool rp_refcount_sub(rp_refcount *r, uint32_t n)
{
    uint_least32_t before = atomic_load_explicit(&r->n, memory_order_acquire);

    if (before == n) return true;
    before = atomic_fetch_sub_explicit(&r->n, n, memory_order_release);
    assert(before >= n);
    if (before != n) return false;
    (void)atomic_load_explicit(&r->n, memory_order_acquire); /* a fence that TSan understands */
    return true;
}

/* Returns true if the caller holds the only reference. It stays the only reference until the
 * caller shares the object. */
static inline bool rp_refcount_is_one(const rp_refcount *r)
{
    return atomic_load_explicit(&r->n, memory_order_relaxed) == 1;
}

/* Returns the number of references. Other threads can change the number before the caller uses
 * it. */
static inline uint32_t rp_refcount_get(const rp_refcount *r)
{
    return (uint32_t)atomic_load_explicit(&r->n, memory_order_relaxed);
}

static inline bool rp_refcount_dec(rp_refcount *r)
{
    return rp_refcount_sub(r, 1);
}

#endif
