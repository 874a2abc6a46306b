/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the checkpoint to load, and handles the others.
 *
 * Invariants:
 *
 *   V1  no number of a checkpoint or segment is used twice: last_number and next_segment are
 *       above all numbers in the directory, quarantine included;
 *   V2  `segments` and `tier` exist exactly if a checkpoint is loaded or the directory is
 *       fresh;
 *   V3  the store is changed by at most one checkpoint. */
#include "durable/recovery/recovery.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "durable/checkpoint/retention.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

enum { MAX_REPORTS = 1000 };
#define MAX_LSN (UINT64_MAX / 2) /* leaves a margin for RP_LSN_LEAP */
/* Of a file that is there at the start. Locations have 32 bits for the number of a segment; the
 * margin is for the segments of this process, and of the next ones. */
#define MAX_SEGMENT (UINT32_MAX - (UINT64_C(1) << 24))
#define MAX_CHECKPOINT (UINT64_MAX / 2)

void rp_recovery_report(rp_recovery *r, const char *format, ...)
{
    char text[2 * RP_ERROR_TEXT_BYTES];
    va_list arguments;

    if (r->on_event == NULL || r->reported > MAX_REPORTS) return;
    if (r->reported++ == MAX_REPORTS) {
        r->on_event(r->ctx, true, "there are more reports, which are left out");
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->on_event(r->ctx, true, text);
}

/* The numbered files of the data directory, and CURRENT. */
typedef struct directory {
    rp_number_list manifests, segments, journal;
    rp_current current;
    rp_status current_status;
    rp_error why; /* the first failure */
} directory;

/* A file whose number leaves none for new files. */
static rp_status fail_number(const char *folder, uint64_t number, uint64_t most, rp_error *err)
{
    return rp_fail(err, RP_CORRUPT,
                   "%s/%016" PRIx64 ": the number of the file is over %" PRIx64
                   ", so too few are left for new files; if the server did not write it, move "
                   "it away",
                   folder, number, most);
}

static rp_status list_directory(rp_recovery *r, directory *d, rp_error *err)
{
    static const char *const folders[] = {"manifest", "seg", "wal", "quarantine"};
    uint64_t last_segment = 0;
    rp_status st = RP_OK;

    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && st == RP_OK; i++)
        st = r->files->ops->make_directory(r->files, folders[i], err);
    if (st == RP_OK) st = r->files->ops->sync_directory(r->files, "", err);
    if (st == RP_OK)
        st = rp_number_list_read(&d->manifests, r->alloc, r->files, "manifest", err);
    if (st == RP_OK) st = rp_number_list_read(&d->segments, r->alloc, r->files, "seg", err);
    if (st == RP_OK) st = rp_number_list_read(&d->journal, r->alloc, r->files, "wal", err);
    if (st != RP_OK) return st;
    if (d->manifests.count > 0) r->last_number = d->manifests.at[d->manifests.count - 1];
    if (d->segments.count > 0) last_segment = d->segments.at[d->segments.count - 1];
    r->next_segment = last_segment + 1;
    r->has_journal = d->journal.count > 0;
    if (r->has_journal) r->highest_lsn = d->journal.at[d->journal.count - 1];
    if (r->highest_lsn > MAX_LSN)
        return rp_fail(err, RP_CORRUPT,
                       "wal/%016" PRIx64 ": the number of the journal file is over %" PRIu64,
                       r->highest_lsn, MAX_LSN);
    if (last_segment > MAX_SEGMENT || r->last_number > MAX_CHECKPOINT)
        return fail_number(last_segment > MAX_SEGMENT ? "seg" : "manifest",
                           last_segment > MAX_SEGMENT ? last_segment : r->last_number,
                           last_segment > MAX_SEGMENT ? MAX_SEGMENT : MAX_CHECKPOINT, err);
    d->current_status = rp_current_load(r->files, &d->current, &d->why);
    if (d->current_status == RP_OK && d->current.checkpoint > r->last_number)
        r->last_number = d->current.checkpoint;
    if (d->current_status != RP_OK && d->current_status != RP_NOT_FOUND &&
        d->current_status != RP_CORRUPT) {
        if (err != NULL) *err = d->why;
        return d->current_status;
    }
    return RP_OK;
}

static void free_directory(directory *d)
{
    rp_number_list_free(&d->manifests);
    rp_number_list_free(&d->segments);
    rp_number_list_free(&d->journal);
}

/* Updates highest_lsn. `m` may be NULL. */
static void note_lsn(rp_recovery *r, const rp_manifest *m)
{
    if (m == NULL) return;
    if (m->store.lsn > r->highest_lsn) r->highest_lsn = m->store.lsn;
    if (m->store.rollouts.lsn > r->highest_lsn) r->highest_lsn = m->store.rollouts.lsn;
}

