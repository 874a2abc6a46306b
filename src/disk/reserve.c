/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/reserve.h"

rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes)
{
    const rp_files_ops *ops = r->files->ops;
    uint64_t total = 0, available = 0, had = 0;
    rp_file *file = NULL;
    rp_status st;

    if (bytes == 0 || ops->allocate == NULL) return RP_OK;
    st = ops->space(r->files, &total, &available, NULL);
    if (st != RP_OK) return st;
    if (bytes > total / RP_RESERVE_SHARE) bytes = total / RP_RESERVE_SHARE;
    st = ops->open(r->files, RP_RESERVE_PATH, RP_OPEN_WRITE, &file, NULL);
    if (st == RP_NOT_FOUND)
        st = ops->open(r->files, RP_RESERVE_PATH, RP_OPEN_CREATE, &file, NULL);
    if (st != RP_OK) return st;
    st = ops->size(file, &had, NULL);
    /* The journal and the segments wait for the rest. */
    if (bytes > had + available / 2) bytes = had + available / 2;
    if (st == RP_OK && had >= bytes) {
        (void)ops->allocate(file, had, NULL); /* a copy of the file may have holes */
    } else if (st == RP_OK) {
        do {
            st = ops->allocate(file, bytes, NULL);
            /* A part of it may have been taken. */
            if (st != RP_OK) (void)ops->truncate(file, had, NULL);
            bytes /= 2;
        } while (st == RP_NO_RESOURCE && bytes > had && bytes >= RP_RESERVE_LEAST);
    }
    ops->close(file);
    r->is_held = st == RP_OK || had > 0;
    if (!r->is_held) (void)ops->remove(r->files, RP_RESERVE_PATH, NULL);
    return st;
}

bool rp_reserve_release(rp_reserve *r)
{
    if (!r->is_held) return false;
    r->is_held = false;
    return r->files->ops->remove(r->files, RP_RESERVE_PATH, NULL) == RP_OK;
}
