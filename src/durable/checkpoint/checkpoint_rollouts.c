/* SPDX-License-Identifier: Apache-2.0 */
/* The rollouts of a checkpoint: rollouts/<n>.
 *
 * The images are taken after the cut of the tables, one after the other, so that tables never
 * wait for them. An image has every operation up to the LSN of the cut, and may have later
 * ones. So recovery
 *
 *   1  skips the operations that an image has: those up to the LSN in the image;
 *   2  skips operations on rollouts that it does not have, up to the LSN that the journal had
 *      when all images were taken. These rollouts were dropped before they were listed. It
 *      also skips their creation if the images are as many as a store can have;
 *   3  uses no LSN up to that one for a new operation. The journal may have lost its end in a
 *      power cut, and then recovery would skip new operations with old LSNs. */
#include <assert.h>
#include <inttypes.h>

#include "disk/names.h"
#include "durable/checkpoint/checkpoint_inside.h"
#include "durable/format/rollouts_file.h"
#include "util/error.h"
#include "util/kill_point.h"

/* Sums up the files of other checkpoints than `number`, except those in quarantine. */
typedef struct old_files {
    const rp_checkpointer *c;
    uint64_t number, bytes;
} old_files;

static bool is_quarantined(const rp_checkpointer *c, uint64_t number)
{
    char path[RP_MANIFEST_PATH_BYTES];
    rp_file *file = NULL;
    rp_status st;

    st = c->files->ops->open(c->files, rp_manifest_quarantined(path, number), RP_OPEN_READ,
                             &file, NULL);
    if (st == RP_OK) c->files->ops->close(file);
    return st != RP_NOT_FOUND; /* if in doubt, it is */
}

static void add_old(void *ctx, const char *name)
{
    old_files *old = ctx;
    char path[RP_ROLLOUTS_PATH_BYTES];
    rp_file *file = NULL;
    uint64_t number, size = 0;

    if (!rp_name_parse(name, &number) || number == old->number ||
        is_quarantined(old->c, number) ||
        old->c->files->ops->open(old->c->files, rp_rollouts_path(path, number), RP_OPEN_READ,
                                 &file, NULL) != RP_OK)
        return;
    if (old->c->files->ops->size(file, &size, NULL) == RP_OK) old->bytes += size;
    old->c->files->ops->close(file);
}

uint64_t rp_checkpoint_old_rollouts(const rp_checkpoint_run *r)
{
    old_files old = {.c = r->c, .number = r->result.number};

    (void)!r->c->files->ops->list(r->c->files, RP_ROLLOUTS_FOLDER, add_old, &old, NULL);
    return old.bytes;
}

/* On a full disk: writes nothing if the images do not fit (R2). */
static rp_status check_space(const rp_checkpoint_run *r, rp_error *err)
{
    const rp_checkpointer *c = r->c;
    uint64_t total = 0, available = 0;

    if (!c->is_short || c->files->ops->space == NULL ||
        c->files->ops->space(c->files, &total, &available, NULL) != RP_OK ||
        available >= c->largest_rollouts)
        return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE,
                   "checkpoint: the disk is full: rollouts may need %" PRIu64 " bytes, %" PRIu64
                   " are free; acknowledge groups or make room",
                   c->largest_rollouts, available);
}

rp_status rp_checkpoint_write_rollouts(rp_checkpoint_run *r, rp_error *err)
{
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    rp_rollouts_write_options options = {.alloc = r->c->alloc,
                                         .files = r->c->files,
                                         .store = r->c->id,
                                         .checkpoint = r->result.number,
                                         .lsn = r->lsn,
                                         .rollouts = all};
    rp_status st = RP_OK;

    options.count = rp_rollout_set_list(rp_store_rollouts(r->c->store), all);
    assert(options.count <= RP_ROLLOUT_SET_COUNT);
    if (options.count > 0) {
        st = check_space(r, err);
        if (st == RP_OK) st = rp_rollouts_file_write(&options, &r->rollouts, err);
    }
    for (size_t i = 0; i < options.count; i++) rp_rollouts_unref(all[i]);
    if (st != RP_OK) return st;
    r->rollouts.lsn = r->c->journal != NULL ? rp_journal_last(r->c->journal) : r->lsn;
    assert(r->rollouts.lsn >= r->lsn);
    /* Without any rollouts the manifest stays readable for older versions. */
    r->rollouts.is_there =
        options.count > 0 || (r->rollouts.lsn > r->lsn && atomic_load(&r->c->uses_rollouts));
    if (!r->rollouts.is_there) r->rollouts.lsn = 0;
    if (options.count > 0) atomic_store(&r->c->uses_rollouts, true);
    return RP_OK;
}

void rp_checkpoint_discard_rollouts(const rp_checkpoint_run *r)
{
    char path[RP_ROLLOUTS_PATH_BYTES];

    if (r->rollouts.count == 0) return;
    (void)r->c->files->ops->remove(r->c->files, rp_rollouts_path(path, r->result.number), NULL);
}
