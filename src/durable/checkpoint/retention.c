/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/checkpoint/retention.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "disk/names.h"
#include "disk/records_scan.h"
#include "util/error.h"
#include "util/kill_point.h"

/* False if there is no such file: a checkpoint that failed on a full disk has used up the
 * number. */
static bool has_file(const rp_checkpointer *c, uint64_t number)
{
    char path[RP_SEGMENT_PATH_BYTES];
    rp_file *file = NULL;
    rp_status st =
        c->files->ops->open(c->files, rp_segment_path(path, number), RP_OPEN_READ, &file, NULL);

    if (st == RP_OK) c->files->ops->close(file);
    return st != RP_NOT_FOUND;
}

rp_status rp_retention_mark_dead(rp_checkpointer *c, uint64_t number, rp_error *err)
{
    rp_catalogue *k = &c->catalogue;
    uint64_t written = rp_segments_writing(c->segments); /* segments from here on are written */

    assert(number > c->last_number);
    for (; c->next_segment < written; c->next_segment++)
        if ((!c->is_short || has_file(c, c->next_segment)) &&
            rp_catalogue_add_segment(k, c->next_segment) != RP_OK)
            return rp_fail_memory(err, sizeof *k->segments);
    for (size_t i = 0; i < k->segment_count; i++) {
        rp_owned_segment *segment = &k->segments[i];

        if (segment->is_revoked) continue;
        if (segment->number >= written || rp_segments_in_use(c->segments, segment->number))
            segment->dead_at = 0;
        else if (segment->dead_at == 0)
            segment->dead_at = number;
    }
    return RP_OK;
}

static bool can_revoke(const rp_checkpointer *c, const rp_owned_segment *segment)
{
    return segment->dead_at == 0 && segment->number < c->covered &&
           !rp_catalogue_needs(&c->catalogue, segment->number);
}

bool rp_retention_may_revoke(const rp_checkpointer *c)
{
    const rp_catalogue *k = &c->catalogue;

    if (!c->is_short || !c->can_revoke) return false;
    for (size_t i = 0; i < k->segment_count; i++)
        if (can_revoke(c, &k->segments[i])) return true;
    return false;
}

void rp_retention_revoke(rp_checkpointer *c, uint64_t number)
{
    rp_catalogue *k = &c->catalogue;

    assert(c->is_short && c->can_revoke && number > c->last_number);
    for (size_t i = 0; i < k->segment_count; i++) {
        rp_owned_segment *segment = &k->segments[i];

        if (segment->is_spared || !can_revoke(c, segment)) continue;
        rp_segments_revoke(c->segments, segment->number);
        segment->is_revoked = true;
        segment->dead_at = number;
    }
}

static rp_status drop_manifests(rp_checkpointer *c)
{
    rp_catalogue *k = &c->catalogue;
    rp_status first = RP_OK;
    bool any = false;

    for (size_t i = 0; k->checkpoint_count - i > (c->is_short ? 1 : c->keep);) {
        char path[RP_MANIFEST_PATH_BYTES];
        rp_status st = c->files->ops->remove(
            c->files, rp_manifest_path(path, k->checkpoints[i].number), NULL);

        if (st != RP_OK && st != RP_NOT_FOUND) {
            if (first == RP_OK) first = st;
            i++;
            continue;
        }
        any = true;
        rp_catalogue_drop_checkpoint(k, i);
        RP_KILL_POINT("retention.manifest");
    }
    /* Before the segments of these manifests are removed: after a power cut no manifest may
     * reappear without its segments. */
    if (any && first == RP_OK)
        first = c->files->ops->sync_directory(c->files, "manifest", NULL);
    return first;
}

typedef struct rollouts_sweep {
    const rp_catalogue *catalogue;
    rp_files *files;
    const rp_store_id *id;
    rp_status status;
} rollouts_sweep;

static bool has_checkpoint(const rp_catalogue *k, uint64_t number)
{
    for (size_t i = 0; i < k->checkpoint_count; i++)
        if (k->checkpoints[i].number == number) return true;
    return false;
}

/* True if the file belongs to this store. A header that cannot be read counts: a checkpoint
 * that a crash has interrupted may have left such a file. */
