/* SPDX-License-Identifier: Apache-2.0 */
/* Inspects and verifies a data directory:
 *
 *   1  reads CURRENT and the manifests: the checkpoints, the live one, the segments they need
 *   2  reads the headers of the segments; if thorough, all records, and keeps their locations
 *   3  if thorough: checks that each block of each manifest is at its location, has its hash
 *      and refers to chunks that exist
 *   4  reads the journal, and distinguishes torn tails from damage
 *   5  reads RUNS, if thorough, and lists all other files
 *   6  reads the rollouts of each checkpoint, if thorough
 *
 * The state of a file may depend on other files, so all are reported at the end. Invariants:
 *
 *   H1  `records` is sorted by segment and offset: segments are scanned in order of numbers;
 *   H2  `all` has CURRENT, checkpoints, segments, journal files, RUNS, others and rollouts, in
 *       this order, each kind in order of numbers. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "disk/files_read_only.h"
#include "disk/journal_read.h"
#include "disk/names.h"
#include "disk/records_scan.h"
#include "disk/reserve.h"
#include "durable/checkpoint/progress.h"
#include "durable/format/rollouts_file.h"
#include "durable/runs_file.h"
#include "durable/tool/data_read.h"
#include "reprise/data.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

static const char lock_name[] = "LOCK";

/* The location and kind of a record. */
typedef struct found {
    uint64_t segment, offset;
    uint32_t size;
    uint32_t kind;
} found;

typedef struct look {
    const rp_allocator *alloc;
    const rp_data_look_options *o;
    rp_files *files;
    int64_t now_ns;
    rp_data_file *all;
    size_t count, capacity;
    bool has_id;
    rp_store_id id;
    rp_current current; /* checkpoint 0: CURRENT is missing or damaged */
    rp_manifest *live;  /* of the live checkpoint, or the newest readable one */
    rp_buf needed;      /* numbers of segments that a checkpoint needs */
    rp_buf records;     /* of `found` (H1) */
    rp_data_reader reader;
    rp_image image;
    rp_progress_meter meter;
    uint64_t done;      /* bytes of the files before the current one */
    rp_data_file *file; /* the current one */
    uint64_t journalled;
    bool sealed; /* the last record of the current file is a seal */
} look;

int64_t rp_data_locked_by(const char *directory)
{
    return rp_files_locked_by(directory, lock_name);
}

static void damage(rp_data_file *file, const rp_error *why)
{
    if (file->state == RP_DATA_DAMAGED) return; /* the first reason stays */
    file->state = RP_DATA_DAMAGED;
    (void)snprintf(file->problem, sizeof file->problem, "%s", why->text);
}

/* Adds a file. NULL if there is no memory. The pointer is valid until the next call. */
static rp_data_file *add_file(look *l, rp_data_kind kind, const char *path, uint64_t number,
                              rp_error *err)
{
    size_t capacity = l->capacity < 64 ? 64 : 2 * l->capacity;
    rp_file *file = NULL;
    rp_data_file *f;
    int64_t changed;

    if (l->count == l->capacity) {
        if (!rp_resize_array(l->alloc, &l->all, l->capacity, capacity, sizeof *l->all)) {
            (void)rp_fail_memory(err, capacity * sizeof *l->all);
            return NULL;
        }
        l->capacity = capacity;
    }
    assert(l->count < l->capacity);
    assert(
        l->count == 0 || l->all[l->count - 1].kind < kind ||
        (l->all[l->count - 1].kind == kind && l->all[l->count - 1].number <= number)); /* H2 */
    f = &l->all[l->count++];
    *f = (rp_data_file){.kind = kind, .number = number, .age_ns = -1};
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    if (l->files->ops->open(l->files, path, RP_OPEN_READ, &file, NULL) == RP_OK) {
        if (l->files->ops->size(file, &f->bytes, NULL) != RP_OK) f->bytes = 0;
        l->files->ops->close(file);
    }
    if (rp_files_modified(l->o->directory, path, &changed)) f->age_ns = l->now_ns - changed;
    return f;
}

/* The names in a folder that are no numbers: temporary or unknown files. */
typedef struct strays {
    look *l;
    const char *folder;
    rp_status status;
    rp_error *err;
} strays;

