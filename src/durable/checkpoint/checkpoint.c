/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the steps, step 1 (the cut) and step 4 (CURRENT). Step 5 is in retention.c. */
#include "durable/checkpoint/checkpoint.h"

#include <assert.h>

#include "durable/checkpoint/checkpoint_inside.h"
#include "durable/checkpoint/retention.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

enum { MAX_TRIES = 8 };

static void release_tables(rp_checkpoint_run *r)
{
    for (size_t i = 0; i < r->table_count; i++) rp_table_unref(r->tables[i]);
    rp_release(r->c->alloc, r->tables, r->table_count * sizeof(rp_table *));
    r->tables = NULL;
    r->table_count = 0;
}

static rp_status find_tables(rp_checkpoint_run *r, rp_error *err)
{
    for (;;) {
        size_t count = rp_store_find_tables(r->c->store, NULL, 0), found;

        r->table_count = 0;
        if (count == 0) return RP_OK;
        r->tables = rp_alloc_array(r->c->alloc, count, sizeof(rp_table *));
        if (r->tables == NULL) return rp_fail_memory(err, count * sizeof(rp_table *));
        found = rp_store_find_tables(r->c->store, r->tables, count);
        r->table_count = count;
        if (found == count) return RP_OK;
        /* A table was created or dropped meanwhile: releases the references and retries. */
        for (size_t i = found; i < count; i++) r->tables[i] = NULL;
        release_tables(r);
    }
}

static void note_lsn(void *ctx)
{
    rp_checkpoint_run *r = ctx;

    if (r->is_trial) return;
    /* Without a journal the LSN leaps. So the records of a journal that begins after this
     * checkpoint cannot follow an older checkpoint, and the torn tail of an old journal cannot
     * follow this one. */
    if (r->c->journal == NULL && r->c->catalogue.checkpoint_count > 0) r->c->lsn += RP_LSN_LEAP;
    r->lsn = r->c->journal != NULL ? rp_journal_cut(r->c->journal) : r->c->lsn;
}

static rp_status take_frozen(void *ctx, rp_table *const *tables, size_t count,
                             const rp_store_state *state, rp_error *err)
{
    rp_checkpoint_run *r = ctx;
    bool same = count == r->table_count;

    for (size_t i = 0; same && i < count; i++) same = tables[i] == r->tables[i];
    if (!same)
        return rp_fail(err, RP_EXISTS,
                       "checkpoint: tables are created or dropped all the time");
    r->store = *state;
    if (count > 0) return rp_cut_take(r->cut, note_lsn, r, &r->result.pause_ns, err);
    note_lsn(r);
    return RP_OK;
}

static rp_status take_cut(rp_checkpoint_run *r, rp_error *err)
{
    rp_status st = RP_OK;

    for (int i = 0; i < MAX_TRIES; i++) {
        st = find_tables(r, err);
        if (st == RP_OK && r->table_count > 0)
            st = rp_cut_new(r->c->alloc, r->tables, r->table_count, &r->cut, err);
        if (st != RP_OK) return st;
        st = rp_store_freeze(r->c->store, take_frozen, r, err);
        if (st == RP_OK) return RP_OK;
        rp_cut_free(r->cut, false);
        r->cut = NULL;
        release_tables(r);
    }
    if (st == RP_EXISTS) st = RP_UNAVAILABLE;
    if (err != NULL) err->code = st;
    return st;
}

/* Makes this checkpoint the last one in the catalogue. Takes over the shares of blocks that
 * have not changed, and frees the others (P3). */
static void keep_tables(rp_checkpoint_run *r)
{
    rp_catalogue *k = &r->c->catalogue;

    for (size_t t = 0; t < r->kept.count; t++) {
        rp_kept_table *now = &r->kept.tables[t];
        const rp_kept_table *before = rp_kept_tables_find(&k->last, now->table);

        for (size_t b = 0; b < now->block_count; b++) {
            if (!now->blocks[b].fresh) {
                assert(before != NULL && b < before->block_count);
                assert(before->blocks[b].shares == now->blocks[b].shares);
                before->blocks[b].shares = NULL;
                before->blocks[b].share_count = 0;
            }
            now->blocks[b].fresh = false;
        }
    }
    rp_kept_tables_free(&k->alloc, &k->last, false);
    k->last = r->kept;
    r->kept = (rp_kept_tables){0};
}

