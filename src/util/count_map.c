/* SPDX-License-Identifier: Apache-2.0 */
#include "util/count_map.h"

#include <assert.h>

#include "util/mem.h"
#include "util/verify.h"

#ifndef NDEBUG
static uint32_t find(const rp_count_map *m, uint64_t key, uint32_t tag);

static bool count_map_is_valid(const rp_count_map *m)
{
    size_t free_count = 0, counted = 0;

    for (uint32_t i = m->first_free; i != RP_MAP_NONE; i = m->counts[i].next_free)
        if (i >= m->used || m->counts[i].n != 0 || ++free_count > m->used)
            return false; /* N2 */
    for (size_t i = 0; i < m->used; i++) {
        const rp_count *c = &m->counts[i];
        if (c->n == 0) continue;
        if (find(m, c->key, rp_map_tag(&m->map, c->key)) != i) return false; /* N1 */
        counted++;
    }
    return counted == m->map.count && counted + free_count == m->used && m->used <= m->capacity;
}
#endif

void rp_count_map_init(rp_count_map *m, const rp_allocator *alloc, uint64_t seed)
{
    *m = (rp_count_map){.first_free = RP_MAP_NONE};
    rp_map_init(&m->map, alloc, seed);
}

void rp_count_map_deinit(rp_count_map *m)
{
    rp_release(&m->map.alloc, m->counts, m->capacity * sizeof *m->counts);
    rp_map_deinit(&m->map);
    m->counts = NULL;
    m->capacity = 0;
}

rp_status rp_count_map_reserve(rp_count_map *m, size_t more)
{
    size_t need = m->map.count + more, capacity = m->capacity;

    if (rp_map_reserve(&m->map, more) != RP_OK) return RP_NO_RESOURCE;
    if (need <= capacity) return RP_OK;
    if (capacity < 16) capacity = 16;
    while (capacity < need) capacity *= 2;
    if (!rp_grow_array(&m->map.alloc, &m->counts, m->capacity, capacity, sizeof *m->counts))
        return RP_NO_RESOURCE;
    m->capacity = capacity;
    return RP_OK;
}

static uint32_t find(const rp_count_map *m, uint64_t key, uint32_t tag)
{
    rp_map_cursor at = rp_map_start(&m->map, tag);
    uint32_t i;

    while ((i = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (m->counts[i].key == key) break;
    return i;
}

/* True if the entry `i`, which may be any number, has the key. */
static bool has_key(const rp_count_map *m, uint32_t i, uint64_t key)
{
    return i < m->used && m->counts[i].key == key && m->counts[i].n > 0; /* N1 */
}

/* Not inlined, like take_slow(): the calls that find their key at once save no registers. */
__attribute__((noinline)) static uint32_t add_slow(rp_count_map *m, uint64_t key)
{
    uint32_t tag = rp_map_tag(&m->map, key), i = find(m, key, tag);

    if (i != RP_MAP_NONE) {
        m->last_added = i;
        return ++m->counts[i].n;
    }
    i = m->first_free;
    if (i != RP_MAP_NONE)
        m->first_free = m->counts[i].next_free;
    else
        i = (uint32_t)m->used++;
    assert(i < m->capacity);
    m->counts[i] = (rp_count){.key = key, .n = 1};
    m->last_added = i;
    rp_map_insert(&m->map, tag, i);
    RP_VERIFY(m->used, count_map_is_valid(m));
    return 1;
}

__attribute__((noinline)) static uint32_t take_slow(rp_count_map *m, uint64_t key)
{
    uint32_t tag = rp_map_tag(&m->map, key), i = find(m, key, tag);

    assert(i != RP_MAP_NONE && m->counts[i].n > 0);
    m->last_taken = i;
    if (--m->counts[i].n > 0) return m->counts[i].n;
    m->counts[i].next_free = m->first_free;
    m->first_free = i;
    rp_map_remove(&m->map, tag, i);
    RP_VERIFY(m->used, count_map_is_valid(m));
    return 0;
}

uint32_t rp_count_map_add(rp_count_map *m, uint64_t key)
{
    return has_key(m, m->last_added, key) ? ++m->counts[m->last_added].n : add_slow(m, key);
}

uint32_t rp_count_map_sub(rp_count_map *m, uint64_t key)
{
    if (has_key(m, m->last_taken, key) && m->counts[m->last_taken].n > 1)
        return --m->counts[m->last_taken].n;
    return take_slow(m, key);
}

uint32_t rp_count_map_get(const rp_count_map *m, uint64_t key)
{
    uint32_t i = find(m, key, rp_map_tag(&m->map, key));
    return i == RP_MAP_NONE ? 0 : m->counts[i].n;
}

enum { KEPT = 512 };

/* Not inlined: the check before it is part of every change of a table. */
__attribute__((noinline)) static void shrink(rp_count_map *m)
{
    rp_count_map smaller = {.first_free = RP_MAP_NONE};
    size_t count = m->map.count;

    rp_map_init_like(&smaller.map, &m->map);
    if (rp_count_map_reserve(&smaller, count < KEPT / 2 ? KEPT / 2 : count) != RP_OK) {
        rp_count_map_deinit(&smaller);
        return;
    }
    for (size_t i = 0; smaller.used < count; i++) {
        if (m->counts[i].n == 0) continue;
        smaller.counts[smaller.used] = m->counts[i];
        rp_map_insert(&smaller.map, rp_map_tag(&smaller.map, m->counts[i].key),
                      (uint32_t)smaller.used++);
    }
    rp_count_map_deinit(m);
    *m = smaller;
    assert(m->map.count == count);
    RP_VERIFY(m->used, count_map_is_valid(m));
}

void rp_count_map_trim(rp_count_map *m)
{
    if (m->capacity > KEPT && m->map.count < m->capacity / 4) shrink(m);
}

size_t rp_count_map_size(const rp_count_map *m)
{
    return m->map.count;
}
