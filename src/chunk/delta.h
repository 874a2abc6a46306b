/* SPDX-License-Identifier: Apache-2.0 */
/* Delta encoding of a chunk: each row of an integer column is replaced by its difference from
 * the previous row.
 *
 *   plain     a0  a1       a2       ...      one row of `cols` elements each
 *   encoded   a0  a1 - a0  a2 - a1  ...      modulo 2^bits
 *
 * Encoding and decoding work in place and cannot fail. Decoding gives exactly the rows that
 * were encoded, even if differences overflow. The first k rows of the plain column depend only
 * on the first k encoded rows. */
#ifndef RP_CHUNK_DELTA_H
#define RP_CHUNK_DELTA_H

#include "reprise/tensor.h"

/* Returns true if delta encoding applies to a column of this dtype and shape: the dtype is one
 * of the eight integer types, and the rank, with the rows as the first dimension, is at least
 * 2. Other columns of a delta-encoded chunk stay plain. */
bool rp_delta_applies(rp_dtype dtype, const rp_shape *shape);

/* Encode or decode `rows` rows of `row_bytes` bytes at `data`. An element has `element_bytes`
 * bytes (1, 2, 4 or 8). `data` needs no alignment. */
void rp_delta_encode(void *data, size_t rows, size_t row_bytes, size_t element_bytes);
void rp_delta_decode(void *data, size_t rows, size_t row_bytes, size_t element_bytes);

#endif
