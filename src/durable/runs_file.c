/* SPDX-License-Identifier: Apache-2.0 */
/* The file RUNS: the runs of the store (runs/runs.h).
 *
 *   RUN*       one for each run: its image (runs/run_image.c)
 *   RUNS_END   one, last: how many runs there are
 *
 * The file is written after a checkpoint, once the callers that wait for the checkpoint have
 * been notified, and only if the runs have changed. It is written under a temporary name and
 * renamed. Its header has the number of that checkpoint, but a reader ignores the number: runs
 * do not depend on the tables, and may be newer than the checkpoint. A directory without the
 * file, such as that of an older version, has no runs. Neither a damaged file nor a failed
 * write stops the store: both are reported to on_event. The file is not written if that would
 * leave too little space for the next checkpoints.
 *
 * A file that was not loaded as a whole is moved to `quarantine`, whatever the reason, so that
 * the next one does not replace runs that are nowhere else. */
#include <inttypes.h>
#include <string.h>

#include "disk/names.h"
#include "disk/records_scan.h"
#include "durable/durable_inside.h"
#include "durable/runs_file.h"
#include "runs/runs.h"
#include "util/error.h"
#include "util/little_endian.h"
#include "util/mem.h"

#define TEMPORARY RP_RUNS_PATH ".tmp"
#define QUARANTINE "quarantine"

static void tell(const rp_durable *d, const char *text)
{
    if (d->options.on_event != NULL) d->options.on_event(d->options.ctx, true, text);
}

typedef struct writing {
    rp_durable *d;
    rp_file *file;
    uint64_t offset, number;
    uint32_t before; /* checksum of the header before */
} writing;

static rp_status write_record(writing *w, rp_record_kind kind, const void *payload, size_t size,
                              rp_error *err)
{
    uint8_t header[RP_RECORD_HEADER_BYTES];
    const rp_bytes parts[] = {{header, sizeof header}, {payload, size}};
    rp_status st;

    w->before = rp_record_write(header, kind, ++w->number, w->before, payload, size);
    st = w->d->files->ops->write(w->file, w->offset, parts, 2, err);
    w->offset += sizeof header + size;
    return st;
}

static rp_status write_header(writing *w, rp_error *err)
{
    const rp_file_header header = {.version = RP_FORMAT_VERSION,
                                   .kind = RP_FILE_RUNS,
                                   .store = w->d->checkpointer.id,
                                   .number = w->d->checkpointer.last_number};
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    const rp_bytes part = {bytes, sizeof bytes};

    w->before = rp_file_header_write(bytes, &header);
    w->offset = sizeof bytes;
    return w->d->files->ops->write(w->file, 0, &part, 1, err);
}

static rp_status write_runs(writing *w, rp_error *err)
{
    rp_runs *runs = rp_store_runs(w->d->store);
    rp_run_view *view = rp_alloc(&w->d->alloc, sizeof *view);
    rp_status st = RP_OK;
    uint64_t after = 0, count = 0;
    uint8_t end[8];
    rp_buf image;

    if (view == NULL) return rp_fail_memory(err, sizeof *view);
    rp_buf_init(&image, &w->d->alloc);
    while (st == RP_OK && rp_runs_next(runs, after, view)) {
        after = view->id;
        rp_buf_clear(&image);
        rp_runs_save(runs, view->id, &image);
        if (image.bad)
            st = rp_fail_memory(err, image.size);
        else if (image.size > 0) /* it was not dropped meanwhile */
            st = write_record(w, RP_RECORD_RUN, image.data, image.size, err);
        count += image.size > 0;
    }
    rp_put_u64(end, count);
    if (st == RP_OK) st = write_record(w, RP_RECORD_RUNS_END, end, sizeof end, err);
    rp_buf_deinit(&image);
    rp_release(&w->d->alloc, view, sizeof *view);
    return st;
}

static rp_status write_file(rp_durable *d, rp_error *err)
{
    const rp_files_ops *ops = d->files->ops;
    writing w = {.d = d};
    rp_status st = ops->remove(d->files, TEMPORARY, err); /* of a write that failed */

    if (st == RP_OK || st == RP_NOT_FOUND)
        st = ops->open(d->files, TEMPORARY, RP_OPEN_CREATE, &w.file, err);
    if (st != RP_OK) return st;
    st = write_header(&w, err);
    if (st == RP_OK) st = write_runs(&w, err);
    if (st == RP_OK) st = ops->sync(w.file, err);
    ops->close(w.file);
    if (st == RP_OK) st = ops->rename(d->files, TEMPORARY, RP_RUNS_PATH, err);
    if (st == RP_OK) st = ops->sync_directory(d->files, "", err);
    if (st != RP_OK) (void)ops->remove(d->files, TEMPORARY, NULL);
    return st;
}

/* RP_NO_RESOURCE if runs of `bytes` would take space that checkpoints may need: as much as the
 * file takes is to be free beside it, and beside what the reserve still lacks. */
