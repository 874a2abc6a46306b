/* SPDX-License-Identifier: Apache-2.0 */
/* Counts by 64-bit key. A key whose count falls to 0 is gone. Not thread-safe. */
#ifndef RP_UTIL_COUNT_MAP_H
#define RP_UTIL_COUNT_MAP_H

#include "util/map.h"

typedef struct rp_count {
    uint64_t key;
    uint32_t n;         /* 0: free */
    uint32_t next_free; /* of a free one */
} rp_count;

typedef struct rp_count_map {
    rp_map map;
    rp_count *counts;
    size_t capacity;
    size_t used; /* counts below this have been used */
    uint32_t first_free;
} rp_count_map;

void rp_count_map_init(rp_count_map *m, const rp_allocator *alloc, uint64_t seed);
void rp_count_map_deinit(rp_count_map *m);

/* Makes room for `more` new keys. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_count_map_reserve(rp_count_map *m, size_t more);

/* Adds one; returns the new count. A new key needs room. */
uint32_t rp_count_map_add(rp_count_map *m, uint64_t key);

/* Takes one from a key that is there; returns the new count. */
uint32_t rp_count_map_sub(rp_count_map *m, uint64_t key);

/* The count of a key, 0 if it is not there. */
uint32_t rp_count_map_get(const rp_count_map *m, uint64_t key);

/* How many keys have a count. */
size_t rp_count_map_size(const rp_count_map *m);

/* Gives memory back if less than a quarter of it is in use, unless it is little. Room that was
 * reserved goes with it. Does nothing if there is no memory for the smaller map. */
void rp_count_map_trim(rp_count_map *m);

#endif
