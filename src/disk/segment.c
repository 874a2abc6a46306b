/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/segment.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "disk/names.h"
#include "util/error.h"
#include "util/little_endian.h"
#include "util/mem.h"

rp_segment_index *rp_segment_index_new(const rp_allocator *alloc)
{
    rp_segment_index *index = rp_alloc_zero(alloc, sizeof *index);

    if (index == NULL) return NULL;
    rp_refcount_init(&index->refs);
    index->alloc = *alloc;
    rp_mutex_init(&index->mu, RP_RANK_SEGMENT_INDEX);
    return index;
}

static void index_unref(rp_segment_index *index)
{
    rp_allocator alloc = index->alloc;

    if (!rp_refcount_dec(&index->refs)) return;
    assert(index->retired == NULL); /* G3: no segments are left */
    rp_mutex_deinit(&index->mu);
    rp_release(&alloc, index, sizeof *index);
}

void rp_segment_close_file(rp_segment *segment)
{
    atomic_store_explicit(&segment->readable, 0, memory_order_relaxed);
    if (segment->file != NULL) segment->file->files->ops->close(segment->file);
    segment->file = NULL;
}

static void segment_free(rp_segment *segment)
{
    rp_segment_index *index = segment->index;

    assert(atomic_load(&segment->refs) == 0 && segment->file == NULL);
    rp_release(&index->alloc, segment, sizeof *segment);
    index_unref(index);
}

void rp_segment_index_reclaim(rp_segment_index *index)
{
    rp_segment *list, *next;

    rp_mutex_lock(&index->mu);
    list = index->retired;
    index->retired = NULL;
    rp_mutex_unlock(&index->mu);
    for (; list != NULL; list = next) {
        next = list->next;
        rp_segment_close_file(list);
        segment_free(list);
    }
}

void rp_segment_index_close(rp_segment_index *index)
{
    if (index == NULL) return;
    rp_segment_index_reclaim(index);
    rp_mutex_lock(&index->mu);
    for (size_t i = 0; i < RP_SEGMENT_BUCKETS; i++)
        for (rp_segment *s = index->buckets[i]; s != NULL; s = s->next)
            rp_segment_close_file(s);
    rp_mutex_unlock(&index->mu);
    index_unref(index);
}

rp_segment *rp_segment_new(rp_segment_index *index, uint64_t number)
{
    rp_segment *segment = rp_alloc_zero(&index->alloc, sizeof *segment);

    if (segment == NULL) return NULL;
    atomic_init(&segment->refs, 1);
    segment->number = number;
    segment->index = index;
    rp_refcount_inc(&index->refs);
    return segment;
}

static rp_segment **bucket_of(rp_segment_index *index, uint64_t number)
{
    return &index->buckets[number % RP_SEGMENT_BUCKETS];
}

bool rp_segment_index_add(rp_segment_index *index, rp_segment *segment)
{
    rp_segment **bucket = bucket_of(index, segment->number), *s;

    rp_mutex_lock(&index->mu);
    for (s = *bucket; s != NULL && s->number != segment->number;) s = s->next;
    assert(s != segment); /* G1 */
    if (s == NULL) {
        segment->next = *bucket;
        *bucket = segment;
    }
    rp_mutex_unlock(&index->mu);
    return s == NULL;
}

rp_segment *rp_segment_index_find(rp_segment_index *index, uint64_t number)
{
    rp_segment *s;

    rp_mutex_lock(&index->mu);
    for (s = *bucket_of(index, number); s != NULL && s->number != number;) s = s->next;
    if (s != NULL) {
        /* A segment without references is leaving the index: its count must not rise again. */
        uint_fast32_t refs = atomic_load_explicit(&s->refs, memory_order_relaxed);
        while (refs > 0 && !atomic_compare_exchange_weak_explicit(&s->refs, &refs, refs + 1,
                                                                  memory_order_relaxed,
                                                                  memory_order_relaxed)) {}
        if (refs == 0) s = NULL;
    }
    rp_mutex_unlock(&index->mu);
    return s;
}

rp_segment *rp_segment_index_take_held(rp_segment_index *index)
{
    rp_segment *s = NULL;

    rp_mutex_lock(&index->mu);
    for (size_t i = 0; i < RP_SEGMENT_BUCKETS && s == NULL; i++)
        for (s = index->buckets[i]; s != NULL && !s->is_held;) s = s->next;
    if (s != NULL) s->is_held = false;
    rp_mutex_unlock(&index->mu);
    return s;
}

void rp_segment_ref(rp_segment *segment)
{
    uint_fast32_t refs = atomic_fetch_add_explicit(&segment->refs, 1, memory_order_relaxed);

    assert(refs > 0); /* the caller has a reference */
    (void)refs;
}

void rp_segment_unref(rp_segment *segment)
{
    rp_segment_index *index;
    rp_segment **at;
    bool has_file;

    /* Not rp_refcount_dec(), which may not store the last count: a thread that finds the
     * segment in the index must see that it has no references. */
    if (segment == NULL) return;
    assert(atomic_load(&segment->refs) > 0);
    if (atomic_fetch_sub_explicit(&segment->refs, 1, memory_order_acq_rel) != 1) return;
    index = segment->index;
    if (segment->is_revoked) (void)atomic_fetch_sub(&index->revoked, 1);
    rp_mutex_lock(&index->mu);
    for (at = bucket_of(index, segment->number); *at != NULL && *at != segment;)
        at = &(*at)->next;
    if (*at == segment) *at = segment->next;
    has_file = segment->file != NULL;
    assert(!segment->is_held); /* the handle is a reference */
    if (has_file) {
        segment->next = index->retired;
        index->retired = segment;
    }
    rp_mutex_unlock(&index->mu);
    if (!has_file) segment_free(segment);
}

