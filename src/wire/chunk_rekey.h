/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a copy of a chunk that has another key.
 *
 * Writers choose the keys of their chunks. If chunks of two writers in one message have the
 * same key, one of these chunks is replaced by a copy with another key. */
#ifndef RP_WIRE_CHUNK_REKEY_H
#define RP_WIRE_CHUNK_REKEY_H

#include "chunk/chunk_api.h"

/* Copies `chunk`; only the key of the copy differs. Does not decode the data. The caller owns
 * `*out`. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_rekey(const rp_allocator *alloc, const rp_chunk *chunk,
                                      uint64_t key, rp_chunk **out, rp_error *err);

#endif
