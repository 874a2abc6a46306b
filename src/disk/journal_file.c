/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/journal_file.h"

#include <assert.h>

#include "util/error.h"
#include "util/kill_point.h"
#include "util/little_endian.h"

enum { SEAL_BYTES = 24 };

rp_status rp_journal_piece_begin(rp_journal_piece *piece, const rp_journal_file *file,
                                 uint64_t first, const rp_store_id *store)
{
    rp_file_header header = {.version = RP_FORMAT_VERSION,
                             .kind = RP_FILE_JOURNAL,
                             .store = *store,
                             .number = first};
    uint8_t *to;

    rp_buf_clear(&piece->bytes);
    piece->crc = file->crc;
    piece->records = 0;
    piece->says_lost = false;
    if (file->handle != NULL) return RP_OK;
    to = rp_buf_reserve(&piece->bytes, RP_FILE_HEADER_BYTES);
    if (to == NULL) return RP_NO_RESOURCE;
    piece->crc = rp_file_header_write(to, &header);
    piece->bytes.size += RP_FILE_HEADER_BYTES;
    return RP_OK;
}

rp_status rp_journal_piece_add(rp_journal_piece *piece, const rp_journal_options *o,
                               rp_record_kind kind, uint64_t number, const void *raw,
                               size_t size)
{
    rp_buf *out = &piece->bytes;
    size_t at = out->size, begin = at + RP_RECORD_HEADER_BYTES;
    rp_status st = RP_OK;

    assert(kind != RP_RECORD_LOST || at == RP_FILE_HEADER_BYTES); /* LOST is a first record */
    if (rp_buf_reserve(out, RP_RECORD_HEADER_BYTES) == NULL) st = RP_NO_RESOURCE;
    if (st == RP_OK) {
        out->size = begin;
        if (o->encode != NULL)
            st = o->encode(o->ctx, kind, raw, size, out);
        else
            rp_buf_append(out, raw, size);
    }
    if (st == RP_OK && (out->bad || out->size - begin > RP_MAX_RECORD_BYTES))
        st = RP_NO_RESOURCE;
    if (st != RP_OK) {
        out->size = at;
        out->bad = false;
        return st;
    }
    assert(out->size >= begin);
    piece->crc = rp_record_write(out->data + at, kind, number, piece->crc, out->data + begin,
                                 out->size - begin);
    piece->records++;
    if (kind == RP_RECORD_LOST) piece->says_lost = true;
    return RP_OK;
}

rp_status rp_journal_piece_pad(rp_journal_piece *piece, const rp_journal_file *file,
                               uint64_t number)
{
    uint64_t end = (file->handle != NULL ? file->offset : 0) + piece->bytes.size;
    size_t over = (size_t)(end % RP_JOURNAL_SECTOR), whole = RP_JOURNAL_SECTOR - over;
    uint8_t *to;

    if (over == 0) return RP_OK;
    if (whole < RP_RECORD_HEADER_BYTES) whole += RP_JOURNAL_SECTOR;
    to = rp_buf_reserve(&piece->bytes, whole);
    if (to == NULL) {
        piece->bytes.bad = false;
        return RP_NO_RESOURCE;
    }
    memset(to, 0, whole);
    piece->crc = rp_record_write(to, RP_RECORD_PAD, number, piece->crc,
                                 to + RP_RECORD_HEADER_BYTES, whole - RP_RECORD_HEADER_BYTES);
    piece->bytes.size += whole;
    piece->records++;
    assert((end + whole) % RP_JOURNAL_SECTOR == 0); /* J4 */
    return RP_OK;
}

static rp_status open_new(rp_journal_file *file, const rp_journal_options *o, uint64_t first,
                          bool hide, rp_error *err)
{
    char name[RP_JOURNAL_PATH_BYTES];
    const char *path = hide ? RP_JOURNAL_TEMPORARY : rp_journal_path(name, first);
    rp_status st = o->files->ops->open(o->files, path, RP_OPEN_CREATE, &file->handle, err);

    if (st == RP_EXISTS) { /* a condemned file whose records are all written again */
        st = o->files->ops->remove(o->files, path, err);
        if (st == RP_OK)
            st = o->files->ops->open(o->files, path, RP_OPEN_CREATE, &file->handle, err);
    }
    if (st != RP_OK) {
        file->handle = NULL;
        file->is_full = st == RP_NO_RESOURCE;
        return st;
    }
    file->first = first;
    file->offset = file->records = 0;
    file->is_named = file->is_bad = file->is_full = false;
    file->is_hidden = hide;
    return RP_OK;
}

