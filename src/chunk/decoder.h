/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the decoder (chunk_api.h) that do not check their arguments, for callers that
 * have checked them. */
#ifndef RP_CHUNK_DECODER_H
#define RP_CHUNK_DECODER_H

#include "chunk/chunk.h"

/* Finds rows [offset, offset + length) of a column and decodes them if necessary. The rows must
 * exist, and `length` must not be 0. `*rows` is borrowed, and valid until the next call with
 * this decoder. Errors: RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_decoder_find(rp_decoder *decoder, const rp_chunk *chunk,
                                       size_t column, size_t offset, size_t length,
                                       const uint8_t **rows, rp_error *err);

/* Copies rows [offset, offset + length) of a column to `dst`. The rows must exist; `length` may
 * be 0. Errors: RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_decoder_copy(rp_decoder *decoder, const rp_chunk *chunk,
                                       size_t column, size_t offset, size_t length, void *dst,
                                       rp_error *err);

/* Sets whether the decoder uses non-temporal stores (util/copy.h), which are faster if the
 * output is larger than the processor's caches. A new decoder does not use them. */
void rp_decoder_set_large(rp_decoder *decoder, bool is_large);

#endif
