/* SPDX-License-Identifier: Apache-2.0 */
/* A map from 64-bit keys to slot numbers that leaves the keys where they are.
 *
 * It stores, for each key, 32 bits of its hash (the tag) and the slot; the owner keeps the keys in its
 * slots and compares them. So an entry is eight bytes, eight to a cache line, and a look-up touches one
 * line here and then the slot that the caller wants anyway.
 *
 *   entry   | tag (32) | slot + 1 (32) |      0: free
 *
 * Linear probing from the place that the tag's upper bits name; removal moves later entries back, so
 * there are no tombstones. At most half of the places are taken. The hash is keyed, so that a peer that
 * chooses keys cannot choose where they fall.
 *
 * A plain value, not thread-safe. Only reserve allocates. */
#ifndef RP_UTIL_MAP_H
#define RP_UTIL_MAP_H

#include "reprise/alloc.h"
#include "util/wide.h"

typedef struct rp_map {
    uint64_t *entries;
    size_t count;
    uint32_t bits; /* 2^bits places; 0: none */
    uint64_t seed[2];
    rp_allocator alloc;
} rp_map;

#define RP_MAP_NONE UINT32_MAX

void rp_map_init(rp_map *map, const rp_allocator *alloc, uint64_t seed);
void rp_map_deinit(rp_map *map);

/* Makes room for `more` entries. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_map_reserve(rp_map *map, size_t more);

static inline uint32_t rp_map_tag(const rp_map *map, uint64_t key)
{
    rp_u128 product = (rp_u128)(key ^ map->seed[0]) * map->seed[1];
    return (uint32_t)(((uint64_t)(product >> 64) ^ (uint64_t)product) >> 32);
}

static inline size_t rp_map_home(const rp_map *map, uint32_t tag)
{
    return (size_t)((uint64_t)tag >> (32 - map->bits));
}

static inline void rp_map_prefetch(const rp_map *map, uint32_t tag)
{
    if (map->bits > 0) __builtin_prefetch(map->entries + rp_map_home(map, tag), 1);
}

/* A look-up: start, then call next until it returns a slot whose key is the right one, or
 * RP_MAP_NONE. */
static inline size_t rp_map_start(const rp_map *map, uint32_t tag)
{
    return map->bits > 0 ? rp_map_home(map, tag) : 0;
}
static inline uint32_t rp_map_next(const rp_map *map, uint32_t tag, size_t *at)
{
    size_t mask = ((size_t)1 << map->bits) - 1;

    if (map->bits == 0) return RP_MAP_NONE;
    for (;;) {
        uint64_t entry = map->entries[*at];
        if (entry == 0) return RP_MAP_NONE;
        *at = (*at + 1) & mask;
        if ((uint32_t)(entry >> 32) == tag) return (uint32_t)entry - 1;
    }
}

/* Adds an entry that is not there yet; there must be room for it. `slot` is below RP_MAP_NONE. */
void rp_map_insert(rp_map *map, uint32_t tag, uint32_t slot);

/* Removes an entry that is there. */
void rp_map_remove(rp_map *map, uint32_t tag, uint32_t slot);

/* Forgets every entry and keeps the room. */
void rp_map_clear(rp_map *map);

#endif
