/* SPDX-License-Identifier: Apache-2.0 */
/* Reading journal files. Each is read whole: they are small.
 *
 * What is where a bad record should begin? If the next file begins with the number that would
 * come next, an end that nobody needs: it was torn by a crash, or condemned, and written again.
 * If anything says that the record was on stable storage, damage: a file has its name only when
 * what comes before it is, unless it begins with RP_RECORD_LOST, and a RP_RECORD_SYNCED says
 * so, also one that stands behind the bad record, where it is looked for byte by byte.
 * Otherwise a torn tail. */
#include <inttypes.h>
#include <stdio.h>

#include "disk/journal.h"
#include "util/error.h"
#include "util/mem.h"

/* Looks for the largest synced number behind a bad record. */
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
    return (kind >= RP_RECORD_INSERT && kind <= RP_RECORD_DROP) || kind == RP_RECORD_RENUMBER;
}

/* True if the record can stand where it does; a mark is taken note of. */
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

rp_status rp_journal_walk(const uint8_t *data, size_t size, uint64_t first,
                          const rp_store_id *store, rp_journal_visit *each, void *ctx,
                          rp_journal_end *end, rp_error *err)
{
    rp_file_header header;
    rp_record record;
    uint32_t crc = 0;
    bool is_good, is_sealed = false;
    rp_status st;

    *end = (rp_journal_end){.lsn = first - 1};
    st = rp_file_header_read(data, size, &header, &crc, err);
    if (st == RP_PRECONDITION) return st; /* a newer version: not ours to judge */
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
    end->is_damaged = !is_good || end->offset < size;
    if (end->is_damaged) {
        uint64_t synced = find_synced(data, size, end->offset);
        if (synced > end->synced) end->synced = synced;
    }
    return RP_OK;
}

typedef struct reader {
    const rp_allocator *alloc;
    rp_files *files;
    const rp_store_id *store;
    rp_journal_reading how;
    uint64_t *firsts; /* ascending */
    size_t count, capacity;
    bool bad;
    uint8_t *data; /* of the file at hand */
    size_t size;

    uint64_t last;   /* handed on, or `from` */
    uint64_t limit;  /* the file at hand counts up to here */
    bool is_missing; /* what a record speaks of */
    rp_journal_visit *each;
    void *ctx;
} reader;

static void note_name(void *ctx, const char *name)
{
    reader *r = ctx;
    uint64_t number = 0;
    size_t i = 0;

    for (; i < 16; i++) {
        char c = name[i];

        if (c >= '0' && c <= '9')
            number = number << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            number = number << 4 | (uint64_t)(c - 'a' + 10);
        else
            return;
    }
    if (name[16] != '\0' || number == 0) return;
    if (r->count == r->capacity) {
        size_t capacity = r->capacity < 16 ? 16 : 2 * r->capacity;

        if (!rp_resize_array(r->alloc, &r->firsts, r->capacity, capacity, sizeof *r->firsts)) {
            r->bad = true;
            return;
        }
        r->capacity = capacity;
    }
    for (i = r->count++; i > 0 && r->firsts[i - 1] > number; i--)
        r->firsts[i] = r->firsts[i - 1];
    r->firsts[i] = number;
}

static void drop_data(reader *r)
{
    rp_release(r->alloc, r->data, r->size + 1);
    r->data = NULL;
    r->size = 0;
}

static rp_status load(reader *r, uint64_t first, rp_error *err)
{
    const rp_files_ops *ops = r->files->ops;
    char path[RP_JOURNAL_PATH_BYTES];
    rp_file *file = NULL;
    uint64_t size = 0;
    size_t got = 0;
    rp_status st = ops->open(r->files, rp_journal_path(path, first), RP_OPEN_READ, &file, err);

    drop_data(r);
    if (st != RP_OK) return st;
    st = ops->size(file, &size, err);
    if (st == RP_OK && size >= SIZE_MAX / 2)
        st = rp_fail(err, RP_CORRUPT, "%s: %" PRIu64 " bytes cannot be", path, size);
    if (st == RP_OK) {
        r->data = rp_alloc(r->alloc, (size_t)size + 1);
        r->size = (size_t)size;
        if (r->data == NULL) {
            r->size = 0;
            st = rp_fail_memory(err, (size_t)size + 1);
        }
    }
    if (st == RP_OK) st = ops->read(file, 0, r->data, r->size, &got, err);
    ops->close(file);
    if (st == RP_OK && r->data != NULL &&
        got != r->size) /* nobody else is there to shrink it */
        memset(r->data + got, 0, r->size - got);
    return st;
}

/* The largest number that is known to have been on stable storage. */
static rp_status find_last_synced(reader *r, uint64_t *synced, rp_error *err)
{
    rp_status st = RP_OK;

    *synced = r->count > 0 ? r->firsts[r->count - 1] - 1 : 0;
    if (r->count > 0) st = load(r, r->firsts[r->count - 1], err);
    if (st == RP_OK && r->count > 0) {
        rp_journal_end end;

        st = rp_journal_walk(r->data, r->size, r->firsts[r->count - 1], r->store, NULL, NULL,
                             &end, err);
        if (st == RP_OK && end.synced > *synced) *synced = end.synced;
    }
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
    st = r->each(r->ctx, record, err);
    if (st == RP_OK) r->last = record->number;
    r->is_missing = st == RP_NOT_FOUND;
    return st;
}

