/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the bytes of chunks (chunk_api.h) that are kept outside tables.
 *
 * An insert stream keeps chunks for later items. An insert that waits for its table keeps the
 * chunks of its items. A kept chunk can at the same time be held by tables. Invariant:
 *
 *   N1  budget.kept is the memory of all chunks that are kept and that no table holds (`budget`
 *       is the memory budget of the store).
 *
 * A chunk that a table holds is part of budget.used instead. So the store counts a chunk once,
 * even if a stream and a table use it at the same time.
 *
 * A chunk has two counters: `keeps` is how many times it is kept, and `waits` how many of the
 * keeps are by waiting items. The counters are not atomic, since only one thread keeps a chunk:
 * the thread of the stream that sent it.
 *
 * rp_chunk_keep() and rp_chunk_unkeep() return the change of budget.kept, modulo SIZE_MAX + 1.
 * The caller adds up the changes of many chunks for one rp_budget_add_kept(). */
#ifndef RP_CHUNK_KEEP_H
#define RP_CHUNK_KEEP_H

#include <assert.h>

#include "chunk/chunk.h"

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

    assert(chunk->keeps > 0);
    if (--chunk->keeps > 0) return 0;
    before = atomic_fetch_and_explicit(&chunk->holders.state, ~RP_HOLDERS_KEPT,
                                       memory_order_relaxed);
    return rp_holders_in(before) == 0 ? (size_t)0 - rp_chunk_memory(chunk) : 0;
}

#endif