static void note_stray(void *ctx, const char *name)
{
    strays *s = ctx;
    char path[RP_DATA_PATH_BYTES];
    rp_data_file *file;
    uint64_t number;

    if (s->status != RP_OK) return;
    if (s->folder[0] != '\0' && rp_name_parse(name, &number)) return;
    if (s->folder[0] == '\0' &&
        (strcmp(name, lock_name) == 0 || strcmp(name, RP_CURRENT_PATH) == 0 ||
         strcmp(name, RP_RUNS_PATH) == 0 || rp_reserve_has_name(name) ||
         strcmp(name, "manifest") == 0 || strcmp(name, "seg") == 0 ||
         strcmp(name, "wal") == 0 || strcmp(name, RP_ROLLOUTS_FOLDER) == 0 ||
         strcmp(name, "quarantine") == 0))
        return;
    if (strlen(s->folder) + strlen(name) + 2 > sizeof path) return;
    (void)snprintf(path, sizeof path, "%s%s%s", s->folder, s->folder[0] != '\0' ? "/" : "",
                   name);
    file = add_file(s->l, RP_DATA_OTHER, path, 0, s->err);
    if (file != NULL)
        file->state = RP_DATA_UNUSED;
    else
        s->status = RP_NO_RESOURCE;
}

static rp_status look_at_strays(look *l, rp_error *err)
{
    static const char *const folders[] = {"",    "manifest",         "seg",
                                          "wal", RP_ROLLOUTS_FOLDER, "quarantine"};

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        strays s = {l, folders[i], RP_OK, err};
        rp_status st = l->files->ops->list(l->files, folders[i], note_stray, &s, err);

        if (st == RP_NOT_FOUND) continue;
        if (st == RP_OK) st = s.status;
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

static rp_status look_at_current(look *l, bool has_manifests, rp_error *err)
{
    rp_data_file *file;
    rp_error why = {0};
    rp_status st = rp_current_load(l->files, &l->current, &why);

    if (st == RP_NO_RESOURCE) {
        if (err != NULL) *err = why;
        return st;
    }
    if (st == RP_NOT_FOUND && !has_manifests) return RP_OK;
    file = add_file(l, RP_DATA_CURRENT, RP_CURRENT_PATH, 0, err);
    if (file == NULL) return RP_NO_RESOURCE;
    if (st != RP_OK) {
        damage(file, &why);
        l->current.checkpoint = 0;
        return RP_OK;
    }
    file->number = l->current.checkpoint;
    file->records = 1;
    file->good_bytes = file->bytes;
    l->id = l->current.store_id;
    l->has_id = true;
    return RP_OK;
}

static rp_status load(look *l, const rp_data_file *file, rp_manifest **out, rp_error *err)
{
    return rp_manifest_load(l->alloc, l->files, file->path, file->number,
                            l->has_id ? &l->id : NULL, out, err);
}

/* Keeps the manifest if it is the live one, or the best so far; frees it otherwise. */
static void consider(look *l, rp_data_file *file, rp_manifest *m)
{
    bool is_named = l->current.checkpoint == m->store.checkpoint;
    rp_error why = {0};

    file->tables = m->table_count;
    file->lsn = m->store.lsn;
    file->rollouts = m->store.rollouts.count;
    if (rp_rollouts_file_check(l->files, file->number, &m->store.rollouts, &why) != RP_OK)
        damage(file, &why);
    for (size_t i = 0; i < m->table_count; i++) file->items += m->tables[i].state.live;
    for (size_t i = 0; i < m->segment_count; i++)
        rp_buf_append(&l->needed, &m->segments[i].number, sizeof m->segments[i].number);
    if (is_named && (l->current.bytes != m->bytes ||
                     memcmp(l->current.hash, m->hash, sizeof m->hash) != 0)) {
        (void)rp_fail(&why, RP_CORRUPT,
                      "CURRENT names a manifest of this number with another hash");
        damage(file, &why);
        is_named = false;
    }
    l->id = m->store_id;
    l->has_id = true;
    /* Manifests come in ascending order, so a later one is newer. The one that CURRENT names is
     * never replaced. */
    if (is_named || l->live == NULL || l->live->store.checkpoint != l->current.checkpoint) {
        rp_manifest_free(l->live);
        l->live = m;
    } else {
        rp_manifest_free(m);
    }
}

static rp_status look_at_manifests(look *l, rp_error *err)
{
    rp_number_list numbers;
    size_t count;
    rp_status st = rp_data_list_numbers(l->alloc, l->files, "manifest", &numbers, err);

    if (st != RP_OK) return st;
    count = numbers.count;
    st = look_at_current(l, count > 0, err);
    for (size_t i = 0; st == RP_OK && i < count; i++) {
        uint64_t number = numbers.at[i];
        char path[RP_MANIFEST_PATH_BYTES];
        rp_manifest *m = NULL;
        rp_data_file *file;
        rp_error why = {0};

        file = add_file(l, RP_DATA_CHECKPOINT, rp_manifest_path(path, number), number, err);
        if (file == NULL) {
            st = RP_NO_RESOURCE;
            break;
        }
        st = load(l, file, &m, &why);
        if (st == RP_OK) {
            consider(l, file, m);
        } else if (st == RP_NO_RESOURCE) {
            if (err != NULL) *err = why;
        } else {
            damage(file, &why);
            st = RP_OK;
        }
    }
    rp_number_list_free(&numbers);
    return st;
}

/* Checks that the checkpoint that CURRENT names exists. */
static void check_current(look *l)
{
    rp_data_file *current = NULL, *named = NULL;
    rp_error why = {0};

    for (size_t i = 0; i < l->count; i++) {
        rp_data_file *f = &l->all[i];

        if (f->kind == RP_DATA_CURRENT) current = f;
        if (f->kind == RP_DATA_CHECKPOINT) {
            f->current = l->live != NULL && f->number == l->live->store.checkpoint;
            if (f->number == l->current.checkpoint) named = f;
        }
    }
    if (current == NULL || current->state == RP_DATA_DAMAGED) return;
    if (named == NULL) {
        (void)rp_fail(&why, RP_CORRUPT, "it names checkpoint %" PRIu64 ", which is missing",
                      l->current.checkpoint);
        damage(current, &why);
    }
}

/* Called for each record of the current file. */
static bool note_record(void *ctx, uint64_t offset, const rp_record *record)
{
    look *l = ctx;
    found f = {l->file->number, offset, (uint32_t)record->size, (uint32_t)record->kind};

    assert(record->size <= UINT32_MAX);
    l->file->records++;
    l->sealed = record->kind == RP_RECORD_SEAL;
    if (l->file->kind == RP_DATA_SEGMENT && !l->sealed)
        rp_buf_append(&l->records, &f, sizeof f);
    if (l->file->kind == RP_DATA_JOURNAL && !l->sealed) l->file->last_lsn = record->number;
    rp_progress_reach(&l->meter, l->done + offset);
    return !l->records.bad;
}

static bool is_needed(const look *l, uint64_t segment)
{
    for (size_t at = 0; at < l->needed.size; at += sizeof segment)
        if (memcmp(l->needed.data + at, &segment, sizeof segment) == 0) return true;
    return false;
}

/* True for a file that ends within its header: a process created it and ended before it wrote
 * to it. If changes of the journal are missing, check_journal() finds that. */
static bool is_left_over(const look *l, const rp_data_file *file)
{
    return file->bytes < RP_FILE_HEADER_BYTES &&
           (file->kind != RP_DATA_SEGMENT || !is_needed(l, file->number));
}

/* Reads the header of a file; if thorough, all of its records. */
static rp_status read_records(look *l, rp_data_file *file, rp_file_kind kind, rp_error *err)
{
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    rp_file_header header;
    rp_file *opened = NULL;
    rp_error why = {0};
    size_t got = 0;
    rp_status st;

    if (is_left_over(l, file)) {
        file->state = RP_DATA_UNUSED;
        return RP_OK;
    }
    l->file = file;
    l->sealed = false;
    if (l->o->thorough) {
        st = rp_records_scan(&(rp_records_scan_options){.alloc = l->alloc,
                                                        .files = l->files,
                                                        .path = file->path,
                                                        .kind = kind,
                                                        .store = l->has_id ? &l->id : NULL,
                                                        .each = note_record,
                                                        .ctx = l},
                             &header, &file->good_bytes, &why);
        if (l->records.bad) return rp_fail_memory(err, l->records.size);
        if (st == RP_OK && file->good_bytes < file->bytes)
            file->state = RP_DATA_TORN;
        else if (st == RP_OK && !l->sealed)
            file->state = RP_DATA_OPEN;
    } else {
        st = l->files->ops->open(l->files, file->path, RP_OPEN_READ, &opened, &why);
        if (st == RP_OK) st = l->files->ops->read(opened, 0, bytes, sizeof bytes, &got, &why);
        if (st == RP_OK) st = rp_file_header_read(bytes, got, &header, NULL, &why);
        if (st == RP_OK && (header.kind != kind || header.number != file->number))
            st =
                rp_fail(&why, RP_CORRUPT, "%s: its header is that of another file", file->path);
        if (opened != NULL) l->files->ops->close(opened);
    }
    assert(l->records.size % sizeof(found) == 0);
    l->done += file->bytes;
    if (st == RP_NO_RESOURCE && err != NULL) *err = why;
    if (st == RP_NO_RESOURCE) return st;
    if (st != RP_OK) damage(file, &why);
    return RP_OK;
}

static uint64_t live_bytes(const look *l, uint64_t segment)
{
    for (size_t i = 0; l->live != NULL && i < l->live->segment_count; i++)
        if (l->live->segments[i].number == segment) return l->live->segments[i].live;
    return 0;
}

/* Adds all numbered files of a folder. */
static rp_status add_all(look *l, const char *folder, rp_data_kind kind, rp_error *err)
{
    rp_number_list numbers;
    rp_status st = rp_data_list_numbers(l->alloc, l->files, folder, &numbers, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; st == RP_OK && i < numbers.count; i++) {
        uint64_t number = numbers.at[i];
        char path[RP_DATA_PATH_BYTES];

        (void)snprintf(path, sizeof path, "%s/%016" PRIx64, folder, number);
        if (add_file(l, kind, path, number, err) == NULL) st = RP_NO_RESOURCE;
    }
    rp_number_list_free(&numbers);
    return st;
}

/* Returns true if the journal has, or may have, changes that the live checkpoint lacks. A file
 * ends where the next one begins. */
static bool has_changes(const look *l)
{
    uint64_t from = l->live != NULL ? l->live->store.lsn : 0;

    for (size_t i = 0; i < l->count; i++) {
        const rp_data_file *f = &l->all[i];
        bool is_last = i + 1 == l->count || f[1].kind != RP_DATA_JOURNAL;

        if (f->kind == RP_DATA_JOURNAL && f->bytes > RP_FILE_HEADER_BYTES &&
            (is_last || f[1].number > from + 1))
            return true;
    }
    return false;
}

static rp_status look_at_segments(look *l, size_t first, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = first; st == RP_OK && i < l->count; i++) {
        rp_data_file *f = &l->all[i];

        if (f->kind != RP_DATA_SEGMENT) continue;
        st = read_records(l, f, RP_FILE_SEGMENT, err);
        f->live_bytes = live_bytes(l, f->number);
        if (f->state != RP_DATA_DAMAGED && f->state != RP_DATA_TORN && !is_needed(l, f->number))
            f->state =
                has_changes(l) && !is_left_over(l, f) ? RP_DATA_JOURNALLED : RP_DATA_UNUSED;
    }
    return st;
}

