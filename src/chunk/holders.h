/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the holders of each chunk (chunk_api.h) and the references of each holder. A holder of
 * a chunk is a table with items that refer to the chunk.
 *
 * Items of one table share chunks. A table counts the bytes of a chunk once, from the insert of
 * the first item that refers to the chunk to the removal of the last such item. A map from
 * chunk to count would cost a hash look-up per item. Instead a chunk has two entries for
 * holders. If both entries are in use, each further holder counts its references in a map
 * (rp_account.spilled, table/account.h).
 *
 *   state    | id of entry 1 (16) | id of entry 0 (16) | kept (1) | holders in all (31) |
 *            id 0: free
 *   counts   | of entry 0 | of entry 1 |
 *
 * The state changes as one word, by compare-and-swap. The count of an entry belongs to the
 * holder whose id is in the entry. It is changed only under that holder's lock, so it need not
 * be atomic. A table frees an entry with release order, and the next table claims it with
 * acquire order. So the next table reads the count that the previous table has written.
 *
 * `kept` says that an insert stream or a waiting insert keeps the chunk (chunk/keep.h). The bit
 * is in the same word as the number of holders. So if a table and a stream release the chunk at
 * the same time, they agree on which of them was the last.
 *
 * All holders of a chunk belong to one memory budget (rp_budget, table/account.h): the first
 * budget that has claimed the chunk. The budget counts the bytes of the chunk once. Ids are
 * unique within a budget. */
#ifndef RP_CHUNK_HOLDERS_H
#define RP_CHUNK_HOLDERS_H

#include <stdatomic.h>
#include <stdint.h>

enum { RP_INLINE_HOLDERS = 2 };

#define RP_HOLDERS_KEPT ((uint64_t)1 << 31) /* the bit `kept` of the state */

/* Returns the number of holders in a state. */
static inline uint32_t rp_holders_in(uint64_t state)
{
    return (uint32_t)(state & (RP_HOLDERS_KEPT - 1));
}

typedef struct rp_holders {
    atomic_uint_least64_t state;
    uint32_t counts[RP_INLINE_HOLDERS];
    atomic_uintptr_t budget; /* 0 until a budget claims the chunk; then constant */
} rp_holders;

/* Returns the number of holders. */
static inline uint32_t rp_holders_count(const rp_holders *holders)
{
    return rp_holders_in(atomic_load_explicit(&holders->state, memory_order_acquire));
}

#endif
