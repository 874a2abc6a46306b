/* SPDX-License-Identifier: Apache-2.0 */
/* Each file is read whole: journal files are small.
 *
 * Classifies a bad record, or a missing one:
 *
 *   superseded   the next file begins with the LSN of the bad record, or before it: the end of
 *                this file was torn by a crash, or condemned, and written again;
 *   damage       the record is known to have been on stable storage. A later file proves that,
 *                unless it begins with RP_RECORD_LOST, since a file gets its name only when all
 *                records before it are synced. So does an RP_RECORD_SYNCED, even behind the bad
 *                record, where it is searched for byte by byte;
 *   torn tail    otherwise. */
#include "disk/journal_read.h"

#include <assert.h>
#include <inttypes.h>

#include "disk/names.h"
#include "util/error.h"
#include "util/mem.h"

/* A file is read whole, so its size has a bound: the largest record, and as many bytes again
 * for the records before it, of which there are about 64 MiB. */
#define MAX_FILE_BYTES (2 * (uint64_t)RP_MAX_RECORD_BYTES)

/* Finds the largest synced LSN behind a bad record. */
static uint64_t find_synced(const uint8_t *data, size_t size, size_t offset)
{
    uint64_t synced = 0;

    for (; offset + RP_RECORD_HEADER_BYTES <= size; offset++) {
        rp_record record;

        if (data[offset] != 0 || data[offset + 4] != RP_RECORD_SYNCED) continue;
        if (rp_record_header_read(data + offset, size - offset, &record, NULL, NULL, NULL) !=
            RP_OK)
            continue;
        if (record.kind == RP_RECORD_SYNCED && record.size == 0 && record.number > synced)
            synced = record.number;
    }
    return synced;
}

static bool is_change(rp_record_kind kind)
{
    return (kind >= RP_RECORD_INSERT && kind <= RP_RECORD_DROP) ||
           (kind >= RP_RECORD_RENUMBER && kind <= RP_RECORD_ROLLOUTS_DROP);
}

/* True if the record may follow those before it. Evaluates SYNCED and LOST. */
static bool fits(const rp_record *record, uint64_t first, rp_journal_end *end)
{
    if (is_change(record->kind)) return record->number == end->lsn + 1;
    if (record->kind == RP_RECORD_SEAL || record->kind == RP_RECORD_PAD)
        return record->number == end->lsn;
    if (record->size != 0 || record->number > end->lsn) return false;
    if (record->kind == RP_RECORD_SYNCED) {
        if (record->number > end->synced) end->synced = record->number;
        return true;
    }
    if (record->kind == RP_RECORD_LOST) {
        end->gave_up = end->offset == RP_FILE_HEADER_BYTES && record->number == first - 1;
        return end->gave_up;
    }
    return false;
}

rp_status rp_journal_walk(rp_bytes file, uint64_t first, const rp_store_id *store,
                          rp_journal_visit *each, void *ctx, rp_journal_end *end, rp_error *err)
{
    const uint8_t *data = file.data;
    size_t size = file.size;
    rp_file_header header;
    rp_record record;
    uint32_t crc = 0;
    bool is_good, is_sealed = false;
    rp_status st;

    assert(first >= 1);
    *end = (rp_journal_end){.lsn = first - 1};
    st = rp_file_header_read(data, size, &header, &crc, err);
    if (st == RP_PRECONDITION) return st;
    is_good = st == RP_OK && header.kind == RP_FILE_JOURNAL && header.number == first &&
              memcmp(header.store.bytes, store->bytes, sizeof store->bytes) == 0;
    if (is_good) end->offset = RP_FILE_HEADER_BYTES;
    while (is_good && end->offset < size && !is_sealed) {
        is_good = rp_record_read(data + end->offset, size - end->offset, &crc, &record, NULL) ==
                      RP_OK &&
                  fits(&record, first, end);
        if (!is_good) break;
        if (is_change(record.kind) && each != NULL) {
            st = each(ctx, &record, err);
            if (st != RP_OK) return st;
        }
        if (is_change(record.kind)) end->lsn = record.number;
        is_sealed = record.kind == RP_RECORD_SEAL;
        if (is_sealed) end->synced = end->lsn;
        end->offset += RP_RECORD_HEADER_BYTES + record.size;
        crc = record.crc;
    }
    assert(end->offset <= size);
    end->is_damaged = !is_good || end->offset < size;
    if (end->is_damaged) {
        uint64_t synced = find_synced(data, size, end->offset);
        if (synced > end->synced) end->synced = synced;
    }
    return RP_OK;
}

