/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/recovery/chunk_index.h"

#include <assert.h>
#include <inttypes.h>

#include "disk/records_scan.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum { FIRST_CAPACITY = 1024 };

#ifndef NDEBUG
static bool is_valid(const rp_chunk_index *index)
{
    size_t count = 0;

    for (size_t i = 0; i < index->capacity; i++) {
        if (index->entries[i].key != 0) count++;
        if (index->entries[i].key == 0 && index->entries[i].chunk != NULL) return false;
    }
    return count == index->count && count <= index->capacity / 4 * 3 &&
           (index->capacity & (index->capacity - 1)) == 0; /* X1 */
}
#endif

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

/* Packs a location. 0: it is out of range. */
static uint64_t key_of(uint64_t segment, uint64_t offset)
{
    if (segment >> RP_INDEX_SEGMENT_BITS != 0 || offset >> RP_INDEX_OFFSET_BITS != 0) return 0;
    return segment << RP_INDEX_OFFSET_BITS | offset;
}

static rp_index_entry *slot_of(const rp_chunk_index *index, uint64_t key)
{
    uint64_t hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(hash >> 20) & (index->capacity - 1);

    assert(key != 0 && index->count < index->capacity);
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

/* Adds a key. If `chunk` is not NULL and the entry has no chunk, sets it. Returns false if
 * there is no memory. */
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
    RP_VERIFY(index->capacity, is_valid(index));
    return true;
}

rp_status rp_chunk_index_want(rp_chunk_index *index, const rp_disk_location *location,
                              rp_error *err)
{
    uint64_t key = key_of(location->segment, location->offset);

    if (key == 0)
        return rp_fail(err, RP_CORRUPT, "no segment %" PRIu64 " has an offset %" PRIu64,
                       location->segment, location->offset);
    if (!enter(index, key, NULL))
        return rp_fail_memory(err, index->capacity * sizeof *index->entries);
    return RP_OK;
}

rp_chunk *rp_chunk_index_find(const rp_chunk_index *index, const rp_disk_location *location)
{
    const rp_index_entry *entry = find(index, key_of(location->segment, location->offset));

    return entry != NULL ? entry->chunk : NULL;
}

/* Parses a chunk and attaches its location. The limits are those of the format: the chunk was
 * admitted when it was inserted. */
static rp_status parse(rp_chunk_index *index, rp_segments *segments,
                       const rp_disk_location *location, uint64_t first, const uint8_t *payload,
                       rp_chunk **out, rp_error *err)
{
    const rp_chunk_limits limits = {RP_MAX_RECORD_BYTES, SIZE_MAX, RP_MAX_COLUMNS};
    rp_status st = rp_chunk_parse(&index->alloc, payload, location->size, &limits, out, err);

    if (st == RP_INVALID) st = RP_CORRUPT;
    if (st == RP_OK && rp_segments_adopt(segments, *out, location, first) != RP_OK)
        st = rp_fail_memory(err, sizeof *location);
    if (st == RP_OK && index->on_chunk != NULL && index->on_chunk(index->ctx, *out) != RP_OK)
        st = rp_fail_memory(err, sizeof *location);
    return st;
}

/* Adds the chunk of a record. A moved chunk may have been read from another location already:
 * then both locations share that chunk. */
static rp_status add(rp_chunk_index *index, rp_segments *segments,
                     const rp_disk_location *location, uint64_t first, const uint8_t *payload,
                     rp_error *err)
{
    const rp_index_entry *other = find(index, first);
    rp_chunk *chunk = NULL;
    rp_status st = RP_OK;

    if (other != NULL && other->chunk != NULL)
        chunk = rp_chunk_ref(other->chunk);
    else
        st = parse(index, segments, location, first, payload, &chunk, err);
    if (st == RP_OK && (!enter(index, key_of(location->segment, location->offset), chunk) ||
                        (first != 0 && !enter(index, first, chunk))))
        st = rp_fail_memory(err, index->capacity * sizeof *index->entries);
    rp_chunk_unref(chunk);
    return st;
}

