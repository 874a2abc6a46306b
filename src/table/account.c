/* SPDX-License-Identifier: Apache-2.0 */
#include "table/account.h"

#include <assert.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "util/error.h"

void rp_budget_init(rp_budget *b, uint64_t limit, rp_budget_policy policy)
{
    rp_mutex_init(&b->mu, RP_RANK_BUDGET);
    b->limit = limit;
    b->policy = policy;
    atomic_init(&b->used, 0);
    atomic_init(&b->waiting, 0);
    atomic_init(&b->first_table, NULL);
}

void rp_budget_deinit(rp_budget *b)
{
    rp_mutex_deinit(&b->mu);
}

void rp_account_init(rp_account *a, rp_budget *budget, const rp_allocator *alloc, uint64_t seed)
{
    *a = (rp_account){.budget = budget};
    rp_count_map_init(&a->episodes, alloc, seed);
    rp_count_map_init(&a->spilled, alloc, seed + 1);
}

void rp_account_deinit(rp_account *a)
{
    rp_count_map_deinit(&a->episodes);
    rp_count_map_deinit(&a->spilled);
}

rp_status rp_account_reserve(rp_account *a, size_t chunk_count)
{
    if (rp_count_map_reserve(&a->episodes, chunk_count) != RP_OK) return RP_NO_RESOURCE;
    return rp_count_map_reserve(&a->spilled, chunk_count);
}

/* Which of the chunk's own entries is ours, or -1. Nobody else writes our id, so a relaxed look is
 * enough to find it. */
static int own_entry(const rp_account *a, const rp_holders *h)
{
    for (int i = 0; i < RP_INLINE_HOLDERS; i++)
        if (atomic_load_explicit(&h->ids[i], memory_order_relaxed) == (uintptr_t)a) return i;
    return -1;
}

static uint64_t spill_key(const rp_chunk *chunk)
{
    return (uint64_t)(uintptr_t)chunk; /* alive as long as we count it */
}

static bool is_spilled(const rp_account *a, const rp_chunk *chunk)
{
    return rp_count_map_size(&a->spilled) > 0 &&
           rp_count_map_get(&a->spilled, spill_key(chunk)) > 0;
}

/* Claims a free entry of the chunk. Acquires what its last holder released (the count). */
static bool claim_entry(const rp_account *a, rp_holders *h)
{
    for (int i = 0; i < RP_INLINE_HOLDERS; i++) {
        uintptr_t nobody = 0;
        if (!atomic_compare_exchange_strong_explicit(&h->ids[i], &nobody, (uintptr_t)a,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        h->counts[i] = 1;
        return true;
    }
    return false;
}

/* One more reference to the chunk. True if it is our first. */
static bool hold(rp_account *a, rp_chunk *chunk)
{
    int entry = own_entry(a, &chunk->holders);

    if (entry >= 0) {
        chunk->holders.counts[entry]++;
        return false;
    }
    if (is_spilled(a, chunk)) {
        (void)rp_count_map_add(&a->spilled, spill_key(chunk));
        return false;
    }
    if (!claim_entry(a, &chunk->holders))
        (void)rp_count_map_add(&a->spilled, spill_key(chunk));
    return true;
}

/* One reference less. True if it was our last. */
static bool let_go(rp_account *a, rp_chunk *chunk)
{
    int entry = own_entry(a, &chunk->holders);

    if (entry < 0) return rp_count_map_sub(&a->spilled, spill_key(chunk)) == 0;
    if (--chunk->holders.counts[entry] > 0) return false;
    atomic_store_explicit(&chunk->holders.ids[entry], 0, memory_order_release);
    return true;
}

uint64_t rp_account_cost(const rp_account *a, const rp_trajectory *trajectory)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
        const rp_chunk *chunk = trajectory->chunks[i];
        if (own_entry(a, &chunk->holders) < 0 && !is_spilled(a, chunk)) bytes += chunk->wire_bytes;
    }
    return bytes;
}

/* Relaxed: the field only ever goes from 0 to one value, and nothing else hangs on it. */
rp_status rp_budget_adopt(rp_budget *b, const rp_trajectory *trajectory, rp_error *err)
{
    for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
        rp_chunk *chunk = trajectory->chunks[i];
        uintptr_t owner = atomic_load_explicit(&chunk->holders.budget, memory_order_relaxed);

        if (owner == (uintptr_t)b) continue;
        if (owner == 0 && atomic_compare_exchange_strong_explicit(
                              &chunk->holders.budget, &owner, (uintptr_t)b, memory_order_relaxed,
                              memory_order_relaxed))
            continue;
        if (owner != (uintptr_t)b)
            return rp_fail(err, RP_INVALID, "chunk %llu is in use by another store",
                           (unsigned long long)chunk->origin.key);
    }
    return RP_OK;
}

/* Bytes that a trajectory would add to the budget. */
static uint64_t budget_cost(const rp_trajectory *trajectory)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
        const rp_chunk *chunk = trajectory->chunks[i];
        if (atomic_load_explicit(&chunk->holders.total, memory_order_relaxed) == 0)
            bytes += chunk->wire_bytes;
    }
    return bytes;
}

static void enter(rp_account *a, const rp_trajectory *trajectory)
{
    uint64_t entered = 0;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
        rp_chunk *chunk = trajectory->chunks[i];
        if (!hold(a, chunk)) continue;
        a->bytes += chunk->wire_bytes;
        (void)rp_count_map_add(&a->episodes, chunk->origin.episode);
        if (atomic_fetch_add_explicit(&chunk->holders.total, 1, memory_order_relaxed) == 0)
            entered += chunk->wire_bytes;
    }
    if (entered > 0)
        atomic_fetch_add_explicit(&a->budget->used, entered, memory_order_relaxed);
}

static void leave(rp_account *a, const rp_trajectory *trajectory)
{
    uint64_t left = 0;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
        rp_chunk *chunk = trajectory->chunks[i];
        if (!let_go(a, chunk)) continue;
        a->bytes -= chunk->wire_bytes;
        if (rp_count_map_sub(&a->episodes, chunk->origin.episode) == 0) a->deleted_episodes++;
        if (atomic_fetch_sub_explicit(&chunk->holders.total, 1, memory_order_relaxed) == 1)
            left += chunk->wire_bytes;
    }
    if (left > 0) atomic_fetch_sub_explicit(&a->budget->used, left, memory_order_relaxed);
    a->freed += left;
}

bool rp_account_add(rp_account *a, const rp_trajectory *trajectory)
{
    rp_budget *b = a->budget;
    uint64_t cost, used;
    bool fits;

    if (b->limit == 0) {
        enter(a, trajectory);
        return true;
    }
    rp_mutex_lock(&b->mu);
    cost = budget_cost(trajectory);
    used = atomic_load_explicit(&b->used, memory_order_relaxed);
    fits = cost <= b->limit && used <= b->limit - cost;
    if (fits) enter(a, trajectory);
    rp_mutex_unlock(&b->mu);
    return fits;
}

void rp_account_remove(rp_account *a, const rp_trajectory *trajectory)
{
    rp_budget *b = a->budget;

    if (b->limit == 0) {
        leave(a, trajectory);
        return;
    }
    rp_mutex_lock(&b->mu);
    leave(a, trajectory);
    rp_mutex_unlock(&b->mu);
}

void rp_account_reset(rp_account *a)
{
    assert(a->bytes == 0 && rp_count_map_size(&a->episodes) == 0);
    a->deleted_episodes = 0;
}
