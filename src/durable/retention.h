/* SPDX-License-Identifier: Apache-2.0 */
/* What may go once a checkpoint is the live one. Only files in the catalogue are removed, and
 * of those:
 *
 *   manifests   all but the newest `keep`
 *   segments    that no kept manifest lists, in which, before the cut, no chunk in memory had
 *               its place, and that are not written any more
 *   journal     files whose changes are all in the checkpoint
 *
 * Why before the cut: a chunk that dies after it may stand in the journal after the cut, and is
 * wanted when that is replayed. */
#ifndef RP_DURABLE_RETENTION_H
#define RP_DURABLE_RETENTION_H

#include "durable/checkpoint.h"

/* Segments in which nothing in memory has its place. */
typedef struct rp_dead_segments {
    uint64_t floor; /* from here on they are still written */
    uint64_t *numbers;
    size_t count, capacity;
} rp_dead_segments;

/* RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_dead_segments_find(rp_checkpointer *c, rp_dead_segments *out,
                                             rp_error *err);
void rp_dead_segments_deinit(const rp_checkpointer *c, rp_dead_segments *dead);

/* Removes what may go. What cannot be removed stays in the catalogue: the status of the first.
 */
RP_NODISCARD rp_status rp_retain(rp_checkpointer *c, const rp_dead_segments *dead,
                                 uint64_t lsn);

/* RP_CORRUPT (it is smaller than it should be), RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_check_segment_size(rp_files *files,
                                             const rp_manifest_segment *segment, rp_error *err);

#endif