static rp_status check_space(rp_durable *d, uint64_t bytes, rp_error *err)
{
    uint64_t total = 0, available = 0, held = 0, wanted;

    if (d->files->ops->space == NULL ||
        d->files->ops->space(d->files, &total, &available, NULL) != RP_OK)
        return RP_OK;
    wanted = rp_durable_reserve_wanted(d, &held);
    wanted = 2 * bytes + (wanted > held ? wanted - held : 0);
    if (available >= wanted) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE,
                   RP_RUNS_PATH ": not written: the disk has %" PRIu64
                                " free bytes, and %" PRIu64
                                " are needed, so that checkpoints have room: free disk space",
                   available, wanted);
}

void rp_durable_save_runs(rp_durable *d)
{
    rp_runs_info info;
    rp_error err = {0};

    rp_runs_get_info(rp_store_runs(d->store), &info);
    if (d->keeps_runs_file || info.changes == d->saved_runs) return;
    if (d->checkpointer.is_short) return; /* the trouble of checkpoints is reported already */
    if (check_space(d, info.bytes, &err) == RP_OK && write_file(d, &err) == RP_OK)
        d->saved_runs = info.changes; /* as of before the copy: a later change is saved later */
    else
        tell(d, err.text);
}

typedef struct loading {
    rp_runs *runs;
    rp_runs_found *found;
    uint64_t count;
    bool has_end;
    rp_status status;
    rp_error *err;
} loading;

static void load_run(loading *l, const rp_record *record)
{
    l->count++;
    l->status = rp_runs_load(l->runs, record->payload, record->size, l->err);
    l->found->has_left_out |= l->status == RP_NO_RESOURCE;
    if (l->status == RP_NO_RESOURCE || l->status == RP_EXISTS) l->status = RP_OK;
}

static bool load_record(void *ctx, uint64_t offset, const rp_record *record)
{
    loading *l = ctx;
    bool is_next = !l->has_end && record->number == l->found->records + 1;

    if (is_next && record->kind == RP_RECORD_RUN) {
        load_run(l, record);
    } else if (is_next && record->kind == RP_RECORD_RUNS_END && record->size == 8 &&
               rp_get_u64(record->payload) == l->count) {
        l->has_end = true;
    } else {
        l->status =
            rp_fail(l->err, RP_CORRUPT,
                    RP_RUNS_PATH ": the record at offset %" PRIu64 " is out of order", offset);
    }
    l->found->records += l->status == RP_OK;
    return l->status == RP_OK;
}

rp_status rp_runs_file_read(const rp_allocator *alloc, rp_files *files, rp_runs *runs,
                            rp_runs_found *out, rp_error *err)
{
    loading l = {.runs = runs, .found = out, .err = err};
    rp_file_header header = {0};
    rp_status st;

    *out = (rp_runs_found){0};
    st = rp_records_scan(
        &(rp_records_scan_options){.alloc = alloc,
                                   .files = files,
                                   .path = RP_RUNS_PATH,
                                   .kind = RP_FILE_RUNS,
                                   .store = NULL, /* a salvaged directory has a new id */
                                   .each = load_record,
                                   .ctx = &l},
        &header, &out->end, err);
    if (l.status != RP_OK) st = l.status;
    if (st == RP_OK && !l.has_end)
        st = rp_fail(err, RP_CORRUPT, RP_RUNS_PATH ": its end is missing");
    return st;
}

/* Keeps a file that was not loaded as a whole, and lets the next one be written. False if it
 * could not be moved. */
static bool set_aside(rp_durable *d)
{
    const rp_files_ops *ops = d->files->ops;

    if (ops->make_directory(d->files, QUARANTINE, NULL) != RP_OK) return false;
    if (ops->rename(d->files, RP_RUNS_PATH, QUARANTINE "/" RP_RUNS_PATH, NULL) != RP_OK)
        return false;
    (void)!ops->sync_directory(d->files, QUARANTINE, NULL);
    (void)!ops->sync_directory(d->files, "", NULL);
    return true;
}

void rp_durable_load_runs(rp_durable *d)
{
    rp_runs *runs = rp_store_runs(d->store);
    rp_error err = {0};
    rp_runs_found found;
    rp_runs_info before, after;
    rp_status st;

    if (d->options.run_bytes > 0) rp_runs_set_most_bytes(runs, d->options.run_bytes);
    rp_runs_get_info(runs, &before);
    st = rp_runs_file_read(&d->alloc, d->files, runs, &found, &err);
    rp_runs_get_info(runs, &after);
    /* Runs that the store has and the file has not are saved with the next checkpoint. */
    d->saved_runs = after.changes;
    if (before.count > 0) d->saved_runs = UINT64_MAX;
    d->keeps_runs_file = st == RP_PRECONDITION;
    if (st == RP_NOT_FOUND || (st == RP_OK && !found.has_left_out)) return;
    tell(d, err.text);
    if (st == RP_PRECONDITION) return;
    d->keeps_runs_file = !set_aside(d);
    if (after.count > 0) d->saved_runs = UINT64_MAX;
}
