/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a chunk under another key.
 *
 * Writers choose the keys of their chunks. A message that has chunks of two writers under one
 * key needs another key for one of them. */
#ifndef RP_WIRE_CHUNK_REKEY_H
#define RP_WIRE_CHUNK_REKEY_H

#include "chunk/chunk_api.h"

/* Makes a copy of a chunk that differs from it only in the key. Does not decode the data.
 * Returns owned. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_rekey(const rp_allocator *alloc, const rp_chunk *chunk,
                                      uint64_t key, rp_chunk **out, rp_error *err);

#endif
