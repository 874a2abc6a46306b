/* SPDX-License-Identifier: Apache-2.0 */
/* The reserve: disk space and inodes that are kept for a checkpoint on a full disk. The file
 * "reserve" holds the space; its content has no meaning. The empty files "reserve.1" to
 * "reserve.8" hold inodes. Six of them are for a checkpoint: before it can remove any file, it
 * creates two segments for chunks, a segment for blocks of slots, a file of rollouts, a
 * manifest and CURRENT. Two are for the journal, which creates a file and a segment after the
 * checkpoint.
 *
 * Even on a full disk, dead data can be removed only when a checkpoint that no longer refers to
 * it is complete. So a checkpoint that finds the disk full removes the file "reserve" and uses
 * its space. After the checkpoint the file is created again.
 *
 * The size of the reserve is a fixed part plus twice the size of the largest possible
 * checkpoint, which is one that writes every block (256 slots) of every table. The factor is
 * two because the blocks of a checkpoint can be removed only after the next checkpoint is
 * complete.
 *
 * Invariants, if no other process writes to the file system:
 *
 *   R1  the reserve has the first claim on free space. It is filled up before each checkpoint,
 *       and again after the checkpoint, before the journal is allowed to write
 *       (rp_journal_resume()). While the reserve is released, the journal does not write
 *       (rp_journal_pause());
 *   R2  a checkpoint that does not fit into the free space writes nothing. A checkpoint that
 *       fails after it has begun to write removes the segments that have only its own blocks.
 *       So the reserve can be created again (checkpoint_segments.c);
 *   R3  a checkpoint on a full disk leaves space for the largest checkpoint. It may use a
 *       quarter of the fixed part for chunks that were not on disk yet. Segments that it
 *       removes count as free space. Segments that it vacates (moves all live chunks out of)
 *       also count as free space, but at most half of the fixed part, since only the next
 *       checkpoint removes them. So at least a quarter of the fixed part stays free
 *       (checkpoint_segments.c);
 *   R4  in sync mode, an insert enters a table only if the reserve can grow with it
 *       (disk/journal_space.h);
 *   R5  a checkpoint on a full disk is allowed to create segments for chunks only if six inodes
 *       remain, since these segments stay. If the checkpoint vacates segments, four inodes are
 *       enough: the next checkpoint removes the vacated segments, and needs four inodes if it
 *       has no new chunks (checkpoint_segments.c). Checkpoints that vacate segments follow one
 *       another as long as they gain inodes. Then six inodes are reserved again, before the
 *       journal is allowed to create files.
 *
 * So live data cannot use up the reserve. After items are deleted, there is space for the
 * checkpoint that frees their data. The files of the reserve stay when the process ends.
 *
 * Only one thread at a time may use the reserve, but any thread may read `held`. */
#ifndef RP_DISK_RESERVE_H
#define RP_DISK_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "disk/files.h"

#define RP_RESERVE_PATH "reserve"

enum {
    RP_RESERVE_SHARE = 16,       /* the fixed part is at most 1/16 of the file system */
    RP_RESERVE_LEAST = 16 << 10, /* bytes; a smaller reserve is useless */
    /* Seals (last records of segments) add at most 1/16 to the bytes of a checkpoint. */
    RP_RESERVE_SEALS = 16,
    RP_RESERVE_FILES = 8,       /* number of empty files */
    RP_RESERVE_FIRST_FILES = 6, /* how many of them are for a checkpoint */
    RP_RESERVE_NAMED_FILES = 3  /* how many are for rollouts, manifest and CURRENT */
};

typedef struct rp_reserve {
    rp_files *files;           /* borrowed */
    uint64_t wanted;           /* bytes, as of the last rp_reserve_keep(); 0: none */
    atomic_uint_fast64_t held; /* bytes; 0: there is no file. Any thread may read it */
    int files_held; /* number of empty files, as of the last rp_reserve_keep_files() */
} rp_reserve;

/* Returns an upper bound of the bytes on disk that a checkpoint needs if its records, without
 * seals, have `bytes`. */
static inline uint64_t rp_reserve_one(uint64_t bytes)
{
    return bytes + bytes / RP_RESERVE_SEALS;
}
/* Returns the bytes of the reserve that are needed for records that have `bytes` in the largest
 * checkpoint. */
static inline uint64_t rp_reserve_for(uint64_t bytes)
{
    return 2 * rp_reserve_one(bytes);
}

/* Sets `held` to the size of the file that an earlier process has left, if there is one. */
void rp_reserve_find(rp_reserve *r);
/* Creates the file, or changes its size, so that it has `bytes`. If less space is free, the
 * reserve takes all free space and the call returns RP_NO_RESOURCE. Any other error means that
 * the file system does not support a reserve. In that case checkpoints on a full disk do not
 * work; everything else does. */
rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes);
/* Creates or removes empty files so that there are `count`. After a checkpoint on a full disk,
 * `count` must be RP_RESERVE_FIRST_FILES: the other inodes are for the files that the journal
 * creates when it resumes. In all other calls `count` is RP_RESERVE_FILES. Returns
 * RP_NO_RESOURCE if the file system has not enough inodes for `count` files. */
rp_status rp_reserve_keep_files(rp_reserve *r, int count);
/* Removes the files and so frees their space and inodes. */
void rp_reserve_release(rp_reserve *r);
/* Returns true if the file system has no inode for a new file. To find out, creates a file and
 * removes it. */
bool rp_reserve_lacks_files(const rp_reserve *r);
/* Returns true if a file `name` at the top of the data directory belongs to the reserve. */
bool rp_reserve_has_name(const char *name);

#endif