static const found *find_record(const look *l, uint64_t segment, uint64_t offset)
{
    const found *records = (const found *)(const void *)l->records.data;
    size_t low = 0, high = l->records.size / sizeof(found);

    assert(l->o->thorough); /* otherwise there are no records */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const found *f = &records[middle];

        if (f->segment == segment && f->offset == offset) return f;
        if (f->segment < segment || (f->segment == segment && f->offset < offset))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Checks that a good record of that kind is at the location. */
static rp_status check_location(const look *l, const rp_disk_location *location,
                                rp_record_kind kind, rp_error *err)
{
    const found *f = find_record(l, location->segment, location->offset);
    char path[RP_SEGMENT_PATH_BYTES];

    if (f != NULL && rp_record_is((rp_record_kind)f->kind, kind) && f->size == location->size)
        return RP_OK;
    return rp_fail(err, RP_CORRUPT, "%s: offset %" PRIu64 ": there is no good %s",
                   rp_segment_path(path, location->segment), location->offset,
                   kind == RP_RECORD_BLOCK ? "block" : "chunk");
}

static rp_status check_block(look *l, const rp_manifest_block *block, rp_error *err)
{
    rp_record record;
    rp_status st = check_location(l, &block->location, RP_RECORD_BLOCK, err);

    if (st == RP_OK)
        st = rp_data_reader_get(&l->reader, &block->location, RP_RECORD_BLOCK, &record, err);
    if (st != RP_OK) return st;
    if (rp_manifest_hash_block(record.payload, record.size) != block->hash)
        return rp_fail(err, RP_CORRUPT, "the block is not the one that was written");
    st = rp_image_read(&l->image, record.payload, record.size, err);
    for (size_t i = 0; st == RP_OK && i < l->image.location_count; i++)
        st = check_location(l, &l->image.locations[i], RP_RECORD_CHUNK, err);
    return st;
}

static rp_status check_manifest(look *l, rp_data_file *file, rp_error *err)
{
    rp_manifest *m = NULL;
    rp_error why = {0};
    rp_status st = load(l, file, &m, err);

    if (st != RP_OK) return st;
    for (size_t t = 0; t < m->table_count && file->state == RP_DATA_FINE; t++)
        for (size_t b = 0; b < m->tables[t].block_count && st == RP_OK; b++) {
            char text[RP_ERROR_TEXT_BYTES];

            st = check_block(l, &m->tables[t].blocks[b], &why);
            if (st == RP_OK || st == RP_NO_RESOURCE) continue;
            memcpy(text, why.text, sizeof text);
            (void)rp_fail(&why, st, "table '%.40s': block %zu: %.180s",
                          m->tables[t].state.options.name, b, text);
            damage(file, &why);
        }
    rp_manifest_free(m);
    if (st == RP_NO_RESOURCE && err != NULL) *err = why;
    return st == RP_NO_RESOURCE ? st : RP_OK;
}

/* Checks all checkpoints: if the live one is damaged, a server loads an older one. */
static rp_status check_manifests(look *l, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < l->count; i++)
        if (l->all[i].kind == RP_DATA_CHECKPOINT && l->all[i].state == RP_DATA_FINE)
            st = check_manifest(l, &l->all[i], err);
    return st;
}