typedef struct scan {
    rp_chunk_index *index;
    const rp_chunk_scan_options *o;
    rp_status status;
    rp_error *err;
} scan;

static bool scan_record(void *ctx, uint64_t offset, const rp_record *record)
{
    scan *s = ctx;
    rp_disk_location location = {s->o->number, offset, (uint32_t)record->size};
    const rp_index_entry *entry;

    s->o->on_bytes(s->o->ctx, RP_RECORD_HEADER_BYTES + record->size);
    if (!rp_record_is(record->kind, RP_RECORD_CHUNK)) return true;
    entry = find(s->index, key_of(s->o->number, offset));
    if (entry == NULL || entry->chunk != NULL) return true;
    s->status = add(s->index, s->o->segments, &location,
                    rp_record_first(record->kind, record->number), record->payload, s->err);
    return s->status == RP_OK;
}

rp_status rp_chunk_index_scan(rp_chunk_index *index, const rp_chunk_scan_options *o,
                              rp_error *err)
{
    scan s = {index, o, RP_OK, err};
    rp_file_header header = {0};
    uint64_t end = 0;
    char path[RP_SEGMENT_PATH_BYTES];
    rp_status st =
        rp_records_scan(&(rp_records_scan_options){.alloc = &index->alloc,
                                                   .files = o->files,
                                                   .path = rp_segment_path(path, o->number),
                                                   .kind = RP_FILE_SEGMENT,
                                                   .store = o->store,
                                                   .each = scan_record,
                                                   .ctx = &s},
                        &header, &end, err);

    if (s.status != RP_OK) return s.status;
    /* A crash may have left any bytes behind those that are needed. */
    if (st != RP_OK && !(st == RP_CORRUPT && o->bytes > 0 && end >= o->bytes)) return st;
    if (header.number != o->number)
        return rp_fail(err, RP_CORRUPT, "%s: it is segment %" PRIu64, path, header.number);
    if (end < o->bytes)
        return rp_fail(err, RP_CORRUPT,
                       "%s: offset %" PRIu64 ": %" PRIu64 " bytes should be good", path, end,
                       o->bytes);
    return RP_OK;
}

rp_status rp_chunk_index_get(rp_chunk_index *index, rp_segments *segments,
                             const rp_disk_location *location, rp_chunk **out, rp_error *err)
{
    rp_chunk *chunk = rp_chunk_index_find(index, location);
    uint64_t bytes = 0, first = 0;
    uint8_t *payload;
    rp_status st;

    if (chunk == NULL) {
        st = rp_chunk_index_want(index, location, err);
        if (st == RP_OK) st = rp_segments_open(segments, location->segment, &bytes, err);
        if (st == RP_OK &&
            (location->offset > bytes || location->size > bytes - location->offset))
            st = rp_fail(err, RP_CORRUPT,
                         "segment %" PRIu64 ": a chunk at %" PRIu64 " is beyond its end",
                         location->segment, location->offset);
        if (st != RP_OK) return st;
        payload = rp_alloc(&index->alloc, (size_t)location->size + 1);
        if (payload == NULL) return rp_fail_memory(err, location->size);
        st = rp_segments_read(segments, location, RP_RECORD_CHUNK, payload, &first, err);
        if (st == RP_OK) st = add(index, segments, location, first, payload, err);
        rp_release(&index->alloc, payload, (size_t)location->size + 1);
        if (st != RP_OK) return st;
        chunk = rp_chunk_index_find(index, location);
        assert(chunk != NULL);
    }
    if (chunk->wire_bytes != location->size)
        return rp_fail(err, RP_CORRUPT,
                       "segment %" PRIu64 ": the chunk at %" PRIu64
                       " has %zu bytes, not %" PRIu32,
                       location->segment, location->offset, chunk->wire_bytes, location->size);
    *out = chunk;
    return RP_OK;
}
