/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/retention.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/error.h"
#include "util/kill_point.h"
#include "util/mem.h"

rp_status rp_dead_segments_find(rp_checkpointer *c, rp_dead_segments *out, rp_error *err)
{
    rp_catalogue *k = &c->catalogue;
    rp_dead_segments dead = {.floor = rp_segments_writing(c->segments)};

    for (; c->next_segment < dead.floor; c->next_segment++)
        if (rp_catalogue_add_segment(k, c->next_segment) != RP_OK)
            return rp_fail_memory(err, sizeof c->next_segment);
    dead.capacity = k->segment_count;
    if (dead.capacity > 0) {
        dead.numbers = rp_alloc_array(c->alloc, dead.capacity, sizeof *dead.numbers);
        if (dead.numbers == NULL)
            return rp_fail_memory(err, dead.capacity * sizeof *dead.numbers);
    }
    for (size_t i = 0; i < k->segment_count; i++)
        if (k->segments[i] < dead.floor && !rp_segments_in_use(c->segments, k->segments[i]))
            dead.numbers[dead.count++] = k->segments[i];
    *out = dead;
    return RP_OK;
}

void rp_dead_segments_deinit(const rp_checkpointer *c, rp_dead_segments *dead)
{
    rp_release(c->alloc, dead->numbers, dead->capacity * sizeof *dead->numbers);
    *dead = (rp_dead_segments){0};
}

static rp_status drop_manifests(rp_checkpointer *c)
{
    rp_catalogue *k = &c->catalogue;
    rp_status first = RP_OK;
    bool any = false;

    for (size_t i = 0; k->checkpoint_count - i > c->keep;) {
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
    /* Before their segments go: no manifest may come back without them. */
    if (any && first == RP_OK)
        first = c->files->ops->sync_directory(c->files, "manifest", NULL);
    return first;
}

static rp_status drop_segments(rp_checkpointer *c, const rp_dead_segments *dead)
{
    rp_status first = RP_OK;

    for (size_t i = 0; i < dead->count; i++) {
        rp_status st;

        if (rp_catalogue_needs(&c->catalogue, dead->numbers[i])) continue;
        st = rp_segments_remove(c->segments, dead->numbers[i], NULL);
        if (st == RP_OK || st == RP_NOT_FOUND)
            rp_catalogue_drop_segment(&c->catalogue, dead->numbers[i]);
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

    if (!rp_manifest_parse_name(name, &number)) return;
    (void)snprintf(path, sizeof path, "wal/%s", name);
    st = c->files->ops->remove(c->files, path, NULL);
    if (st != RP_OK && st != RP_NOT_FOUND) c->has_old_journal = true;
}

/* There was a journal and is none any more: all that was in it is in the checkpoint. */
static rp_status drop_old_journal(rp_checkpointer *c)
{
    c->has_old_journal = false;
    return c->files->ops->list(c->files, "wal", drop_old_file, c, NULL);
}

rp_status rp_retain(rp_checkpointer *c, const rp_dead_segments *dead, uint64_t lsn)
{
    rp_status first = drop_manifests(c), st;

    if (first == RP_OK) first = drop_segments(c, dead);
    if (c->journal != NULL)
        st = rp_journal_trim(c->journal, lsn, NULL);
    else
        st = c->has_old_journal ? drop_old_journal(c) : RP_OK;
    RP_KILL_POINT("retention.journal");
    return first != RP_OK ? first : st;
}

rp_status rp_check_segment_size(rp_files *files, const rp_manifest_segment *segment,
                                rp_error *err)
{
    char path[32];
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
