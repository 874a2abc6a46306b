/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a chunk to the rows that somebody wants, so that only those travel.
 *
 * What comes out is a chunk like any other, with rows [first, first + count) of the original as
 * its rows: the same key, episode, columns, codec and delta encoding. Its steps are those of
 * its rows; where steps are missing nobody knows which those are, and the range stays that of
 * the original. Pure functions over chunks. */
#ifndef RP_WIRE_ROW_CUT_H
#define RP_WIRE_ROW_CUT_H

#include "chunk/chunk_api.h"

/* About how many bytes a cut would decompress and copy, or 0 if the chunk should travel as it
 * is: a cut could not save a quarter of it, or its columns differ in their rows. The rows must
 * exist. */
size_t rp_row_cut_cost(const rp_chunk *chunk, size_t first, size_t count);

/* Cuts a chunk whose cost is not 0. `decoder` is for use by one thread; it may keep what it has
 * decompressed. `*out` is owned, or NULL if the cut turned out to save less than a quarter.
 * RP_CORRUPT (its bytes cannot be decoded), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_row_cut(const rp_allocator *alloc, rp_decoder *decoder,
                                  const rp_chunk *chunk, size_t first, size_t count,
                                  rp_chunk **out, rp_error *err);

#endif
