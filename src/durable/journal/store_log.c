/* SPDX-License-Identifier: Apache-2.0 */
/* Logging. The raw record of a change is the change itself, its array and the name of the
 * table:
 *
 *   | raw_change | rp_inserted, rp_update or keys x count | name |
 *
 * The raw records of CREATE and DROP, and those of rollouts (rollout_log.h), are their
 * payloads.
 *
 * Invariants:
 *
 *   O1  a raw insert holds a reference to each of its trajectories until on_release();
 *   O2  a table that must wait sets was_behind before it tests the backlog again; on_pass()
 *       clears was_behind before it wakes the tables. Both accesses are sequentially
 *       consistent, so no wake-up is lost. */
#include "durable/journal/store_log.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "disk/reserve.h"
#include "durable/format/image.h"
#include "durable/format/journal_records.h"
#include "durable/format/rollout_records.h"
#include "durable/journal/rollout_log.h"
#include "util/error.h"
#include "util/mem.h"

enum { MOST_TABLES = 4096 }; /* that a store can have */

typedef struct raw_change {
    rp_log_record change; /* its pointers are invalid: the array follows */
    uint64_t name_size;
} raw_change;

struct rp_store_log {
    rp_table_log log; /* first: the tables' calls get this */
    rp_allocator alloc;
    rp_store_log_options o;
    rp_journal *journal;
    rp_journal_encoder encoder; /* used by the journal thread only */
    atomic_bool was_behind;     /* operations may wait for the journal (O2) */
    rp_rollout_logging rollouts;
};

/* Bytes on disk of the chunks of a trajectory that have no location yet. */
static uint64_t bytes_to_put(const rp_store_log *log, const rp_trajectory *trajectory)
{
    uint64_t bytes = 0;
    rp_disk_location location;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++)
        if (!rp_segments_locate(log->o.segments, trajectory->chunks[i], &location))
            bytes += RP_RECORD_HEADER_BYTES + (uint64_t)trajectory->chunks[i]->wire_bytes;
    return bytes;
}

/* Disk space that items need. */
typedef struct item_space {
    uint64_t chunks; /* that have no location yet */
    uint64_t growth; /* of the reserve */
} item_space;

static item_space space_of(const rp_store_log *log, rp_trajectory *const *trajectories,
                           size_t count)
{
    item_space space = {0};
    uint64_t image = 0;

    for (size_t i = 0; i < count; i++) {
        space.chunks += bytes_to_put(log, trajectories[i]);
        image += rp_trajectory_image(trajectories[i]);
    }
    if (log->o.reserve != NULL) space.growth = rp_reserve_for(image);
    return space;
}

/* Claims disk space for trajectories: `*space`. */
static bool claim_room(rp_store_log *log, rp_trajectory *const *trajectories, size_t count,
                       item_space *space)
{
    item_space first = space_of(log, trajectories, 1);
    uint64_t least = first.chunks + first.growth, all;

    assert(count > 0);
    *space = count > 1 ? space_of(log, trajectories, count) : first;
    all = space->chunks + space->growth;
    if (rp_journal_claim_space(log->journal, all, least)) return true;
    atomic_store(&log->was_behind, true); /* before the second attempt (O2) */
    return rp_journal_claim_space(log->journal, all, least);
}

static rp_status put_chunks(rp_store_log *log, const rp_trajectory *trajectory)
{
    rp_disk_location location;

    for (uint32_t i = 0; i < trajectory->chunk_count; i++) {
        rp_chunk *chunk = trajectory->chunks[i];

        if (rp_segments_locate(log->o.segments, chunk, &location)) continue;
        if (rp_segments_put_chunk(log->o.segments, chunk, &location) != RP_OK)
            return RP_NO_RESOURCE;
    }
    return RP_OK;
}

/* Returns the status for an item that does not fit on the disk: RP_NO_RESOURCE if it never can,
 * because the disk is smaller than its chunks; otherwise RP_UNAVAILABLE. */
