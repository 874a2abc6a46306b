/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/cache.h"

#include <assert.h>

#include "util/mem.h"
#include "util/verify.h"

enum { FIRST_CAPACITY = 16 };

static size_t home_of(const rp_cache *cache, const rp_chunk *chunk, size_t column)
{
    uint64_t key = (uint64_t)(uintptr_t)chunk + ((uint64_t)column << 48);
    uint64_t mixed = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed >> 32) & (cache->capacity - 1);
}

static size_t next_slot(const rp_cache *cache, size_t at)
{
    return (at + 1) & (cache->capacity - 1);
}

#ifndef NDEBUG
static bool cache_is_valid(const rp_cache *cache)
{
    size_t count = 0, bytes = 0;

    for (size_t i = 0; i < cache->capacity; i++) {
        const rp_cached *entry = &cache->table[i];
        if (entry->chunk == NULL) continue;
        count++;
        bytes += entry->bytes;
        for (size_t at = home_of(cache, entry->chunk, entry->column); at != i;
             at = next_slot(cache, at))
            if (cache->table[at].chunk == NULL) return false; /* H3 */
    }
    return count == cache->count && bytes == cache->bytes && 2 * count <= cache->capacity;
}
#endif

void rp_cache_init(rp_cache *cache, const rp_allocator *alloc, size_t max_bytes)
{
    *cache = (rp_cache){.alloc = *alloc, .max_bytes = max_bytes};
}

void rp_cache_deinit(rp_cache *cache)
{
    if (cache == NULL) return;
    rp_cache_clear(cache);
    rp_release(&cache->alloc, cache->table, cache->capacity * sizeof *cache->table);
    cache->table = NULL;
    cache->capacity = 0;
}

void rp_cache_clear(rp_cache *cache)
{
    for (size_t i = 0; i < cache->capacity; i++) {
        rp_cached *entry = &cache->table[i];
        if (entry->chunk == NULL) continue;
        rp_release(&cache->alloc, entry->data, entry->bytes);
        rp_chunk_unref(entry->chunk);
        *entry = (rp_cached){0};
    }
    cache->bytes = 0;
    cache->count = 0;
}

rp_cached *rp_cache_find(rp_cache *cache, const rp_chunk *chunk, size_t column)
{
    if (cache->count == 0) return NULL;
    for (size_t at = home_of(cache, chunk, column);; at = next_slot(cache, at)) {
        rp_cached *entry = &cache->table[at];
        if (entry->chunk == NULL) return NULL;
        if (entry->chunk != chunk || entry->column != column) continue;
        entry->recent = true;
        return entry;
    }
}

/* Frees entry `gap` and moves later entries into it to restore H3. */
static void close_gap(rp_cache *cache, size_t gap)
{
    for (size_t at = next_slot(cache, gap);; at = next_slot(cache, at)) {
        const rp_cached *entry = &cache->table[at];
        size_t home, mask = cache->capacity - 1;
        if (entry->chunk == NULL) break;
        home = home_of(cache, entry->chunk, entry->column);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue; /* its search begins after the gap */
        cache->table[gap] = *entry;
        gap = at;
    }
    cache->table[gap] = (rp_cached){0};
}

/* Removes the entry and returns its data, owned. */
static uint8_t *take_out(rp_cache *cache, rp_cached *entry)
{
    rp_chunk *chunk = entry->chunk;
    uint8_t *data = entry->data;

    assert(entry >= cache->table && entry < cache->table + cache->capacity);
    assert(cache->count > 0 && cache->bytes >= entry->bytes);
    cache->bytes -= entry->bytes;
    cache->count--;
    close_gap(cache, (size_t)(entry - cache->table));
    rp_chunk_unref(chunk);
    RP_VERIFY(cache->capacity, cache_is_valid(cache));
    return data;
}

void rp_cache_drop(rp_cache *cache, rp_cached *entry)
{
    size_t bytes = entry->bytes;
    rp_release(&cache->alloc, take_out(cache, entry), bytes);
}

/* Picks the entry to evict. The cache must not be empty. */
static rp_cached *pick(rp_cache *cache)
{
    assert(cache->count > 0 && cache->hand < cache->capacity);
    for (;; cache->hand = next_slot(cache, cache->hand)) {
        rp_cached *entry = &cache->table[cache->hand];
        if (entry->chunk == NULL) continue;
        if (!entry->recent) return entry;
        entry->recent = false;
    }
}

/* Doubles the table if one more entry would make it more than half full. */
static bool grow(rp_cache *cache)
{
    size_t old_capacity = cache->capacity;
    rp_cached *old = cache->table, *table;

    if (2 * (cache->count + 1) <= old_capacity) return true;
    cache->capacity = old_capacity > 0 ? 2 * old_capacity : FIRST_CAPACITY;
    table = rp_alloc_array(&cache->alloc, cache->capacity, sizeof *table);
    if (table == NULL) {
        cache->capacity = old_capacity;
        return false;
    }
    cache->table = table;
    for (size_t i = 0; i < old_capacity; i++) {
        size_t at;
        if (old[i].chunk == NULL) continue;
        at = home_of(cache, old[i].chunk, old[i].column);
        while (table[at].chunk != NULL) at = next_slot(cache, at);
        table[at] = old[i];
    }
    cache->hand = 0;
    rp_release(&cache->alloc, old, old_capacity * sizeof *old);
    return true;
}

uint8_t *rp_cache_reserve(rp_cache *cache, size_t bytes)
{
    uint8_t *data = NULL;

    while (cache->count > 0 &&
           (bytes > cache->max_bytes || cache->bytes > cache->max_bytes - bytes)) {
        rp_cached *victim = pick(cache);
        size_t victim_bytes = victim->bytes;
        uint8_t *victim_data = take_out(cache, victim);
        /* Columns often have one size: then the memory is reused. */
        if (data == NULL && victim_bytes == bytes)
            data = victim_data;
        else
            rp_release(&cache->alloc, victim_data, victim_bytes);
    }
    if (!grow(cache)) {
        rp_release(&cache->alloc, data, bytes);
        return NULL;
    }
    return data != NULL ? data : rp_alloc(&cache->alloc, bytes);
}

rp_cached *rp_cache_put(rp_cache *cache, const rp_chunk *chunk, size_t column, uint8_t *data,
                        size_t bytes, size_t rows)
{
    size_t at = home_of(cache, chunk, column);

    assert(2 * (cache->count + 1) <= cache->capacity);
    while (cache->table[at].chunk != NULL) at = next_slot(cache, at);
    cache->table[at] = (rp_cached){.chunk = rp_chunk_ref((rp_chunk *)(uintptr_t)chunk),
                                   .data = data,
                                   .bytes = bytes,
                                   .rows = rows,
                                   .column = (uint32_t)column,
                                   .recent = true};
    cache->bytes += bytes;
    cache->count++;
    RP_VERIFY(cache->capacity, cache_is_valid(cache));
    return &cache->table[at];
}
