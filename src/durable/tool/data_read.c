/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/tool/data_read.h"

#include <inttypes.h>
#include <string.h>

#include "util/error.h"

void rp_data_reader_init(rp_data_reader *r, const rp_allocator *alloc, rp_files *files)
{
    *r = (rp_data_reader){.alloc = alloc, .files = files};
    rp_buf_init(&r->buf, alloc);
}

void rp_data_reader_deinit(rp_data_reader *r)
{
    if (r->file != NULL) r->files->ops->close(r->file);
    rp_buf_deinit(&r->buf);
}

static rp_status open_segment(rp_data_reader *r, uint64_t number, rp_error *err)
{
    char path[32];

    if (r->file != NULL && r->segment == number) return RP_OK;
    if (r->file != NULL) r->files->ops->close(r->file);
    r->file = NULL;
    r->segment = number;
    return r->files->ops->open(r->files, rp_segment_path(path, number), RP_OPEN_READ, &r->file,
                               err);
}

rp_status rp_data_reader_get(rp_data_reader *r, const rp_place *place, rp_record_kind kind,
                             rp_record *out, rp_error *err)
{
    size_t size = RP_RECORD_HEADER_BYTES + (size_t)place->size, got = 0;
    rp_error why = {0};
    char path[32];
    rp_status st = open_segment(r, place->segment, err);

    if (st != RP_OK) return st;
    (void)rp_segment_path(path, place->segment);
    if (place->size > RP_MAX_RECORD_BYTES)
        return rp_fail(err, RP_CORRUPT, "%s: offset %" PRIu64 ": no record is that large", path,
                       place->offset);
    rp_buf_clear(&r->buf);
    if (rp_buf_reserve(&r->buf, size) == NULL) return rp_fail_memory(err, size);
    st = r->files->ops->read(r->file, place->offset, r->buf.data, size, &got, err);
    if (st != RP_OK) return st;
    st = rp_record_read(r->buf.data, got, NULL, out, &why);
    if (st != RP_OK)
        return rp_fail(err, st, "%s: offset %" PRIu64 ": %.160s", path, place->offset,
                       why.text);
    if (!rp_record_is(out->kind, kind) || out->size != place->size)
        return rp_fail(err, RP_CORRUPT, "%s: offset %" PRIu64 ": it is another record", path,
                       place->offset);
    return RP_OK;
}

static void note_name(void *ctx, const char *name)
{
    rp_data_numbers *n = ctx;
    uint64_t number;

    if (rp_manifest_parse_name(name, &number))
        rp_buf_append(&n->buf, &number, sizeof number);
    else
        n->others++;
}

static void put(rp_data_numbers *n, size_t i, uint64_t number)
{
    memcpy(n->buf.data + i * sizeof number, &number, sizeof number);
}

size_t rp_data_numbers_count(const rp_data_numbers *n)
{
    return n->buf.size / sizeof(uint64_t);
}

uint64_t rp_data_numbers_at(const rp_data_numbers *n, size_t i)
{
    uint64_t number;

    memcpy(&number, n->buf.data + i * sizeof number, sizeof number);
    return number;
}

static void sift(rp_data_numbers *n, size_t root, size_t count)
{
    uint64_t moved = rp_data_numbers_at(n, root);

    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count &&
            rp_data_numbers_at(n, child + 1) > rp_data_numbers_at(n, child))
            child++;
        if (rp_data_numbers_at(n, child) <= moved) break;
        put(n, root, rp_data_numbers_at(n, child));
    }
    put(n, root, moved);
}

/* A heap sort: in place, and no order of names is a bad one. */
static void sort(rp_data_numbers *n)
{
    size_t count = rp_data_numbers_count(n);

    for (size_t i = count / 2; i-- > 0;) sift(n, i, count);
    for (size_t left = count; left-- > 1;) {
        uint64_t last = rp_data_numbers_at(n, left);
        put(n, left, rp_data_numbers_at(n, 0));
        put(n, 0, last);
        sift(n, 0, left);
    }
}

rp_status rp_data_numbers_list(const rp_allocator *alloc, rp_files *files, const char *folder,
                               rp_data_numbers *out, rp_error *err)
{
    rp_status st;

    *out = (rp_data_numbers){0};
    rp_buf_init(&out->buf, alloc);
    st = files->ops->list(files, folder, note_name, out, err);
    if (st == RP_NOT_FOUND) return RP_OK;
    if (st == RP_OK && out->buf.bad) st = rp_fail_memory(err, out->buf.size);
    if (st != RP_OK) {
        rp_data_numbers_deinit(out);
        return st;
    }
    sort(out);
    return RP_OK;
}

void rp_data_numbers_deinit(rp_data_numbers *n)
{
    rp_buf_deinit(&n->buf);
}

static rp_status load(const rp_allocator *alloc, rp_files *files, uint64_t number,
                      rp_manifest **out, rp_error *err)
{
    char path[RP_MANIFEST_PATH_BYTES];

    return rp_manifest_load(alloc, files, rp_manifest_path(path, number), number, NULL, out,
                            err);
}

rp_status rp_data_find_manifest(const rp_allocator *alloc, rp_files *files, uint64_t number,
                                rp_manifest **out, rp_error *err)
{
    rp_data_numbers numbers;
    rp_current current;
    rp_error first = {0}, why = {0};
    rp_status st;

    if (number != 0) return load(alloc, files, number, out, err);
    if (rp_current_load(files, &current, NULL) == RP_OK) {
        st = load(alloc, files, current.checkpoint, out, &first);
        if (st == RP_OK || st == RP_NO_RESOURCE) {
            if (st != RP_OK && err != NULL) *err = first;
            return st;
        }
    }
    st = rp_data_numbers_list(alloc, files, "manifest", &numbers, err);
    if (st != RP_OK) return st;
    st = RP_NOT_FOUND;
    for (size_t i = rp_data_numbers_count(&numbers); st != RP_OK && i-- > 0;) {
        st = load(alloc, files, rp_data_numbers_at(&numbers, i), out, &why);
        if (first.code == RP_OK) first = why;
    }
    rp_data_numbers_deinit(&numbers);
    if (st == RP_OK) return RP_OK;
    if (first.code == RP_OK)
        return rp_fail(err, RP_NOT_FOUND, "there is no checkpoint in this directory");
    if (err != NULL) *err = first;
    return first.code;
}
