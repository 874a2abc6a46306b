/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: removes files that are no longer needed once a checkpoint is live. Only files in
 * the catalogue are removed, and of those:
 *
 *   manifests   all but the newest `keep`
 *   rollouts    those of checkpoints that are neither kept nor in quarantine
 *   segments    those that no kept manifest lists and that were dead before the cut of the base
 *   journal     files whose changes are all in the base
 *
 * The base is the checkpoint for which the journal is kept. With a journal, the base is the
 * checkpoint before the newest: if the newest is damaged, the base and the journal still
 * contain everything. Without a journal, or on a full disk, the base is the newest checkpoint;
 * on a full disk no other manifest is kept.
 *
 * A segment must be dead before the cut: journal records after the cut may refer to a chunk
 * that died later, and redo needs that chunk. */
#ifndef RP_DURABLE_CHECKPOINT_RETENTION_H
#define RP_DURABLE_CHECKPOINT_RETENTION_H

#include "durable/checkpoint/checkpointer.h"

/* Marks the segments that are dead before the cut of checkpoint `number`: no chunk in memory
 * has its location in them, and they are no longer written. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_retention_mark_dead(rp_checkpointer *c, uint64_t number,
                                              rp_error *err);
/* On a full disk: revokes the segments that the newest checkpoint does not need and that were
 * written before its cut, and marks them dead before the cut of checkpoint `number`. At that
 * cut, no chunk of these segments was in a table. Chunks of inserts that wait, perhaps for the
 * space of these very segments, and chunks that a client keeps for later items keep them alive.
 * Revoking a segment takes the location from its chunks (rp_segments_revoke()). They are
 * written again when an item with them enters a table. Segments whose chunks have entered a
 * table since that cut are spared (is_spared): the reserve may have no space to write these
 * chunks again. */
void rp_retention_revoke(rp_checkpointer *c, uint64_t number);
/* True if there are segments to revoke, unless they are spared. */
bool rp_retention_may_revoke(const rp_checkpointer *c);

/* Removes files that are no longer needed. Files that cannot be removed stay in the catalogue.
 * Returns the status of the first failure. */
RP_NODISCARD rp_status rp_retention_apply(rp_checkpointer *c);

/* Removes the files of rollouts that belong to no checkpoint of the catalogue and to none in
 * quarantine. Call it when the manifests of these checkpoints are removed durably. Files of
 * other stores stay. Returns the status of the first failure. */
rp_status rp_retention_drop_rollouts(const rp_catalogue *c, rp_files *files,
                                     const rp_store_id *id);

/* On a full disk: makes space before a new checkpoint is written. If a restart needs the newest
 * checkpoint only, removes the same files as rp_retention_apply(), and also dead segments that
 * the checkpoint does not need but that died after its cut: compaction has vacated them.
 *
 * If a restart needs more than the newest checkpoint, nothing is removed. It needs more if a
 * journal file has a record after the checkpoint, if files of an old journal exist, or if
 * CURRENT may name the checkpoint before it. */
void rp_retention_sweep(rp_checkpointer *c);

/* At the start: removes the segments that no checkpoint needs and that have no chunk. A
 * checkpoint on a full disk that an earlier process did not finish has left them. */
void rp_retention_drop_blocks(rp_checkpointer *c);

/* Checks that the file of a segment has as many bytes as a manifest needs.
 * RP_CORRUPT (the file is smaller), RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_check_segment_size(rp_files *files,
                                             const rp_manifest_segment *segment, rp_error *err);

#endif
