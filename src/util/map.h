/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from 64-bit keys to slot numbers. The map itself does not store the keys.
 *
 * For each key the map stores 32 bits of the hash (the tag) and the slot. The owner of the map
 * stores the keys in its slots and compares them. Entries are stored in buckets of seven, one
 * bucket per cache line:
 *
 *   bucket   | tag x 7 | slot x 7 | passed (64 bits) |       tag 0: free
 *
 * The upper bits of the tag give the home bucket of an entry. If the home bucket is full, the
 * entry goes into the next bucket with room. Each bucket that was too full for the entry, from
 * the home bucket on, counts the entry in `passed`. So a look-up compares the seven tags of a
 * bucket without a branch, and continues with the next bucket only if `passed` is not 0. A
 * removal clears one entry and moves none. The hash depends on a seed, so that a peer that
 * chooses keys, but does not know the seed, cannot cause collisions.
 *
 * Growth is incremental. A full map gets an array of twice as many buckets, and each
 * rp_map_reserve() moves a few entries from the old array to the new one, in the order of their
 * home buckets. So no insert, removal or look-up takes time in proportion to the size of the
 * map. Only an rp_map_reserve() of very many entries does. rp_map_clear() frees a large array
 * instead of clearing it.
 *
 * Invariants:
 *   M1  an entry is in the old array (`old`) exactly if its tag is >= old_from, otherwise in
 *       the new array (`now`);
 *   M2  if there is no old array, old_from is 2^32, which is above every tag;
 *   M3  count is the number of entries in both arrays;
 *   M4  `passed` of a bucket counts the entries whose home is this bucket or an earlier one and
 *       which are stored in a later bucket. The last bucket is followed by the first.
 *
 * Not thread-safe. Only rp_map_reserve() allocates. */
#ifndef RP_UTIL_MAP_H
#define RP_UTIL_MAP_H

#include <stdatomic.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "reprise/alloc.h"
#include "util/wide.h"

enum { RP_MAP_BUCKET = 7 };

#define RP_MAP_NONE UINT32_MAX

typedef struct rp_map_bucket {
    uint32_t tags[RP_MAP_BUCKET];
    uint32_t slots[RP_MAP_BUCKET];
    uint64_t passed;
} rp_map_bucket;

/* An array of 2^bits buckets. If `buckets` is NULL, there is no array. */
typedef struct rp_map_array {
    rp_map_bucket *buckets;
    uint32_t bits;
} rp_map_array;

typedef struct rp_map {
    rp_map_array now, old;
    uint64_t old_from; /* see invariants M1 and M2 */
    size_t count;
    uint64_t seed[2];
    rp_allocator alloc;
    /* A copy of `now`, for rp_map_prefetch_unlocked(). */
    _Atomic(rp_map_bucket *) hint_buckets;
    atomic_uint_fast32_t hint_bits;
} rp_map;

void rp_map_init(rp_map *map, const rp_allocator *alloc, uint64_t seed);
/* Initialises a map with the seed of `other`, so that a key has the same tag in both maps. */
void rp_map_init_like(rp_map *map, const rp_map *other);
void rp_map_deinit(rp_map *map);

/* Makes room for `more` entries. Returns RP_NO_RESOURCE if there is no memory, or if there
 * would be more than 2^31 entries; the map then has the same entries as before. */
RP_NODISCARD rp_status rp_map_reserve(rp_map *map, size_t more);

/* Returns the tag of a key, which is never 0. The result depends only on the key and the seed,
 * so the call needs no lock. */
static inline uint32_t rp_map_tag(const rp_map *map, uint64_t key)
{
    rp_u128 product = (rp_u128)(key ^ map->seed[0]) * map->seed[1];
    return (uint32_t)(((uint64_t)(product >> 64) ^ (uint64_t)product) >> 32) | 1;
}

/* Returns the array that has an entry with this tag, if the map has such an entry. */
static inline const rp_map_array *rp_map_array_of(const rp_map *map, uint32_t tag)
{
    return __builtin_expect(tag >= map->old_from, 0) ? &map->old : &map->now;
}

