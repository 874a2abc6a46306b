/* SPDX-License-Identifier: Apache-2.0 */
/* Open, close and info of a durable store. The invariants are in durable/durable_inside.h. */
#include "reprise/durable.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "disk/files_salvage.h"
#include "durable/checkpoint/retention.h"
#include "durable/durable_inside.h"
#include "durable/recovery/configured.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

enum {
    DEFAULT_KEEP = 3,
    MAX_KEEP = 1000,
    SEGMENTS_A_DISK = 64, /* at least this many segments fit on the file system */
    MIN_SEGMENT_BYTES = 1 << 20,
    RESERVE_BYTES = 4 << 20,
};
#define STALL_NS (INT64_C(10) * 1000 * 1000 * 1000) /* of a disk that does not respond */
#define SPACE_AGE_NS (INT64_C(1000) * 1000 * 1000)
#define DEFAULT_INTERVAL_NS (INT64_C(100) * 1000 * 1000)
#define DEFAULT_PERIOD_NS (INT64_C(300) * 1000 * 1000 * 1000)
#define DEFAULT_SEGMENT_BYTES (UINT64_C(256) << 20)
#define MAX_SEGMENT_BYTES (UINT64_C(2) << 30)

static rp_status set_options(rp_durable *d, const rp_durable_options *options, rp_error *err)
{
    rp_durable_options o = *options;

    if (o.directory == NULL || strlen(o.directory) >= sizeof d->directory)
        return rp_fail(err, RP_INVALID,
                       "durable: the path of the directory must have 1 to %zu bytes",
                       sizeof d->directory - 1);
    if (o.mode != RP_DURABLE_CHECKPOINT && o.mode != RP_DURABLE_INTERVAL &&
        o.mode != RP_DURABLE_SYNC)
        return rp_fail(err, RP_INVALID, "durable: there is no mode %d", (int)o.mode);
    if (o.interval_ns < 0 || o.period_ns < 0)
        return rp_fail(err, RP_INVALID, "durable: interval and period must be >= 0");
    if (o.keep < 0 || o.keep > MAX_KEEP)
        return rp_fail(err, RP_INVALID, "durable: keep must be in 1 .. %d, got %d", MAX_KEEP,
                       (int)o.keep);
    if (o.segment_bytes > MAX_SEGMENT_BYTES)
        return rp_fail(err, RP_INVALID,
                       "durable: segments of %" PRIu64 " bytes are over %" PRIu64,
                       o.segment_bytes, MAX_SEGMENT_BYTES);
    if (o.interval_ns == 0) o.interval_ns = DEFAULT_INTERVAL_NS;
    if (o.period_ns == 0) o.period_ns = DEFAULT_PERIOD_NS;
    if (o.keep == 0) o.keep = DEFAULT_KEEP;
    if (o.segment_bytes == 0) o.segment_bytes = DEFAULT_SEGMENT_BYTES;
    memcpy(d->directory, o.directory, strlen(o.directory) + 1);
    memcpy(d->given, o.directory, strlen(o.directory) + 1);
    d->options = o;
    d->options.directory = d->directory;
    return RP_OK;
}

void rp_durable_trouble(rp_durable *d, rp_trouble what, const char *text)
{
    static const char *const well[RP_TROUBLES] = {
        [RP_TROUBLE_CHECKPOINT] = "checkpoints are written again",
        [RP_TROUBLE_JOURNAL] = "the journal is written again",
        [RP_TROUBLE_TIER] = "the disk tier is well again",
        [RP_TROUBLE_RESERVE] = "the reserve for checkpoints is large enough again",
    };
    bool was_in_trouble;

    assert(what < RP_TROUBLES);
    rp_mutex_lock(&d->mu);
    was_in_trouble = d->troubles[what][0] != '\0';
    (void)snprintf(d->troubles[what], sizeof d->troubles[what], "%s", text != NULL ? text : "");
    rp_mutex_unlock(&d->mu);
    if (d->options.on_event == NULL || (text == NULL && !was_in_trouble)) return;
    d->options.on_event(d->options.ctx, text != NULL, text != NULL ? text : well[what]);
}

/* Also requests a checkpoint, which frees dead data if the disk is full. */
static void on_tier_event(void *ctx, bool degraded, const char *text)
{
    rp_durable *d = ctx;

    rp_durable_trouble(d, RP_TROUBLE_TIER, degraded ? text : NULL);
    rp_mutex_lock(&d->mu);
    if (degraded && d->backoff_ns == 0) d->is_wanted = true;
    rp_cond_signal(&d->wake);
    rp_mutex_unlock(&d->mu);
}