static bool is_ours(const rollouts_sweep *s, const char *path)
{
    uint8_t bytes[RP_FILE_HEADER_BYTES];
    rp_file_header header;
    rp_file *file = NULL;
    size_t got = 0;
    rp_status st = s->files->ops->open(s->files, path, RP_OPEN_READ, &file, NULL);

    if (st != RP_OK) return false;
    st = s->files->ops->read(file, 0, bytes, sizeof bytes, &got, NULL);
    s->files->ops->close(file);
    if (st != RP_OK) return false;
    st = rp_file_header_read(bytes, got, &header, NULL, NULL);
    if (st == RP_CORRUPT) return true;
    return st == RP_OK && header.kind == RP_FILE_ROLLOUTS &&
           memcmp(&header.store, s->id, sizeof *s->id) == 0;
}

static void drop_rollouts(void *ctx, const char *name)
{
    rollouts_sweep *s = ctx;
    char path[RP_ROLLOUTS_PATH_BYTES], manifest[RP_MANIFEST_PATH_BYTES];
    rp_file *file = NULL;
    uint64_t number;
    rp_status st;

    if (!rp_name_parse(name, &number) || has_checkpoint(s->catalogue, number)) return;
    st = s->files->ops->open(s->files, rp_manifest_quarantined(manifest, number), RP_OPEN_READ,
                             &file, NULL);
    if (st == RP_OK) s->files->ops->close(file);
    if (st != RP_NOT_FOUND || !is_ours(s, rp_rollouts_path(path, number))) return;
    st = s->files->ops->remove(s->files, path, NULL);
    if (st != RP_OK && st != RP_NOT_FOUND && s->status == RP_OK) s->status = st;
    RP_KILL_POINT("retention.rollouts");
}

rp_status rp_retention_drop_rollouts(const rp_catalogue *c, rp_files *files,
                                     const rp_store_id *id)
{
    rollouts_sweep s = {c, files, id, RP_OK};
    rp_status st = files->ops->list(files, RP_ROLLOUTS_FOLDER, drop_rollouts, &s, NULL);

    return st != RP_OK && st != RP_NOT_FOUND ? st : s.status;
}

static rp_status drop_segments(rp_checkpointer *c, uint64_t base)
{
    rp_catalogue *k = &c->catalogue;
    uint64_t newest = k->checkpoints[k->checkpoint_count - 1].number;
    rp_status first = RP_OK;

    for (size_t i = k->segment_count; i-- > 0;) {
        rp_owned_segment segment = k->segments[i];
        rp_status st;

        if (segment.dead_at == 0 || segment.dead_at > base) continue;
        /* Before it was revoked, the journal may have encoded records that refer to it. Only a
         * checkpoint after that contains their changes. */
        if (segment.is_revoked && segment.dead_at > newest) continue;
        if (rp_catalogue_needs(k, segment.number)) continue;
        st = rp_segments_remove(c->segments, segment.number, NULL);
        if (st == RP_OK || st == RP_NOT_FOUND)
            rp_catalogue_drop_segment(k, segment.number);
        else if (first == RP_OK)
            first = st;
        RP_KILL_POINT("retention.segment");
    }
    return first;
}

static void drop_old_file(void *ctx, const char *name)
{
    rp_checkpointer *c = ctx;
    char path[64];
    uint64_t number;
    rp_status st;

    if (!rp_name_parse(name, &number)) return;
    (void)snprintf(path, sizeof path, "wal/%s", name);
    st = c->files->ops->remove(c->files, path, NULL);
    if (st != RP_OK && st != RP_NOT_FOUND) c->has_old_journal = true;
}

/* Removes the files of a journal that the mode no longer has: the checkpoint contains all of
 * its changes. */
static rp_status drop_old_journal(rp_checkpointer *c)
{
    c->has_old_journal = false;
    return c->files->ops->list(c->files, "wal", drop_old_file, c, NULL);
}