static rp_status count_change(void *ctx, const rp_record *record, rp_error *err)
{
    (void)record, (void)err;
    ((look *)ctx)->journalled++;
    return RP_OK;
}

/* Reads all journal files together, because a single file does not show whether its bad end is
 * a torn tail or damage. */
static rp_status check_journal(look *l, rp_error *err)
{
    uint64_t from = l->live != NULL ? l->live->store.lsn : 0, last = 0, torn = 0;
    rp_data_file *first = NULL, *broken = NULL;
    rp_error why = {0};
    rp_status st;

    for (size_t i = 0; i < l->count; i++) {
        rp_data_file *f = &l->all[i];

        if (f->kind != RP_DATA_JOURNAL) continue;
        if (first == NULL) first = f;
        if (f->state == RP_DATA_DAMAGED || f->state == RP_DATA_TORN) broken = f;
    }
    if (first == NULL || !l->has_id) return RP_OK;
    st = rp_journal_read(&(rp_journal_read_options){.alloc = l->alloc,
                                                    .files = l->files,
                                                    .store = &l->id,
                                                    .from = from,
                                                    .how = RP_JOURNAL_LIVE,
                                                    .each = count_change,
                                                    .ctx = l},
                         &last, &torn, &why);
    if (st == RP_NO_RESOURCE) {
        if (err != NULL) *err = why;
        return st;
    }
    if (st != RP_OK) {
        damage(broken != NULL ? broken : first, &why);
    } else if (broken != NULL && broken->state == RP_DATA_DAMAGED && torn > 0) {
        broken->state = RP_DATA_TORN; /* no synced record is behind it */
    }
    return RP_OK;
}