/* Steps 3 and 4. `*stays`: the manifest stays on disk even if this fails. */
static rp_status switch_over(rp_checkpoint_run *r, bool *stays, rp_error *err)
{
    rp_current current = {.store_id = r->c->id, .checkpoint = r->result.number};
    char path[RP_MANIFEST_PATH_BYTES], temporary[RP_MANIFEST_PATH_BYTES];
    rp_files *files = r->c->files;
    rp_status st;

    (void)rp_manifest_path(path, r->result.number);
    (void)rp_manifest_temporary(temporary, r->result.number);
    st = rp_checkpoint_write_manifest(r, temporary, &current, err);
    RP_KILL_POINT("checkpoint.manifest");
    if (st == RP_OK) st = rp_checkpoint_verify_manifest(r, temporary, &current, err);
    RP_KILL_POINT("checkpoint.verified");
    if (st == RP_OK) st = files->ops->rename(files, temporary, path, err);
    RP_KILL_POINT("checkpoint.renamed");
    if (st == RP_OK) st = files->ops->sync_directory(files, "manifest", err);
    if (st == RP_OK) st = rp_current_prepare(files, &current, err);
    RP_KILL_POINT("checkpoint.current");
    if (st != RP_OK) {
        (void)files->ops->remove(files, temporary, NULL);
        (void)files->ops->remove(files, path, NULL);
        (void)files->ops->remove(files, RP_CURRENT_TEMPORARY, NULL);
        return st;
    }
    /* From here on it may be the live checkpoint, even if the rename reports a failure. */
    *stays = true;
    st = rp_current_switch(files, err);
    RP_KILL_POINT("checkpoint.switched");
    return st;
}

/* On a full disk: revokes segments, except those that have chunks of items in tables. These are
 * found with a cut that is not kept. A chunk that enters a table between that cut and the one
 * of the checkpoint may be written again. */
static void revoke(rp_checkpoint_run *r)
{
    rp_status st;

    if (!rp_retention_may_revoke(r->c)) return;
    r->is_trial = true;
    st = take_cut(r, NULL);
    r->is_trial = false;
    if (st == RP_OK) rp_checkpoint_spare_segments(r);
    rp_cut_free(r->cut, false);
    r->cut = NULL;
    release_tables(r);
    if (st == RP_OK) rp_retention_revoke(r->c, r->result.number);
}

static rp_status begin(rp_checkpoint_run *r, rp_error *err)
{
    rp_status st;

    r->result.number = r->c->last_number + 1;
    r->slots = rp_alloc(r->c->alloc, RP_SLOT_BLOCK_BYTES);
    if (r->slots == NULL) return rp_fail_memory(err, RP_SLOT_BLOCK_BYTES);
    if (r->c->is_short) {
        rp_segments_drop_queue(r->c->segments, true);
        rp_retention_sweep(r->c);
        st = rp_segments_end_open(r->c->segments, err);
        if (st != RP_OK) return st;
    }
    /* Before the cut: no change after the cut needs a segment that has no chunks in memory
     * now. */
    st = rp_retention_mark_dead(r->c, r->result.number, err);
    if (st == RP_OK) revoke(r);
    r->covered = r->c->next_segment;
    if (st == RP_OK) st = rp_checkpoint_choose_moving(r, err);
    if (st == RP_OK) st = take_cut(r, err);
    /* On a full disk the queue is dropped: the checkpoint puts the records again that it
     * needs. */
    if (st == RP_OK) rp_segments_drop_queue(r->c->segments, r->c->is_short);
    r->first_segment = rp_segments_next(r->c->segments);
    return st;
}