typedef struct reader {
    const rp_journal_read_options *o;
    rp_number_list firsts; /* of the files, ascending; without 0 */
    uint8_t *data;         /* of the current file */
    size_t size;
    uint64_t last;   /* the last LSN passed to the caller, or `from` */
    uint64_t limit;  /* the largest LSN that counts of the current file */
    bool is_missing; /* the caller did not find what a record refers to */
} reader;

static rp_status list_files(reader *r, rp_error *err)
{
    rp_number_list *l = &r->firsts;
    rp_status st = rp_number_list_read(l, r->o->alloc, r->o->files, "wal", err);

    if (st == RP_NOT_FOUND) st = RP_OK;                  /* there is no journal */
    while (st == RP_OK && l->count > 0 && l->at[0] == 0) /* no file begins with LSN 0 */
        memmove(l->at, l->at + 1, --l->count * sizeof *l->at);
    return st;
}

static void drop_data(reader *r)
{
    rp_release(r->o->alloc, r->data, r->size + 1);
    r->data = NULL;
    r->size = 0;
}

static rp_status load(reader *r, uint64_t first, rp_error *err)
{
    const rp_files_ops *ops = r->o->files->ops;
    char path[RP_JOURNAL_PATH_BYTES];
    rp_file *file = NULL;
    uint64_t size = 0;
    size_t got = 0;
    rp_status st =
        ops->open(r->o->files, rp_journal_path(path, first), RP_OPEN_READ, &file, err);

    drop_data(r);
    if (st != RP_OK) return st;
    st = ops->size(file, &size, err);
    if (st == RP_OK && size > MAX_FILE_BYTES)
        st = rp_fail(err, RP_CORRUPT,
                     "%s: it has %" PRIu64 " bytes, and a journal file at most %" PRIu64
                     "; if bytes were appended to it, cut them off",
                     path, size, (uint64_t)MAX_FILE_BYTES);
    if (st == RP_OK) {
        r->data = rp_alloc(r->o->alloc, (size_t)size + 1);
        r->size = (size_t)size;
        if (r->data == NULL) {
            r->size = 0;
            st = rp_fail_memory(err, (size_t)size + 1);
        }
    }
    if (st == RP_OK) st = ops->read(file, 0, r->data, r->size, &got, err);
    ops->close(file);
    if (st == RP_OK && r->data != NULL && got != r->size) /* the file has shrunk meanwhile */
        memset(r->data + got, 0, r->size - got);
    return st;
}

/* Walks through the loaded file with that index without passing on its records. */
static rp_status walk(const reader *r, size_t index, rp_journal_end *end, rp_error *err)
{
    assert(index < r->firsts.count);
    return rp_journal_walk((rp_bytes){r->data, r->size}, r->firsts.at[index], r->o->store, NULL,
                           NULL, end, err);
}

/* The largest LSN that is known to have been on stable storage. */
static rp_status find_last_synced(reader *r, uint64_t *synced, rp_error *err)
{
    size_t count = r->firsts.count;
    rp_journal_end end;
    rp_status st;

    *synced = 0;
    if (count == 0) return RP_OK;
    *synced = r->firsts.at[count - 1] - 1;
    st = load(r, r->firsts.at[count - 1], err);
    if (st == RP_OK) st = walk(r, count - 1, &end, err);
    if (st == RP_OK && end.synced > *synced) *synced = end.synced;
    return st;
}

static rp_status visit(void *ctx, const rp_record *record, rp_error *err)
{
    reader *r = ctx;
    rp_status st;

    if (record->number <= r->last) return RP_OK;
    if (record->number > r->limit) return RP_OK;
    if (record->number != r->last + 1)
        return rp_fail(err, RP_CORRUPT, "journal: after %" PRIu64 " comes %" PRIu64, r->last,
                       record->number);
    st = r->o->each(r->o->ctx, record, err);
    if (st == RP_OK) r->last = record->number;
    r->is_missing = st == RP_NOT_FOUND;
    return st;
}

/* Sets `*out` if the file says that records before it were given up, and that is no damage for
 * this reading. */
static rp_status gave_up_before(reader *r, size_t index, bool *out, rp_error *err)
{
    rp_journal_end end;
    rp_status st = load(r, r->firsts.at[index], err);

    if (st == RP_OK) st = walk(r, index, &end, err);
    *out = st == RP_OK && end.gave_up && r->o->how != RP_JOURNAL_OLDER;
    return st;
}