static rp_status load_manifest(rp_recovery *r, const directory *d, uint64_t number,
                               rp_manifest **out, rp_error *err)
{
    char path[RP_MANIFEST_PATH_BYTES];
    rp_status st = rp_manifest_load(r->alloc, r->files, rp_manifest_path(path, number), number,
                                    NULL, out, err);

    if (st != RP_OK || d->current_status != RP_OK) return st;
    if (memcmp(&(*out)->store_id, &d->current.store_id, sizeof d->current.store_id) != 0)
        st = rp_fail(err, RP_CORRUPT, "%s: it belongs to another store than " RP_CURRENT_PATH,
                     path);
    else if (number == d->current.checkpoint &&
             ((*out)->bytes != d->current.bytes ||
              memcmp((*out)->hash, d->current.hash, RP_MANIFEST_HASH_BYTES) != 0))
        st = rp_fail(err, RP_CORRUPT, "%s: it is not the one that " RP_CURRENT_PATH " names",
                     path);
    if (st != RP_OK) {
        rp_manifest_free(*out);
        *out = NULL;
    }
    return st;
}

static rp_status admit(void *ctx, rp_chunk *chunk)
{
    return rp_tier_admit(((rp_recovery *)ctx)->tier, chunk);
}

static rp_status open_segments(rp_recovery *r, const rp_store_id *id, rp_error *err)
{
    rp_segments_options options = {.alloc = r->alloc,
                                   .files = r->files,
                                   .store = *id,
                                   .segment_bytes = r->segment_bytes,
                                   .next_number = r->next_segment};

    rp_tier_options tier = {.alloc = r->alloc,
                            .store = r->store,
                            .max_memory = r->max_memory,
                            .on_event = r->on_tier_event,
                            .ctx = r->ctx};
    rp_status st;

    assert(r->segments == NULL && r->tier == NULL); /* V2 */
    r->id = *id;
    st = rp_segments_new(&options, &r->segments, err);
    if (st != RP_OK || r->max_memory == 0) return st;
    tier.segments = r->segments;
    st = rp_tier_new(&tier, &r->tier, err);
    r->chunks.on_chunk = admit;
    r->chunks.ctx = r;
    return st;
}

/* Frees the memory of a checkpoint that could not be loaded. */
static void forget(rp_recovery *r)
{
    rp_chunk_index_deinit(&r->chunks);
    rp_tier_free(r->tier);
    r->tier = NULL;
    rp_segments_free(r->segments);
    r->segments = NULL;
    r->damaged_count = 0;
    r->reported = 0;
}

/* Loads one checkpoint. Sets `*is_final` if no other one may be tried after a failure (V3). */
static rp_status load(rp_recovery *r, const directory *d, uint64_t number, bool *is_final,
                      rp_error *err)
{
    rp_manifest *m = NULL;
    rp_loading *l = NULL;
    rp_status st = load_manifest(r, d, number, &m, err);

    assert(!*is_final); /* V3 */

    if (st == RP_OK && m->store.lsn > r->wanted_lsn) r->wanted_lsn = m->store.lsn;
    if (st == RP_OK) st = open_segments(r, &m->store_id, err);
    if (st == RP_OK) st = rp_loading_new(r, m, &l, err);
    if (st == RP_OK) st = rp_loading_read(l, err);
    if (st == RP_OK) {
        *is_final = true;
        st = rp_loading_restore(l, err);
    }
    if (st == RP_OK) {
        r->checkpoint = number;
        r->lsn = m->store.lsn;
        r->rollouts_at = m->store.rollouts;
        if (rp_store_find_tables(r->store, NULL, 0) != m->table_count) r->is_same = false;
    }
    rp_loading_free(l);
    rp_manifest_free(m);
    if (st != RP_OK) forget(r);
    return st;
}

/* Tries the checkpoints: the one that CURRENT names first, then from the highest number down.
 */
