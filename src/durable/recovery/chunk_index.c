/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/recovery/chunk_index.h"

#include <inttypes.h>

#include "util/error.h"
#include "util/mem.h"

enum { FIRST_CAPACITY = 1024 };

void rp_chunk_index_init(rp_chunk_index *index, const rp_allocator *alloc)
{
    *index = (rp_chunk_index){.alloc = *alloc};
}

void rp_chunk_index_deinit(rp_chunk_index *index)
{
    for (size_t i = 0; i < index->capacity; i++) rp_chunk_unref(index->entries[i].chunk);
    rp_release(&index->alloc, index->entries, index->capacity * sizeof *index->entries);
    *index = (rp_chunk_index){.alloc = index->alloc};
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

/* NULL if there is none. */
static rp_index_entry *find(const rp_chunk_index *index, uint64_t key)
{
    rp_index_entry *entry = key != 0 && index->capacity > 0 ? slot_of(index, key) : NULL;

    return entry != NULL && entry->key == key ? entry : NULL;
}

/* Enters a key, with a chunk or NULL, unless it is there with one. False if there is no memory.
 */
static bool enter(rp_chunk_index *index, uint64_t key, rp_chunk *chunk)
{
    rp_chunk_index more = *index;
    rp_index_entry *entry;

    if (index->count >= index->capacity / 4 * 3) {
        more.capacity = index->capacity == 0 ? FIRST_CAPACITY : 2 * index->capacity;
        more.entries = rp_alloc_array(&index->alloc, more.capacity, sizeof *more.entries);
        if (more.entries == NULL) return false;
        for (size_t i = 0; i < index->capacity; i++)
            if (index->entries[i].key != 0)
                *slot_of(&more, index->entries[i].key) = index->entries[i];
        rp_release(&index->alloc, index->entries, index->capacity * sizeof *index->entries);
        *index = more;
    }
    entry = slot_of(index, key);
    if (entry->key == 0) index->count++;
    entry->key = key;
    if (entry->chunk == NULL && chunk != NULL) entry->chunk = rp_chunk_ref(chunk);
    return true;
}

rp_status rp_chunk_index_want(rp_chunk_index *index, const rp_place *place, rp_error *err)
{
    uint64_t key = key_of(place->segment, place->offset);

    if (key == 0)
        return rp_fail(err, RP_CORRUPT, "no segment %" PRIu64 " has an offset %" PRIu64,
                       place->segment, place->offset);
    if (!enter(index, key, NULL))
        return rp_fail_memory(err, index->capacity * sizeof *index->entries);
    return RP_OK;
}

rp_chunk *rp_chunk_index_find(const rp_chunk_index *index, const rp_place *place)
{
    const rp_index_entry *entry = find(index, key_of(place->segment, place->offset));

    return entry != NULL ? entry->chunk : NULL;
}

/* Parses a chunk and tells it where it is. Limits are those of the format: it was let in. */
static rp_status parse(rp_chunk_index *index, rp_segments *segments, const rp_place *place,
                       uint64_t first, const uint8_t *payload, rp_chunk **out, rp_error *err)
{
    const rp_chunk_limits limits = {RP_MAX_RECORD_BYTES, SIZE_MAX, RP_MAX_COLUMNS};
    rp_status st = rp_chunk_parse(&index->alloc, payload, place->size, &limits, out, err);

    if (st == RP_INVALID) st = RP_CORRUPT;
    if (st == RP_OK && rp_segments_adopt(segments, *out, place, first) != RP_OK)
        st = rp_fail_memory(err, sizeof *place);
    if (st == RP_OK && index->on_chunk != NULL && index->on_chunk(index->ctx, *out) != RP_OK)
        st = rp_fail_memory(err, sizeof *place);
    return st;
}

/* Enters what was read from a place: it is there already, if it was moved and has been read
 * from another. */
static rp_status add(rp_chunk_index *index, rp_segments *segments, const rp_place *place,
                     uint64_t first, const uint8_t *payload, rp_error *err)
{
    const rp_index_entry *other = find(index, first);
    rp_chunk *chunk = NULL;
    rp_status st = RP_OK;

    if (other != NULL && other->chunk != NULL)
        chunk = rp_chunk_ref(other->chunk);
    else
        st = parse(index, segments, place, first, payload, &chunk, err);
    if (st == RP_OK && (!enter(index, key_of(place->segment, place->offset), chunk) ||
                        (first != 0 && !enter(index, first, chunk))))
        st = rp_fail_memory(err, index->capacity * sizeof *index->entries);
    rp_chunk_unref(chunk);
    return st;
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
    const rp_index_entry *entry;

    s->on_bytes(s->ctx, RP_RECORD_HEADER_BYTES + record->size);
    if (!rp_record_is(record->kind, RP_RECORD_CHUNK)) return true;
    entry = find(s->index, key_of(s->number, offset));
    if (entry == NULL || entry->chunk != NULL) return true;
    s->status = add(s->index, s->segments, &place,
                    rp_record_first(record->kind, record->number), record->payload, s->err);
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
    uint64_t bytes = 0, first = 0;
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
        st = rp_segments_read(segments, place, RP_RECORD_CHUNK, payload, &first, err);
        if (st == RP_OK) st = add(index, segments, place, first, payload, err);
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
