/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a chunk to the requested rows, so that only these rows are sent.
 *
 * The result is a new chunk with the rows [first, first + count) of the original chunk. Its
 * key, episode, columns, codec and delta encoding are the same. Its range of steps is the range
 * of its rows; but if the original does not have exactly one row for each step, the result has
 * the range of the original. The original is not changed. */
#ifndef RP_WIRE_ROW_CUT_H
#define RP_WIRE_ROW_CUT_H

#include "chunk/chunk_api.h"

/* Estimates the number of bytes that a cut would decompress and copy. 0 if the chunk should not
 * be cut: the cut could not save a quarter of it, its columns have different numbers of rows,
 * or its first step is negative. The rows must exist. */
size_t rp_row_cut_cost(const rp_chunk *chunk, size_t first, size_t count);

/* Cuts a chunk for which rp_row_cut_cost() is not 0. `decoder` may cache the decompressed
 * bytes. `*out` is owned, or NULL if the cut saves less than a quarter.
 * RP_CORRUPT (the chunk cannot be decoded), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_row_cut(const rp_allocator *alloc, rp_decoder *decoder,
                                  const rp_chunk *chunk, size_t first, size_t count,
                                  rp_chunk **out, rp_error *err);

#endif