/* Classifies the end of a file whose good part ends before the next file begins, or before its
 * own end: RP_OK for a torn tail, RP_CORRUPT for damage. */
static rp_status judge(reader *r, size_t index, const rp_journal_end *end, uint64_t synced,
                       uint64_t *torn_bytes, rp_error *err)
{
    uint64_t left = r->size - end->offset;
    bool gave_up = false;
    rp_status st = RP_OK;

    assert(end->offset <= r->size);
    if (index + 1 < r->firsts.count) {
        st = gave_up_before(r, index + 1, &gave_up, err);
        synced = gave_up ? end->synced : UINT64_MAX; /* a named file proves all before it */
    }
    if (st != RP_OK) return st;
    *torn_bytes += left;
    if (r->last >= synced) return RP_OK;
    return rp_fail(err, RP_CORRUPT,
                   "wal/%016" PRIx64 ", offset %" PRIu64 ": record %" PRIu64
                   " is damaged or missing, and it was on stable storage",
                   r->firsts.at[index], end->offset, end->lsn + 1);
}

/* As judge(), for a good record that refers to something missing: `end` is before that record
 * and `err` says what is missing. */
static rp_status judge_missing(reader *r, size_t index, rp_journal_end *end, uint64_t synced,
                               uint64_t *torn_bytes, rp_error *err)
{
    rp_journal_end whole;
    rp_error why = {0};
    rp_status st = walk(r, index, &whole, &why);

    if (st == RP_OK) {
        end->synced = whole.synced; /* the mark may follow the record */
        st = judge(r, index, end, synced, torn_bytes, &why);
    }
    if (err != NULL && st == RP_CORRUPT)
        err->code = st;
    else if (err != NULL && st != RP_OK)
        *err = why;
    return st;
}

/* Reads one file. Sets `*is_end` if reading ends with it. */
static rp_status read_one(reader *r, size_t index, uint64_t synced, bool *is_end,
                          uint64_t *torn_bytes, rp_error *err)
{
    uint64_t first = r->firsts.at[index];
    bool has_next = index + 1 < r->firsts.count, gave_up;
    rp_journal_end end;
    rp_status st = load(r, first, err);

    if (st != RP_OK) return st;
    r->limit = has_next ? r->firsts.at[index + 1] - 1 : UINT64_MAX;
    if (first > r->last + 1) {
        st = gave_up_before(r, index, &gave_up, err);
        *is_end = true;
        if (st == RP_OK && gave_up) *torn_bytes += r->size; /* none of it follows `last` */
        if (st != RP_OK || gave_up) return st;
        return rp_fail(err, RP_CORRUPT,
                       "journal: after %" PRIu64 " comes the file that begins with %" PRIu64,
                       r->last, first);
    }
    st = rp_journal_walk((rp_bytes){r->data, r->size}, first, r->o->store, visit, r, &end, err);
    if (st == RP_NOT_FOUND && r->is_missing) {
        *is_end = true;
        return judge_missing(r, index, &end, synced, torn_bytes, err);
    }
    if (st != RP_OK) return st;
    if (has_next ? end.lsn >= r->limit : !end.is_damaged) return RP_OK;
    *is_end = true;
    return judge(r, index, &end, synced, torn_bytes, err);
}

rp_status rp_journal_read(const rp_journal_read_options *o, uint64_t *last,
                          uint64_t *torn_bytes, rp_error *err)
{
    reader r = {.o = o, .last = o->from};
    uint64_t synced = 0;
    bool is_end = false;
    rp_error why = {0};
    rp_status st = list_files(&r, &why);

    *torn_bytes = 0;
    if (st == RP_OK) st = find_last_synced(&r, &synced, &why);
    for (size_t i = 0; st == RP_OK && !is_end && i < r.firsts.count; i++) {
        if (i + 1 < r.firsts.count && r.firsts.at[i + 1] - 1 <= o->from)
            continue; /* all of its records are older */
        st = read_one(&r, i, synced, &is_end, torn_bytes, &why);
    }
    if (st != RP_OK && err != NULL) *err = why;
    if (st == RP_CORRUPT && o->how == RP_JOURNAL_SALVAGE) st = RP_OK;
    assert(r.last >= o->from);
    *last = r.last;
    drop_data(&r);
    rp_number_list_free(&r.firsts);
    return st;
}
