/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/reserve.h"

#include <assert.h>

static rp_status open_file(const rp_reserve *r, rp_file **file)
{
    const rp_files_ops *ops = r->files->ops;
    rp_status st = ops->open(r->files, RP_RESERVE_PATH, RP_OPEN_WRITE, file, NULL);

    if (st == RP_NOT_FOUND)
        st = ops->open(r->files, RP_RESERVE_PATH, RP_OPEN_CREATE, file, NULL);
    return st;
}

/* Grows the file from `had` bytes to `bytes`, or as far as the free space allows. */
static rp_status grow(rp_reserve *r, rp_file *file, uint64_t had, uint64_t bytes)
{
    const rp_files_ops *ops = r->files->ops;
    rp_status st = RP_NO_RESOURCE;

    while (st == RP_NO_RESOURCE && bytes > had && bytes >= RP_RESERVE_LEAST) {
        st = ops->allocate(file, bytes, NULL);
        if (st == RP_OK) {
            r->held = bytes;
            break;
        }
        (void)ops->truncate(file, had, NULL); /* a part of it may be allocated */
        bytes -= bytes / 8;                   /* the file system needs some space for itself */
    }
    return st;
}

rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes)
{
    const rp_files_ops *ops = r->files->ops;
    uint64_t total = 0, available = 0, most;
    rp_file *file = NULL;
    rp_status st;

    if (bytes == 0 || ops->allocate == NULL) return RP_OK;
    assert(ops->space != NULL); /* files.h: both are NULL or none */
    st = ops->space(r->files, &total, &available, NULL);
    if (st != RP_OK) return st;
    r->wanted = bytes < total / RP_RESERVE_SHARE ? bytes : total / RP_RESERVE_SHARE;
    st = open_file(r, &file);
    if (st != RP_OK) return st;
    r->held = 0;
    st = ops->size(file, &r->held, NULL);
    /* A copy of the data directory may have a file with holes. */
    if (st == RP_OK && r->held > 0 && ops->allocate(file, r->held, NULL) != RP_OK) {
        (void)ops->truncate(file, 0, NULL);
        r->held = 0;
    }
    if (st == RP_OK && r->held < r->wanted) {
        most = r->wanted - r->held < available ? r->wanted : r->held + available;
        st = grow(r, file, r->held, most);
        if (st == RP_OK && r->held < r->wanted) st = RP_NO_RESOURCE;
    }
    ops->close(file);
    assert(st != RP_OK || r->held >= r->wanted);
    if (r->held == 0) (void)ops->remove(r->files, RP_RESERVE_PATH, NULL);
    return st;
}

void rp_reserve_release(rp_reserve *r)
{
    if (r->held > 0) (void)r->files->ops->remove(r->files, RP_RESERVE_PATH, NULL);
    r->held = 0;
}
