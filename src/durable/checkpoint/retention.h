/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: when CURRENT names a new checkpoint, removes the files that are no longer needed.
 * Manifests and segments are removed only if they are in the catalogue (catalogue.h). Removes:
 *
 *   manifests   all but the newest `keep`
 *   rollouts    the files of checkpoints that are neither kept nor in quarantine, the folder
 *               for checkpoints that recovery could not load
 *   segments    those that no kept manifest lists and that were dead (see below) before the
 *               cut (the snapshot of the tables) of the base
 *   journal     files whose changes are all contained in the base
 *
 * The base is the checkpoint from which the journal is kept. With a journal, the base is the
 * second newest checkpoint: if the newest is damaged, the base and the journal together still
 * contain all changes. Without a journal, or on a full disk, the base is the newest checkpoint.
 * On a full disk no other manifest is kept.
 *
 * A segment is dead if it is no longer written and no chunk in memory has its location in it.
 * To be removed, the segment must be dead before the cut of the base. If a chunk in it was
 * freed only after this cut, journal records after the cut can refer to the chunk, and redo
 * needs it. */
#ifndef RP_DURABLE_CHECKPOINT_RETENTION_H
#define RP_DURABLE_CHECKPOINT_RETENTION_H

#include "durable/checkpoint/checkpointer.h"

/* Marks the segments that are dead before the cut of checkpoint `number`. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_retention_mark_dead(rp_checkpointer *c, uint64_t number,
                                              rp_error *err);
/* On a full disk: revokes segments, and marks them dead before the cut of checkpoint `number`.
 * Revokes the segments that were written before the cut of the newest checkpoint and that the
 * newest checkpoint does not need: at that cut, no chunk of these segments was in a table.
 * These segments are alive only because of chunks of waiting inserts (which possibly wait for
 * the space of these segments) and chunks that a client keeps for later items. Revoking a
 * segment takes the locations from its chunks (rp_segments_revoke()). A chunk without a
 * location is written again when an item that refers to it enters a table. A segment is spared
 * (is_spared) if one of its chunks has entered a table since the cut of the newest checkpoint,
 * since the reserve may have no space to write this chunk again. */
void rp_retention_revoke(rp_checkpointer *c, uint64_t number);
/* Returns true if there are segments that rp_retention_revoke() would revoke if none were
 * spared. */
bool rp_retention_may_revoke(const rp_checkpointer *c);

/* Removes files that are no longer needed. Files that cannot be removed stay in the catalogue.
 * Returns the status of the first failure. */
RP_NODISCARD rp_status rp_retention_apply(rp_checkpointer *c);

/* Removes the files of rollouts that belong neither to a checkpoint of the catalogue nor to a
 * checkpoint in quarantine. The caller must have made the removal of the manifests durable
 * before. Files of other stores stay. Returns the status of the first failure. */
rp_status rp_retention_drop_rollouts(const rp_catalogue *c, rp_files *files,
                                     const rp_store_id *id);

/* On a full disk: makes space before a new checkpoint is written. If a restart needs only the
 * newest checkpoint, removes the files that rp_retention_apply() removes. Also removes the
 * segments that compaction has vacated: the newest checkpoint does not need them, and they are
 * dead since its cut.
 *
 * If a restart needs more than the newest checkpoint, removes nothing. A restart needs more in
 * three cases: a journal file has a record with an LSN after the checkpoint, files of an old
 * journal exist, or CURRENT possibly names the previous checkpoint. */
void rp_retention_sweep(rp_checkpointer *c);

/* When the directory is opened: removes the segments that no checkpoint needs and that have no
 * chunk. They are left over from a checkpoint on a full disk that an earlier process did not
 * finish. */
void rp_retention_drop_blocks(rp_checkpointer *c);

/* Checks that the file of a segment has as many bytes as a manifest needs. Errors: RP_CORRUPT
 * (the file is smaller), RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_check_segment_size(rp_files *files,
                                             const rp_manifest_segment *segment, rp_error *err);

#endif
