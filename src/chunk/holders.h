/* SPDX-License-Identifier: Apache-2.0 */
/* How often each holder refers to a chunk.
 *
 * Items of one table share chunks, and a table must know when the first of its items brings a
 * chunk in and when the last one takes it away: that is when bytes are counted. A map from
 * chunk to count would cost a hash per item; instead a chunk has room for two holders in
 * itself, and only a chunk that three tables share at once sends the third to a map of its own.
 *
 *   state    | id of entry 1 (16) | id of entry 0 (16) | kept (1) | holders in all (31) |
 *            id 0: free
 *   counts   | of entry 0 | of entry 1 |
 *
 * The state changes as one word, by compare-and-swap. A count belongs to the holder whose id
 * stands in its entry and is changed only under that holder's lock, so it needs no atomics; the
 * release that frees an entry and the acquire that claims it hand the count over.
 *
 * `kept`: a stream that inserts keeps the chunk, or an insert that waits refers to it. It
 * stands in the same word, so that of a table that lets the chunk go and a stream that does so
 * at the same time exactly one is the last (chunk/keep.h).
 *
 * All holders of a chunk share one budget, the first that took it: bytes are counted there
 * once, and ids are unique within it. */
#ifndef RP_CHUNK_HOLDERS_H
#define RP_CHUNK_HOLDERS_H

#include <stdatomic.h>
#include <stdint.h>

enum { RP_INLINE_HOLDERS = 2 };

#define RP_HOLDERS_KEPT ((uint64_t)1 << 31) /* in the state */

/* Holders in all, of a state. */
static inline uint32_t rp_holders_in(uint64_t state)
{
    return (uint32_t)(state & (RP_HOLDERS_KEPT - 1));
}

typedef struct rp_holders {
    atomic_uint_least64_t state;
    uint32_t counts[RP_INLINE_HOLDERS];
    atomic_uintptr_t budget; /* 0 until the first holder; then for good */
} rp_holders;

/* Holders in all. */
static inline uint32_t rp_holders_count(const rp_holders *holders)
{
    return rp_holders_in(atomic_load_explicit(&holders->state, memory_order_acquire));
}

#endif