rp_status rp_journal_file_reveal(rp_journal_file *file, const rp_journal_options *o,
                                 rp_error *err)
{
    char path[RP_JOURNAL_PATH_BYTES];
    rp_status st;

    assert(file->handle != NULL && file->is_hidden && !file->is_bad);
    st = o->files->ops->sync(file->handle, err);
    if (st == RP_OK)
        st = o->files->ops->rename(o->files, RP_JOURNAL_TEMPORARY,
                                   rp_journal_path(path, file->first), err);
    file->is_bad |= st != RP_OK;
    file->is_hidden = st != RP_OK;
    return st;
}

/* Appends bytes to the file. If the disk is full, cuts off what could be written of them; an
 * empty file is bad, so that it is created again. */
static rp_status append(rp_journal_file *file, const rp_journal_options *o,
                        const rp_bytes *part, rp_error *err)
{
    const rp_files_ops *ops = o->files->ops;
    rp_status st;

    assert(file->handle != NULL && !file->is_bad); /* J3 */
    st = ops->write(file->handle, file->offset, part, 1, err);
    file->is_full = st == RP_NO_RESOURCE;
    if (st == RP_OK) return RP_OK;
    if (!file->is_full || file->offset == 0 ||
        ops->truncate(file->handle, file->offset, NULL) != RP_OK)
        file->is_bad = true;
    return st;
}

rp_status rp_journal_file_write(rp_journal_file *file, const rp_journal_options *o,
                                uint64_t first, bool hide, const rp_journal_piece *piece,
                                rp_error *err)
{
    rp_bytes part = {piece->bytes.data, piece->bytes.size};
    rp_status st = RP_OK;

    if (part.size == 0) return RP_OK;
    if (file->handle == NULL) st = open_new(file, o, first, hide, err);
    if (st == RP_OK) st = append(file, o, &part, err);
    if (st != RP_OK) return st;
    file->offset += part.size;
    file->crc = piece->crc;
    file->records += piece->records;
    return RP_OK;
}

rp_status rp_journal_handle_sync(rp_file *handle, const rp_journal_options *o, bool is_named,
                                 rp_error *err)
{
    rp_status st = o->files->ops->sync(handle, err);

    if (st == RP_OK && !is_named) st = o->files->ops->sync_directory(o->files, "wal", err);
    return st;
}

rp_status rp_journal_file_sync(rp_journal_file *file, const rp_journal_options *o,
                               rp_error *err)
{
    rp_status st = rp_journal_handle_sync(file->handle, o, file->is_named, err);

    file->is_named |= st == RP_OK;
    file->is_bad |= st != RP_OK;
    return st;
}

rp_status rp_journal_file_seal(rp_journal_file *file, const rp_journal_options *o,
                               uint64_t last, rp_error *err)
{
    uint8_t seal[RP_RECORD_HEADER_BYTES + SEAL_BYTES], *to = seal + RP_RECORD_HEADER_BYTES;
    rp_bytes part = {seal, sizeof seal};
    rp_status st;

    assert(!file->is_hidden);
    rp_put_u64(to, file->records);
    rp_put_u64(to + 8, file->offset);
    rp_put_u64(to + 16, last);
    (void)rp_record_write(seal, RP_RECORD_SEAL, last, file->crc, to, SEAL_BYTES);
    st = append(file, o, &part, err);
    RP_KILL_POINT("journal.seal");
    if (st == RP_OK) st = rp_journal_file_sync(file, o, err);
    if (st != RP_OK) return st;
    o->files->ops->close(file->handle);
    file->handle = NULL;
    return RP_OK;
}

void rp_journal_file_condemn(rp_journal_file *file, const rp_journal_options *o)
{
    if (file->handle != NULL) o->files->ops->close(file->handle);
    file->handle = NULL;
}
