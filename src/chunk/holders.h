/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the references of tables (holders) to a chunk.
 *
 * Items of one table share chunks, and a table counts the bytes of a chunk once, from its first
 * item to its last. A map from chunk to count would cost a hash per item; instead a chunk has
 * two entries for holders, and only the third table that shares a chunk uses a map of its own.
 *
 *   state    | id of entry 1 (16) | id of entry 0 (16) | holders in all (32) |     id 0: free
 *   counts   | of entry 0 | of entry 1 |
 *
 * The state changes as one word, by compare-and-swap. A count belongs to the holder whose id is
 * in its entry and is changed only under that holder's lock, so it needs no atomics. The
 * release store that frees an entry and the acquire load that claims it transfer the count.
 *
 * All holders of a chunk share one budget, the first that claimed it: the budget counts the
 * bytes once, and ids are unique within it. */
#ifndef RP_CHUNK_HOLDERS_H
#define RP_CHUNK_HOLDERS_H

#include <stdatomic.h>
#include <stdint.h>

enum { RP_INLINE_HOLDERS = 2 };

typedef struct rp_holders {
    atomic_uint_least64_t state;
    uint32_t counts[RP_INLINE_HOLDERS];
    atomic_uintptr_t budget; /* 0 until a budget claims the chunk; then constant */
} rp_holders;

/* The number of holders. */
static inline uint32_t rp_holders_count(const rp_holders *holders)
{
    return (uint32_t)atomic_load_explicit(&holders->state, memory_order_acquire);
}

#endif