/* Passes on reports of recovery. They are not recorded as troubles: report_fallback() records
 * the one that matters after the start. */
static void on_recovery_event(void *ctx, bool degraded, const char *text)
{
    const rp_durable *d = ctx;

    if (d->options.on_event != NULL) d->options.on_event(d->options.ctx, degraded, text);
}

/* Applies the configuration, and reports each table whose saved max_size was replaced by a
 * larger one. */
static rp_status apply_configured(rp_durable *d, rp_configured *configured, bool *changed,
                                  rp_error *err)
{
    rp_status st = rp_configured_apply(configured, d->store, changed, err);
    char text[RP_ERROR_TEXT_BYTES];

    for (size_t i = 0; i < configured->count && st == RP_OK; i++) {
        const rp_configured_table *c = &configured->tables[i];

        if (c->raised_from == 0) continue;
        (void)snprintf(text, sizeof text,
                       "table '%.64s': the configured max_size %lld is used, not the saved "
                       "one, %lld, which is smaller",
                       c->table->options.name, (long long)c->max_size,
                       (long long)c->raised_from);
        on_recovery_event(d, false, text);
    }
    return st;
}

static void on_progress(void *ctx, const rp_durable_progress *progress)
{
    rp_durable *d = ctx;

    rp_mutex_lock(&d->mu);
    d->info.progress = *progress;
    rp_mutex_unlock(&d->mu);
    if (d->options.on_progress != NULL && progress->what != NULL)
        d->options.on_progress(d->options.ctx, progress);
}

/* A disk that does not respond reports no error: the journal's thread waits for it. */
static void report_stall(rp_journal *journal, int64_t now_ns, rp_durable_info *out)
{
    int64_t stalled_ns = rp_journal_stalled_ns(journal, now_ns);

    if (stalled_ns < STALL_NS || out->degraded) return;
    out->degraded = true;
    (void)snprintf(out->trouble, sizeof out->trouble,
                   "the disk has not completed a write or sync for %lld s; %llu bytes wait for "
                   "the journal, and from %llu bytes on changes wait",
                   (long long)(stalled_ns / 1000000000), (unsigned long long)out->backlog_bytes,
                   (unsigned long long)out->max_backlog_bytes);
}

void rp_durable_get_info(rp_durable *d, rp_durable_info *out)
{
    int64_t now_ns = rp_now_ns();

    rp_mutex_lock(&d->mu);
    *out = d->info;
    out->mode = d->options.mode;
    for (size_t i = 0; i < RP_TROUBLES; i++) {
        if (d->troubles[i][0] == '\0' || out->degraded) continue;
        out->degraded = true;
        memcpy(out->trouble, d->troubles[i], sizeof out->trouble);
    }
    out->last_checkpoint_age_ns = d->last_ended_ns > 0 ? now_ns - d->last_ended_ns : -1;
    rp_mutex_unlock(&d->mu);
    if (d->journal != NULL) {
        out->lsn = rp_journal_last(d->journal);
        out->safe_lsn = rp_journal_safe(d->journal);
        out->backlog_bytes = rp_journal_backlog(d->journal, &out->max_backlog_bytes);
        report_stall(d->journal, now_ns, out);
    }
    if (d->tier != NULL) {
        rp_tier_info tier;

        rp_tier_get_info(d->tier, &tier);
        out->resident_bytes = tier.resident_bytes;
        out->spilled_bytes = tier.spilled_bytes;
        out->loads = tier.loads;
        out->load_bytes = tier.load_bytes;
        out->load_hits = tier.cache_hits;
    }
}

void rp_durable_space(rp_durable *d, uint64_t *total, uint64_t *available)
{
    rp_mutex_lock(&d->mu);
    if (d->space_ns > 0) {
        *total = d->space_total;
        *available = d->space_free;
    }
    if (!d->is_space_wanted && rp_now_ns() - d->space_ns >= SPACE_AGE_NS) {
        d->is_space_wanted = true;
        rp_cond_signal(&d->wake);
    }
    rp_mutex_unlock(&d->mu);
}

static rp_status copy_state(void *ctx, rp_table *const *tables, size_t count,
                            const rp_store_state *state, rp_error *err)
{
    (void)tables;
    (void)count;
    (void)err;
    *(rp_store_state *)ctx = *state;
    return RP_OK;
}

