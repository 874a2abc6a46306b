/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering: copies one column of many small items into one array, without a decoder
 * (chunk_api.h).
 *
 * Sampled items are drawn at random, so their memory is in no cache of the processor. Without
 * prefetching, most of the time would be spent waiting for memory. Therefore the memory of
 * later items is prefetched while earlier items are copied. */
#ifndef RP_CHUNK_GATHER_H
#define RP_CHUNK_GATHER_H

#include "chunk/trajectory.h"

/* Copies column `column` of the trajectories to `dst`, one after the other, and stops before
 * the first trajectory that does not match. A trajectory matches if it has `column_count`
 * columns (0: any number above `column`), and if this column is one slice of plain rows with
 * the dtype, the shape and the bytes of `like`. Returns the number of trajectories that were
 * copied. The caller passes the first trajectory that was not copied to a decoder, which
 * decodes it or reports an error. If `dst` is NULL, only counts the trajectories that it would
 * copy. Copies none if `like` has strings, has no bytes, or has so many bytes that prefetching
 * does not help. */
size_t rp_gather_plain(const rp_trajectory *const *trajectories, size_t count, size_t column,
                       size_t column_count, const rp_trajectory_column *like, uint8_t *dst);

/* Prefetches the trajectories, and then the rows whose addresses are stored in the trajectories
 * (invariant J3 of trajectory.h). A caller uses this before it gathers several columns of the
 * same trajectories. */
void rp_gather_fetch(const rp_trajectory *const *trajectories, size_t count);

#endif
