/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/segment_writer.h"

#include <assert.h>
#include <string.h>

#include "disk/names.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/little_endian.h"
#include "util/mem.h"

enum {
    STAGE_BYTES = (1 << 20) + (1 << 13),
    MAX_PARTS = 512,
    CALL_BYTES = 4 << 20,  /* one call writes about this many */
    SMALL_BYTES = 4096,    /* payloads up to this size are copied */
    START_BYTES = 4 << 20, /* written since the kernel was last asked to begin */
    AHEAD = 8,             /* small payloads that are prefetched */
};

#ifndef NDEBUG
static bool is_valid(const rp_segment_writer *w)
{
    return w->synced <= w->written && w->started <= w->written &&
           w->mark.written <= w->written &&                      /* W1 */
           w->count <= w->capacity && w->mark.count <= w->count; /* W2 */
}
#endif

void rp_segment_writer_init(rp_segment_writer *w, const rp_allocator *alloc, rp_files *files,
                            const rp_store_id *store)
{
    *w = (rp_segment_writer){.alloc = *alloc, .files = files, .store = *store};
}

void rp_segment_writer_deinit(rp_segment_writer *w)
{
    rp_segment_unref(w->segment);
    rp_hash_free(w->hash);
    rp_hash_free(w->marked_hash);
    rp_release(&w->alloc, w->stage, STAGE_BYTES);
    rp_release(&w->alloc, w->parts, MAX_PARTS * sizeof *w->parts);
    rp_release(&w->alloc, w->offsets, w->capacity * sizeof *w->offsets);
}

/* Allocates what a call needs, and space for the offsets of `count` records. */
static rp_status reserve(rp_segment_writer *w, size_t count, rp_error *err)
{
    if (w->stage == NULL) w->stage = rp_alloc(&w->alloc, STAGE_BYTES);
    if (w->parts == NULL) w->parts = rp_alloc(&w->alloc, MAX_PARTS * sizeof *w->parts);
    if (w->hash == NULL) w->hash = rp_hash_new(&w->alloc);
    if (w->marked_hash == NULL) w->marked_hash = rp_hash_new(&w->alloc);
    if (w->stage == NULL || w->parts == NULL || w->hash == NULL || w->marked_hash == NULL)
        return rp_fail_memory(err, STAGE_BYTES);
    if (w->capacity - w->count < count) {
        size_t more = w->capacity + (w->capacity / 2 < count ? count : w->capacity / 2);
        if (!rp_resize_array(&w->alloc, (void *)&w->offsets, w->capacity, more,
                             sizeof *w->offsets))
            return rp_fail_memory(err, more * sizeof *w->offsets);
        w->capacity = more;
    }
    return RP_OK;
}

static rp_status make_folder(rp_segment_writer *w, rp_error *err)
{
    rp_status st;

    if (w->has_folder) return RP_OK;
    st = w->files->ops->make_directory(w->files, "seg", err);
    if (st == RP_OK) w->has_folder = w->folder_is_new = true;
    return st;
}

/* Creates the file. Its header is written with the first records. */
static rp_status begin(rp_segment_writer *w, rp_segment *segment, rp_error *err)
{
    rp_file *file = NULL;
    char path[32];
    rp_status st = make_folder(w, err);

    if (st == RP_OK)
        st = w->files->ops->open(w->files, rp_segment_path(path, segment->number),
                                 RP_OPEN_CREATE, &file, err);
    if (st != RP_OK) {
        if (st == RP_EXISTS) w->is_bad = true; /* a foreign file has that number */
        w->is_full = st == RP_NO_RESOURCE;
        return st;
    }
    assert(segment->file == NULL && w->segment == NULL);
    segment->file = file;
    rp_segment_ref(segment);
    w->segment = segment;
    w->count = 0;
    w->written = w->synced = w->started = 0;
    w->is_new = true;
    rp_hash_reset(w->hash);
    rp_segment_writer_mark(w);
    return RP_OK;
}