/* Changes the state of the key generator. The checkpoint does not have the keys that were given
 * out after it; a generator that repeated them would give new items the keys of redone ones. */
static void jump_keys(rp_durable *d, uint64_t lsn)
{
    rp_store_state state = {0};

    if (rp_store_freeze(d->store, copy_state, &state, NULL) != RP_OK) return;
    for (int i = 0; i < 4; i++) {
        uint64_t mixed = state.keys.s[i] ^ (lsn + (uint64_t)i);
        state.keys.s[i] = rp_splitmix64(&mixed);
    }
    rp_store_restore(d->store, &state);
}

/* Sets the disk usage in `info` from the newest checkpoint, until the next one is written. */
static void note_storage(rp_durable *d)
{
    const rp_catalogue *k = &d->checkpointer.catalogue;
    const rp_kept_checkpoint *newest;

    if (k->checkpoint_count == 0) return;
    newest = &k->checkpoints[k->checkpoint_count - 1];
    d->info.segments = newest->segment_count;
    for (size_t i = 0; i < newest->segment_count; i++) {
        uint64_t bytes = 0;

        if (rp_segments_open(d->segments, newest->segments[i].number, &bytes, NULL) == RP_OK)
            d->info.disk_bytes += bytes;
        d->info.live_bytes += newest->segments[i].live;
    }
}

/* Counts the items of all tables. RP_NO_RESOURCE. */
static rp_status count_items(rp_durable *d, uint64_t *items)
{
    size_t count = rp_store_find_tables(d->store, NULL, 0), found;
    rp_table **tables = rp_alloc_array(&d->alloc, count + 1, sizeof(rp_table *));

    if (tables == NULL) return RP_NO_RESOURCE;
    *items = 0;
    found = rp_store_find_tables(d->store, tables, count);
    for (size_t i = 0; i < found && i < count; i++) {
        rp_table_info info;

        rp_table_get_info(tables[i], &info);
        *items += (uint64_t)info.size;
        rp_table_unref(tables[i]);
    }
    rp_release(&d->alloc, tables, (count + 1) * sizeof(rp_table *));
    return RP_OK;
}

static bool has_rollouts(rp_store *store)
{
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    size_t count = rp_rollout_set_list(rp_store_rollouts(store), all);

    for (size_t i = 0; i < count; i++) rp_rollouts_unref(all[i]);
    return count > 0;
}

/* The bound of all rollouts. With a disk tier, max_bytes also counts what is on disk, and
 * rollouts are in memory. */
static uint64_t most_rollout_bytes(rp_durable *d)
{
    uint64_t most = d->options.max_memory;
    rp_store_info info;

    rp_store_get_info(d->store, &info);
    return most > 0 && (info.max_bytes == 0 || most < info.max_bytes)
               ? rp_rollout_set_default_bytes(most)
               : rp_rollout_set_most_bytes(rp_store_rollouts(d->store));
}

/* Loads a checkpoint, redoes the journal and applies the configured tables. `*before`: the LSN
 * of the checkpoint. `*changed`: a configured table is not as it was saved. */
static rp_status load(rp_durable *d, rp_recovery *r, uint64_t *before, bool *changed,
                      rp_error *err)
{
    rp_rollout_set *set = rp_store_rollouts(d->store);
    uint64_t most_bytes = most_rollout_bytes(d);
    rp_configured configured;
    rp_status st = rp_configured_read(&configured, &d->alloc, d->store, err);

    /* What was allowed when it was logged is allowed again. */
    rp_rollout_set_set_most_bytes(set, UINT64_MAX);
    if (st == RP_OK) st = rp_recover(r, err);
    *before = r->lsn;
    if (st == RP_OK && r->has_journal) st = rp_durable_redo(d, r, err);
    rp_rollout_set_set_most_bytes(set, most_bytes);
    if (st == RP_OK && !d->options.accept_changes)
        st = rp_configured_compare(&configured, d->store, err);
    if (st == RP_OK) st = rp_recovery_settle(r, err);
    if (st == RP_OK) st = apply_configured(d, &configured, changed, err);
    rp_configured_free(&configured);
    if (st == RP_OK && count_items(d, &d->info.recovered_items) != RP_OK)
        st = rp_fail(err, RP_NO_RESOURCE, "no memory to count the items");
    return st;
}

