/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a durable store: redo when it is opened, start, stop, and listeners. */
#include <assert.h>
#include <inttypes.h>

#include "disk/journal_read.h"
#include "disk/records_scan.h"
#include "durable/durable_inside.h"
#include "durable/journal/journal_redo.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

/* The end of the good part of a segment. */
typedef struct good_part {
    uint64_t segment, end;
} good_part;

typedef struct redo_run {
    rp_recovery *recovery;
    rp_redo *redo;
    good_part *parts; /* of segments that were scanned */
    size_t count, capacity;
} redo_run;

static bool go_on(void *ctx, uint64_t offset, const rp_record *record)
{
    (void)ctx;
    (void)offset;
    (void)record;
    return true;
}

static rp_status find_good_part(redo_run *p, uint64_t segment, uint64_t *end, rp_error *err)
{
    rp_recovery *r = p->recovery;
    rp_file_header header;
    char path[RP_SEGMENT_PATH_BYTES];
    rp_status st;

    for (size_t i = p->count; i-- > 0;)
        if (p->parts[i].segment == segment) {
            *end = p->parts[i].end;
            return RP_OK;
        }
    if (p->count == p->capacity) {
        size_t capacity = p->capacity < 64 ? 64 : 2 * p->capacity;

        if (!rp_resize_array(r->alloc, &p->parts, p->capacity, capacity, sizeof *p->parts))
            return rp_fail_memory(err, capacity * sizeof *p->parts);
        p->capacity = capacity;
    }
    st = rp_records_scan(&(rp_records_scan_options){.alloc = r->alloc,
                                                    .files = r->files,
                                                    .path = rp_segment_path(path, segment),
                                                    .kind = RP_FILE_SEGMENT,
                                                    .store = &r->id,
                                                    .each = go_on},
                         &header, end, err);
    if (st != RP_OK && st != RP_CORRUPT) return st;
    assert(p->count < p->capacity);
    p->parts[p->count++] = (good_part){segment, *end};
    return RP_OK;
}

/* Finds a chunk for the redo. A chunk is accepted only if all bytes of its segment before it
 * are good: recovery reads the segments of the next checkpoint the same way, and bytes behind a
 * hole were not synced. */
static rp_status find_chunk(void *ctx, const rp_disk_location *location, rp_chunk **out,
                            rp_error *err)
{
    rp_recovery *r = ((redo_run *)ctx)->recovery;
    uint64_t end = 0;
    rp_status st;

    if (rp_chunk_index_find(&r->chunks, location) == NULL) {
        st = find_good_part(ctx, location->segment, &end, err);
        if (st != RP_OK) return st;
        if (location->offset > end ||
            (uint64_t)RP_RECORD_HEADER_BYTES + location->size > end - location->offset)
            return rp_fail(err, RP_CORRUPT,
                           "segment %" PRIu64 ", offset %" PRIu64 ": only %" PRIu64
                           " bytes of it are good",
                           location->segment, location->offset, end);
    }
    return rp_chunk_index_get(&r->chunks, r->segments, location, out, err);
}

static rp_status visit(void *ctx, const rp_record *record, rp_error *err)
{
    redo_run *p = ctx;
    rp_status st = rp_redo_record(p->redo, record, err);

    rp_progress_add(p->recovery->meter, RP_RECORD_HEADER_BYTES + record->size);
    RP_KILL_POINT("recovery.replay");
    return st;
}

rp_status rp_durable_redo(rp_durable *d, rp_recovery *r, rp_error *err)
{
    redo_run p = {.recovery = r};
    rp_redo_options options = {.alloc = &d->alloc,
                               .store = d->store,
                               .chunk = find_chunk,
                               .ctx = &p,
                               .rollouts = &r->rollouts,
                               .rollouts_lsn = r->rollouts_at.lsn,
                               .salvage = r->salvage};
    uint64_t last = r->lsn, torn = 0, count;
    rp_error why = {0};
    rp_journal_reading how = r->salvage    ? RP_JOURNAL_SALVAGE
                             : r->is_older ? RP_JOURNAL_OLDER
                                           : RP_JOURNAL_LIVE;
    rp_journal_read_options read = {.alloc = &d->alloc,
                                    .files = d->files,
                                    .store = &r->id,
                                    .from = r->lsn,
                                    .how = how,
                                    .each = visit,
                                    .ctx = &p};
    rp_status st = rp_redo_new(&options, &p.redo, err);

    if (st != RP_OK) return st;
    rp_progress_begin(r->meter, "redoing", 0);
    st = rp_journal_read(&read, &last, &torn, &why);
    count = rp_redo_count(p.redo);
    rp_redo_free(p.redo);
    rp_release(r->alloc, p.parts, p.capacity * sizeof *p.parts);
    rp_progress_end(r->meter);
    if (st != RP_OK) {
        if (err != NULL) *err = why;
        return st;
    }
    if (r->is_older && !r->salvage && last < r->wanted_lsn)
        return rp_fail(err, RP_CORRUPT,
                       "the newest checkpoint is damaged, and the journal has changes up to "
                       "%" PRIu64 " of the %" PRIu64 " that it had",
                       last, r->wanted_lsn);
    if (why.code == RP_CORRUPT) {
        rp_recovery_report(r, "the journal is lost from %" PRIu64 " on: %s", last + 1,
                           why.text);
        r->is_whole = false;
    }
    rp_mutex_lock(&d->mu);
    d->info.recovered_records = count;
    d->info.torn_bytes = torn;
    rp_mutex_unlock(&d->mu);
    assert(last >= r->lsn);
    r->lsn = last;
    return RP_OK;
}

