/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a checkpoint (docs/checkpoint.md, "Order of writing"):
 *
 *   1  takes a cut of all tables, with the LSN of the journal
 *   2  writes the rollouts to a file (checkpoint_rollouts.c); puts chunks that are not on disk,
 *      and blocks (256 slots of a table each) that changed, into segments; syncs them
 *   3  writes the manifest under a temporary name, reads it back, checks and renames it
 *   4  replaces CURRENT the same way
 *   5  removes old manifests and rollouts, unused segments and old journal files
 *
 * If a step fails, the checkpoint before it is unchanged and the partial files are removed. On
 * a full disk these include the segments that have only blocks of the failed checkpoint.
 *
 * Compaction: step 2 vacates segments of which less than a quarter is live, or less than three
 * quarters if the disk is full. To vacate a segment, it moves the live chunks to another
 * segment, and writes again the blocks that are in the vacated segment or refer to those
 * chunks. It moves at most 64 MiB in one checkpoint, and at most a quarter of the free space.
 *
 * On a full disk (is_short) a checkpoint first queues its records in memory, to learn its size.
 * It writes the queue when the queue has 64 MiB, or the whole checkpoint, and only if the whole
 * checkpoint fits (disk/reserve.h, R2); blocks that are not queued yet count with their upper
 * bound. It writes the last part only if that leaves enough space for the next one (R3). */
#ifndef RP_DURABLE_CHECKPOINT_CHECKPOINT_H
#define RP_DURABLE_CHECKPOINT_CHECKPOINT_H

#include "durable/checkpoint/checkpointer.h"

/* An upper bound on the bytes of CURRENT and of the list of segments in the manifest, including
 * the unused ends of file system blocks. */
uint64_t rp_checkpoint_files(const rp_checkpointer *c);

/* RP_NO_RESOURCE (disk or memory), RP_UNAVAILABLE, RP_CORRUPT (the manifest does not read back as
 * it was written). */
RP_NODISCARD rp_status rp_checkpoint_write(rp_checkpointer *c, rp_checkpoint_result *out,
                                           rp_error *err);

#endif
