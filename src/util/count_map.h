/* SPDX-License-Identifier: Apache-2.0 */
/* A map from 64-bit keys to counts. A key is removed when its count falls to 0. Not
 * thread-safe.
 *
 * Invariants:
 *   N1  the map holds exactly the entries below `used` with n > 0;
 *   N2  the free list holds exactly the entries below `used` with n == 0;
 *   N3  used <= capacity. */
#ifndef RP_UTIL_COUNT_MAP_H
#define RP_UTIL_COUNT_MAP_H

#include "util/map.h"

typedef struct rp_count {
    uint64_t key;
    uint32_t n;         /* the count; 0: the entry is free */
    uint32_t next_free; /* in a free entry: the next free entry, or RP_MAP_NONE */
} rp_count;

typedef struct rp_count_map {
    rp_map map;
    rp_count *counts;
    size_t capacity;
    size_t used; /* entries from this index on have never been used */
    uint32_t first_free;
    /* Hints: the entries that the last rp_count_map_add() and the last rp_count_map_sub() used.
     * The next call mostly has the same key and so finds its entry without a look-up. A hint
     * can be outdated: its entry is free or has another key. */
    uint32_t last_added, last_taken;
} rp_count_map;

void rp_count_map_init(rp_count_map *m, const rp_allocator *alloc, uint64_t seed);
void rp_count_map_deinit(rp_count_map *m);

/* Makes room for `more` new keys. After RP_NO_RESOURCE nothing has changed. */
RP_NODISCARD rp_status rp_count_map_reserve(rp_count_map *m, size_t more);

/* Increments the count of a key, and returns the new count. For a new key the caller must have
 * made room with rp_count_map_reserve(). */
uint32_t rp_count_map_add(rp_count_map *m, uint64_t key);

/* Decrements the count of a key, and returns the new count. The count must be > 0. */
uint32_t rp_count_map_sub(rp_count_map *m, uint64_t key);

/* Returns the count of a key, or 0 if the key is not in the map. */
uint32_t rp_count_map_get(const rp_count_map *m, uint64_t key);

/* Returns the number of keys with a count > 0. */
size_t rp_count_map_size(const rp_count_map *m);

/* Shrinks a large map if less than a quarter of its memory is in use. Room that
 * rp_count_map_reserve() has made is lost. Does nothing if there is no memory for the smaller
 * map. */
void rp_count_map_trim(rp_count_map *m);

#endif
