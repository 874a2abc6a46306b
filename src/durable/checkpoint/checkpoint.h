/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a checkpoint (docs/checkpoint.md, "Order of writing"):
 *
 *   1  a cut of all tables, with the journal's number
 *   2  chunks that are not on disk yet, and blocks that changed, go to segments, synced on the
 *      way
 *   3  the manifest, under a temporary name; it is read again and checked, then renamed
 *   4  CURRENT, the same way
 *   5  only now: manifests beyond those kept, segments that nobody needs, journal files
 *
 * Whatever fails, the checkpoint before is as it was, and what is half written is removed.
 *
 * Compaction: segments of which less than a quarter is live are emptied on the way, or three
 * quarters if the disk is full. Blocks that lie there or refer to chunks there are written
 * anew, and those chunks move: at most 64 MiB in one checkpoint, and a quarter of the free
 * room.
 *
 * On a full disk (is_short) a checkpoint is put together in the queue of the segments before a
 * byte of it is written, up to 64 MiB, and then written only if there is room for all of it
 * (disk/reserve.h, R2) and if enough room remains for the next one (R3). */
#ifndef RP_DURABLE_CHECKPOINT_CHECKPOINT_H
#define RP_DURABLE_CHECKPOINT_CHECKPOINT_H

#include "disk/journal.h"
#include "durable/checkpoint/catalogue.h"
#include "reprise/durable.h"
#include "store/store.h"

/* Told what a long operation is at. */
typedef struct rp_progress_meter {
    void (*on_progress)(void *ctx, const rp_durable_progress *progress);
    void *ctx;
    rp_durable_progress now;
    int64_t started_ns, told_ns;
} rp_progress_meter;

void rp_progress_begin(rp_progress_meter *m, const char *what, uint64_t total);
/* Tells, at most ten times a second, and when all is done. */
void rp_progress_add(rp_progress_meter *m, uint64_t done);
/* The same by how much is done now; never goes back. */
static inline void rp_progress_reach(rp_progress_meter *m, uint64_t done)
{
    if (done > m->now.done) rp_progress_add(m, done - m->now.done);
}
void rp_progress_end(rp_progress_meter *m);

/* More than the changes of a journal's torn tail: what begins behind a leap follows on nothing
 * that is there. */
#define RP_LSN_LEAP (UINT64_C(1) << 32)

/* One for a data directory. One thread at a time. */
typedef struct rp_checkpointer {
    const rp_allocator *alloc;
    rp_files *files;
    rp_segments *segments;
    rp_journal *journal; /* NULL: none, or none yet */
    bool has_journal;    /* the mode has one */
    rp_store *store;
    rp_store_id id;
    size_t keep;
    uint64_t last_number;  /* of any manifest ever written here */
    uint64_t lsn;          /* while there is no journal: the last number used */
    uint64_t next_segment; /* those from here on were made since, and are not yet in the
                              catalogue */
    bool has_old_journal;  /* the mode has none, but files of one are there */
    bool is_unsure;        /* CURRENT may name the newest checkpoint, or the one before */
    rp_catalogue catalogue;
    uint64_t
        *damaged; /* segments that the next one must leave, ascending; then there are none */
    size_t damaged_count, damaged_capacity;
    rp_progress_meter *meter;
    /* The disk is full: the open segment is ended, segments are emptied that have less dead
     * than usual, and of checkpoints and the journal only what the new one needs is kept. */
    bool is_short;
    bool moves_nothing; /* only damaged segments are emptied: there is no room to move chunks */
    uint64_t reserve;   /* bytes that are to be free after one on a full disk (R3) */
    uint64_t max_moved; /* for tests; 0: as said above */
} rp_checkpointer;

typedef struct rp_checkpoint_result {
    uint64_t number, lsn;
    int64_t pause_ns; /* all tables stood still for so long */
    uint64_t bytes;   /* written to segments and the manifest */
    uint64_t segments, disk_bytes, live_bytes;
    uint64_t moved_bytes;
    bool is_swept; /* what nobody needs any more has gone; if not, the next one tries again */
} rp_checkpoint_result;

/* RP_NO_RESOURCE (disk or memory), RP_UNAVAILABLE, RP_CORRUPT
 * (what was written does not read back). */
RP_NODISCARD rp_status rp_checkpoint_write(rp_checkpointer *c, rp_checkpoint_result *out,
                                           rp_error *err);

#endif