/* If recovery has loaded an older checkpoint than the newest, records this as a trouble, which
 * lasts until the directory is opened again: else only a log would show that data is missing.
 */
static void report_fallback(rp_durable *d, const rp_recovery *r)
{
    const char *lost = "all changes since then are lost";
    char text[RP_ERROR_TEXT_BYTES];

    if (!r->is_older) return;
    if (r->salvage)
        lost = "changes since then can be missing";
    else if (r->has_journal)
        lost = "the changes that the journal has since then were applied";
    (void)snprintf(text, sizeof text,
                   "checkpoint %" PRIu64 " could not be loaded, checkpoint %" PRIu64
                   " was loaded: %" PRIu64 " items; %s; damaged files are in the folder "
                   "quarantine; this report ends at the next start",
                   r->failed_checkpoint, r->checkpoint, d->info.recovered_items, lost);
    rp_durable_trouble(d, RP_TROUBLE_FALLBACK, text);
}

/* Loads the directory and sets up the checkpointer. `*found_journal`: journal files existed. */
static rp_status recover(rp_durable *d, bool *needs_checkpoint, bool *found_journal,
                         rp_error *err)
{
    rp_recovery r = {.alloc = &d->alloc,
                     .files = d->files,
                     .store = d->store,
                     .segment_bytes = d->options.segment_bytes,
                     .max_memory = d->options.max_memory,
                     .salvage = d->options.salvage,
                     .meter = &d->meter,
                     .on_event = on_recovery_event,
                     .on_tier_event = on_tier_event,
                     .ctx = d};
    rp_checkpointer *c = &d->checkpointer;
    uint64_t before = 0;
    bool changed = false;
    bool has_own = has_rollouts(d->store);
    rp_status st = load(d, &r, &before, &changed, err);

    if (st != RP_OK) {
        rp_recovery_deinit(&r);
        return st;
    }
    assert(r.lsn >= before && r.segments != NULL);
    if (r.lsn > before) jump_keys(d, r.lsn);
    d->info.last_checkpoint = r.checkpoint;
    /* The next LSN must be above those in the images, and the journal may end before. */
    *needs_checkpoint = r.is_fresh || !r.is_whole || !r.is_same || changed || has_own ||
                        r.lsn < r.rollouts_at.lsn ||
                        (r.has_journal && d->options.mode == RP_DURABLE_CHECKPOINT);
    *found_journal = r.has_journal;
    d->segments = r.segments;
    d->tier = r.tier;
    *c = (rp_checkpointer){.alloc = &d->alloc,
                           .files = d->files,
                           .segments = r.segments,
                           .store = d->store,
                           .id = r.id,
                           .keep = (size_t)d->options.keep,
                           .last_number = r.last_number,
                           .lsn = r.lsn,
                           .next_segment = r.next_segment,
                           .segment_bytes = d->options.segment_bytes,
                           .can_revoke = r.tier == NULL,
                           .has_journal = d->options.mode != RP_DURABLE_CHECKPOINT,
                           .has_old_journal =
                               r.has_journal && d->options.mode == RP_DURABLE_CHECKPOINT,
                           .catalogue = r.catalogue,
                           .damaged = r.damaged,
                           .damaged_count = r.damaged_count,
                           .damaged_capacity = r.damaged_capacity,
                           .meter = &d->meter};
    atomic_store(&c->uses_rollouts, has_rollouts(d->store));
    /* Unless the journal continues, the next LSN is above all LSNs in the directory. */
    if ((*needs_checkpoint || !c->has_journal) && r.highest_lsn > c->lsn)
        c->lsn = r.highest_lsn;
    if (r.is_whole && d->tuning.reserve_bytes > 0) rp_retention_drop_blocks(c);
    r.segments = NULL;
    r.tier = NULL;
    r.damaged = NULL;
    r.damaged_capacity = 0;
    rp_catalogue_init(&r.catalogue, &d->alloc);
    rp_recovery_deinit(&r);
    note_storage(d);
    rp_durable_load_runs(d);
    report_fallback(d, &r);
    return RP_OK;
}

