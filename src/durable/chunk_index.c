/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/chunk_index.h"

#include <inttypes.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

enum { FIRST_CAPACITY = 1024 };

void rp_chunk_index_init(rp_chunk_index *index, const rp_allocator *alloc, uint64_t seed)
{
    *index = (rp_chunk_index){.alloc = *alloc};
    rp_map_init(&index->by_key, alloc, seed);
}

void rp_chunk_index_deinit(rp_chunk_index *index)
{
    for (size_t i = 0; i < index->capacity; i++) rp_chunk_unref(index->entries[i].chunk);
    rp_release(&index->alloc, index->entries, index->capacity * sizeof *index->entries);
    rp_release(&index->alloc, index->known, index->known_capacity * sizeof *index->known);
    rp_map_deinit(&index->by_key);
    *index = (rp_chunk_index){0};
}

/* 0 if there can be no such place. */
static uint64_t key_of(uint64_t segment, uint64_t offset)
{
    if (segment >> RP_INDEX_SEGMENT_BITS != 0 || offset >> RP_INDEX_OFFSET_BITS != 0) return 0;
    return segment << RP_INDEX_OFFSET_BITS | offset;
}

static rp_index_entry *slot_of(const rp_chunk_index *index, uint64_t key)
{
    uint64_t hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 20) & (index->capacity - 1);

    while (index->entries[at].key != 0 && index->entries[at].key != key)
        at = (at + 1) & (index->capacity - 1);
    return &index->entries[at];
}

static bool make_room(rp_chunk_index *index)
{
    rp_chunk_index more = *index;

    if (index->count < index->capacity / 4 * 3) return true;
    more.capacity = index->capacity == 0 ? FIRST_CAPACITY : 2 * index->capacity;
    more.entries = rp_alloc_array(&index->alloc, more.capacity, sizeof *more.entries);
    if (more.entries == NULL) return false;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->entries[i].key != 0)
            *slot_of(&more, index->entries[i].key) = index->entries[i];
    rp_release(&index->alloc, index->entries, index->capacity * sizeof *index->entries);
    *index = more;
    return true;
}

rp_status rp_chunk_index_want(rp_chunk_index *index, const rp_place *place, rp_error *err)
{
    uint64_t key = key_of(place->segment, place->offset);
    rp_index_entry *entry;

    if (key == 0)
        return rp_fail(err, RP_CORRUPT, "no segment %" PRIu64 " has an offset %" PRIu64,
                       place->segment, place->offset);
    if (!make_room(index)) return rp_fail_memory(err, index->capacity * sizeof *entry);
    entry = slot_of(index, key);
    if (entry->key != 0) return RP_OK;
    entry->key = key;
    index->count++;
    index->wanted_bytes += place->size;
    return RP_OK;
}

rp_index_entry *rp_chunk_index_find(rp_chunk_index *index, uint64_t segment, uint64_t offset)
{
    uint64_t key = key_of(segment, offset);
    rp_index_entry *entry;

    if (key == 0 || index->capacity == 0) return NULL;
    entry = slot_of(index, key);
    return entry->key == key ? entry : NULL;
}

/* Limits are those of the format: it was let in. */
static rp_status parse(rp_chunk_index *index, const rp_place *place, const uint8_t *payload,
                       rp_chunk **out, rp_error *err)
{
    const rp_chunk_limits limits = {RP_MAX_RECORD_BYTES, SIZE_MAX, RP_MAX_COLUMNS};
    rp_status st = rp_chunk_parse(&index->alloc, payload, place->size, &limits, out, err);

    return st == RP_INVALID ? RP_CORRUPT : st;
}

/* Tells a chunk where it is, and the owner of it. */
static rp_status settle(rp_chunk_index *index, rp_segments *segments, const rp_place *place,
                        rp_chunk *chunk, rp_error *err)
{
    if (rp_segments_adopt(segments, chunk, place) != RP_OK ||
        (index->on_chunk != NULL && index->on_chunk(index->ctx, chunk) != RP_OK))
        return rp_fail_memory(err, sizeof *place);
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
    rp_index_entry *entry;
    rp_chunk *chunk = NULL;

    s->on_bytes(s->ctx, RP_RECORD_HEADER_BYTES + record->size);
    if (record->kind != RP_RECORD_CHUNK) return true;
    entry = rp_chunk_index_find(s->index, s->number, offset);
    if (entry == NULL || entry->chunk != NULL) return true;
    s->status = parse(s->index, &place, record->payload, &chunk, s->err);
    if (s->status == RP_OK) s->status = settle(s->index, s->segments, &place, chunk, s->err);
    if (s->status == RP_OK)
        entry->chunk = chunk;
    else
        rp_chunk_unref(chunk);
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

/* --- chunks that are at two places ------------------------------------------------------------------- */

/* Where in `known` the chunk of a key is, or NULL. */
static rp_chunk **known_of(const rp_chunk_index *index, uint64_t key)
{
    uint32_t tag = rp_map_tag(&index->by_key, key), slot;
    rp_map_cursor at = rp_map_start(&index->by_key, tag);

    while ((slot = rp_map_next(&index->by_key, tag, &at)) != RP_MAP_NONE)
        if (index->known[slot]->origin.key == key) return &index->known[slot];
    return NULL;
}

/* Enters a chunk, in place of one of the same key. False if there is no memory. */
static bool know(rp_chunk_index *index, rp_chunk *chunk)
{
    rp_chunk **known = known_of(index, chunk->origin.key);
    size_t more = index->known_capacity == 0 ? FIRST_CAPACITY : 2 * index->known_capacity;

    if (known == NULL) {
        if (index->known_count == RP_MAP_NONE || rp_map_reserve(&index->by_key, 1) != RP_OK)
            return false;
        if (index->known_count == index->known_capacity) {
            if (!rp_resize_array(&index->alloc, &index->known, index->known_capacity, more,
                                 sizeof *index->known))
                return false;
            index->known_capacity = more;
        }
        rp_map_insert(&index->by_key, rp_map_tag(&index->by_key, chunk->origin.key),
                      (uint32_t)index->known_count);
        known = &index->known[index->known_count++];
    }
    *known = chunk;
    return true;
}

/* Enters all that were scanned: once, before the first that is read on its own account. */
static bool know_all(rp_chunk_index *index)
{
    if (index->known_count > 0) return true;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->entries[i].chunk != NULL && !know(index, index->entries[i].chunk))
            return false;
    return true;
}