static rp_status load_any(rp_recovery *r, directory *d, rp_error *err)
{
    bool has_current = d->current_status == RP_OK, is_final = false;
    uint64_t first = has_current ? d->current.checkpoint : 0;
    uint64_t tried = first;
    rp_error why = {0};
    rp_status st = RP_CORRUPT;

    if (d->current_status == RP_CORRUPT) {
        rp_recovery_report(r, "%s", d->why.text);
        r->is_whole = false;
    }
    if (has_current) st = load(r, d, first, &is_final, &why);
    for (size_t i = d->manifests.count; i-- > 0;) {
        if (st != RP_CORRUPT && st != RP_NOT_FOUND) break;
        if (is_final) break;
        if (why.code != RP_OK) {
            if (d->why.code == RP_OK) d->why = why;
            rp_recovery_report(r, "checkpoint not loaded: %s", why.text);
            r->is_whole = false;
            if (!r->is_older) r->failed_checkpoint = tried;
            r->is_older = true;
        }
        why = (rp_error){0};
        if (has_current && d->manifests.at[i] >= first) continue;
        tried = d->manifests.at[i];
        st = load(r, d, tried, &is_final, &why);
    }
    if (st == RP_OK) return RP_OK;
    if (why.code == RP_OK || (d->why.code != RP_OK && !is_final)) why = d->why;
    if (st == RP_NOT_FOUND) st = RP_CORRUPT;
    if (err != NULL) *err = why;
    if (err != NULL) err->code = st;
    return st;
}

static void quarantine(rp_recovery *r, uint64_t number)
{
    char path[RP_MANIFEST_PATH_BYTES], to[RP_MANIFEST_PATH_BYTES];

    (void)rp_manifest_path(path, number);
    (void)rp_manifest_quarantined(to, number);
    if (r->files->ops->rename(r->files, path, to, NULL) == RP_OK)
        rp_recovery_report(r, "%s is damaged: moved to %s", path, to);
    RP_KILL_POINT("recovery.quarantine");
}

/* Keeps the segments of a quarantined checkpoint, so that it can be salvaged. */
static rp_status hold(rp_recovery *r, const rp_manifest *m, rp_error *err)
{
    if (rp_catalogue_hold(&r->catalogue, m->segments, m->segment_count) == RP_OK) return RP_OK;
    return rp_fail_memory(err, m->segment_count * sizeof *m->segments);
}

static rp_status hold_quarantined(rp_recovery *r, rp_error *err)
{
    rp_number_list n;
    rp_status st = rp_number_list_read(&n, r->alloc, r->files, "quarantine", err);

    for (size_t i = 0; i < n.count && st == RP_OK; i++) {
        char path[RP_MANIFEST_PATH_BYTES];
        rp_manifest *m = NULL;

        (void)rp_manifest_quarantined(path, n.at[i]);
        if (n.at[i] > r->last_number) r->last_number = n.at[i]; /* V1 */
        /* A manifest that cannot be read cannot be salvaged either. */
        if (rp_manifest_load(r->alloc, r->files, path, n.at[i], &r->id, &m, NULL) == RP_OK)
            st = hold(r, m, err);
        note_lsn(r, m);
        rp_manifest_free(m);
    }
    rp_number_list_free(&n);
    return st;
}

/* Adds the other checkpoints to the catalogue. Those that cannot be read, or could not be
 * loaded, go to quarantine. Checkpoints newer than the one that CURRENT names were never live,
 * and the journal may differ from them: they are removed, durably, before anything new is
 * written. */
static rp_status enter_checkpoints(rp_recovery *r, const directory *d, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; i < d->manifests.count && st == RP_OK; i++) {
        uint64_t number = d->manifests.at[i];
        char path[RP_MANIFEST_PATH_BYTES];
        rp_manifest *m = NULL;
        rp_error why = {0};
        bool was_live = d->current_status != RP_OK || number <= d->current.checkpoint;
        bool was_tried = number > r->checkpoint && was_live;

        st = rp_manifest_load(r->alloc, r->files, rp_manifest_path(path, number), number,
                              &r->id, &m, &why);
        note_lsn(r, m);
        if (st == RP_OK && !was_live) {
            st = r->files->ops->remove(r->files, path, err);
            if (st == RP_OK) st = r->files->ops->sync_directory(r->files, "manifest", err);
        } else if (st == RP_OK && !was_tried) {
            st = rp_catalogue_add_checkpoint(&r->catalogue, number, m->store.lsn, m->segments,
                                             m->segment_count);
            if (st != RP_OK) st = rp_fail_memory(err, m->segment_count);
        } else if (st == RP_OK || st == RP_CORRUPT || st == RP_PRECONDITION) {
            quarantine(r, number);
            st = RP_OK;
            if (m != NULL) st = hold(r, m, err);
        } else if (err != NULL) {
            *err = why;
        }
        rp_manifest_free(m);
    }
    return st;
}

/* Adds the segments of this store to the catalogue. */
static rp_status enter_segments(rp_recovery *r, const directory *d, rp_error *err)
{
    for (size_t i = 0; i < d->segments.count; i++) {
        uint64_t bytes;
        rp_status st = rp_segments_open(r->segments, d->segments.at[i], &bytes, err);

        if (st == RP_OK && rp_catalogue_add_segment(&r->catalogue, d->segments.at[i]) != RP_OK)
            return rp_fail_memory(err, sizeof bytes);
        /* A segment that cannot be read is never removed. */
        if (st != RP_OK && st != RP_CORRUPT && st != RP_NOT_FOUND && st != RP_PRECONDITION)
            return st;
    }
    return RP_OK;
}

