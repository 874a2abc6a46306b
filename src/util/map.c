/* SPDX-License-Identifier: Apache-2.0 */
#include "util/map.h"

#include <assert.h>

#include "util/mem.h"
#include "util/rng.h"
#include "util/verify.h"

enum {
    MIN_BITS = 3,
    FILL = 3,            /* the largest average number of entries per bucket */
    MOVED_PER_ENTRY = 2, /* home buckets that reserve moves during growth, for each entry that
                            it makes room for; >= 1, so that growth ends before the next one */
    MOVED_AT_LEAST = 64,
    KEPT_BITS = 12, /* clear keeps arrays of up to 2^12 buckets: 256 KiB */
};

#define NO_OLD ((uint64_t)1 << 32) /* above every tag (M2) */

static_assert(sizeof(rp_map_bucket) == RP_CACHE_LINE, "a bucket is one cache line");

#ifndef NDEBUG
/* The number of entries of an array, or SIZE_MAX if one is misplaced (M1) or the sum of
 * `passed` is not the sum of the distances of all entries from their homes (M4). */
static size_t check_array(const rp_map *map, const rp_map_array *array)
{
    size_t mask = ((size_t)1 << array->bits) - 1, count = 0, passed = 0, distance = 0;

    if (array->buckets == NULL) return 0;
    for (size_t at = 0; at <= mask; at++) {
        const rp_map_bucket *bucket = &array->buckets[at];

        passed += bucket->passed;
        for (int i = 0; i < RP_MAP_BUCKET; i++) {
            if (bucket->tags[i] == 0) continue;
            if (rp_map_array_of(map, bucket->tags[i]) != array) return SIZE_MAX;
            distance += (at - rp_map_home(array, bucket->tags[i])) & mask;
            count++;
        }
    }
    return passed == distance ? count : SIZE_MAX;
}

static bool map_is_valid(const rp_map *map)
{
    size_t now = check_array(map, &map->now), old = check_array(map, &map->old);

    if (map->old.buckets == NULL && map->old_from != NO_OLD) return false; /* M2 */
    return now != SIZE_MAX && old != SIZE_MAX && now + old == map->count;  /* M3 */
}
#endif

/* The number of entries that map_is_valid() walks. */
#define MAP_PARTS(map) ((size_t)RP_MAP_BUCKET << (map)->now.bits)

