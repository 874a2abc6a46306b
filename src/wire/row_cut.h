/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a chunk to the requested rows, so that only those are sent.
 *
 * The result is a chunk with rows [first, first + count) of the original, and its key, episode,
 * columns, codec and delta encoding. Its steps are those of its rows; if the original lacks
 * steps, their range stays that of the original. Pure functions over chunks. */
#ifndef RP_WIRE_ROW_CUT_H
#define RP_WIRE_ROW_CUT_H

#include "chunk/chunk_api.h"

/* The bytes that a cut would decompress and copy, about. 0 if the chunk should not be cut: a
 * cut could not save a quarter of it, or its columns have different rows. The rows must exist.
 */
size_t rp_row_cut_cost(const rp_chunk *chunk, size_t first, size_t count);

/* Cuts a chunk whose cost is not 0. `decoder` may keep the decompressed bytes. `*out` is owned,
 * or NULL if the cut saves less than a quarter.
 * RP_CORRUPT (its bytes cannot be decoded), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_row_cut(const rp_allocator *alloc, rp_decoder *decoder,
                                  const rp_chunk *chunk, size_t first, size_t count,
                                  rp_chunk **out, rp_error *err);

#endif