static void on_safe(void *ctx, uint64_t lsn)
{
    rp_durable *d = ctx;

    rp_mutex_lock(&d->listeners_mu);
    for (size_t i = 0; i < d->listener_count; i++)
        d->listeners[i].on_safe(d->listeners[i].ctx, lsn);
    rp_mutex_unlock(&d->listeners_mu);
}

/* Also requests a checkpoint: a journal that has given up records waits for one. */
static void on_trouble(void *ctx, const rp_error *why)
{
    rp_durable *d = ctx;

    rp_durable_trouble(d, RP_TROUBLE_JOURNAL, why != NULL ? why->text : NULL);
    rp_mutex_lock(&d->mu);
    if (why != NULL && d->backoff_ns == 0) d->is_wanted = true;
    rp_cond_signal(&d->wake);
    rp_mutex_unlock(&d->mu);
}

rp_status rp_durable_start_journal(rp_durable *d, rp_error *err)
{
    rp_store_log_options options = {.alloc = &d->alloc,
                                    .store = d->store,
                                    .files = d->files,
                                    .segments = d->segments,
                                    .id = d->checkpointer.id,
                                    .next_lsn = d->checkpointer.lsn + 1,
                                    .sync = d->options.mode == RP_DURABLE_SYNC,
                                    .interval_ns = d->options.interval_ns,
                                    .file_bytes = d->tuning.journal_bytes,
                                    .max_queued = d->tuning.max_backlog,
                                    .retry_ns = d->tuning.retry_ns,
                                    .on_safe = on_safe,
                                    .on_trouble = on_trouble,
                                    .reserve = rp_durable_reserve_wanted,
                                    .admit = rp_durable_admit_table,
                                    .on_created = rp_durable_count_table,
                                    .uses_rollouts = &d->checkpointer.uses_rollouts,
                                    .ctx = d};
    rp_status st;

    assert(d->log == NULL && d->journal == NULL); /* D3 */
    st = rp_store_log_start(&options, &d->log, err);
    if (st != RP_OK) return st;
    d->journal = rp_store_log_journal(d->log);
    d->checkpointer.journal = d->journal;
    return RP_OK;
}

rp_status rp_durable_stop_journal(rp_durable *d, rp_error *err)
{
    rp_status st = rp_store_log_stop(d->log, err);

    d->log = NULL;
    d->journal = NULL;
    d->checkpointer.journal = NULL;
    return st;
}

uint64_t rp_durable_safe(rp_durable *d)
{
    return d->journal != NULL ? rp_journal_safe(d->journal) : UINT64_MAX;
}

bool rp_durable_is_behind(rp_durable *d)
{
    return d->log != NULL && rp_store_log_is_behind(d->log);
}

rp_status rp_durable_listen(rp_durable *d, rp_safe_listener *listener, void *ctx)
{
    rp_status st = RP_NO_RESOURCE;

    rp_mutex_lock(&d->listeners_mu);
    assert(d->listener_count <= RP_MAX_LISTENERS);
    if (d->listener_count < RP_MAX_LISTENERS) {
        d->listeners[d->listener_count++] = (rp_durable_listener){listener, ctx};
        st = RP_OK;
    }
    rp_mutex_unlock(&d->listeners_mu);
    return st;
}

void rp_durable_unlisten(rp_durable *d, rp_safe_listener *listener, void *ctx)
{
    rp_mutex_lock(&d->listeners_mu);
    for (size_t i = 0; i < d->listener_count; i++)
        if (d->listeners[i].on_safe == listener && d->listeners[i].ctx == ctx) {
            d->listeners[i] = d->listeners[--d->listener_count];
            break;
        }
    rp_mutex_unlock(&d->listeners_mu);
}
