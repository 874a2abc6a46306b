/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery has read these files and the journal builds on them, so they are synced before the
 * journal is continued. */
#include "disk/journal_takeover.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "util/error.h"

static rp_status sync_path(rp_files *files, const char *path, rp_error *err)
{
    rp_file *file;
    rp_status st = files->ops->open(files, path, RP_OPEN_WRITE, &file, err);

    if (st != RP_OK) return st;
    st = files->ops->sync(file, err);
    files->ops->close(file);
    return st;
}

static rp_status sync_segments(const rp_journal_options *o, rp_error *err)
{
    char path[RP_SEGMENT_PATH_BYTES];
    rp_number_list segments;
    rp_status st = rp_number_list_read(&segments, o->alloc, o->files, "seg", err);
    bool is_empty = segments.count == 0;

    for (size_t i = 0; st == RP_OK && i < segments.count; i++)
        st = sync_path(o->files, rp_segment_path(path, segments.at[i]), err);
    if (st == RP_OK) st = o->files->ops->sync_directory(o->files, "seg", err);
    rp_number_list_free(&segments);
    return st == RP_NOT_FOUND && is_empty ? RP_OK : st;
}

/* Files that begin at or after next_lsn contain nothing that recovery accepted. */
static rp_status quarantine(rp_files *files, uint64_t first, rp_error *err)
{
    char path[RP_JOURNAL_PATH_BYTES], to[64];
    rp_status st = files->ops->make_directory(files, "quarantine", err);

    (void)snprintf(to, sizeof to, "quarantine/wal-%016" PRIx64, first);
    if (st == RP_OK) st = files->ops->rename(files, rp_journal_path(path, first), to, err);
    return st;
}

rp_status rp_journal_take_over(const rp_journal_options *o, rp_number_list *kept, rp_error *err)
{
    const rp_files_ops *ops = o->files->ops;
    char path[RP_JOURNAL_PATH_BYTES];
    size_t keep = 0;
    rp_status st = ops->make_directory(o->files, "wal", err);

    assert(o->next_lsn >= 1);
    *kept = (rp_number_list){.alloc = *o->alloc};
    if (st == RP_OK) st = rp_number_list_read(kept, o->alloc, o->files, "wal", err);
    for (size_t i = 0; st == RP_OK && i < kept->count; i++) {
        bool is_old = kept->at[i] < o->next_lsn;

        if (is_old) keep = i + 1;
        st = is_old ? sync_path(o->files, rp_journal_path(path, kept->at[i]), err)
                    : quarantine(o->files, kept->at[i], err);
    }
    if (st == RP_OK && keep > 0) st = sync_segments(o, err);
    if (st == RP_OK) st = ops->sync_directory(o->files, "wal", err);
    if (st == RP_OK) st = ops->sync_directory(o->files, "", err);
    assert(keep <= kept->count);
    kept->count = keep;
    assert(keep == 0 || kept->at[keep - 1] < o->next_lsn);
    return st;
}
