/* SPDX-License-Identifier: Apache-2.0 */
/* Disk space that is reserved for a checkpoint, by the file "reserve". Its bytes mean nothing.
 * The empty files "reserve.1" to "reserve.4" reserve inodes: a checkpoint creates a segment, a
 * manifest, CURRENT and a journal file before it can remove any.
 *
 * On a full disk, dead data can only be removed after a checkpoint without it is complete. So a
 * checkpoint that finds the disk full removes the file and writes into its space. Then the file
 * is created again.
 *
 * Invariants, if no other process writes to the file system:
 *
 *   R1  the reserve has the first claim on free space: it is filled up before each checkpoint,
 *       and again after the checkpoint, before the journal may write (rp_journal_resume());
 *   R2  a checkpoint of up to 64 MiB that does not fit into the free space writes nothing, so
 *       the whole reserve can be taken again (checkpoint_segments.c);
 *   R3  a checkpoint may use RP_RESERVE_SPENT of RP_RESERVE_PARTS parts of the reserve for
 *       chunks that were not on disk yet; more only if removing dead data will make up for it
 *       (checkpoint_segments.c).
 *
 * So live data cannot use up the reserve, and after items are deleted, there is space for the
 * checkpoint that frees their data. The file stays when the process ends.
 *
 * One thread at a time. */
#ifndef RP_DISK_RESERVE_H
#define RP_DISK_RESERVE_H

#include <stdbool.h>

#include "disk/files.h"

#define RP_RESERVE_PATH "reserve"

enum {
    RP_RESERVE_SHARE = 16,       /* the reserve takes at most 1/16 of the file system */
    RP_RESERVE_LEAST = 16 << 10, /* bytes; a smaller reserve is useless */
    RP_RESERVE_PARTS = 4,        /* R3 */
    RP_RESERVE_SPENT = 1,
    RP_RESERVE_FILES = 4 /* empty files */
};

typedef struct rp_reserve {
    rp_files *files; /* borrowed */
    uint64_t wanted; /* bytes, as of the last rp_reserve_keep(); 0: none */
    uint64_t held;   /* bytes; 0: there is no file */
} rp_reserve;

/* Creates the file, or grows it, to `bytes` or to 1/RP_RESERVE_SHARE of the file system,
 * whichever is less. If less space is free, the reserve takes that and the call returns
 * RP_NO_RESOURCE. Any other error means that the file system does not allow a reserve: then
 * everything works except checkpoints on a full disk. */
rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes);
/* Creates those of the empty files that are missing. Do not call it while the journal is lost:
 * the journal needs an inode for its next file first. RP_NO_RESOURCE: the file system has no
 * inodes left. */
rp_status rp_reserve_keep_files(const rp_reserve *r);
/* Removes the files and so frees their space and inodes. */
void rp_reserve_release(rp_reserve *r);
/* True if the file system has no inode left for a new file. Creates a file to find out, and
 * removes it. */
bool rp_reserve_lacks_files(const rp_reserve *r);
/* True if a file of that name, in the data directory itself, belongs to the reserve. */
bool rp_reserve_has_name(const char *name);

#endif