static rp_status look_at_journal(look *l, size_t first, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = first; st == RP_OK && i < l->count; i++)
        if (l->all[i].kind == RP_DATA_JOURNAL)
            st = read_records(l, &l->all[i], RP_FILE_JOURNAL, err);
    if (st == RP_OK && (l->o->thorough || l->o->counts_journal)) st = check_journal(l, err);
    return st;
}

/* Adds RUNS if it exists; if thorough, loads its runs. */
static rp_status look_at_runs(look *l, rp_error *err)
{
    rp_file *opened = NULL;
    rp_runs_found read;
    rp_error why = {0};
    rp_data_file *file;
    rp_runs *runs;
    rp_status st = l->files->ops->open(l->files, RP_RUNS_PATH, RP_OPEN_READ, &opened, &why);

    if (opened != NULL) l->files->ops->close(opened);
    if (st == RP_NOT_FOUND) return RP_OK;
    file = add_file(l, RP_DATA_RUNS, RP_RUNS_PATH, 0, err);
    if (file == NULL) return RP_NO_RESOURCE;
    if (st != RP_OK) damage(file, &why);
    if (st != RP_OK || !l->o->thorough) return RP_OK;
    runs = rp_runs_new(l->alloc);
    if (runs == NULL) return rp_fail_memory(err, RP_RUNS_BYTES);
    st = rp_runs_file_read(l->alloc, l->files, runs, &read, &why);
    rp_runs_free(runs);
    file->records = read.records;
    file->good_bytes = read.end;
    if (st == RP_NO_RESOURCE && err != NULL) *err = why;
    if (st == RP_NO_RESOURCE) return st;
    if (st != RP_OK) damage(file, &why);
    return RP_OK;
}

