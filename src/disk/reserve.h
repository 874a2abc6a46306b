/* SPDX-License-Identifier: Apache-2.0 */
/* Room on the disk that is kept for a checkpoint: the file "reserve", which has nothing in it.
 *
 * Dead data on a full disk can only be removed once a checkpoint without it is complete, and
 * that checkpoint has to be written first. So a checkpoint that finds the disk full removes the
 * file, writes into its room, and the file is made again.
 *
 * Invariants, if no other process writes to the file system:
 *
 *   R1  the reserve has the first claim on free room: it is made whole before each checkpoint,
 *       and after it before the journal may write again (rp_journal_resume());
 *   R2  a checkpoint of up to 64 MiB that does not fit into the room that there is writes
 *       nothing, so the whole reserve can be made again (checkpoint.c);
 *   R3  chunks that were not on disk yet may take RP_RESERVE_SPENT parts of RP_RESERVE_PARTS of
 *       it for good; more only if dead data on the disk makes up for it (checkpoint.c).
 *
 * So live data cannot use up the reserve, and once it is deleted there is room for the
 * checkpoint that frees it. The file stays when the process ends.
 *
 * One thread at a time keeps and releases. */
#ifndef RP_DISK_RESERVE_H
#define RP_DISK_RESERVE_H

#include "disk/files.h"

#define RP_RESERVE_PATH "reserve"

enum {
    RP_RESERVE_SHARE = 16,       /* it takes at most one of so many parts of the file system */
    RP_RESERVE_LEAST = 16 << 10, /* bytes; less is of no use */
    RP_RESERVE_PARTS = 4,        /* R3 */
    RP_RESERVE_SPENT = 1
};

typedef struct rp_reserve {
    rp_files *files; /* borrowed */
    uint64_t wanted; /* bytes, as of the last rp_reserve_keep(); 0: none */
    uint64_t held;   /* bytes; 0: there is no file */
} rp_reserve;

/* Makes the file, or lets it grow, to `bytes` or the share above if that is less. If there is
 * not so much room it takes what there is. RP_NO_RESOURCE: less than that is held. Any other
 * status than RP_OK: the file system does not allow it; without a reserve everything works but
 * a checkpoint on a full disk. */
rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes);
/* Gives the room back. */
void rp_reserve_release(rp_reserve *r);

#endif