/* On a full disk: removes what a failed checkpoint has written (R2). Its segments are new ones
 * since begin(). */
static void discard(rp_checkpoint_run *r)
{
    rp_catalogue *k = &r->c->catalogue;

    if (!r->c->is_short) return;
    if (r->has_written) {
        uint64_t made = rp_segments_next(r->c->segments) - r->first_segment;

        if (r->result.moved_bytes > 0) r->c->has_moved_in_vain = true;
        /* Those with chunks stay. */
        if (r->c->free_files != RP_FILES_UNBOUND)
            r->c->free_files -= made < r->c->free_files ? made : r->c->free_files;
    }
    rp_segments_discard(r->c->segments, r->c->next_segment);
    /* Those that still have a file are added again by rp_retention_mark_dead(). */
    while (k->segment_count > 0 &&
           k->segments[k->segment_count - 1].number >= r->c->next_segment)
        rp_catalogue_drop_segment(k, k->segments[k->segment_count - 1].number);
}

static void end(rp_checkpoint_run *r, bool kept)
{
    rp_cut_free(r->cut, kept);
    release_tables(r);
    rp_kept_tables_free(r->c->alloc, &r->kept, true);
    rp_release(r->c->alloc, r->moving, r->moving_capacity * sizeof *r->moving);
    rp_release(r->c->alloc, r->segments, r->segment_capacity * sizeof *r->segments);
    rp_release(r->c->alloc, r->slots, RP_SLOT_BLOCK_BYTES);
    rp_image_deinit(&r->image);
    rp_buf_deinit(&r->payload);
    rp_flusher_deinit(&r->flusher);
    rp_progress_end(r->c->meter);
}

rp_status rp_checkpoint_write(rp_checkpointer *c, rp_checkpoint_result *out, rp_error *err)
{
    rp_checkpoint_run *r = rp_alloc_zero(c->alloc, sizeof *r);
    bool stays = false;
    rp_status st;

    if (r == NULL) return rp_fail_memory(err, sizeof *r);
    assert(c->keep >= 1 && (c->journal == NULL || c->has_journal));
    r->c = c;
    rp_image_init(&r->image, c->alloc);
    rp_buf_init(&r->payload, c->alloc);
    rp_flusher_init(&r->flusher, c->segments);
    st = begin(r, err);
    RP_KILL_POINT("checkpoint.cut");
    if (st == RP_OK) st = rp_checkpoint_write_rollouts(r, err);
    if (st == RP_OK) st = rp_checkpoint_write_segments(r, err);
    if (st == RP_OK) st = rp_checkpoint_list_segments(r, err);
    RP_KILL_POINT("checkpoint.synced");
    if (st == RP_OK) {
        /* Before the manifest is written: a file that is not in the catalogue is never
         * removed. */
        st = rp_catalogue_add_checkpoint(&c->catalogue, r->result.number, r->lsn, r->segments,
                                         r->segment_count);
        if (st != RP_OK) st = rp_fail_memory(err, r->segment_count * sizeof *r->segments);
    }
    if (st == RP_OK) {
        assert(r->result.number > c->last_number);
        c->last_number = r->result.number;
        st = switch_over(r, &stays, err);
        if (stays) c->is_unsure = st != RP_OK;
        if (!stays)
            rp_catalogue_drop_checkpoint(&c->catalogue, c->catalogue.checkpoint_count - 1);
    }
    if (st == RP_OK) {
        keep_tables(r);
        c->damaged_count = 0;
        c->covered = r->covered;
        r->result.lsn = r->lsn;
        r->result.is_swept = rp_retention_apply(c) == RP_OK;
        *out = r->result;
    }
    if (st == RP_OK) c->has_moved_in_vain = c->knows_live = false;
    c->new_bytes = st == RP_OK ? 0 : r->chunk_bytes;
    if (st != RP_OK && !stays) {
        rp_checkpoint_discard_rollouts(r);
        discard(r);
    }
    end(r, st == RP_OK);
    rp_release(c->alloc, r, sizeof *r);
    return st;
}
