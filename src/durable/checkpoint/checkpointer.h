/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpointer: the state that all checkpoints of one data directory share. A cut is the
 * snapshot of all tables that a checkpoint takes. LSN: log sequence number, the position of a
 * record in the journal. To vacate a segment is to move its live chunks to another segment
 * (checkpoint.h). Only one thread at a time may use a checkpointer. */
#ifndef RP_DURABLE_CHECKPOINT_CHECKPOINTER_H
#define RP_DURABLE_CHECKPOINT_CHECKPOINTER_H

#include <stdatomic.h>

#include "disk/journal.h"
#include "durable/checkpoint/catalogue.h"
#include "durable/checkpoint/progress.h"
#include "store/store.h"

/* Without a journal, the LSN of each checkpoint is the LSN of the previous checkpoint plus this
 * number. An earlier journal possibly ends in records that recovery could not read (a torn
 * tail) and whose LSNs are unknown. This number is larger than the number of these records, so
 * a later recovery cannot take one of them for a change after the checkpoint. */
#define RP_LSN_LEAP (UINT64_C(1) << 32)

#define RP_FILES_UNBOUND UINT64_MAX

typedef struct rp_checkpointer {
    const rp_allocator *alloc;
    rp_files *files;
    rp_segments *segments;
    rp_journal *journal; /* NULL: there is no journal, or it is not started yet */
    bool has_journal;    /* the durability mode has a journal */
    rp_store *store;
    rp_store_id id;
    size_t keep;
    uint64_t last_number;  /* the highest number of any manifest ever written here */
    uint64_t lsn;          /* the last LSN used, while there is no journal */
    uint64_t next_segment; /* first segment that is not in the catalogue yet */
    /* If a segment has a number below `covered` and a table had a chunk in it at the cut of the
     * newest checkpoint, then the newest checkpoint needs the segment. 0: not known. */
    uint64_t covered;
    bool can_revoke;      /* the bytes of all chunks are in memory: there is no disk tier */
    bool has_old_journal; /* the mode has no journal, but journal files exist */
    bool is_unsure;       /* it is not known whether CURRENT names the newest or the previous
                             checkpoint */
    rp_catalogue catalogue;
    uint64_t *damaged; /* ascending numbers of the segments that the next checkpoint must
                          vacate. A checkpoint that succeeds empties the list */
    size_t damaged_count, damaged_capacity;
    rp_progress_meter *meter;
    /* The data directory possibly has changes of rollouts (named buffers of groups of items,
     * reprise/rollouts.h). The log of the store sets this flag before the first such change. */
    atomic_bool uses_rollouts;
    /* The disk is full: the checkpoint ends the open segment, and also vacates segments with
     * less dead data than usual (checkpoint.h). Afterwards only this checkpoint and the journal
     * after it are kept. */
    bool is_short;
    bool moves_nothing; /* there is no space to move chunks, so only damaged segments are
                           vacated */
    bool rewrites;      /* every block is written, even if it has not changed */
    /* A checkpoint on a full disk has moved chunks and failed, and no checkpoint has succeeded
     * since. The moved chunks stay at their new locations, so the next checkpoint moves
     * none. */
    bool has_moved_in_vain;
    /* A checkpoint on a full disk has failed, and no checkpoint has succeeded since. The failed
     * checkpoint has set `live` of the segments in the catalogue, and new_bytes to the bytes of
     * the chunks that it had to write. */
    bool knows_live;
    uint64_t new_bytes;
    uint64_t largest; /* for a full disk: upper bound of the bytes of records of a checkpoint
                         with every block (disk/reserve.h, invariants R2 and R3) */
    uint64_t largest_rollouts; /* the part of `largest` for rollouts */
    uint64_t spare;      /* further bytes that new chunks must leave free (invariant R3) */
    uint64_t free_files; /* number of files that can be created on a full disk (invariant R5);
                            RP_FILES_UNBOUND: inodes are not short */
    uint64_t segment_bytes; /* maximum size of a segment; 0: not known */
    uint64_t max_moved;     /* limit of the bytes moved, for tests; 0: the default */
} rp_checkpointer;

typedef struct rp_checkpoint_result {
    uint64_t number, lsn;
    int64_t pause_ns;                          /* time for which all tables were locked */
    uint64_t bytes;                            /* bytes written to segments and the manifest */
    uint64_t segments, disk_bytes, live_bytes; /* totals of the segments to which the checkpoint
                                                  refers */
    uint64_t moved_bytes;                      /* bytes moved by compaction */
    bool is_swept; /* files that are no longer needed were removed; otherwise the next
                      checkpoint retries */
} rp_checkpoint_result;

#endif