static size_t stage_header(rp_segment_writer *w)
{
    rp_file_header header = {.version = RP_FORMAT_VERSION,
                             .kind = RP_FILE_SEGMENT,
                             .store = w->store,
                             .number = w->segment->number};

    w->before = rp_file_header_write(w->stage, &header);
    return RP_FILE_HEADER_BYTES;
}

/* Hashes and writes the first `count` parts. */
static rp_status put_parts(rp_segment_writer *w, size_t count, rp_error *err)
{
    uint64_t bytes = 0;
    rp_status st;

    for (size_t i = 0; i < count; i++) {
        rp_hash_update(w->hash, w->parts[i].data, w->parts[i].size);
        bytes += w->parts[i].size;
    }
    assert(count <= MAX_PARTS && !w->is_bad); /* W3 */
    st = w->files->ops->write(w->segment->file, w->written, w->parts, count, err);
    w->is_full = st == RP_NO_RESOURCE;
    if (st == RP_OK)
        w->written += bytes;
    else if (!w->is_full)
        w->is_bad = true;
    return st;
}

/* Prefetches a small payload: by now most of them have left the caches. */
static void prefetch(const rp_segment_entry *e)
{
    if (e->size > SMALL_BYTES) return;
    for (uint32_t at = 0; at < e->size; at += RP_CACHE_LINE) __builtin_prefetch(e->data + at);
}

rp_status rp_segment_writer_write(rp_segment_writer *w, const rp_segment_entry *entries,
                                  size_t count, size_t *taken, rp_error *err)
{
    size_t staged = 0, from = 0, parts = 0, bytes = 0, i;
    rp_status st = reserve(w, count, err);

    assert(count > 0 && !w->is_bad);
    if (st == RP_OK && w->segment == NULL) st = begin(w, entries[0].segment, err);
    if (st != RP_OK) return st;
    assert(w->segment == entries[0].segment);
    if (w->written == 0) staged = stage_header(w);
    for (i = 0; i < count && bytes < CALL_BYTES && parts + 3 <= MAX_PARTS; i++) {
        const rp_segment_entry *e = &entries[i];
        bool is_small = e->size <= SMALL_BYTES;
        size_t record = RP_RECORD_HEADER_BYTES + (is_small ? (size_t)e->size : 0);

        if (e->segment != w->segment || staged + record > STAGE_BYTES) break;
        if (i + AHEAD < count) prefetch(&entries[i + AHEAD]);
        assert(e->offset == (w->written == 0 ? RP_FILE_HEADER_BYTES : w->written) + bytes);
        w->before = rp_record_write(w->stage + staged, (rp_record_kind)e->kind, e->number,
                                    w->before, e->data, e->size);
        /* The size is read again after the call above, so that the compiler knows no bound:
         * it would copy with a string instruction, which is slower than memcpy(). */
        if (is_small) memcpy(w->stage + staged + RP_RECORD_HEADER_BYTES, e->data, e->size);
        w->offsets[w->count + i] = e->offset;
        staged += record;
        bytes += RP_RECORD_HEADER_BYTES + (size_t)e->size;
        if (is_small) continue;
        w->parts[parts++] = (rp_bytes){w->stage + from, staged - from};
        w->parts[parts++] = (rp_bytes){e->data, e->size};
        from = staged;
    }
    if (staged > from) w->parts[parts++] = (rp_bytes){w->stage + from, staged - from};
    st = put_parts(w, parts, err);
    if (st != RP_OK) return st;
    assert(i > 0);
    w->count += i;
    *taken = i;
    assert(is_valid(w));
    return RP_OK;
}

void rp_segment_writer_start_sync(rp_segment_writer *w)
{
    const rp_files_ops *ops = w->files->ops;

    if (ops->start_sync == NULL || w->segment == NULL || w->is_bad) return;
    if (w->written - w->started < START_BYTES) return;
    ops->start_sync(w->segment->file, w->started, w->written - w->started);
    w->started = w->written;
}

rp_status rp_segment_sync_file(rp_segment *segment, rp_files *files, bool is_new,
                               bool folder_is_new, rp_error *err)
{
    rp_status st;

    RP_KILL_POINT("segment.written");
    st = files->ops->sync(segment->file, err);
    RP_KILL_POINT("segment.synced");
    if (st == RP_OK && is_new) st = files->ops->sync_directory(files, "seg", err);
    if (st == RP_OK && folder_is_new) st = files->ops->sync_directory(files, "", err);
    return st;
}