static rp_status check_header(const rp_segment *segment, const uint8_t *bytes, size_t got,
                              const rp_store_id *store, rp_error *err)
{
    rp_error why = {0};
    rp_file_header header;
    rp_status st = rp_file_header_read(bytes, got, &header, NULL, &why);
    char path[32];

    (void)rp_segment_path(path, segment->number);
    if (st != RP_OK) return rp_fail(err, st, "%s: %s", path, why.text);
    if (header.kind != RP_FILE_SEGMENT)
        return rp_fail(err, RP_CORRUPT, "%s: the file is no segment but of kind %d", path,
                       (int)header.kind);
    if (header.number != segment->number)
        return rp_fail(err, RP_CORRUPT, "%s: it is segment %" PRIu64, path, header.number);
    if (memcmp(&header.store, store, sizeof *store) != 0)
        return rp_fail(err, RP_CORRUPT, "%s: it belongs to another store", path);
    return RP_OK;
}

rp_status rp_segment_open_file(rp_segment *segment, rp_files *files, const rp_store_id *store,
                               rp_error *err)
{
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    rp_file *file = NULL;
    uint64_t size = 0;
    size_t got = 0;
    char path[32];
    rp_status st = files->ops->open(files, rp_segment_path(path, segment->number), RP_OPEN_READ,
                                    &file, err);

    if (st == RP_OK) st = files->ops->size(file, &size, err);
    if (st == RP_OK) st = files->ops->read(file, 0, bytes, sizeof bytes, &got, err);
    if (st == RP_OK) st = check_header(segment, bytes, got, store, err);
    if (st != RP_OK) {
        if (file != NULL) files->ops->close(file);
        return st;
    }
    assert(segment->file == NULL);
    segment->file = file;
    segment->is_old = true;
    atomic_store_explicit(&segment->readable, size, memory_order_release);
    return RP_OK;
}

rp_status rp_segment_read(rp_segment *segment, const rp_files *files,
                          const rp_disk_location *location, rp_record_kind kind, void *out,
                          uint64_t *first, rp_error *err)
{
    uint64_t readable = atomic_load_explicit(&segment->readable, memory_order_acquire);
    uint64_t bytes = RP_RECORD_HEADER_BYTES + (uint64_t)location->size;
    uint8_t header[RP_RECORD_HEADER_BYTES];
    rp_read_part parts[] = {{header, sizeof header}, {out, location->size}};
    rp_error why = {0};
    rp_record record;
    uint32_t payload_crc;
    size_t got = 0;
    rp_status st;

    if (location->offset < RP_FILE_HEADER_BYTES || bytes > readable ||
        location->offset > readable - bytes)
        return rp_fail(err, segment->is_old ? RP_CORRUPT : RP_NOT_FOUND,
                       "segment %" PRIu64 ": %" PRIu64 " bytes at %" PRIu64
                       " are not within its %" PRIu64,
                       location->segment, bytes, location->offset, readable);
    assert(segment->file != NULL && readable >= RP_FILE_HEADER_BYTES);
    st = files->ops->read_into(segment->file, location->offset, parts, 2, &got, err);
    if (st != RP_OK) return st;
    st = rp_record_header_read(header, got < sizeof header ? got : sizeof header, &record, NULL,
                               &payload_crc, &why);
    if (st != RP_OK)
        return rp_fail(err, st, "segment %" PRIu64 ", offset %" PRIu64 ": %s",
                       location->segment, location->offset, why.text);
    if (!rp_record_is(record.kind, kind) || record.size != location->size)
        return rp_fail(err, RP_CORRUPT,
                       "segment %" PRIu64 ", offset %" PRIu64
                       ": a record of kind %d with %zu bytes, not of kind %d with %" PRIu32,
                       location->segment, location->offset, (int)record.kind, record.size,
                       (int)kind, location->size);
    if (got < bytes || rp_crc32c(0, out, location->size) != payload_crc)
        return rp_fail(err, RP_CORRUPT,
                       "segment %" PRIu64 ", offset %" PRIu64 ": the payload is damaged",
                       location->segment, location->offset);
    if (first != NULL) *first = rp_record_first(record.kind, record.number);
    return RP_OK;
}

rp_status rp_seal_read(const uint8_t *payload, size_t size, rp_seal *out, rp_error *err)
{
    rp_seal seal;

    if (size < RP_SEAL_FIXED_BYTES)
        return rp_fail(err, RP_CORRUPT, "seal: %zu bytes of %d are there", size,
                       RP_SEAL_FIXED_BYTES);
    seal.count = rp_get_u64(payload);
    seal.bytes = rp_get_u64(payload + 8);
    memcpy(seal.hash, payload + 16, sizeof seal.hash);
    seal.offsets = payload + RP_SEAL_FIXED_BYTES;
    if ((size - RP_SEAL_FIXED_BYTES) % 4 != 0 || (size - RP_SEAL_FIXED_BYTES) / 4 != seal.count)
        return rp_fail(err, RP_CORRUPT, "seal: %" PRIu64 " records do not fit %zu bytes",
                       seal.count, size);
    *out = seal;
    return RP_OK;
}
