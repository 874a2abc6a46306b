/* SPDX-License-Identifier: Apache-2.0 */
#include "util/map.h"

#include <assert.h>

#include "util/mem.h"
#include "util/rng.h"

enum { MIN_BITS = 3, FILL = 3 /* entries a bucket, on average, at most */ };

static_assert(sizeof(rp_map_bucket) == RP_CACHE_LINE, "a bucket is one cache line");

void rp_map_init(rp_map *map, const rp_allocator *alloc, uint64_t seed)
{
    *map = (rp_map){.alloc = *alloc};
    atomic_init(&map->hint_buckets, NULL);
    atomic_init(&map->hint_bits, 0);
    map->seed[0] = rp_splitmix64(&seed);
    map->seed[1] = rp_splitmix64(&seed) | 1;
}

void rp_map_init_like(rp_map *map, const rp_map *other)
{
    rp_map_init(map, &other->alloc, 0);
    map->seed[0] = other->seed[0];
    map->seed[1] = other->seed[1];
}

static size_t bytes_of(uint32_t bits)
{
    return ((size_t)1 << bits) * sizeof(rp_map_bucket);
}

void rp_map_deinit(rp_map *map)
{
    if (map->buckets != NULL)
        rp_release_aligned(&map->alloc, map->buckets, bytes_of(map->bits));
    map->buckets = NULL;
    map->count = 0;
}

static void place(rp_map *map, uint32_t tag, uint32_t slot)
{
    size_t mask = ((size_t)1 << map->bits) - 1, at = rp_map_home(map, tag);
    uint32_t free_entries;

    while ((free_entries = rp_map_matches(map->buckets[at].tags, 0)) == 0) {
        map->buckets[at].passed++;
        at = (at + 1) & mask;
    }
    map->buckets[at].tags[__builtin_ctz(free_entries)] = tag;
    map->buckets[at].slots[__builtin_ctz(free_entries)] = slot;
}

/* Not the seed, which is read without a lock. */
static void set_buckets(rp_map *map, rp_map_bucket *buckets, uint32_t bits)
{
    map->buckets = buckets;
    map->bits = bits;
    atomic_store_explicit(&map->hint_buckets, buckets, memory_order_relaxed);
    atomic_store_explicit(&map->hint_bits, bits, memory_order_relaxed);
}

rp_status rp_map_reserve(rp_map *map, size_t more)
{
    rp_map grown = {.bits = map->bits};
    size_t need;

    if (!rp_size_add(map->count, more, &need) || need > (size_t)1 << 31) return RP_NO_RESOURCE;
    if (map->buckets != NULL && need <= (size_t)FILL << map->bits) return RP_OK;
    if (grown.bits < MIN_BITS) grown.bits = MIN_BITS;
    while (need > (size_t)FILL << grown.bits) grown.bits++;
    grown.buckets = rp_alloc_aligned(&map->alloc, bytes_of(grown.bits));
    if (grown.buckets == NULL) return RP_NO_RESOURCE;
    if (map->buckets != NULL) {
        for (size_t i = 0; i < (size_t)1 << map->bits; i++)
            for (int j = 0; j < RP_MAP_BUCKET; j++)
                if (map->buckets[i].tags[j] != 0)
                    place(&grown, map->buckets[i].tags[j], map->buckets[i].slots[j]);
        rp_release_aligned(&map->alloc, map->buckets, bytes_of(map->bits));
    }
    set_buckets(map, grown.buckets, grown.bits);
    return RP_OK;
}

void rp_map_take(rp_map *map, rp_map *from)
{
    assert(map->count == 0 && map->seed[0] == from->seed[0] && map->seed[1] == from->seed[1]);
    if (from->buckets == NULL) return;
    rp_map_deinit(map);
    set_buckets(map, from->buckets, from->bits);
    map->count = from->count;
    from->buckets = NULL;
    from->count = 0;
}

void rp_map_insert(rp_map *map, uint32_t tag, uint32_t slot)
{
    assert(map->buckets != NULL && map->count < (size_t)FILL << map->bits && tag != 0);
    place(map, tag, slot);
    map->count++;
}

void rp_map_remove(rp_map *map, uint32_t tag, uint32_t slot)
{
    size_t mask = ((size_t)1 << map->bits) - 1, at = rp_map_home(map, tag);
    uint32_t found;

    for (;;) {
        rp_map_bucket *bucket = &map->buckets[at];
        found = rp_map_matches(bucket->slots, slot) & rp_map_matches(bucket->tags, tag);
        if (found != 0) break;
        assert(bucket->passed > 0);
        bucket->passed--; /* it had passed here */
        at = (at + 1) & mask;
    }
    map->buckets[at].tags[__builtin_ctz(found)] = 0;
    map->count--;
}

void rp_map_clear(rp_map *map)
{
    if (map->buckets != NULL) memset(map->buckets, 0, bytes_of(map->bits));
    map->count = 0;
}
