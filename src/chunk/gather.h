/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering: copies one column of many small items into one array, without a decoder.
 *
 * Items of a replay are drawn at random, so their memory is in no cache. The time goes into
 * waiting for it, unless the memory of later items is prefetched while earlier ones are
 * copied. */
#ifndef RP_CHUNK_GATHER_H
#define RP_CHUNK_GATHER_H

#include "chunk/trajectory.h"

/* Copies column `column` of the trajectories to `dst`, one after the other, as long as each has
 * `column_count` columns (0: any number above `column`) and, in this column, one slice of plain
 * rows with the dtype, the shape and the bytes of `like`. Returns the number of trajectories
 * that were copied: the next one is of another kind, and a decoder says what is wrong with it,
 * or decodes it. With a NULL `dst` it only counts them. Copies none if `like` has strings, no
 * bytes, or so many bytes that prefetching does not help. */
size_t rp_gather_plain(const rp_trajectory *const *trajectories, size_t count, size_t column,
                       size_t column_count, const rp_trajectory_column *like, uint8_t *dst);

/* Prefetches the trajectories, then the rows to which their extents lead (J3 of trajectory.h):
 * before several columns of the same trajectories are gathered. */
void rp_gather_fetch(const rp_trajectory *const *trajectories, size_t count);

#endif