static inline size_t rp_map_home(const rp_map_array *array, uint32_t tag)
{
    return (size_t)((uint64_t)tag >> (32 - array->bits));
}

static inline void rp_map_prefetch(const rp_map *map, uint32_t tag)
{
    const rp_map_array *array = rp_map_array_of(map, tag);

    if (array->buckets != NULL) __builtin_prefetch(array->buckets + rp_map_home(array, tag), 1);
}

/* Like rp_map_prefetch(), but needs no lock. If another thread makes the map grow at the same
 * time, the call possibly prefetches a wrong or even a freed line. This does no harm, because a
 * prefetch has no other effect and cannot fault. */
static inline void rp_map_prefetch_unlocked(const rp_map *map, uint32_t tag)
{
    const rp_map_bucket *buckets =
        atomic_load_explicit(&map->hint_buckets, memory_order_relaxed);
    uint_fast32_t bits = atomic_load_explicit(&map->hint_bits, memory_order_relaxed);
    uintptr_t line =
        (uintptr_t)buckets + ((uint64_t)tag >> (32 - bits)) * sizeof(rp_map_bucket);

    __builtin_prefetch((const void *)line, 1);
}

/* A look-up. The caller calls rp_map_start(), and then rp_map_next() until it returns
 * RP_MAP_NONE or a slot with the wanted key. */
typedef struct rp_map_cursor {
    const rp_map_bucket *buckets;
    size_t mask; /* number of buckets - 1 */
    size_t bucket;
    uint32_t matches; /* bit i is set if entry i of the bucket has the tag and was not returned
                         yet */
} rp_map_cursor;

/* Returns a bit mask: bit i is set if numbers[i] (of seven) equals `wanted`. */
static inline uint32_t rp_map_matches(const uint32_t *numbers, uint32_t wanted)
{
#if defined(__SSE2__)
    __m128i w = _mm_set1_epi32((int)wanted);
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)numbers);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(numbers + 3));
    int low_bits = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(low, w)));
    int high_bits = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(high, w)));
    return (uint32_t)(low_bits | high_bits << 3); /* both loads contain the fourth number */
#else
    uint32_t matches = 0;
    for (uint32_t i = 0; i < RP_MAP_BUCKET; i++)
        matches |= (uint32_t)(numbers[i] == wanted) << i;
    return matches;
#endif
}

static inline rp_map_cursor rp_map_start(const rp_map *map, uint32_t tag)
{
    const rp_map_array *array = rp_map_array_of(map, tag);
    rp_map_cursor at = {array->buckets, ((size_t)1 << array->bits) - 1, 0, 0};

    if (at.buckets == NULL) return at;
    at.bucket = rp_map_home(array, tag);
    at.matches = rp_map_matches(at.buckets[at.bucket].tags, tag);
    return at;
}

static inline uint32_t rp_map_next(uint32_t tag, rp_map_cursor *at)
{
    if (at->buckets == NULL) return RP_MAP_NONE;
    while (at->matches == 0) {
        if (at->buckets[at->bucket].passed == 0) return RP_MAP_NONE;
        at->bucket = (at->bucket + 1) & at->mask;
        at->matches = rp_map_matches(at->buckets[at->bucket].tags, tag);
    }
    uint32_t entry = (uint32_t)__builtin_ctz(at->matches);
    at->matches &= at->matches - 1;
    return at->buckets[at->bucket].slots[entry];
}

/* Adds an entry. The entry must not be in the map, and there must be room for it. */
void rp_map_insert(rp_map *map, uint32_t tag, uint32_t slot);

/* Removes an entry, which must be in the map. */
void rp_map_remove(rp_map *map, uint32_t tag, uint32_t slot);

/* Moves the entries and the memory of `from` to `map`. `map` must be empty and have the same
 * seed. */
void rp_map_take(rp_map *map, rp_map *from);

/* Removes every entry, and frees the memory if it is large. The caller must call
 * rp_map_reserve() before the next insert. */
void rp_map_clear(rp_map *map);

#endif
