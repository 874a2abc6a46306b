/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier: chunks beyond max_memory lie in segments until they are sampled.
 *
 * Chunks of 1 KiB and more have their wire bytes in a block of their own, so that these can go
 * while the chunk, with its columns, stays. In a store with a tier nobody but the tier, and
 * whoever writes a chunk that has never been written, reads a table's chunks: samples are given
 * views, chunks of their own over bytes that are held as long as they are used.
 *
 *   dirty     in memory, not flushed to a segment
 *   clean     in memory and in a segment: can go if no view holds it
 *   spilled   in a segment only
 *
 * The budget of the store counts chunks that are in memory: what is spilled leaves it, which
 * wakes inserts that wait for bytes. A thread spills, oldest first, whenever the budget is more
 * than three quarters full; a read cache, a fixed share of max_memory, keeps what was loaded
 * last. */
#ifndef RP_DURABLE_TIER_H
#define RP_DURABLE_TIER_H

#include "disk/segments.h"
#include "store/store.h"

typedef struct rp_tier rp_tier;

/* Samples on their way into memory. The caller owns it until on_done. */
typedef struct rp_tier_load {
    rp_sample *samples; /* their trajectories are replaced by such that can be read; same
                           columns, same bytes */
    size_t count;
    void (*on_done)(struct rp_tier_load *load); /* on a thread of the tier's; status is set */
    void *user;
    rp_status
        status; /* RP_CORRUPT, RP_UNAVAILABLE, RP_NO_RESOURCE: then all are as they were */
    rp_error error;
    /* private */
    struct rp_tier_load *next;
    size_t left;
} rp_tier_load;

/* True if it is done at once, with nothing to be read: on_done is not called. */
bool rp_tier_start_load(rp_tier *tier, rp_tier_load *load);
/* The same, waiting. */
RP_NODISCARD rp_status rp_tier_load_now(rp_tier *tier, rp_sample *samples, size_t count,
                                        rp_error *err);

#endif
