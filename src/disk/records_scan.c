/* SPDX-License-Identifier: Apache-2.0 */
/* Scans a file through a buffer that grows to the largest record and never beyond the file.
 *
 * Invariants between two records:
 *
 *   C1  at <= offset <= size: the buffer begins at or before the next record;
 *   C2  used <= capacity;
 *   C3  `before` is the header checksum of the record before `offset`, or of the file header;
 *   C4  the hash of a segment covers exactly the bytes before `offset`. */
#include "disk/records_scan.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "disk/hash.h"
#include "disk/segment.h"
#include "util/error.h"
#include "util/mem.h"

enum { BUFFER_BYTES = 256 << 10 };

typedef struct scan {
    rp_allocator alloc;
    rp_files *files;
    rp_file *file;
    const char *path;
    uint64_t size;   /* of the file */
    uint64_t offset; /* of the next record */
    uint32_t before;
    uint64_t count; /* of records so far */
    rp_hash *hash;  /* of a segment's bytes so far; NULL: not a segment */
    uint8_t *buffer;
    size_t capacity, used; /* of the buffer: `used` bytes from `at` in the file on */
    uint64_t at;
} scan;

static rp_status fail_at(const scan *s, rp_status st, const rp_error *why, rp_error *err)
{
    return rp_fail(err, st, "%s, offset %" PRIu64 ": %s", s->path, s->offset, why->text);
}

/* Reads until the buffer holds `bytes` from the offset on, and more if they fit. The file must
 * have that many. */
static rp_status fill(scan *s, size_t bytes, rp_error *err)
{
    size_t skip = (size_t)(s->offset - s->at), got = 0;
    rp_status st;

    assert(s->at <= s->offset && s->used <= s->capacity); /* C1, C2 */
    assert(bytes <= s->size - s->offset);
    if (s->used >= skip && s->used - skip >= bytes) return RP_OK;
    if (skip > s->used) skip = s->used;
    memmove(s->buffer, s->buffer + skip, s->used - skip);
    s->used -= skip;
    s->at += skip;
    if (bytes > s->capacity) {
        if (!rp_resize_array(&s->alloc, (void *)&s->buffer, s->capacity, bytes, 1))
            return rp_fail_memory(err, bytes);
        s->capacity = bytes;
    }
    st = s->files->ops->read(s->file, s->at + s->used, s->buffer + s->used,
                             s->capacity - s->used, &got, err);
    if (st != RP_OK) return st;
    assert(got <= s->capacity - s->used);
    s->used += got;
    if (s->used < bytes)
        return rp_fail(err, RP_UNAVAILABLE, "%s: the file became shorter while it was read",
                       s->path);
    return RP_OK;
}

static const uint8_t *bytes_at_offset(const scan *s)
{
    assert(s->offset >= s->at && s->offset - s->at <= s->used);
    return s->buffer + (s->offset - s->at);
}

static rp_status read_header(scan *s, rp_file_kind kind, const rp_store_id *store,
                             rp_file_header *out, rp_error *err)
{
    size_t bytes = s->size < RP_FILE_HEADER_BYTES ? (size_t)s->size : RP_FILE_HEADER_BYTES;
    rp_error why = {0};
    rp_status st = fill(s, bytes, err);

    if (st != RP_OK) return st;
    st = rp_file_header_read(s->buffer, bytes, out, &s->before, &why);
    if (st != RP_OK) return fail_at(s, st, &why, err);
    if (out->kind != kind)
        return rp_fail(err, RP_CORRUPT, "%s: its kind is %d, not %d", s->path, (int)out->kind,
                       (int)kind);
    if (store != NULL && memcmp(&out->store, store, sizeof *store) != 0)
        return rp_fail(err, RP_CORRUPT, "%s: it belongs to another store", s->path);
    if (s->hash != NULL) rp_hash_update(s->hash, s->buffer, bytes);
    s->offset = bytes;
    return RP_OK;
}

/* Checks a seal: its counts and its hash must match everything before it, and the file must end
 * with it. */