static void sweep_manifest(void *ctx, const char *name)
{
    rp_recovery *r = ctx;
    char path[64], digits[17] = {0};
    uint64_t number;

    if (strlen(name) != 20 || strcmp(name + 16, ".tmp") != 0) return;
    memcpy(digits, name, 16);
    if (!rp_name_parse(digits, &number)) return;
    (void)snprintf(path, sizeof path, "manifest/%s", name);
    (void)r->files->ops->remove(r->files, path, NULL);
}

static void sweep(rp_recovery *r)
{
    (void)r->files->ops->remove(r->files, RP_CURRENT_TEMPORARY, NULL);
    (void)r->files->ops->remove(r->files, RP_JOURNAL_TEMPORARY, NULL);
    (void)r->files->ops->list(r->files, "manifest", sweep_manifest, r, NULL);
}

static rp_status size_of_segment(rp_recovery *r, uint64_t number, uint64_t *out, rp_error *err)
{
    char path[RP_SEGMENT_PATH_BYTES];
    rp_file *file = NULL;
    rp_status st =
        r->files->ops->open(r->files, rp_segment_path(path, number), RP_OPEN_READ, &file, err);

    if (st != RP_OK) return st;
    assert(file != NULL);
    st = r->files->ops->size(file, out, err);
    r->files->ops->close(file);
    return st;
}

/* A directory without manifests is new, unless CURRENT, a journal or a segment with records
 * shows that it had some. */
static rp_status start_fresh(rp_recovery *r, const directory *d, rp_error *err)
{
    rp_store_id id;

    if (d->current_status != RP_NOT_FOUND || d->journal.count > 0)
        return rp_fail(err, RP_CORRUPT, "%s is there, but no manifest of a checkpoint",
                       d->journal.count > 0 ? "a journal" : RP_CURRENT_PATH);
    for (size_t i = 0; i < d->segments.count; i++) {
        uint64_t bytes = 0;
        rp_status st = size_of_segment(r, d->segments.at[i], &bytes, err);

        if (st != RP_OK) return st;
        if (bytes > RP_FILE_HEADER_BYTES)
            return rp_fail(err, RP_CORRUPT,
                           "segment %" PRIu64 " is there, but no manifest of a checkpoint",
                           d->segments.at[i]);
    }
    for (size_t i = 0; i < sizeof id.bytes; i += sizeof(uint64_t)) {
        uint64_t random = rp_system_seed();
        memcpy(id.bytes + i, &random, sizeof random);
    }
    r->is_fresh = true;
    return open_segments(r, &id, err);
}

rp_status rp_recover(rp_recovery *r, rp_error *err)
{
    directory d = {0};
    rp_status st;

    assert(r->store != NULL && r->files != NULL && r->meter != NULL);
    rp_chunk_index_init(&r->chunks, r->alloc);
    rp_catalogue_init(&r->catalogue, r->alloc);
    r->is_whole = r->is_same = true;
    st = list_directory(r, &d, err);
    RP_KILL_POINT("recovery.begin");
    if (st == RP_OK && d.manifests.count == 0) {
        st = start_fresh(r, &d, err);
    } else if (st == RP_OK) {
        st = load_any(r, &d, err);
    }
    RP_KILL_POINT("recovery.loaded");
    free_directory(&d);
    assert((st == RP_OK) == (r->segments != NULL) || r->is_fresh); /* V2 */
    return st;
}

rp_status rp_recovery_settle(rp_recovery *r, rp_error *err)
{
    directory d = {0};
    rp_status st = list_directory(r, &d, err);

    if (st == RP_OK && !r->is_fresh) {
        st = hold_quarantined(r, err);
        if (st == RP_OK) st = enter_checkpoints(r, &d, err);
        if (st == RP_OK) st = enter_segments(r, &d, err);
    }
    if (st == RP_OK) sweep(r);
    if (st == RP_OK) (void)rp_retention_drop_rollouts(&r->catalogue, r->files, &r->id);
    RP_KILL_POINT("recovery.swept");
    free_directory(&d);
    return st;
}

void rp_recovery_deinit(rp_recovery *r)
{
    rp_chunk_index_deinit(&r->chunks);
    rp_catalogue_deinit(&r->catalogue);
    rp_release(r->alloc, r->damaged, r->damaged_capacity * sizeof *r->damaged);
    rp_rollouts_found_free(&r->rollouts);
    rp_tier_free(r->tier);
    r->tier = NULL;
    rp_segments_free(r->segments);
    r->segments = NULL;
}