static rp_status refuse_room(rp_store_log *log, rp_trajectory *trajectory, rp_error *err)
{
    item_space space = space_of(log, &trajectory, 1);
    uint64_t bytes = space.chunks + space.growth;
    uint64_t most = rp_journal_most_space(log->journal);

    if (bytes <= most) return RP_UNAVAILABLE;
    return rp_fail(
        err, RP_NO_RESOURCE,
        "an item takes %llu bytes on the disk, which can have at most %llu of items; "
        "use a larger disk or smaller items",
        (unsigned long long)bytes, (unsigned long long)most);
}

static rp_status on_prepare(rp_table_log *base, rp_trajectory *const *trajectories,
                            size_t count, uint64_t *claimed, rp_error *err)
{
    rp_store_log *log = (rp_store_log *)base;
    rp_status st = RP_OK;
    item_space space = {0};

    /* A lost journal flushes no segments, so the chunks would fill their queue. After the cut
     * that ends the loss, the journal thread puts the chunks that it needs. */
    if (rp_journal_is_lost(log->journal)) return RP_OK;
    if (log->o.sync && !claim_room(log, trajectories, count, &space))
        return refuse_room(log, trajectories[0], err);
    for (size_t i = 0; i < count && st == RP_OK; i++) st = put_chunks(log, trajectories[i]);
    /* The segments count the chunks now. The table counts the items when they are in it. */
    if (log->o.sync)
        rp_journal_release_space(log->journal, space.chunks + (st == RP_OK ? 0 : space.growth));
    if (st != RP_OK) return rp_fail(err, st, "the journal has no memory for chunks");
    *claimed = space.growth;
    return RP_OK;
}

static void on_unclaim(rp_table_log *base, uint64_t claimed)
{
    rp_journal_release_space(((rp_store_log *)base)->journal, claimed);
}

static rp_status on_admit(rp_table_log *base, const rp_table_options *options, rp_error *err)
{
    rp_store_log *log = (rp_store_log *)base;

    return log->o.admit != NULL ? log->o.admit(log->o.ctx, options, err) : RP_OK;
}

static rp_bytes array_of(const rp_log_record *change)
{
    switch ((int)change->kind) {
    case RP_LOGGED_INSERT:
        return (rp_bytes){change->inserted, change->count * sizeof *change->inserted};
    case RP_LOGGED_UPDATE:
        return (rp_bytes){change->updates, change->count * sizeof *change->updates};
    case RP_LOGGED_DELETE:
        return (rp_bytes){change->keys, change->count * sizeof *change->keys};
    default: return (rp_bytes){NULL, 0};
    }
}

static uint64_t on_changed(rp_table_log *base, const rp_table *table,
                           const rp_log_record *change)
{
    rp_store_log *log = (rp_store_log *)base;
    const char *name = rp_table_name(table);
    raw_change raw = {*change, strlen(name)};
    rp_bytes parts[] = {{&raw, sizeof raw}, array_of(change), {name, (size_t)raw.name_size}};
    bool is_kept;
    uint64_t lsn;

    assert(raw.name_size >= 1 && raw.name_size <= RP_MAX_TABLE_NAME_BYTES);
    assert(change->kind == RP_LOGGED_SAMPLE || change->kind == RP_LOGGED_EVICT ||
           change->count <= RP_JOURNAL_MAX_ITEMS);
    if (change->kind == RP_LOGGED_INSERT) /* O1 */
        for (size_t i = 0; i < change->count; i++)
            if (change->inserted[i].trajectory != NULL)
                (void)rp_trajectory_ref(change->inserted[i].trajectory);
    lsn = rp_journal_append(log->journal, rp_journal_kind_of(change), parts, 3, &is_kept);
    if (!is_kept && change->kind == RP_LOGGED_INSERT)
        for (size_t i = 0; i < change->count; i++)
            rp_trajectory_unref(change->inserted[i].trajectory); /* the table has its own */
    return lsn;
}

/* Appends a record whose raw form is its payload. */
static uint64_t append(rp_store_log *log, rp_record_kind kind, const rp_buf *payload)
{
    rp_bytes part = {payload->data, payload->size};

    if (payload->bad) return rp_journal_append_nothing(log->journal);
    return rp_journal_append(log->journal, kind, &part, 1, NULL);
}

