/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a checkpoint (docs/checkpoint.md, "Order of writing"):
 *
 *   1  takes a cut: a consistent snapshot of all tables, with the last LSN (log sequence
 *      number) of the journal
 *   2  writes the rollouts (named buffers of groups of items, reprise/rollouts.h) to a file.
 *      Puts chunks that are not on disk, and changed blocks (each has 256 slots of a table),
 *      into segments (append-only files); syncs the segments
 *   3  writes the manifest under a temporary name, reads it back, checks and renames it
 *   4  replaces the file CURRENT, which names the checkpoint to load, in the same way as step 3
 *   5  removes old manifests and rollouts, unused segments and old journal files
 *
 * If a step fails, the previous checkpoint is unchanged and the partial files are removed. On a
 * full disk, segments that have only blocks of the failed checkpoint are also removed.
 *
 * Compaction: a part of a segment is live if tables still need it. Step 2 vacates segments of
 * which less than a quarter (on a full disk, less than three quarters) is live. To vacate a
 * segment, step 2 moves the live chunks to another segment, and writes again the blocks that
 * are in the vacated segment or refer to moved chunks. One checkpoint moves at most 64 MiB, and
 * at most a quarter of the free space.
 *
 * On a full disk (rp_checkpointer.is_short) a checkpoint first queues its records in memory, to
 * find out its size. When the queue has 64 MiB, or has the whole checkpoint, the checkpoint
 * writes the queue, but only if the whole checkpoint fits on the disk (disk/reserve.h,
 * invariant R2). For this test, a block that is not queued yet counts with the upper bound of
 * its size. The checkpoint writes the last part of the queue only if enough space remains for
 * the next checkpoint (invariant R3). */
#ifndef RP_DURABLE_CHECKPOINT_CHECKPOINT_H
#define RP_DURABLE_CHECKPOINT_CHECKPOINT_H

#include "durable/checkpoint/checkpointer.h"

/* Returns an upper bound of the bytes of CURRENT and of the list of segments in the manifest,
 * including the unused ends of file system blocks. */
uint64_t rp_checkpoint_files(const rp_checkpointer *c);

/* Writes a checkpoint and fills in `out`. Errors: RP_NO_RESOURCE (disk or memory),
 * RP_UNAVAILABLE, RP_CORRUPT (the manifest does not read back as it was written). */
RP_NODISCARD rp_status rp_checkpoint_write(rp_checkpointer *c, rp_checkpoint_result *out,
                                           rp_error *err);

#endif