static void free_durable(rp_durable *d)
{
    rp_allocator alloc = d->alloc;

    assert(!d->has_thread && d->journal == NULL && d->log == NULL); /* D3 */
    assert(d->waiting == NULL);                                     /* D1 */
    rp_catalogue_deinit(&d->checkpointer.catalogue);
    rp_release(&d->alloc, d->checkpointer.damaged,
               d->checkpointer.damaged_capacity * sizeof *d->checkpointer.damaged);
    rp_tier_free(d->tier);
    rp_segments_free(d->segments);
    if (d->has_store) rp_store_leave_durable(d->store);
    if (d->owns_files && d->files != NULL) d->files->ops->free(d->files);
    rp_cond_deinit(&d->wake);
    rp_mutex_deinit(&d->mu);
    rp_mutex_deinit(&d->listeners_mu);
    rp_release(&alloc, d, sizeof *d);
}

/* Syncs the segments that an earlier process may have left unsynced. If the journal continues,
 * rp_journal_start() does this; a checkpoint that replaces a journal needs it as well. */
static rp_status sync_segments(rp_durable *d, rp_error *err)
{
    const rp_catalogue *k = &d->checkpointer.catalogue;
    rp_status st = RP_OK;

    for (size_t i = 0; i < k->segment_count && st == RP_OK; i++) {
        st = rp_segments_sync_opened(d->segments, k->segments[i].number, err);
        if (st == RP_NOT_FOUND) st = RP_OK; /* then recovery has read nothing of it */
    }
    return st == RP_OK ? d->files->ops->sync_directory(d->files, "seg", err) : st;
}

/* Locks the directory. RP_PRECONDITION: names the directory, the process that has it, and what
 * to do. */
static rp_status lock(rp_durable *d, rp_error *err)
{
    static const char file[] = "LOCK: ";
    rp_error why = {RP_OK, ""};
    rp_status st = d->files->ops->lock(d->files, "LOCK", &why);
    const char *text = why.text, *advice = ": end that process";

    if (strncmp(text, file, sizeof file - 1) == 0) text += sizeof file - 1;
    if (strstr(text, "that is this process") != NULL) advice = "; close its storage first";
    if (st == RP_PRECONDITION)
        return rp_fail(err, st, "%.90s: %.100s%s, or use another directory", d->given, text,
                       advice);
    if (st != RP_OK && err != NULL) *err = why;
    return st;
}

/* Recovers, then starts the journal and the threads. A journal continues a checkpoint, so a
 * checkpoint of all tables must exist before the journal begins. No checkpoint has the changes
 * made by opening. */
static rp_status start(rp_durable *d, rp_error *err)
{
    bool needs_checkpoint = false, found_journal = false;
    rp_status st = lock(d, err);

    if (st == RP_OK) st = recover(d, &needs_checkpoint, &found_journal, err);
    if (st == RP_OK && found_journal && needs_checkpoint) st = sync_segments(d, err);
    d->reserve.files = d->files;
    if (st == RP_OK) rp_reserve_find(&d->reserve);
    if (st == RP_OK) (void)rp_durable_keep_reserve(d);
    if (st == RP_OK) (void)rp_reserve_keep_files(&d->reserve, RP_RESERVE_FILES);
    if (st == RP_OK && needs_checkpoint) {
        st = rp_durable_write_checkpoint(d, err);
        if (st == RP_OK) rp_durable_save_runs(d);
    }
    if (st == RP_OK && d->options.mode != RP_DURABLE_CHECKPOINT)
        st = rp_durable_start_journal(d, err);
    else if (st == RP_OK)
        rp_store_set_log(d->store, NULL); /* slot numbers need not be reproducible */
    if (st == RP_OK && !rp_durable_check_reserve(d)) {
        rp_mutex_lock(&d->mu);
        d->is_wanted = true; /* a checkpoint may free space for the reserve */
        rp_mutex_unlock(&d->mu);
    }
    return st == RP_OK ? rp_durable_start_thread(d, err) : st;
}

static rp_status new_durable(const rp_durable_options *options, rp_store *store,
                             rp_durable **out, rp_error *err)
{
    const rp_allocator *alloc = rp_store_allocator(store);
    rp_durable *d = rp_alloc_zero(alloc, sizeof *d);
    rp_status st;

    if (d == NULL) return rp_fail_memory(err, sizeof *d);
    d->alloc = *alloc;
    d->store = store;
    d->meter.on_progress = on_progress;
    d->meter.ctx = d;
    rp_catalogue_init(&d->checkpointer.catalogue, &d->alloc);
    rp_mutex_init(&d->mu, RP_RANK_DURABLE);
    rp_cond_init(&d->wake);
    rp_mutex_init(&d->listeners_mu, RP_RANK_LISTENERS);
    st = set_options(d, options, err);
    if (st == RP_OK) st = rp_store_enter_durable(store, d->given, err);
    d->has_store = st == RP_OK;
    if (st != RP_OK) {
        free_durable(d);
        return st;
    }
    *out = d;
    return RP_OK;
}