static uint64_t on_created(rp_table_log *base, const rp_table *table)
{
    rp_store_log *log = (rp_store_log *)base;
    rp_table_state state;
    rp_buf payload;
    uint64_t lsn;

    rp_buf_init(&payload, &log->alloc);
    rp_table_get_state((rp_table *)table, &state);
    rp_image_write_table(&payload, &state);
    if (log->o.on_created != NULL) log->o.on_created(log->o.ctx, &state.options);
    lsn = append(log, RP_RECORD_CREATE, &payload);
    rp_buf_deinit(&payload);
    return lsn;
}

static uint64_t on_dropped(rp_table_log *base, const rp_table *table)
{
    rp_store_log *log = (rp_store_log *)base;
    const char *name = rp_table_name(table);
    rp_buf payload;
    uint64_t lsn;

    rp_buf_init(&payload, &log->alloc);
    rp_journal_encode_drop((rp_string){name, strlen(name)}, &payload);
    lsn = append(log, RP_RECORD_DROP, &payload);
    rp_buf_deinit(&payload);
    return lsn;
}

static bool is_behind(const rp_table_log *base, bool is_insert)
{
    rp_store_log *log = (rp_store_log *)base;

    if (!rp_journal_is_behind(log->journal, is_insert)) return false;
    atomic_store(&log->was_behind, true);
    return rp_journal_is_behind(log->journal, is_insert);
}

bool rp_store_log_is_behind(rp_store_log *log)
{
    return is_behind(&log->log, false);
}

static rp_status on_wait(rp_table_log *base, uint64_t lsn, rp_wait wait, rp_error *err)
{
    rp_journal *journal = ((rp_store_log *)base)->journal;

    if (lsn == RP_LOG_ALL) lsn = rp_journal_last(journal);
    return rp_journal_wait(journal, lsn, wait, err);
}

/* Restores a change from its raw record. Returns the name of the table. */
static rp_string read_raw(const void *raw, rp_log_record *change)
{
    const raw_change *head = raw;
    const char *array = (const char *)(head + 1);

    assert((uintptr_t)raw % 8 == 0);
    *change = head->change;
    if (change->kind == RP_LOGGED_INSERT) change->inserted = (const void *)array;
    if (change->kind == RP_LOGGED_UPDATE) change->updates = (const void *)array;
    if (change->kind == RP_LOGGED_DELETE) change->keys = (const void *)array;
    return (rp_string){array + array_of(change).size, (size_t)head->name_size};
}

static rp_status location_of(void *ctx, rp_chunk *chunk, rp_disk_location *out)
{
    rp_store_log *log = ctx;

    if (rp_segments_locate(log->o.segments, chunk, out)) return RP_OK;
    return rp_segments_put_chunk(log->o.segments, chunk, out);
}

static rp_status on_encode(void *ctx, rp_record_kind kind, const void *raw, size_t size,
                           rp_buf *out)
{
    rp_store_log *log = ctx;
    rp_log_record change;
    rp_string name;

    if (kind == RP_RECORD_CREATE || kind == RP_RECORD_DROP || rp_rollout_record_is(kind)) {
        rp_buf_append(out, raw, size);
        return out->bad ? RP_NO_RESOURCE : RP_OK;
    }
    name = read_raw(raw, &change);
    assert(sizeof(raw_change) + array_of(&change).size + name.size == size);
    return rp_journal_encode(&log->encoder, name, &change, location_of, log, out);
}

static void on_release(void *ctx, rp_record_kind kind, const void *raw, size_t size)
{
    rp_log_record change;

    (void)ctx, (void)size;
    if (kind != RP_RECORD_INSERT) return;
    (void)read_raw(raw, &change);
    for (size_t i = 0; i < change.count; i++)
        rp_trajectory_unref(change.inserted[i].trajectory);
}

/* Wakes the operations of all tables, and of rollouts, that wait for the journal. Needs no
 * memory: the log may have stopped, and then no later pass would retry. */