static rp_status look_at_rollouts(look *l, rp_error *err)
{
    size_t first = l->count;
    rp_status st = add_all(l, RP_ROLLOUTS_FOLDER, RP_DATA_ROLLOUTS, err);

    for (size_t i = first; st == RP_OK && i < l->count; i++)
        st = rp_data_check_rollouts(l->alloc, l->files, l->o->thorough, &l->all[i], err);
    return st;
}

static rp_status look_at_all(look *l, rp_error *err)
{
    uint64_t total = 0;
    size_t first;
    rp_status st = look_at_manifests(l, err);

    if (st != RP_OK) return st;
    check_current(l);
    first = l->count;
    if (l->needed.bad) return rp_fail_memory(err, l->needed.size);
    st = add_all(l, "seg", RP_DATA_SEGMENT, err);
    if (st == RP_OK) st = add_all(l, "wal", RP_DATA_JOURNAL, err);
    if (st != RP_OK) return st;
    for (size_t i = first; i < l->count; i++) total += l->all[i].bytes;
    l->meter.on_progress = l->o->on_progress;
    l->meter.ctx = l->o->ctx;
    rp_progress_begin(&l->meter, "verifying", total);
    st = look_at_segments(l, first, err);
    if (st == RP_OK && l->o->thorough) st = check_manifests(l, err);
    if (st == RP_OK) st = look_at_journal(l, first, err);
    if (st == RP_OK && l->count == 0)
        return rp_fail(err, RP_NOT_FOUND, "%.160s: there is no data of reprise in it",
                       l->o->directory);
    if (st == RP_OK) st = look_at_runs(l, err);
    if (st == RP_OK) st = look_at_strays(l, err);
    if (st == RP_OK) st = look_at_rollouts(l, err);
    if (st == RP_OK && l->o->thorough) rp_progress_reach(&l->meter, total);
    return st;
}

static void sum_up(const look *l, rp_data_summary *out)
{
    const rp_data_file *best = NULL;

    *out = (rp_data_summary){.journalled = l->journalled};
    for (size_t i = 0; i < l->count; i++) {
        const rp_data_file *f = &l->all[i];

        out->files++;
        out->bytes += f->bytes;
        out->damaged += f->state == RP_DATA_DAMAGED;
        out->torn += f->state == RP_DATA_TORN;
        out->unused += f->state == RP_DATA_UNUSED;
        if (f->kind != RP_DATA_CHECKPOINT || f->state == RP_DATA_DAMAGED) continue;
        if (best == NULL || f->current || !best->current) best = f;
    }
    if (best == NULL) return;
    out->checkpoint = best->number;
    out->tables = best->tables;
    out->items = best->items;
    out->rollouts = best->rollouts;
    out->lsn = best->lsn;
}

rp_status rp_data_look(const rp_data_look_options *options, rp_data_summary *out, rp_error *err)
{
    const rp_allocator *alloc = rp_allocator_default();
    rp_status st;
    look *l;

    if (options == NULL || options->directory == NULL)
        return rp_fail(err, RP_INVALID, "no %s",
                       options == NULL ? "options are given" : "directory is given");
    l = rp_alloc_zero(alloc, sizeof *l);
    if (l == NULL) return rp_fail_memory(err, sizeof *l);
    l->alloc = alloc;
    l->o = options;
    l->now_ns = rp_wall_ns(NULL);
    rp_buf_init(&l->needed, alloc);
    rp_buf_init(&l->records, alloc);
    rp_image_init(&l->image, alloc);
    st = rp_files_open_read_only(alloc, options->directory, &l->files, err);
    rp_data_reader_init(&l->reader, alloc, l->files);
    if (st == RP_OK) st = look_at_all(l, err);
    if (st == RP_OK) {
        for (size_t i = 0; options->on_file != NULL && i < l->count; i++)
            options->on_file(options->ctx, &l->all[i]);
        sum_up(l, out);
    }
    rp_manifest_free(l->live);
    rp_data_reader_deinit(&l->reader);
    rp_image_deinit(&l->image);
    rp_buf_deinit(&l->records);
    rp_buf_deinit(&l->needed);
    rp_release(alloc, l->all, l->capacity * sizeof *l->all);
    if (l->files != NULL) l->files->ops->free(l->files);
    rp_release(alloc, l, sizeof *l);
    return st;
}
