/* SPDX-License-Identifier: Apache-2.0 */
/* What may go once a checkpoint is the live one. Only files in the catalogue are removed, and
 * of those:
 *
 *   manifests   all but the newest `keep`
 *   segments    that no kept manifest lists and that were dead before the cut of the base
 *   journal     files whose changes are all in the base
 *
 * The base is the checkpoint that the journal is kept for: the one before the newest, so that
 * it and the journal have everything if the newest is damaged. Without a journal, or if the
 * disk is full, the newest; and then no manifest but the newest is kept.
 *
 * Why before the cut: a chunk that dies after it may stand in the journal after the cut, and is
 * wanted when that is replayed. */
#ifndef RP_DURABLE_CHECKPOINT_RETENTION_H
#define RP_DURABLE_CHECKPOINT_RETENTION_H

#include "durable/checkpoint/checkpoint.h"

/* Notes which segments are dead before the cut of checkpoint `number`: nothing in memory has
 * its place in them, and they are not written any more. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_retention_note(rp_checkpointer *c, uint64_t number, rp_error *err);

/* Removes what may go. What cannot be removed stays in the catalogue: the status of the first.
 */
RP_NODISCARD rp_status rp_retain(rp_checkpointer *c);

/* On a full disk: removes what may go without a new checkpoint. If a restart needs the newest
 * checkpoint and nothing else, a segment that this one does not need and in which nothing in
 * memory has its place is needed by nothing, whenever it died; then it goes as well. That is
 * where compaction has emptied segments, and live data has filled the disk since.
 *
 * A restart needs more if a journal file has a record after that checkpoint, if files of an old
 * journal are there, or if CURRENT may name the checkpoint before. Then all of it stays. */
void rp_retention_sweep(rp_checkpointer *c);

/* RP_CORRUPT (it is smaller than it should be), RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_check_segment_size(rp_files *files,
                                             const rp_manifest_segment *segment, rp_error *err);

#endif
