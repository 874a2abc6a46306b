/* SPDX-License-Identifier: Apache-2.0 */
/* Room on the disk that is kept for a checkpoint: the file "reserve", which has nothing in it.
 *
 * What is dead on a full disk can only be removed once a checkpoint without it is complete, and
 * that has to be written first. So the file is removed when a checkpoint finds the disk full,
 * and made again after it. It stays when the process ends.
 *
 * One thread at a time keeps and releases. */
#ifndef RP_DISK_RESERVE_H
#define RP_DISK_RESERVE_H

#include "disk/files.h"

#define RP_RESERVE_PATH "reserve"

enum {
    RP_RESERVE_SHARE = 16,      /* it takes at most one of so many parts of the file system */
    RP_RESERVE_LEAST = 16 << 10 /* less is of no use: bytes */
};

typedef struct rp_reserve {
    rp_files *files; /* borrowed */
    bool is_held;
} rp_reserve;

/* Makes the file, or lets it grow to `bytes` or the share above if that is less, by at most
 * half of what is free. If there is no room for that, to a half, a quarter and so on; what is
 * there stays. A status other than RP_OK says why it did not grow: without a reserve everything
 * works but a checkpoint on a full disk.
 */
rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes);
/* Gives the room back. True if there was any. */
bool rp_reserve_release(rp_reserve *r);

#endif