static void nudge(rp_store_log *log)
{
    rp_table *tables[MOST_TABLES];
    size_t count = rp_store_find_tables(log->o.store, tables, MOST_TABLES);

    assert(count <= MOST_TABLES);
    for (size_t i = 0; i < count; i++) {
        rp_table_retry_parked(tables[i]);
        rp_table_unref(tables[i]);
    }
    rp_store_wake_rollouts(log->o.store);
}

static void on_safe(void *ctx, uint64_t lsn)
{
    rp_store_log *log = ctx;

    if (log->o.on_safe != NULL) log->o.on_safe(log->o.ctx, lsn);
}

static void on_pass(void *ctx)
{
    rp_store_log *log = ctx;
    bool is_tried;

    if (rp_journal_is_behind(log->journal, false)) return;
    /* Inserts that are refused again claim space again; cancelled ones do not. While a
     * checkpoint frees a full disk no insert is retried. */
    is_tried =
        rp_journal_is_space_wanted(log->journal) && !rp_journal_is_behind(log->journal, true);
    if (!atomic_load(&log->was_behind) && !is_tried) return;
    if (is_tried) rp_journal_clear_space_wanted(log->journal);
    atomic_store(&log->was_behind, false);
    nudge(log);
    on_safe(log, rp_journal_safe(log->journal)); /* wakes those that asked is_behind() */
}

static uint64_t on_reserve(void *ctx, uint64_t *held)
{
    const rp_store_log *log = ctx;

    return log->o.reserve(log->o.ctx, held);
}

static void on_trouble(void *ctx, const rp_error *why)
{
    rp_store_log *log = ctx;

    if (log->o.on_trouble != NULL) log->o.on_trouble(log->o.ctx, why);
}

rp_status rp_store_log_start(const rp_store_log_options *options, rp_store_log **out,
                             rp_error *err)
{
    rp_store_log *log = rp_alloc_zero(options->alloc, sizeof *log);
    rp_journal_options journal = {
        .alloc = options->alloc,
        .files = options->files,
        .segments = options->segments,
        .store = options->id,
        .next_lsn = options->next_lsn,
        .sync = options->sync,
        .interval_ns = options->interval_ns,
        .retry_ns = options->retry_ns,
        .file_bytes = options->file_bytes,
        .max_queued = options->max_queued,
        .reserve = options->reserve != NULL ? on_reserve : NULL,
        .encode = on_encode,
        .release = on_release,
        .on_safe = on_safe,
        .on_trouble = on_trouble,
        .on_pass = on_pass,
        .ctx = log,
    };
    rp_status st;

    if (log == NULL) return rp_fail_memory(err, sizeof *log);
    log->alloc = *options->alloc;
    log->o = *options;
    log->log = (rp_table_log){.prepare = on_prepare,
                              .unclaim = on_unclaim,
                              .admit = on_admit,
                              .changed = on_changed,
                              .created = on_created,
                              .dropped = on_dropped,
                              .is_behind = is_behind,
                              .wait = on_wait};
    rp_journal_encoder_init(&log->encoder, &log->alloc);
    st = rp_journal_start(&journal, &log->journal, err);
    if (st != RP_OK) {
        rp_release(options->alloc, log, sizeof *log);
        return st;
    }
    log->rollouts = (rp_rollout_logging){.alloc = log->alloc,
                                         .journal = log->journal,
                                         .sync = options->sync,
                                         .was_behind = &log->was_behind,
                                         .is_used = options->uses_rollouts};
    rp_store_set_log(log->o.store, &log->log);
    rp_rollout_logging_start(&log->rollouts, log->o.store);
    *out = log;
    return RP_OK;
}

rp_status rp_store_log_stop(rp_store_log *log, rp_error *err)
{
    rp_allocator alloc;
    rp_status st;

    if (log == NULL) return RP_OK;
    rp_store_set_log(log->o.store, NULL);
    rp_rollout_logging_stop(&log->rollouts, log->o.store);
    nudge(log);
    st = rp_journal_stop(log->journal, err);
    rp_journal_encoder_deinit(&log->encoder);
    alloc = log->alloc;
    rp_release(&alloc, log, sizeof *log);
    return st;
}

rp_journal *rp_store_log_journal(rp_store_log *log)
{
    return log->journal;
}
