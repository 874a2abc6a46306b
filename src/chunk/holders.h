/* SPDX-License-Identifier: Apache-2.0 */
/* How often each holder refers to a chunk.
 *
 * Items of one table share chunks, and a table must know when the first of its items brings a chunk
 * in and when the last one takes it away: that is when bytes are counted. A map from chunk to count
 * would cost a hash per item; instead a chunk has room for two holders in itself, and only a chunk
 * that three tables share at once sends the third to a map of its own.
 *
 *   entry   | id (0: free) | count |      x 2
 *
 * An id is an address that only its holder has. Ids are claimed and freed by compare-and-swap. A count
 * belongs to the holder whose id stands beside it and is changed only under that holder's lock, so it
 * needs no atomics; the release that frees an id and the acquire that claims it hand the count over.
 *
 * All holders of a chunk share one budget, the first that took it: bytes are counted there once. */
#ifndef RP_CHUNK_HOLDERS_H
#define RP_CHUNK_HOLDERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { RP_INLINE_HOLDERS = 2 };

typedef struct rp_holders {
    atomic_uintptr_t ids[RP_INLINE_HOLDERS];
    uint32_t counts[RP_INLINE_HOLDERS];
    atomic_uint_least32_t total; /* holders with a count > 0, wherever it is kept */
    atomic_uintptr_t budget;     /* 0 until the first holder; then for good */
} rp_holders;

#endif
