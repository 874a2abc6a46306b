/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier: keeps the bytes of chunks beyond max_memory in segments until they are
 * sampled.
 *
 * Chunks of 1 KiB and more have their wire bytes in a separate block, so that the bytes can be
 * freed while the chunk stays, with the types and shapes of its columns. A thread that reads
 * the bytes of a chunk of a table must pin them (rp_chunk_pin()), except the thread that writes
 * them to disk for the first time: they are not freed before they are on stable storage.
 * Samples get views. A view is another chunk with the same bytes; it keeps them in memory while
 * it exists.
 *
 * A chunk is in one of four states:
 *
 *   dirty     in memory, not known to be on stable storage
 *   writing   dirty, and being written by the spiller
 *   clean     in memory and on stable storage: the bytes can be freed unless they are pinned
 *   spilled   on disk only, and never in memory again: reading it back creates another chunk
 *
 * A chunk enters the tier with the first item of any table that refers to it, and leaves with
 * the last. The limit for chunks in memory is max_memory less the size of the read cache. An
 * insert that does not fit waits, whatever the policy of the store's own budget; that budget
 * still counts all bytes, those on disk included. A thread, the spiller, frees the oldest
 * chunks first: it starts when three quarters of the limit are used and stops at three fifths,
 * or when a waiting insert fits. The read cache, an eighth of max_memory, has chunks that were
 * read back recently.
 *
 * Chunks below 1 KiB count as well, but their bytes never leave memory. If they leave no space
 * for an insert, the policy of the store's budget decides: the insert evicts from its table,
 * waits or fails.
 *
 * Items and heads of chunks count as in the store's budget (rp_trajectory_cost()). Not counted
 * are: samples that readers hold; waiting inserts; for each inserting thread about 1 MiB of
 * chunks and one item, which the table has not reported to the tier yet; chunks that no table
 * holds any more and that a segment keeps until they are synced; memory that the allocator
 * keeps after it was freed.
 *
 * If the disk cannot be written, chunks stay in memory, inserts wait when the memory is full,
 * and on_event reports the trouble. The spiller retries once a second until a write succeeds,
 * even if memory is not full, so that the tier does not stay degraded without inserts. A record
 * that cannot be read fails only the call that sampled it. */
#ifndef RP_DURABLE_TIER_TIER_H
#define RP_DURABLE_TIER_TIER_H

#include "disk/segments.h"
#include "store/store.h"
#include "table/spill.h"

typedef struct rp_tier rp_tier;
typedef rp_sample_load rp_tier_load;

typedef struct rp_tier_options {
    const rp_allocator *alloc; /* NULL: the store's */
    rp_store *store;           /* not in use yet, with empty tables. Borrowed */
    rp_segments *segments;     /* borrowed. Store and segments must outlive the tier */
    uint64_t max_memory;       /* > 0 */
    uint64_t cache_bytes;      /* part of max_memory for the read cache; 0: an eighth */
    size_t readers;            /* threads; 0: 16 */
    /* Reports trouble, or its end. Called on a thread of the tier. May be NULL. */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void *ctx;
} rp_tier_options;

/* RP_INVALID, RP_PRECONDITION (the store holds chunks or has a tier), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_new(const rp_tier_options *options, rp_tier **out,
                                   rp_error *err);
/* Call it when no thread uses the store any more and no load is pending. Spilled chunks cannot
 * be read afterwards; samples that readers hold stay valid. NULL is fine. */
void rp_tier_free(rp_tier *tier);

/* For recovery: adds a chunk to the tier before a table holds it. The chunk was read from
 * stable storage and has its location (rp_segments_adopt()). So the tier need not write the
 * chunk, and frees its bytes at once if memory is short. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_admit(rp_tier *tier, rp_chunk *chunk);

/* Brings samples into memory. Returns true if this needs no read: then the samples are in
 * memory and on_done is not called. Otherwise load->on_done is called when they are, or when a
 * read has failed. Tables call it themselves for items that are sampled or looked up. */
bool rp_tier_start_load(rp_tier *tier, rp_tier_load *load);
/* Brings samples into memory, and waits for the reads. */
RP_NODISCARD rp_status rp_tier_load_now(rp_tier *tier, rp_sample *samples, size_t count,
                                        rp_error *err);

typedef struct rp_tier_info {
    uint64_t limit; /* bound of resident_bytes */
    uint64_t resident_bytes, spilled_bytes;
    uint64_t cached_bytes;      /* in the read cache */
    uint64_t loads, load_bytes; /* chunks read from disk */
    uint64_t cache_hits;
    uint64_t written_bytes; /* of chunks that the tier has written to disk */
    bool degraded;
} rp_tier_info;

void rp_tier_get_info(rp_tier *tier, rp_tier_info *out);

/* True if the invariants of tier_inside.h hold: for tests. */
bool rp_tier_check(rp_tier *tier);

#endif
