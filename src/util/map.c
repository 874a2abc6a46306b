/* SPDX-License-Identifier: Apache-2.0 */
#include "util/map.h"

#include <assert.h>

#include "util/mem.h"
#include "util/rng.h"

enum { MIN_BITS = 6 };

void rp_map_init(rp_map *map, const rp_allocator *alloc, uint64_t seed)
{
    *map = (rp_map){.alloc = *alloc};
    map->seed[0] = rp_splitmix64(&seed);
    map->seed[1] = rp_splitmix64(&seed) | 1;
}

static size_t bytes_of(uint32_t bits)
{
    return ((size_t)1 << bits) * sizeof(uint64_t);
}

void rp_map_deinit(rp_map *map)
{
    if (map->bits > 0) rp_release_aligned(&map->alloc, map->entries, bytes_of(map->bits));
    map->entries = NULL;
    map->bits = 0;
    map->count = 0;
}

static void place(rp_map *map, uint64_t entry)
{
    size_t mask = ((size_t)1 << map->bits) - 1;
    size_t at = rp_map_home(map, (uint32_t)(entry >> 32));

    while (map->entries[at] != 0) at = (at + 1) & mask;
    map->entries[at] = entry;
}

rp_status rp_map_reserve(rp_map *map, size_t more)
{
    rp_map grown = *map;
    size_t need;

    if (!rp_size_add(map->count, more, &need) || need > (size_t)1 << 31) return RP_NO_RESOURCE;
    if (map->bits > 0 && need <= (size_t)1 << (map->bits - 1)) return RP_OK;
    if (grown.bits < MIN_BITS) grown.bits = MIN_BITS;
    while (need > (size_t)1 << (grown.bits - 1)) grown.bits++;
    grown.entries = rp_alloc_aligned(&map->alloc, bytes_of(grown.bits));
    if (grown.entries == NULL) return RP_NO_RESOURCE;
    if (map->bits > 0) {
        for (size_t i = 0; i < (size_t)1 << map->bits; i++)
            if (map->entries[i] != 0) place(&grown, map->entries[i]);
        rp_release_aligned(&map->alloc, map->entries, bytes_of(map->bits));
    }
    map->entries = grown.entries; /* and not the seed, which is read without a lock */
    map->bits = grown.bits;
    return RP_OK;
}

void rp_map_insert(rp_map *map, uint32_t tag, uint32_t slot)
{
    assert(map->bits > 0 && map->count < (size_t)1 << (map->bits - 1));
    place(map, (uint64_t)tag << 32 | ((uint64_t)slot + 1));
    map->count++;
}

void rp_map_remove(rp_map *map, uint32_t tag, uint32_t slot)
{
    uint64_t entry = (uint64_t)tag << 32 | ((uint64_t)slot + 1);
    size_t mask = ((size_t)1 << map->bits) - 1, hole = rp_map_home(map, tag), at;

    while (map->entries[hole] != entry) {
        assert(map->entries[hole] != 0);
        hole = (hole + 1) & mask;
    }
    /* An entry behind the hole may move into it unless its home lies after the hole. */
    for (at = (hole + 1) & mask; map->entries[at] != 0; at = (at + 1) & mask) {
        size_t home = rp_map_home(map, (uint32_t)(map->entries[at] >> 32));
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole] = 0;
    map->count--;
}

void rp_map_clear(rp_map *map)
{
    if (map->bits > 0) memset(map->entries, 0, bytes_of(map->bits));
    map->count = 0;
}