/* Stops everything that start() has started, and frees `d`. */
static rp_status stop(rp_durable *d, rp_error *err)
{
    rp_status st;

    rp_durable_stop_thread(d);
    st = rp_durable_stop_journal(d, err);
    free_durable(d);
    return st;
}

rp_status rp_durable_load_on(rp_files *files, const rp_durable_options *options,
                             rp_store *store, rp_durable_info *out, rp_error *err)
{
    bool needs_checkpoint, found_journal;
    rp_durable *d = NULL;
    rp_status st = new_durable(options, store, &d, err);

    if (st != RP_OK || d == NULL) return st;
    d->files = files;
    st = recover(d, &needs_checkpoint, &found_journal, err);
    *out = d->info;
    free_durable(d);
    return st;
}

rp_status rp_durable_open_on(rp_files *files, const rp_durable_options *options,
                             rp_store *store, rp_durable **out, rp_error *err)
{
    rp_durable_tuning tuning = {0};

    return rp_durable_open_tuned(files, options, &tuning, store, out, err);
}

rp_status rp_durable_open_tuned(rp_files *files, const rp_durable_options *options,
                                const rp_durable_tuning *tuning, rp_store *store,
                                rp_durable **out, rp_error *err)
{
    rp_durable *d = NULL;
    rp_status st = new_durable(options, store, &d, err);

    if (st != RP_OK || d == NULL) return st;
    d->files = files;
    d->tuning = *tuning;
    st = start(d, err);
    if (st != RP_OK) {
        (void)stop(d, NULL);
        return st;
    }
    *out = d;
    return RP_OK;
}

/* Limits the segment size on a small disk, since only whole segments are removed, and sets the
 * size of the reserve. */
static void fit_to_disk(rp_durable *d)
{
    uint64_t total, available, most;

    d->tuning.reserve_bytes = RESERVE_BYTES;
    if (d->files->ops->space(d->files, &total, &available, NULL) != RP_OK) return;
    most = total / SEGMENTS_A_DISK;
    if (most < MIN_SEGMENT_BYTES) most = MIN_SEGMENT_BYTES;
    if (d->options.segment_bytes > most) d->options.segment_bytes = most;
}

/* Puts the directory before the text of an error, which names a file or a record in it. */
static void name_directory(const char *directory, rp_error *err)
{
    rp_error why;

    if (err == NULL) return;
    why = *err;
    (void)rp_fail(err, why.code, "%s: %s", directory, why.text);
    if (strstr(err->text, why.text) == NULL) *err = why; /* there is no room for both */
}

rp_status rp_durable_open(const rp_durable_options *options, rp_store *store, rp_durable **out,
                          rp_error *err)
{
    char absolute[PATH_MAX];
    rp_durable *d = NULL;
    rp_status st;

    if (options == NULL || store == NULL)
        return rp_fail(err, RP_INVALID, "durable: no %s", store == NULL ? "store" : "options");
    st = new_durable(options, store, &d, err);
    if (st != RP_OK || d == NULL) return st;
    st = rp_files_open_directory(&d->alloc, d->directory, &d->files, err);
    d->owns_files = st == RP_OK;
    if (st == RP_OK && options->salvage)
        st = rp_files_salvage(&d->alloc, d->files, &d->files, err);
    if (st == RP_OK) fit_to_disk(d);
    if (st == RP_OK && realpath(d->directory, absolute) != NULL &&
        strlen(absolute) < sizeof d->directory)
        memcpy(d->directory, absolute, strlen(absolute) + 1);
    if (st == RP_OK) st = start(d, err);
    if (st == RP_CORRUPT) name_directory(d->directory, err);
    if (st != RP_OK) {
        (void)stop(d, NULL);
        return st;
    }
    *out = d;
    return RP_OK;
}

rp_status rp_durable_close(rp_durable *d, rp_error *err)
{
    rp_status st = RP_OK, end;

    if (d == NULL) return RP_OK;
    if (d->options.checkpoint_at_end)
        st = rp_durable_checkpoint(d, rp_wait_forever(), NULL, 0, err);
    RP_KILL_POINT("durable.close");
    end = stop(d, st == RP_OK ? err : NULL);
    return st != RP_OK ? st : end;
}