/* Whether a chunk, which is somewhere in a segment, has these bytes. */
static rp_status compare(rp_chunk_index *index, rp_segments *segments, const rp_chunk *chunk,
                         const uint8_t *bytes, size_t size, bool *is_same, rp_error *err)
{
    rp_place place;
    uint8_t *own;
    rp_status st;

    *is_same = false;
    if (chunk->wire_bytes != size || !rp_segments_place(segments, chunk, &place)) return RP_OK;
    own = rp_alloc(&index->alloc, size + 1);
    if (own == NULL) return rp_fail_memory(err, size);
    st = rp_segments_read(segments, &place, RP_RECORD_CHUNK, own, err);
    *is_same = st == RP_OK && memcmp(own, bytes, size) == 0;
    rp_release(&index->alloc, own, size + 1);
    return st == RP_CORRUPT ? RP_OK : st; /* the one that was just read is good */
}

/* The chunk that was read from `place`: a reference to the one that is there already, if it
 * is the same, or a new one. */
static rp_status join(rp_chunk_index *index, rp_segments *segments, const rp_place *place,
                      const uint8_t *payload, rp_chunk **out, rp_error *err)
{
    rp_chunk *chunk = NULL, **known;
    bool is_same = false;
    rp_status st = parse(index, place, payload, &chunk, err);

    if (st != RP_OK) return st;
    if (!know_all(index)) st = rp_fail_memory(err, index->count * sizeof *known);
    known = st == RP_OK ? known_of(index, chunk->origin.key) : NULL;
    if (known != NULL)
        st = compare(index, segments, *known, payload, place->size, &is_same, err);
    if (is_same) {
        rp_chunk_unref(chunk);
        *out = rp_chunk_ref(*known);
        return RP_OK;
    }
    if (st == RP_OK) st = settle(index, segments, place, chunk, err);
    if (st == RP_OK && !know(index, chunk)) st = rp_fail_memory(err, sizeof *known);
    if (st != RP_OK) {
        rp_chunk_unref(chunk);
        return st;
    }
    *out = chunk;
    return RP_OK;
}

/* Reads the chunk at a place that was not scanned. */
static rp_status read_chunk(rp_chunk_index *index, rp_segments *segments, const rp_place *place,
                            rp_error *err)
{
    uint64_t bytes = 0;
    uint8_t *payload;
    rp_status st = rp_chunk_index_want(index, place, err);

    if (st == RP_OK) st = rp_segments_open(segments, place->segment, &bytes, err);
    if (st == RP_OK && (place->offset > bytes || place->size > bytes - place->offset))
        st = rp_fail(err, RP_CORRUPT,
                     "segment %" PRIu64 ": a chunk at %" PRIu64 " is beyond its end",
                     place->segment, place->offset);
    if (st != RP_OK) return st;
    payload = rp_alloc(&index->alloc, (size_t)place->size + 1);
    if (payload == NULL) return rp_fail_memory(err, place->size);
    st = rp_segments_read(segments, place, RP_RECORD_CHUNK, payload, err);
    if (st == RP_OK)
        st = join(index, segments, place, payload,
                  &rp_chunk_index_find(index, place->segment, place->offset)->chunk, err);
    rp_release(&index->alloc, payload, (size_t)place->size + 1);
    return st;
}

rp_status rp_chunk_index_get(rp_chunk_index *index, rp_segments *segments,
                             const rp_place *place, rp_chunk **out, rp_error *err)
{
    rp_index_entry *entry = rp_chunk_index_find(index, place->segment, place->offset);

    if (entry == NULL || entry->chunk == NULL) {
        rp_status st = read_chunk(index, segments, place, err);

        if (st != RP_OK) return st;
        entry = rp_chunk_index_find(index, place->segment, place->offset);
    }
    if (entry->chunk->wire_bytes != place->size)
        return rp_fail(err, RP_CORRUPT,
                       "segment %" PRIu64 ": the chunk at %" PRIu64
                       " has %zu bytes, not %" PRIu32,
                       place->segment, place->offset, entry->chunk->wire_bytes, place->size);
    *out = entry->chunk;
    return RP_OK;
}
