/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/chunk_index.h"

#include <inttypes.h>

#include "util/error.h"
#include "util/mem.h"

enum { FIRST_CAPACITY = 1024 };

/* --- places ------------------------------------------------------------------------------------ */

/* 0 if there can be no such place. */
static uint64_t key_of(uint64_t segment, uint64_t offset)
{
    if (segment >> RP_INDEX_SEGMENT_BITS != 0 || offset >> RP_INDEX_OFFSET_BITS != 0) return 0;
    return segment << RP_INDEX_OFFSET_BITS | offset;
}

static rp_index_entry *slot_of(const rp_place_map *map, uint64_t key)
{
    uint64_t hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 20) & (map->capacity - 1);

    while (map->entries[at].key != 0 && map->entries[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->entries[at];
}

static rp_index_entry *find(const rp_place_map *map, uint64_t key)
{
    rp_index_entry *entry = key != 0 && map->capacity > 0 ? slot_of(map, key) : NULL;

    return entry != NULL && entry->key == key ? entry : NULL;
}

/* The entry of a key, a new one if there is none. NULL if there is no memory. */
static rp_index_entry *enter(const rp_allocator *alloc, rp_place_map *map, uint64_t key)
{
    rp_place_map more = *map;
    rp_index_entry *entry;

    if (map->count >= map->capacity / 4 * 3) {
        more.capacity = map->capacity == 0 ? FIRST_CAPACITY : 2 * map->capacity;
        more.entries = rp_alloc_array(alloc, more.capacity, sizeof *more.entries);
        if (more.entries == NULL) return NULL;
        for (size_t i = 0; i < map->capacity; i++)
            if (map->entries[i].key != 0)
                *slot_of(&more, map->entries[i].key) = map->entries[i];
        rp_release(alloc, map->entries, map->capacity * sizeof *map->entries);
        *map = more;
    }
    entry = slot_of(map, key);
    if (entry->key == 0) {
        entry->key = key;
        map->count++;
    }
    return entry;
}

/* The first place that is known of the chunk there. */
static uint64_t first_key(const rp_chunk_index *index, uint64_t key)
{
    for (const rp_index_entry *e; (e = find(&index->moved, key)) != NULL;) key = e->before;
    return key;
}

void rp_chunk_index_init(rp_chunk_index *index, const rp_allocator *alloc)
{
    *index = (rp_chunk_index){.alloc = *alloc};
}

void rp_chunk_index_deinit(rp_chunk_index *index)
{
    rp_place_map *chunks = &index->chunks, *moved = &index->moved;

    for (size_t i = 0; i < chunks->capacity; i++) rp_chunk_unref(chunks->entries[i].chunk);
    rp_release(&index->alloc, chunks->entries, chunks->capacity * sizeof *chunks->entries);
    rp_release(&index->alloc, moved->entries, moved->capacity * sizeof *moved->entries);
    *index = (rp_chunk_index){.alloc = index->alloc};
}

rp_status rp_chunk_index_want(rp_chunk_index *index, const rp_place *place, rp_error *err)
{
    uint64_t key = key_of(place->segment, place->offset);

    if (key == 0)
        return rp_fail(err, RP_CORRUPT, "no segment %" PRIu64 " has an offset %" PRIu64,
                       place->segment, place->offset);
    if (enter(&index->alloc, &index->chunks, key) == NULL)
        return rp_fail_memory(err, index->chunks.capacity * sizeof(rp_index_entry));
    return RP_OK;
}

rp_chunk *rp_chunk_index_find(const rp_chunk_index *index, const rp_place *place)
{
    uint64_t key = first_key(index, key_of(place->segment, place->offset));
    const rp_index_entry *entry = find(&index->chunks, key);

    return entry != NULL ? entry->chunk : NULL;
}

uint64_t rp_chunk_index_first_segment(const rp_chunk_index *index, const rp_place *place)
{
    uint64_t key = key_of(place->segment, place->offset);

    return first_key(index, key) >> RP_INDEX_OFFSET_BITS;
}

rp_status rp_chunk_index_note(rp_chunk_index *index, uint64_t segment, uint64_t offset,
                              const rp_record *record, rp_error *err)
{
    uint64_t key = key_of(segment, offset);
    rp_index_entry *at, *first, *link;

    if (record->kind != RP_RECORD_MOVED || record->number == 0 || record->number >= key ||
        find(&index->moved, key) != NULL)
        return RP_OK;
    first = enter(&index->alloc, &index->chunks, first_key(index, record->number));
    link = first != NULL ? enter(&index->alloc, &index->moved, key) : NULL;
    if (link == NULL) return rp_fail_memory(err, index->chunks.capacity * sizeof *link);
    link->before = first->key;
    at = find(&index->chunks, key);
    if (at != NULL && first->chunk == NULL) {
        first->chunk = at->chunk;
        at->chunk = NULL;
    }
    return RP_OK;
}

/* --- chunks ------------------------------------------------------------------------------------ */

/* Parses the chunk at a place, tells it where it is, and keeps it. Limits are those of the
 * format: it was let in. */
static rp_status parse(rp_chunk_index *index, rp_segments *segments, const rp_place *place,
                       const uint8_t *payload, rp_error *err)
{
    const rp_chunk_limits limits = {RP_MAX_RECORD_BYTES, SIZE_MAX, RP_MAX_COLUMNS};
    uint64_t key = first_key(index, key_of(place->segment, place->offset));
    rp_index_entry *entry = enter(&index->alloc, &index->chunks, key);
    rp_chunk *chunk = NULL;
    rp_status st;

    if (entry == NULL) return rp_fail_memory(err, sizeof *entry);
    st = rp_chunk_parse(&index->alloc, payload, place->size, &limits, &chunk, err);
    if (st == RP_INVALID) st = RP_CORRUPT;
    if (st == RP_OK && rp_segments_adopt(segments, chunk, place) != RP_OK)
        st = rp_fail_memory(err, sizeof *place);
    if (st == RP_OK && index->on_chunk != NULL && index->on_chunk(index->ctx, chunk) != RP_OK)
        st = rp_fail_memory(err, sizeof *place);
    if (st != RP_OK) {
        rp_chunk_unref(chunk);
        return st;
    }
    entry->chunk = chunk;
    return RP_OK;
}

typedef struct scan {
    rp_chunk_index *index;
    rp_segments *segments;
    uint64_t number;
    void (*on_bytes)(void *ctx, uint64_t bytes);
    void *ctx;
    rp_status status;
    rp_error *err;
} scan;

static bool scan_record(void *ctx, uint64_t offset, const rp_record *record)
{
    scan *s = ctx;
    rp_place place = {s->number, offset, (uint32_t)record->size};

    s->on_bytes(s->ctx, RP_RECORD_HEADER_BYTES + record->size);
    if (!rp_record_is(record->kind, RP_RECORD_CHUNK)) return true;
    s->status = rp_chunk_index_note(s->index, s->number, offset, record, s->err);
    if (s->status == RP_OK && find(&s->index->chunks, key_of(s->number, offset)) != NULL &&
        rp_chunk_index_find(s->index, &place) == NULL)
        s->status = parse(s->index, s->segments, &place, record->payload, s->err);
    return s->status == RP_OK;
}

rp_status rp_chunk_index_scan(rp_chunk_index *index, rp_files *files, rp_segments *segments,
                              const rp_store_id *store, uint64_t number, uint64_t bytes,
                              void (*on_bytes)(void *ctx, uint64_t bytes), void *ctx,
                              rp_error *err)
{
    scan s = {index, segments, number, on_bytes, ctx, RP_OK, err};
    rp_file_header header = {0};
    uint64_t end = 0;
    char path[32];
    rp_status st = rp_records_scan(&index->alloc, files, rp_segment_path(path, number),
                                   RP_FILE_SEGMENT, store, scan_record, &s, &header, &end, err);

    if (s.status != RP_OK) return s.status;
    /* Behind what is needed a crash may have left anything. */
    if (st != RP_OK && !(st == RP_CORRUPT && bytes > 0 && end >= bytes)) return st;
    if (header.number != number)
        return rp_fail(err, RP_CORRUPT, "%s: it is segment %" PRIu64, path, header.number);
    if (end < bytes)
        return rp_fail(err, RP_CORRUPT,
                       "%s: offset %" PRIu64 ": %" PRIu64 " bytes should be good", path, end,
                       bytes);
    return RP_OK;
}

rp_status rp_chunk_index_get(rp_chunk_index *index, rp_segments *segments,
                             const rp_place *place, rp_chunk **out, rp_error *err)
{
    rp_chunk *chunk = rp_chunk_index_find(index, place);
    uint64_t bytes = 0;
    uint8_t *payload;
    rp_status st;

    if (chunk == NULL) {
        st = rp_chunk_index_want(index, place, err);
        if (st == RP_OK) st = rp_segments_open(segments, place->segment, &bytes, err);
        if (st == RP_OK && (place->offset > bytes || place->size > bytes - place->offset))
            st = rp_fail(err, RP_CORRUPT,
                         "segment %" PRIu64 ": a chunk at %" PRIu64 " is beyond its end",
                         place->segment, place->offset);
        if (st != RP_OK) return st;
        payload = rp_alloc(&index->alloc, (size_t)place->size + 1);
        if (payload == NULL) return rp_fail_memory(err, place->size);
        st = rp_segments_read(segments, place, RP_RECORD_CHUNK, payload, err);
        if (st == RP_OK) st = parse(index, segments, place, payload, err);
        rp_release(&index->alloc, payload, (size_t)place->size + 1);
        if (st != RP_OK) return st;
        chunk = rp_chunk_index_find(index, place);
    }
    if (chunk->wire_bytes != place->size)
        return rp_fail(err, RP_CORRUPT,
                       "segment %" PRIu64 ": the chunk at %" PRIu64
                       " has %zu bytes, not %" PRIu32,
                       place->segment, place->offset, chunk->wire_bytes, place->size);
    *out = chunk;
    return RP_OK;
}
