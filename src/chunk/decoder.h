/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder without argument checks, for callers that have checked the arguments. */
#ifndef RP_CHUNK_DECODER_H
#define RP_CHUNK_DECODER_H

#include "chunk/chunk.h"

/* Finds rows [offset, offset + length) of a column and decodes them if necessary. They must
 * exist and not be empty. `*rows` is borrowed and valid until the next call with this decoder.
 * RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_decoder_find(rp_decoder *decoder, const rp_chunk *chunk,
                                       size_t column, size_t offset, size_t length,
                                       const uint8_t **rows, rp_error *err);

/* Copies rows [offset, offset + length) of a column, which must exist (empty is fine), to
 * `dst`. RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_decoder_copy(rp_decoder *decoder, const rp_chunk *chunk,
                                       size_t column, size_t offset, size_t length, void *dst,
                                       rp_error *err);

/* If `is_large`, the decoder writes with non-temporal stores (util/copy.h): for outputs that
 * exceed the caches. Off at first. */
void rp_decoder_set_large(rp_decoder *decoder, bool is_large);

#endif
