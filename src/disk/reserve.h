/* SPDX-License-Identifier: Apache-2.0 */
/* Disk space that is reserved for a checkpoint, by the file "reserve". Its bytes mean nothing.
 * The empty files "reserve.1" to "reserve.8" reserve inodes: six for a checkpoint, which
 * creates two segments for chunks, one for blocks, a file of rollouts, a manifest and CURRENT
 * before it can remove any file, and two for the journal, which then creates a file and a
 * segment.
 *
 * Even on a full disk, dead data can only be removed once a checkpoint that no longer refers to
 * it is complete. So a checkpoint that finds the disk full removes the file and writes into its
 * space. Then the file is created again.
 *
 * The size is a fixed part, and twice the size of the largest checkpoint: one in which every
 * block of every table has changed. It is twice that size because the blocks of a checkpoint
 * can only be removed after the next one is complete.
 *
 * Invariants, if no other process writes to the file system:
 *
 *   R1  the reserve has the first claim on free space: it is filled up before each checkpoint,
 *       and again after the checkpoint, before the journal may write (rp_journal_resume()). No
 *       write of the journal runs while it is released (rp_journal_pause());
 *   R2  a checkpoint that does not fit into the free space writes nothing, and one that fails
 *       later removes the segments that have only its blocks, so the reserve can be taken again
 *       (checkpoint_segments.c);
 *   R3  a checkpoint on a full disk leaves space for the largest checkpoint. It may use a
 *       quarter of the fixed part for chunks that were not on disk yet. Segments that it
 *       removes count as space. Segments that it vacates, which the next one removes, count
 *       for half of the fixed part at most: a quarter is free in any case
 *       (checkpoint_segments.c);
 *   R4  in sync mode, an insert enters a table only if the reserve can grow with it
 *       (disk/journal_space.h);
 *   R5  a checkpoint on a full disk may create segments for chunks, which stay, only if six
 *       inodes then remain; four if it vacates segments: what the next checkpoint, which
 *       removes those, needs if it has no new chunks (checkpoint_segments.c). Such checkpoints
 *       follow one another as long as they gain inodes. Then six are reserved again before the
 *       journal may create files.
 *
 * So live data cannot use up the reserve, and after items are deleted, there is space for the
 * checkpoint that frees their data. The file stays when the process ends.
 *
 * One thread at a time may use it, except that any thread may read `held`. */
#ifndef RP_DISK_RESERVE_H
#define RP_DISK_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "disk/files.h"

#define RP_RESERVE_PATH "reserve"

enum {
    RP_RESERVE_SHARE = 16,       /* the fixed part is at most 1/16 of the file system */
    RP_RESERVE_LEAST = 16 << 10, /* bytes; a smaller reserve is useless */
    RP_RESERVE_SEALS = 16,       /* seals (last records of segments) add at most 1/16 to a
                                    checkpoint */
    RP_RESERVE_FILES = 8,        /* empty files */
    RP_RESERVE_FIRST_FILES = 6,  /* of these, for a checkpoint */
    RP_RESERVE_NAMED_FILES = 3   /* rollouts, manifest and CURRENT, besides the segments */
};

typedef struct rp_reserve {
    rp_files *files;           /* borrowed */
    uint64_t wanted;           /* bytes, as of the last rp_reserve_keep(); 0: none */
    atomic_uint_fast64_t held; /* bytes; 0: there is no file. Any thread may read it */
    int files_held;            /* empty files, as of the last rp_reserve_keep_files() */
} rp_reserve;

/* The bytes on disk that a checkpoint with `bytes` of records, without seals, may need. */
static inline uint64_t rp_reserve_one(uint64_t bytes)
{
    return bytes + bytes / RP_RESERVE_SEALS;
}
/* The part of the reserve for records of `bytes` in the largest checkpoint. */
static inline uint64_t rp_reserve_for(uint64_t bytes)
{
    return 2 * rp_reserve_one(bytes);
}

/* Finds the file that an earlier process has left. */
void rp_reserve_find(rp_reserve *r);
/* Creates the file, or grows or shrinks it, to `bytes`. If less space is free, the reserve
 * takes that and the call returns RP_NO_RESOURCE. Any other error means that the file system
 * does not allow a reserve: then everything works except checkpoints on a full disk. */
rp_status rp_reserve_keep(rp_reserve *r, uint64_t bytes);
/* Keeps `count` empty files: creates those that are missing and removes the others. After a
 * checkpoint on a full disk, keep only RP_RESERVE_FIRST_FILES: the other inodes are for the
 * files that the journal creates when it resumes. Keep RP_RESERVE_FILES otherwise, except while
 * the journal has given up records and waits for a checkpoint ("is lost"): then leave the
 * number as it is. RP_NO_RESOURCE: the file system has not enough inodes for all of them. */
rp_status rp_reserve_keep_files(rp_reserve *r, int count);
/* Removes the files and so frees their space and inodes. */
void rp_reserve_release(rp_reserve *r);
/* True if the file system has no inode left for a new file. Creates a file to find out, and
 * removes it. */
bool rp_reserve_lacks_files(const rp_reserve *r);
/* True if a file of that name, in the data directory itself, belongs to the reserve. */
bool rp_reserve_has_name(const char *name);

#endif
