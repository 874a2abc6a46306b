/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier: chunks beyond max_memory lie in segments until they are sampled.
 *
 * Chunks of 1 KiB and more have their wire bytes in a block of their own, so that these can go
 * while the chunk, with its columns, stays. In a store with a tier nobody but the tier, and
 * whoever writes a chunk that has never been written, reads a table's chunks: samples are given
 * views, chunks of their own over bytes that are held as long as they are used.
 *
 *   dirty     in memory, not known to be safe in a segment
 *   writing   the same, and on its way there
 *   clean     in memory and, synced, in a segment: can go if nobody has it pinned
 *   spilled   in a segment only: for good, what is read back is a chunk of its own
 *
 * Chunks enter with the first item of any table that refers to them and leave with the last.
 * Those in memory count against max_memory less the share of the read cache; an insert for
 * which there is no room waits, whatever the policy of the store's own budget, which goes on
 * counting all bytes. A thread spills, oldest first, from three quarters full down to three
 * fifths, or as far as an insert that waits needs. The read cache, an eighth of max_memory,
 * keeps what was read last.
 *
 * Chunks below 1 KiB count and never go to disk. If there is no room for an insert beside them,
 * the policy of the store's budget decides: the insert evicts from its table, waits or fails.
 *
 * Items and heads of chunks count as they do in the store's budget (rp_trajectory_cost()). What
 * is not counted: samples that readers hold; inserts that wait; for each thread that inserts,
 * about 1 MiB and one item that the tier does not know of yet; chunks that no table holds any
 * more and that are still on their way to a segment, which keeps them until they are synced.
 * Nor is memory that the allocator keeps after it was freed.
 *
 * A disk that cannot be written: chunks stay in memory, inserts wait when it is full, and
 * on_event tells. The thread tries again once a second until a write succeeds, whether memory
 * is full or not, so that the tier does not stay degraded when nothing is inserted. A record
 * that cannot be read fails the call that drew it, and nothing else. */
#ifndef RP_DURABLE_TIER_TIER_H
#define RP_DURABLE_TIER_TIER_H

#include "disk/segments.h"
#include "store/store.h"
#include "table/spill.h"

typedef struct rp_tier rp_tier;
typedef rp_sample_load rp_tier_load;

typedef struct rp_tier_options {
    const rp_allocator *alloc; /* NULL: the store's */
    rp_store *store;           /* whose tables are empty and which nobody uses yet */
    rp_segments *segments;     /* both are borrowed and outlive it */
    uint64_t max_memory;       /* > 0 */
    uint64_t cache_bytes;      /* of it; 0: as above */
    size_t readers;            /* threads; 0: 16 */
    /* Something a person should know, or that it is well again. On a thread of the tier's. */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void *ctx;
} rp_tier_options;

/* RP_INVALID, RP_PRECONDITION (the store holds chunks or has a tier), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_new(const rp_tier_options *options, rp_tier **out,
                                   rp_error *err);
/* When nobody uses the store any more and no load is under way; what is spilled cannot be read
 * from then on. Samples in their readers' hands stay good. NULL is fine. */
void rp_tier_free(rp_tier *tier);

/* For recovery, before a table holds it: the chunk has been read from the location where it is,
 * on stable storage (rp_segments_adopt()), so it need not be written, and its bytes go at once
 * if memory is full enough. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_admit(rp_tier *tier, rp_chunk *chunk);

/* Brings samples into memory. True if it is done at once, with nothing to be read: on_done is
 * not called. Tables do that by themselves for what is drawn or looked up. */
bool rp_tier_start_load(rp_tier *tier, rp_tier_load *load);
/* The same, waiting. */
RP_NODISCARD rp_status rp_tier_load_now(rp_tier *tier, rp_sample *samples, size_t count,
                                        rp_error *err);

typedef struct rp_tier_info {
    uint64_t limit; /* of resident_bytes */
    uint64_t resident_bytes, spilled_bytes;
    uint64_t cached_bytes;      /* in the read cache */
    uint64_t loads, load_bytes; /* chunks read from disk */
    uint64_t cache_hits;
    uint64_t written_bytes; /* of chunks that the tier had put on disk */
    bool degraded;
} rp_tier_info;

void rp_tier_get_info(rp_tier *tier, rp_tier_info *out);

/* True if every invariant (tier_inside.h) holds: for tests. */
bool rp_tier_check(rp_tier *tier);

#endif
