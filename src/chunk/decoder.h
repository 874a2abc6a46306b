/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder without its checks, for readers that have made theirs. */
#ifndef RP_CHUNK_DECODER_H
#define RP_CHUNK_DECODER_H

#include "chunk/chunk.h"

/* Finds rows that exist and are not empty, decoding them if need be. `*rows` is borrowed and
 * valid until the next call with this decoder. RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_decoder_find(rp_decoder *decoder, const rp_chunk *chunk,
                                       size_t column, size_t offset, size_t length,
                                       const uint8_t **rows, rp_error *err);

/* Copies rows that exist (empty is fine) to `dst`. The same statuses. */
RP_NODISCARD rp_status rp_decoder_copy(rp_decoder *decoder, const rp_chunk *chunk,
                                       size_t column, size_t offset, size_t length, void *dst,
                                       rp_error *err);

/* Whether what is copied is part of so much that it is written past the caches (util/copy.h).
 * At first it is not. */
void rp_decoder_set_large(rp_decoder *decoder, bool is_large);

#endif