static rp_status check_seal(const scan *s, const rp_record *record, rp_error *err)
{
    uint8_t hash[RP_HASH_BYTES];
    rp_error why = {0};
    rp_seal seal;
    rp_status st = rp_seal_read(record->payload, record->size, &seal, &why);

    if (st != RP_OK) return fail_at(s, st, &why, err);
    rp_hash_digest(s->hash, hash);
    if (seal.count != s->count || seal.bytes != s->offset ||
        memcmp(seal.hash, hash, sizeof hash) != 0 ||
        s->offset + RP_RECORD_HEADER_BYTES + record->size != s->size)
        return rp_fail(err, RP_CORRUPT, "%s, offset %" PRIu64 ": the seal is of another file",
                       s->path, s->offset);
    return RP_OK;
}

/* Reads the next record. Sets `*is_end` if no whole record is left. */
static rp_status next(scan *s, rp_record *out, bool *is_end, rp_error *err)
{
    uint64_t left = s->size - s->offset;
    rp_error why = {0};
    rp_status st;

    *is_end = left < RP_RECORD_HEADER_BYTES;
    if (*is_end) return RP_OK;
    st = fill(s, RP_RECORD_HEADER_BYTES, err);
    if (st != RP_OK) return st;
    st = rp_record_header_read(bytes_at_offset(s), RP_RECORD_HEADER_BYTES, out, NULL, NULL,
                               &why);
    if (st != RP_OK) return fail_at(s, st, &why, err);
    *is_end = out->size > left - RP_RECORD_HEADER_BYTES;
    if (*is_end) return RP_OK;
    st = fill(s, RP_RECORD_HEADER_BYTES + out->size, err);
    if (st != RP_OK) return st;
    st = rp_record_read(bytes_at_offset(s), RP_RECORD_HEADER_BYTES + out->size, &s->before, out,
                        &why);
    if (st != RP_OK) return fail_at(s, st, &why, err);
    if (s->hash != NULL && out->kind == RP_RECORD_SEAL) st = check_seal(s, out, err);
    return st;
}

static rp_status visit_all(scan *s, rp_record_visit *each, void *ctx, uint64_t *end,
                           rp_error *err)
{
    for (;;) {
        rp_record record;
        bool is_end;
        rp_status st;

        *end = s->offset;
        st = next(s, &record, &is_end, err);
        if (st != RP_OK || is_end) return st;
        if (s->hash != NULL)
            rp_hash_update(s->hash, bytes_at_offset(s), RP_RECORD_HEADER_BYTES + record.size);
        *end = s->offset + RP_RECORD_HEADER_BYTES + record.size;
        if (!each(ctx, s->offset, &record)) return RP_OK;
        s->before = record.crc;
        s->count++;
        s->offset = *end;
    }
}

rp_status rp_records_scan(const rp_records_scan_options *o, rp_file_header *header,
                          uint64_t *end, rp_error *err)
{
    scan s = {.alloc = *o->alloc, .files = o->files, .path = o->path, .capacity = BUFFER_BYTES};
    rp_status st;

    *end = 0;
    s.buffer = rp_alloc(&s.alloc, s.capacity);
    if (s.buffer == NULL) return rp_fail_memory(err, s.capacity);
    if (o->kind == RP_FILE_SEGMENT) {
        s.hash = rp_hash_new(&s.alloc);
        if (s.hash == NULL) {
            rp_release(&s.alloc, s.buffer, s.capacity);
            return rp_fail_memory(err, RP_HASH_BYTES);
        }
    }
    st = s.files->ops->open(s.files, s.path, RP_OPEN_READ, &s.file, err);
    if (st == RP_OK) st = s.files->ops->size(s.file, &s.size, err);
    if (st == RP_OK) st = read_header(&s, o->kind, o->store, header, err);
    if (st == RP_OK) st = visit_all(&s, o->each, o->ctx, end, err);
    assert(*end <= s.size);
    if (s.file != NULL) s.files->ops->close(s.file);
    rp_hash_free(s.hash);
    rp_release(&s.alloc, s.buffer, s.capacity);
    return st;
}