void rp_map_init(rp_map *map, const rp_allocator *alloc, uint64_t seed)
{
    *map = (rp_map){.alloc = *alloc, .old_from = NO_OLD};
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

static void free_array(rp_map *map, rp_map_array *array)
{
    if (array->buckets != NULL)
        rp_release_aligned(&map->alloc, array->buckets, sizeof(rp_map_bucket) << array->bits);
    *array = (rp_map_array){0};
}

static void drop_old(rp_map *map)
{
    free_array(map, &map->old);
    map->old_from = NO_OLD;
}

/* Replaces the current array. Leaves the seed alone, which is read without a lock. */
static void set_now(rp_map *map, rp_map_array now)
{
    map->now = now;
    atomic_store_explicit(&map->hint_buckets, now.buckets, memory_order_relaxed);
    atomic_store_explicit(&map->hint_bits, now.bits, memory_order_relaxed);
}

void rp_map_deinit(rp_map *map)
{
    drop_old(map);
    free_array(map, &map->now);
    set_now(map, (rp_map_array){0});
    map->count = 0;
}

static size_t next_bucket(const rp_map_array *array, size_t at)
{
    return (at + 1) & (((size_t)1 << array->bits) - 1);
}

static void place(const rp_map_array *array, uint32_t tag, uint32_t slot)
{
    size_t at = rp_map_home(array, tag);
    uint32_t free_entries;

    assert(array->buckets != NULL && tag != 0);
    while ((free_entries = rp_map_matches(array->buckets[at].tags, 0)) == 0) {
        array->buckets[at].passed++;
        at = next_bucket(array, at);
    }
    array->buckets[at].tags[__builtin_ctz(free_entries)] = tag;
    array->buckets[at].slots[__builtin_ctz(free_entries)] = slot;
}

static void take_out(const rp_map_array *array, uint32_t tag, uint32_t slot)
{
    size_t at = rp_map_home(array, tag);
    uint32_t found;

    for (;;) {
        rp_map_bucket *bucket = &array->buckets[at];
        found = rp_map_matches(bucket->slots, slot) & rp_map_matches(bucket->tags, tag);
        if (found != 0) break;
        assert(bucket->passed > 0);
        bucket->passed--; /* M4 */
        at = next_bucket(array, at);
    }
    array->buckets[at].tags[__builtin_ctz(found)] = 0;
}

/* Moves the entries whose home is one bucket of the old array. */
static void move_home(const rp_map *map, size_t home)
{
    for (size_t at = home;; at = next_bucket(&map->old, at)) {
        const rp_map_bucket *bucket = &map->old.buckets[at];

        for (int i = 0; i < RP_MAP_BUCKET; i++) {
            uint32_t tag = bucket->tags[i], slot = bucket->slots[i];

            if (tag == 0 || rp_map_home(&map->old, tag) != home) continue;
            take_out(&map->old, tag, slot);
            place(&map->now, tag, slot);
        }
        if (bucket->passed == 0) return;
    }
}

static void move_homes(rp_map *map, size_t count)
{
    size_t home = (size_t)(map->old_from >> (32 - map->old.bits));
    size_t left = ((size_t)1 << map->old.bits) - home;

    assert(map->old.buckets != NULL && map->old_from < NO_OLD);
    if (count > left) count = left;
    for (size_t end = home + count; home < end; home++) move_home(map, home);
    map->old_from += (uint64_t)count << (32 - map->old.bits);
    if (count == left) drop_old(map);
}

/* Requires that the map has no old array. */
static rp_status grow(rp_map *map, size_t need)
{
    rp_map_array grown = {.bits = map->now.bits};

    assert(map->old.buckets == NULL && map->old_from == NO_OLD); /* M2 */
    if (grown.bits < MIN_BITS) grown.bits = MIN_BITS;
    while (need > (size_t)FILL << grown.bits) grown.bits++;
    grown.buckets = rp_alloc_aligned(&map->alloc, sizeof(rp_map_bucket) << grown.bits);
    if (grown.buckets == NULL) return RP_NO_RESOURCE;
    if (map->now.buckets != NULL) {
        map->old = map->now;
        map->old_from = 0;
    }
    set_now(map, grown);
    return RP_OK;
}

rp_status rp_map_reserve(rp_map *map, size_t more)
{
    size_t need;

    if (!rp_size_add(map->count, more, &need) || need > (size_t)1 << 31) return RP_NO_RESOURCE;
    if (map->now.buckets == NULL || need > (size_t)FILL << map->now.bits) {
        if (map->old.buckets != NULL) move_homes(map, SIZE_MAX);
        if (grow(map, need) != RP_OK) return RP_NO_RESOURCE;
    }
    if (map->old.buckets != NULL) move_homes(map, MOVED_PER_ENTRY * more + MOVED_AT_LEAST);
    RP_VERIFY(MAP_PARTS(map), map_is_valid(map));
    return RP_OK;
}

void rp_map_take(rp_map *map, rp_map *from)
{
    assert(map->count == 0 && map->seed[0] == from->seed[0] && map->seed[1] == from->seed[1]);
    if (from->now.buckets == NULL) return;
    rp_map_deinit(map);
    map->old = from->old;
    map->old_from = from->old_from;
    map->count = from->count;
    set_now(map, from->now);
    from->old = (rp_map_array){0};
    from->old_from = NO_OLD;
    from->count = 0;
    set_now(from, (rp_map_array){0});
    RP_VERIFY(MAP_PARTS(map), map_is_valid(map) && map_is_valid(from));
}

void rp_map_insert(rp_map *map, uint32_t tag, uint32_t slot)
{
    assert(map->count < (size_t)FILL << map->now.bits && tag != 0);
    place(rp_map_array_of(map, tag), tag, slot);
    map->count++;
    RP_VERIFY(MAP_PARTS(map), map_is_valid(map));
}

void rp_map_remove(rp_map *map, uint32_t tag, uint32_t slot)
{
    assert(map->count > 0);
    take_out(rp_map_array_of(map, tag), tag, slot);
    map->count--;
    RP_VERIFY(MAP_PARTS(map), map_is_valid(map));
}

void rp_map_clear(rp_map *map)
{
    if (map->now.bits > KEPT_BITS) rp_map_deinit(map);
    drop_old(map);
    if (map->now.buckets != NULL)
        memset(map->now.buckets, 0, sizeof(rp_map_bucket) << map->now.bits);
    map->count = 0;
}
