/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks that are kept outside of tables.
 *
 * A stream keeps chunks for items to come, and an insert that waits for its table keeps those
 * of its items. A table may hold the same chunks. Invariant:
 *
 *   K1  a chunk counts in the budget's `kept` exactly while somebody keeps it and no table
 * holds
 *       it; while a table holds it, it counts in the budget's `used`.
 *
 * So its bytes are in one of the two, whichever goes first. Whoever keeps a chunk is on one
 * thread, that of the stream which has brought it: `keeps` and `waits` need no atomics. What
 * the functions return is for rp_budget_add_kept(), once for many chunks. */
#ifndef RP_CHUNK_KEEP_H
#define RP_CHUNK_KEEP_H

#include "chunk/chunk.h"

/* One more keeps it, or one less. Returns the change of `kept`, modulo SIZE_MAX + 1. */
static inline size_t rp_chunk_keep(rp_chunk *chunk)
{
    uint64_t before;

    if (chunk->keeps++ > 0) return 0;
    before =
        atomic_fetch_or_explicit(&chunk->holders.state, RP_HOLDERS_KEPT, memory_order_relaxed);
    return rp_holders_in(before) == 0 ? rp_chunk_memory(chunk) : 0;
}

static inline size_t rp_chunk_unkeep(rp_chunk *chunk)
{
    uint64_t before;

    if (--chunk->keeps > 0) return 0;
    before = atomic_fetch_and_explicit(&chunk->holders.state, ~RP_HOLDERS_KEPT,
                                       memory_order_relaxed);
    return rp_holders_in(before) == 0 ? (size_t)0 - rp_chunk_memory(chunk) : 0;
}

#endif