/* `is_all`: also removes segments that died after the newest checkpoint. */
static rp_status retain(rp_checkpointer *c, bool is_all)
{
    const rp_catalogue *k = &c->catalogue;
    rp_status first = drop_manifests(c), st = RP_OK;
    const rp_kept_checkpoint *newest = &k->checkpoints[k->checkpoint_count - 1];
    const rp_kept_checkpoint *base =
        c->has_journal && k->checkpoint_count > 1 && !c->is_short ? newest - 1 : newest;

    assert(k->checkpoint_count >= 1); /* the newest manifest is never removed */

    if (first == RP_OK) first = rp_retention_drop_rollouts(k, c->files, &c->id);
    if (first == RP_OK) first = drop_segments(c, is_all ? UINT64_MAX : base->number);
    if (c->journal != NULL)
        st = rp_journal_trim(c->journal, base->lsn < newest->lsn ? base->lsn : newest->lsn,
                             NULL);
    else if (c->has_old_journal)
        st = drop_old_journal(c);
    RP_KILL_POINT("retention.journal");
    return first != RP_OK ? first : st;
}

rp_status rp_retention_apply(rp_checkpointer *c)
{
    return retain(c, false);
}

/* True if a restart needs the newest checkpoint only. */
static bool is_newest_all(const rp_checkpointer *c)
{
    const rp_catalogue *k = &c->catalogue;

    if (k->checkpoint_count == 0 || c->is_unsure || c->has_old_journal) return false;
    if (!c->has_journal) return true;
    return c->journal != NULL &&
           rp_journal_reached(c->journal) <= k->checkpoints[k->checkpoint_count - 1].lsn;
}

void rp_retention_sweep(rp_checkpointer *c)
{
    /* Before the journal is checked: records that are in no file yet keep their chunks in
     * memory, so that the segments of these count as in use. */
    if (rp_retention_mark_dead(c, c->last_number + 1, NULL) != RP_OK || !is_newest_all(c))
        return;
    (void)retain(c, true); /* the next sweep retries */
}

static bool is_block(void *ctx, uint64_t offset, const rp_record *record)
{
    bool *has_others = ctx;

    (void)offset;
    if (record->kind != RP_RECORD_BLOCK && record->kind != RP_RECORD_SEAL) *has_others = true;
    return !*has_others;
}

/* Reads a segment up to its first chunk. A segment that cannot be read counts as having one. */
static bool has_only_blocks(const rp_checkpointer *c, uint64_t number)
{
    char path[RP_SEGMENT_PATH_BYTES];
    bool has_others = false;
    rp_records_scan_options scan = {.alloc = c->alloc,
                                    .files = c->files,
                                    .path = rp_segment_path(path, number),
                                    .kind = RP_FILE_SEGMENT,
                                    .store = &c->id,
                                    .each = is_block,
                                    .ctx = &has_others};
    rp_file_header header;
    uint64_t end;

    return rp_records_scan(&scan, &header, &end, NULL) == RP_OK && !has_others;
}

void rp_retention_drop_blocks(rp_checkpointer *c)
{
    rp_catalogue *k = &c->catalogue;

    for (size_t i = k->segment_count; i-- > 0;) {
        uint64_t number = k->segments[i].number;
        rp_status st;

        if (rp_catalogue_needs(k, number) || rp_segments_in_use(c->segments, number) ||
            !has_only_blocks(c, number))
            continue;
        st = rp_segments_remove(c->segments, number, NULL);
        if (st == RP_OK || st == RP_NOT_FOUND) rp_catalogue_drop_segment(k, number);
    }
}

rp_status rp_check_segment_size(rp_files *files, const rp_manifest_segment *segment,
                                rp_error *err)
{
    char path[RP_SEGMENT_PATH_BYTES];
    rp_file *file = NULL;
    uint64_t size = 0;
    rp_status st = files->ops->open(files, rp_segment_path(path, segment->number), RP_OPEN_READ,
                                    &file, err);

    if (st != RP_OK) return st;
    st = files->ops->size(file, &size, err);
    files->ops->close(file);
    if (st == RP_OK && size < segment->bytes)
        st = rp_fail(err, RP_CORRUPT, "%s: %" PRIu64 " bytes of %" PRIu64 " are there", path,
                     size, segment->bytes);
    return st;
}
