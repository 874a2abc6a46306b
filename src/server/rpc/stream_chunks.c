/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/stream_chunks.h"

#include "chunk/keep.h"
#include "util/mem.h"

enum {
    ENTRY_BYTES = 64,  /* of an entry and its place in the map, about */
    KEPT_ENTRIES = 128 /* room for so many is kept, whether they are needed or not */
};

/* What a chunk takes: a small one is mostly what we know of it. */
static size_t cost_of(const rp_chunk *chunk)
{
    bool is_elsewhere = chunk->adopted || chunk->apart;

    return ENTRY_BYTES + chunk->size_bytes + (is_elsewhere ? chunk->wire_bytes : 0);
}

void rp_stream_chunks_init(rp_stream_chunks *chunks, const rp_allocator *alloc, uint64_t seed)
{
    *chunks = (rp_stream_chunks){0};
    rp_map_init(&chunks->map, alloc, seed);
}

static uint32_t slot_of(const rp_stream_chunks *chunks, uint64_t key)
{
    uint32_t tag = rp_map_tag(&chunks->map, key), slot;
    rp_map_cursor at = rp_map_start(&chunks->map, tag);

    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (chunks->entries[slot].chunk->origin.key == key) return slot;
    return RP_MAP_NONE;
}

rp_chunk *rp_stream_chunks_find(rp_stream_chunks *chunks, uint64_t key, bool use)
{
    size_t slot = chunks->next;

    if (slot >= chunks->count || chunks->entries[slot].chunk->origin.key != key) {
        slot = slot_of(chunks, key);
        if (slot == RP_MAP_NONE) return NULL;
    }
    if (use) {
        rp_stream_chunk *entry = &chunks->entries[slot];
        chunks->next = slot + 1;
        if (!entry->used) chunks->unused_bytes -= cost_of(entry->chunk);
        entry->used = true;
    }
    return chunks->entries[slot].chunk;
}

rp_status rp_stream_chunks_add(rp_stream_chunks *chunks, rp_chunk *chunk)
{
    if (chunks->count == chunks->capacity) {
        size_t capacity = chunks->capacity > 0 ? 2 * chunks->capacity : 8;
        if (capacity >= RP_MAP_NONE ||
            !rp_resize_array(&chunks->map.alloc, &chunks->entries, chunks->capacity, capacity,
                             sizeof *chunks->entries))
            return RP_NO_RESOURCE;
        chunks->capacity = capacity;
    }
    if (rp_map_reserve(&chunks->map, 1) != RP_OK) return RP_NO_RESOURCE;
    rp_map_insert(&chunks->map, rp_map_tag(&chunks->map, chunk->origin.key),
                  (uint32_t)chunks->count);
    chunks->entries[chunks->count++] = (rp_stream_chunk){.chunk = chunk};
    chunks->unused_bytes += cost_of(chunk);
    return RP_OK;
}

static void drop(rp_stream_chunks *chunks, size_t index)
{
    const rp_stream_chunk *entry = &chunks->entries[index];

    if (!entry->used) chunks->unused_bytes -= cost_of(entry->chunk);
    if (index < chunks->marked) chunks->kept_change += rp_chunk_unkeep(entry->chunk);
    rp_chunk_unref(entry->chunk);
}

static void set_unused(rp_stream_chunks *chunks, rp_stream_chunk *entry)
{
    entry->used = false;
    chunks->unused_bytes += cost_of(entry->chunk);
}

/* Gives back room for many more entries than there are. Without memory it stays. */
static void trim(rp_stream_chunks *chunks)
{
    size_t capacity = 2 * chunks->count > KEPT_ENTRIES ? 2 * chunks->count : KEPT_ENTRIES;
    rp_map fewer;

    if (chunks->capacity <= KEPT_ENTRIES || chunks->count >= chunks->capacity / 4) return;
    rp_map_init_like(&fewer, &chunks->map);
    if (rp_map_reserve(&fewer, chunks->count) != RP_OK) return;
    for (size_t i = 0; i < chunks->count; i++)
        rp_map_insert(&fewer, rp_map_tag(&fewer, chunks->entries[i].chunk->origin.key),
                      (uint32_t)i);
    rp_map_deinit(&chunks->map);
    rp_map_take(&chunks->map, &fewer);
    if (rp_resize_array(&chunks->map.alloc, &chunks->entries, chunks->capacity, capacity,
                        sizeof *chunks->entries))
        chunks->capacity = capacity;
}

/* All of them go: the usual case of a stream whose items share nothing. */
static void drop_all(rp_stream_chunks *chunks)
{
    rp_map_clear(&chunks->map);
    for (size_t i = 0; i < chunks->count; i++) drop(chunks, i);
    chunks->count = chunks->marked = 0;
}

void rp_stream_chunks_deinit(rp_stream_chunks *chunks)
{
    drop_all(chunks);
    rp_release(&chunks->map.alloc, chunks->entries, chunks->capacity * sizeof *chunks->entries);
    chunks->entries = NULL;
    chunks->capacity = 0;
    rp_map_deinit(&chunks->map);
}

bool rp_stream_chunks_must_settle(const rp_stream_chunks *chunks)
{
    return chunks->marked < chunks->count || chunks->capacity > KEPT_ENTRIES;
}

void rp_stream_chunks_settle(rp_stream_chunks *chunks)
{
    trim(chunks);
    for (; chunks->marked < chunks->count; chunks->marked++)
        chunks->kept_change += rp_chunk_keep(chunks->entries[chunks->marked].chunk);
}

void rp_stream_chunks_look(rp_stream_chunks *chunks)
{
    for (size_t i = 0; i < chunks->count; i++) {
        rp_stream_chunk *entry = &chunks->entries[i];
        if (entry->used && entry->chunk->waits == 0 &&
            rp_holders_count(&entry->chunk->holders) == 0)
            set_unused(chunks, entry);
    }
}

size_t rp_stream_chunks_take_change(rp_stream_chunks *chunks)
{
    size_t change = chunks->kept_change;

    chunks->kept_change = 0;
    return change;
}

bool rp_stream_chunks_keep(rp_stream_chunks *chunks, const uint64_t *keys, size_t count)
{
    size_t kept = 0, marked = 0;
    bool ok = true;

    chunks->next = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t slot = slot_of(chunks, keys[i]);
        if (slot == RP_MAP_NONE || chunks->entries[slot].kept)
            ok = false;
        else
            chunks->entries[slot].kept = true;
    }
    if (count == 0) {
        drop_all(chunks);
        return ok;
    }
    for (size_t i = 0; i < chunks->count; i++) {
        rp_stream_chunk *entry = &chunks->entries[i];
        uint32_t tag = rp_map_tag(&chunks->map, entry->chunk->origin.key);
        if (entry->kept) {
            marked += i < chunks->marked; /* the marked ones stay in front */
            /* If all items that referred to it are gone, the stream alone has it again. */
            if (entry->used && rp_refcount_is_one(&entry->chunk->refs))
                set_unused(chunks, entry);
        }
        if (entry->kept && kept == i) {
            kept++;
        } else {
            rp_map_remove(&chunks->map, tag, (uint32_t)i);
            if (entry->kept) {
                rp_map_insert(&chunks->map, tag, (uint32_t)kept);
                chunks->entries[kept++] = *entry;
            } else {
                drop(chunks, i);
            }
        }
    }
    chunks->count = kept;
    chunks->marked = marked;
    for (size_t i = 0; i < kept; i++) chunks->entries[i].kept = false;
    return ok;
}
