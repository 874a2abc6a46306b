/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a chunk that has only the requested rows of another chunk, so that only these rows are
 * sent.
 *
 * The result is a new chunk with the rows [first, first + count) of the original chunk. Its
 * key, episode, columns, codec and delta encoding are the same. If the original has exactly one
 * row for each step, the result has the steps [first, first + count) of the original's range of
 * steps. Otherwise the result has the whole range of steps of the original. The original is not
 * changed. */
#ifndef RP_WIRE_ROW_CUT_H
#define RP_WIRE_ROW_CUT_H

#include "chunk/chunk_api.h"

/* Estimates the number of bytes that a cut would decompress and copy. Returns 0 if the chunk
 * should not be cut, for one of these reasons: the cut cannot save a quarter of the chunk's
 * bytes, the columns have different numbers of rows, or the first step is negative. The rows
 * must exist. */
size_t rp_row_cut_cost(const rp_chunk *chunk, size_t first, size_t count);

/* Cuts a chunk for which rp_row_cut_cost() is not 0. `decoder` can cache the decompressed
 * bytes. The caller owns `*out`, which is NULL if the cut saves less than a quarter of the
 * chunk's bytes. Errors: RP_CORRUPT (the chunk cannot be decoded), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_row_cut(const rp_allocator *alloc, rp_decoder *decoder,
                                  const rp_chunk *chunk, size_t first, size_t count,
                                  rp_chunk **out, rp_error *err);

#endif