void rp_segment_writer_note_synced(rp_segment_writer *w, uint64_t bytes)
{
    assert(w->segment != NULL && bytes <= w->written);
    w->is_new = w->folder_is_new = false;
    if (bytes <= w->synced) return;
    w->synced = bytes;
    /* Release: a thread that sees these bytes also sees the file. */
    atomic_store_explicit(&w->segment->readable, w->synced, memory_order_release);
}

rp_status rp_segment_writer_sync(rp_segment_writer *w, rp_error *err)
{
    rp_status st;

    assert(!w->is_bad);
    if (w->segment == NULL || w->synced == w->written) return RP_OK;
    st = rp_segment_sync_file(w->segment, w->files, w->is_new, w->folder_is_new, err);
    if (st == RP_OK)
        rp_segment_writer_note_synced(w, w->written);
    else
        w->is_bad = true;
    return st;
}

void rp_segment_writer_mark(rp_segment_writer *w)
{
    if (w->segment == NULL) return;
    w->mark = (rp_segment_mark){w->written, w->count, w->before};
    rp_hash_copy(w->marked_hash, w->hash);
    assert(is_valid(w));
}

void rp_segment_writer_rewind(rp_segment_writer *w)
{
    if (w->segment == NULL || w->is_bad) return;
    if (w->files->ops->truncate(w->segment->file, w->mark.written, NULL) != RP_OK)
        w->is_bad = true;
    w->written = w->mark.written;
    w->count = w->mark.count;
    w->before = w->mark.before;
    if (w->started > w->written) w->started = w->written;
    rp_hash_copy(w->hash, w->marked_hash);
    assert(is_valid(w)); /* the mark is never before `synced` */
}

/* Ends the segment, which is sealed or given up. */
static void end_segment(rp_segment_writer *w)
{
    rp_segment_unref(w->segment);
    w->segment = NULL;
    w->count = 0;
    w->written = w->synced = w->started = 0;
    w->mark = (rp_segment_mark){0};
    w->is_bad = false;
}

rp_status rp_segment_writer_seal(rp_segment_writer *w, rp_error *err)
{
    size_t size = RP_SEAL_FIXED_BYTES + 4 * w->count;
    uint8_t *payload = rp_alloc(&w->alloc, size);
    uint8_t header[RP_RECORD_HEADER_BYTES];
    rp_status st;

    assert(!w->is_bad && w->segment != NULL);
    if (payload == NULL) return rp_fail_memory(err, size);
    rp_put_u64(payload, w->count);
    rp_put_u64(payload + 8, w->written);
    rp_hash_digest(w->hash, payload + 16);
    for (size_t i = 0; i < w->count; i++)
        rp_put_u32(payload + RP_SEAL_FIXED_BYTES + 4 * i, w->offsets[i]);
    (void)rp_record_write(header, RP_RECORD_SEAL, w->segment->number, w->before, payload, size);
    w->parts[0] = (rp_bytes){header, sizeof header};
    w->parts[1] = (rp_bytes){payload, size};
    st = put_parts(w, 2, err);
    RP_KILL_POINT("segment.seal");
    if (st == RP_OK) st = rp_segment_writer_sync(w, err);
    rp_release(&w->alloc, payload, size);
    if (st == RP_OK) end_segment(w);
    return st;
}

void rp_segment_writer_remove(rp_segment_writer *w)
{
    w->mark = (rp_segment_mark){0};
    rp_segment_writer_leave(w);
}

void rp_segment_writer_leave(rp_segment_writer *w)
{
    char path[32];

    if (w->segment != NULL) {
        if (w->mark.written > 0)
            (void)w->files->ops->truncate(w->segment->file, w->mark.written, NULL);
        else
            (void)w->files->ops->remove(w->files, rp_segment_path(path, w->segment->number),
                                        NULL);
    }
    end_segment(w);
}
