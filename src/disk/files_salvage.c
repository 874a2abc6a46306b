/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/files_salvage.h"

#include <assert.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

/* Calls that take a file are those of `inner`, whose files are handed out as they are. */
typedef struct salvage {
    rp_files base;
    rp_allocator alloc;
    rp_files *inner;
    rp_files_ops ops;
} salvage;

static rp_files *inner_of(rp_files *files)
{
    assert(files->ops == &((salvage *)files)->ops);
    return ((salvage *)files)->inner;
}

/* Counts what the system cannot give as damage. */
static rp_status as_damage(rp_status st, rp_error *err)
{
    if (st != RP_UNAVAILABLE) return st;
    if (err != NULL) err->code = RP_CORRUPT;
    return RP_CORRUPT;
}

static rp_status salvage_open(rp_files *files, const char *path, rp_open_how how, rp_file **out,
                              rp_error *err)
{
    rp_files *inner = inner_of(files);
    rp_status st = inner->ops->open(inner, path, how, out, err);

    return how == RP_OPEN_READ ? as_damage(st, err) : st;
}

/* Reads a range of which a part is unreadable, piece by piece; pieces end at multiples of their
 * size in the file. */
static rp_status read_pieces(rp_file *file, uint64_t offset, uint8_t *data, size_t size,
                             size_t *got)
{
    const rp_files_ops *ops = file->files->ops;
    bool has_any = false;
    uint64_t bytes = 0;

    *got = 0;
    if (ops->size(file, &bytes, NULL) != RP_OK) return RP_CORRUPT;
    if (offset > bytes) offset = bytes;
    if (size > bytes - offset) size = (size_t)(bytes - offset);
    while (*got < size) {
        size_t piece = RP_SALVAGE_BYTES - (size_t)((offset + *got) % RP_SALVAGE_BYTES),
               some = 0;

        if (piece > size - *got) piece = size - *got;
        if (ops->read(file, offset + *got, data + *got, piece, &some, NULL) == RP_OK)
            has_any = true;
        assert(some <= piece);
        memset(data + *got + some, 0, piece - some);
        *got += piece;
    }
    return has_any ? RP_OK : RP_CORRUPT;
}

static rp_status salvage_read(rp_file *file, uint64_t offset, void *data, size_t size,
                              size_t *got, rp_error *err)
{
    rp_error why = {0};
    rp_status st = file->files->ops->read(file, offset, data, size, got, &why);

    if (st == RP_UNAVAILABLE) st = read_pieces(file, offset, data, size, got);
    if (st == RP_OK) return RP_OK;
    why.code = st;
    if (err != NULL) *err = why;
    return st;
}

static rp_status salvage_read_into(rp_file *file, uint64_t offset, const rp_read_part *parts,
                                   size_t count, size_t *got, rp_error *err)
{
    *got = 0;
    for (size_t i = 0; i < count; i++) {
        size_t some = 0;
        rp_status st =
            salvage_read(file, offset + *got, parts[i].data, parts[i].size, &some, err);

        if (st != RP_OK) return st;
        *got += some;
        if (some < parts[i].size) break;
    }
    return RP_OK;
}

static rp_status salvage_space(rp_files *files, uint64_t *total, uint64_t *available,
                               rp_error *err)
{
    rp_files *inner = inner_of(files);

    return inner->ops->space(inner, total, available, err);
}

static rp_status salvage_rename(rp_files *files, const char *from, const char *to,
                                rp_error *err)
{
    rp_files *inner = inner_of(files);

    return inner->ops->rename(inner, from, to, err);
}

static rp_status salvage_remove(rp_files *files, const char *path, rp_error *err)
{
    rp_files *inner = inner_of(files);

    return inner->ops->remove(inner, path, err);
}

static rp_status salvage_make_directory(rp_files *files, const char *path, rp_error *err)
{
    rp_files *inner = inner_of(files);

    return inner->ops->make_directory(inner, path, err);
}

static rp_status salvage_sync_directory(rp_files *files, const char *path, rp_error *err)
{
    rp_files *inner = inner_of(files);

    return inner->ops->sync_directory(inner, path, err);
}

static rp_status salvage_list(rp_files *files, const char *path,
                              void (*each)(void *ctx, const char *name), void *ctx,
                              rp_error *err)
{
    rp_files *inner = inner_of(files);

    return inner->ops->list(inner, path, each, ctx, err);
}

static rp_status salvage_lock(rp_files *files, const char *path, rp_error *err)
{
    rp_files *inner = inner_of(files);

    return inner->ops->lock(inner, path, err);
}

static void salvage_free(rp_files *files)
{
    salvage *s = (salvage *)files;
    rp_allocator alloc = s->alloc;

    s->inner->ops->free(s->inner);
    rp_release(&alloc, s, sizeof *s);
}

rp_status rp_files_salvage(const rp_allocator *alloc, rp_files *inner, rp_files **out,
                           rp_error *err)
{
    salvage *s = rp_alloc_zero(alloc, sizeof *s);

    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->alloc = *alloc;
    s->inner = inner;
    s->ops = *inner->ops;
    s->ops.open = salvage_open;
    s->ops.read = salvage_read;
    s->ops.read_into = salvage_read_into;
    if (inner->ops->space != NULL) s->ops.space = salvage_space;
    s->ops.rename = salvage_rename;
    s->ops.remove = salvage_remove;
    s->ops.make_directory = salvage_make_directory;
    s->ops.sync_directory = salvage_sync_directory;
    s->ops.list = salvage_list;
    s->ops.lock = salvage_lock;
    s->ops.free = salvage_free;
    s->base.ops = &s->ops;
    *out = &s->base;
    return RP_OK;
}
