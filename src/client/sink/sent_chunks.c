/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/sent_chunks.h"

#include <assert.h>

#include "chunk/chunk.h"
#include "util/mem.h"
#include "util/verify.h"

enum { FIRST_CAPACITY = 64 };

void rp_sent_chunks_init(rp_sent_chunks *chunks, const rp_allocator *alloc, uint64_t seed)
{
    *chunks = (rp_sent_chunks){0};
    rp_map_init(&chunks->map, alloc, seed);
}

void rp_sent_chunks_clear(rp_sent_chunks *chunks)
{
    rp_map_clear(&chunks->map);
    for (size_t i = 0; i < chunks->count; i++) rp_chunk_unref(chunks->entries[i].chunk);
    chunks->count = 0;
    chunks->bytes = 0;
}

void rp_sent_chunks_deinit(rp_sent_chunks *chunks)
{
    const rp_allocator *alloc = &chunks->map.alloc;

    rp_sent_chunks_clear(chunks);
    rp_release(alloc, chunks->entries, chunks->capacity * sizeof *chunks->entries);
    rp_release(alloc, chunks->keys, chunks->capacity * sizeof *chunks->keys);
    rp_map_deinit(&chunks->map);
}

bool rp_sent_chunks_reserve(rp_sent_chunks *chunks, size_t more)
{
    const rp_allocator *alloc = &chunks->map.alloc;
    size_t needed = chunks->count + more, capacity = chunks->capacity;

    if (needed > capacity) {
        rp_sent_chunk *entries;

        if (capacity == 0) capacity = FIRST_CAPACITY;
        while (capacity < needed) capacity *= 2;
        if (capacity >= RP_MAP_NONE) return false;
        entries = rp_alloc_array(alloc, capacity, sizeof *entries);
        if (entries == NULL) return false;
        if (!rp_resize_array(alloc, &chunks->keys, chunks->capacity, capacity,
                             sizeof *chunks->keys)) {
            rp_release(alloc, entries, capacity * sizeof *entries);
            return false;
        }
        if (chunks->count > 0)
            memcpy(entries, chunks->entries, chunks->count * sizeof *entries);
        rp_release(alloc, chunks->entries, chunks->capacity * sizeof *entries);
        chunks->entries = entries;
        chunks->capacity = capacity;
    }
    return rp_map_reserve(&chunks->map, more) == RP_OK;
}

static uint32_t slot_of(const rp_sent_chunks *chunks, uint64_t key)
{
    uint32_t tag = rp_map_tag(&chunks->map, key), slot;
    rp_map_cursor at = rp_map_start(&chunks->map, tag);

    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (chunks->entries[slot].chunk->origin.key == key) return slot;
    return RP_MAP_NONE;
}

#ifndef NDEBUG
/* Returns true if K1 and K2 hold. */
static bool is_valid(const rp_sent_chunks *chunks)
{
    size_t bytes = 0;

    for (size_t i = 0; i < chunks->count; i++) {
        bytes += chunks->entries[i].chunk->wire_bytes;
        if (slot_of(chunks, chunks->entries[i].chunk->origin.key) != i) return false;
    }
    return bytes == chunks->bytes && chunks->map.count == chunks->count &&
           chunks->count <= chunks->capacity;
}
#endif

bool rp_sent_chunks_has(const rp_sent_chunks *chunks, const rp_chunk *chunk)
{
    return chunks->count > 0 && slot_of(chunks, chunk->origin.key) != RP_MAP_NONE;
}

bool rp_sent_chunks_use(rp_sent_chunks *chunks, rp_chunk *chunk, bool is_alone)
{
    uint32_t slot;

    if (is_alone && rp_refcount_is_one(&chunk->refs)) return false;
    slot = slot_of(chunks, chunk->origin.key);
    if (slot != RP_MAP_NONE) {
        chunks->entries[slot].own++;
        return true;
    }
    assert(chunks->count < chunks->capacity);
    rp_map_insert(&chunks->map, rp_map_tag(&chunks->map, chunk->origin.key),
                  (uint32_t)chunks->count);
    chunks->entries[chunks->count++] = (rp_sent_chunk){rp_chunk_ref(chunk), 1};
    chunks->bytes += chunk->wire_bytes;
    RP_VERIFY(chunks->count, is_valid(chunks));
    return false;
}

void rp_sent_chunks_on_confirmed(rp_sent_chunks *chunks, const rp_trajectory *trajectory)
{
    if (chunks->count == 0) return;
    for (size_t i = 0; i < trajectory->chunk_count; i++) {
        uint32_t slot = slot_of(chunks, trajectory->chunks[i]->origin.key);
        /* `own` is 0 if the chunk was dropped and sent again after the item */
        if (slot != RP_MAP_NONE && chunks->entries[slot].own > 0) chunks->entries[slot].own--;
    }
}

static bool is_wanted(const rp_sent_chunks *chunks, const rp_sent_chunk *entry, size_t left)
{
    return left <= RP_KEPT_CHUNKS && chunks->bytes <= RP_KEPT_BYTES &&
           rp_refcount_get(&entry->chunk->refs) > 1 + entry->own;
}

size_t rp_sent_chunks_keep(rp_sent_chunks *chunks, const uint64_t **keys)
{
    size_t kept = 0, count = chunks->count;

    for (size_t i = 0; i < count; i++) {
        rp_sent_chunk *entry = &chunks->entries[i];
        uint64_t key = entry->chunk->origin.key;
        bool wanted = is_wanted(chunks, entry, kept + count - i);

        if (!wanted || kept != i) {
            uint32_t tag = rp_map_tag(&chunks->map, key);
            rp_map_remove(&chunks->map, tag, (uint32_t)i);
            if (wanted) rp_map_insert(&chunks->map, tag, (uint32_t)kept);
        }
        if (wanted) {
            chunks->keys[kept] = key;
            chunks->entries[kept++] = *entry;
        } else {
            assert(chunks->bytes >= entry->chunk->wire_bytes);
            chunks->bytes -= entry->chunk->wire_bytes;
            rp_chunk_unref(entry->chunk);
        }
    }
    chunks->count = kept;
    RP_VERIFY(kept, is_valid(chunks));
    *keys = chunks->keys;
    return kept;
}