/* Whether the journal gave up before the file, and that may be. */
static rp_status gave_up_before(reader *r, size_t index, bool *out, rp_error *err)
{
    rp_journal_end end;
    rp_status st = load(r, r->firsts[index], err);

    if (st == RP_OK)
        st = rp_journal_walk(r->data, r->size, r->firsts[index], r->store, NULL, NULL, &end,
                             err);
    *out = st == RP_OK && end.gave_up && r->how != RP_JOURNAL_OLDER;
    return st;
}

/* Judges a file whose good part ends before the next begins, or before its own end. */
static rp_status judge(reader *r, size_t index, const rp_journal_end *end, uint64_t synced,
                       uint64_t *torn_bytes, rp_error *err)
{
    uint64_t left = r->size - end->offset;
    bool gave_up = false;
    rp_status st = RP_OK;

    if (index + 1 < r->count) {
        st = gave_up_before(r, index + 1, &gave_up, err);
        synced = gave_up ? end->synced : UINT64_MAX; /* otherwise all of it was needed */
    }
    if (st != RP_OK) return st;
    *torn_bytes += left;
    if (r->last >= synced) return RP_OK;
    return rp_fail(err, RP_CORRUPT,
                   "wal/%016" PRIx64 ", offset %" PRIu64 ": record %" PRIu64
                   " is damaged or missing, and it was on stable storage",
                   r->firsts[index], end->offset, end->lsn + 1);
}

/* The same for a record that is whole, but speaks of what is not there: `end` is before it and
 * `err` says of what. */
static rp_status judge_missing(reader *r, size_t index, rp_journal_end *end, uint64_t synced,
                               uint64_t *torn_bytes, rp_error *err)
{
    rp_journal_end whole;
    rp_error why = {0};
    rp_status st =
        rp_journal_walk(r->data, r->size, r->firsts[index], r->store, NULL, NULL, &whole, &why);

    if (st == RP_OK) {
        end->synced = whole.synced; /* which may stand behind it */
        st = judge(r, index, end, synced, torn_bytes, &why);
    }
    if (err != NULL && st == RP_CORRUPT)
        err->code = st;
    else if (err != NULL && st != RP_OK)
        *err = why;
    return st;
}

/* Reads a file. `*is_end` if nothing after it counts. */
static rp_status read_one(reader *r, size_t index, uint64_t synced, bool *is_end,
                          uint64_t *torn_bytes, rp_error *err)
{
    uint64_t first = r->firsts[index];
    bool has_next = index + 1 < r->count, gave_up;
    rp_journal_end end;
    rp_status st = load(r, first, err);

    if (st != RP_OK) return st;
    r->limit = has_next ? r->firsts[index + 1] - 1 : UINT64_MAX;
    if (first > r->last + 1) {
        st = gave_up_before(r, index, &gave_up, err);
        *is_end = true;
        if (st == RP_OK && gave_up) *torn_bytes += r->size; /* it has nothing for us */
        if (st != RP_OK || gave_up) return st;
        return rp_fail(err, RP_CORRUPT,
                       "journal: after %" PRIu64 " comes the file that begins with %" PRIu64,
                       r->last, first);
    }
    st = rp_journal_walk(r->data, r->size, first, r->store, visit, r, &end, err);
    if (st == RP_NOT_FOUND && r->is_missing) {
        *is_end = true;
        return judge_missing(r, index, &end, synced, torn_bytes, err);
    }
    if (st != RP_OK) return st;
    if (has_next ? end.lsn >= r->limit : !end.is_damaged) return RP_OK;
    *is_end = true;
    return judge(r, index, &end, synced, torn_bytes, err);
}

rp_status rp_journal_read(const rp_allocator *alloc, rp_files *files, const rp_store_id *store,
                          uint64_t from, rp_journal_reading how, rp_journal_visit *each,
                          void *ctx, uint64_t *last, uint64_t *torn_bytes, rp_error *err)
{
    reader r = {.alloc = alloc,
                .files = files,
                .store = store,
                .how = how,
                .last = from,
                .each = each,
                .ctx = ctx};
    uint64_t synced = 0;
    bool is_end = false;
    rp_error why = {0};
    rp_status st = files->ops->list(files, "wal", note_name, &r, &why);

    *last = from;
    *torn_bytes = 0;
    if (st == RP_NOT_FOUND) st = RP_OK; /* there is no journal */
    if (st == RP_OK && r.bad) st = rp_fail_memory(&why, r.capacity * sizeof *r.firsts);
    if (st == RP_OK) st = find_last_synced(&r, &synced, &why);
    for (size_t i = 0; st == RP_OK && !is_end && i < r.count; i++) {
        if (i + 1 < r.count && r.firsts[i + 1] - 1 <= from) continue; /* all of it is older */
        st = read_one(&r, i, synced, &is_end, torn_bytes, &why);
    }
    if (st != RP_OK && err != NULL) *err = why;
    if (st == RP_CORRUPT && how == RP_JOURNAL_SALVAGE) st = RP_OK;
    *last = r.last;
    drop_data(&r);
    rp_release(alloc, r.firsts, r.capacity * sizeof *r.firsts);
    return st;
}
