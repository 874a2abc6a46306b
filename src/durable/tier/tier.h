/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier: if the chunks of a store have more than max_memory bytes, it keeps the bytes
 * of some of them only in segments on disk until they are sampled.
 *
 * A chunk of 1 KiB or more has its wire bytes in a separate block. So the bytes can be freed
 * while the chunk, with the types and shapes of its columns, stays in memory. A thread that
 * reads the bytes of a chunk of a table must pin them (rp_chunk_pin()). The thread that writes
 * them to disk for the first time need not, since they are not freed before they are on stable
 * storage. Samples get views: a view is another chunk with the same bytes, and keeps the bytes
 * in memory while it exists.
 *
 * A chunk is in one of four states:
 *
 *   dirty     in memory, not known to be on stable storage
 *   writing   dirty, and being written by the spiller
 *   clean     in memory and on stable storage: bytes that are not pinned can be freed
 *   spilled   only on disk, for ever: reading it back creates another chunk
 *
 * A chunk enters the tier with the first item of any table that refers to it, and leaves with
 * the last such item. The limit for chunks in memory is max_memory less the size of the read
 * cache. An insert that does not fit waits, whatever the policy of the store's own budget is.
 * That budget still counts all bytes, including those on disk. A thread, the spiller, frees
 * chunks, the oldest first. It starts when three quarters of the limit are used and stops at
 * three fifths. If a large insert waits, the spiller starts earlier and goes on until this
 * insert fits. The read cache, an eighth of max_memory, has the chunks that were read back
 * recently.
 *
 * Chunks below 1 KiB count too, but their bytes always stay in memory. If these chunks leave no
 * space for an insert, the policy of the store's budget decides: the insert evicts items from
 * its table, waits, or fails.
 *
 * Items and heads of chunks count as in the store's budget (rp_trajectory_cost()). The limit
 * does not include: samples that readers hold; waiting inserts; for each inserting thread,
 * about 1 MiB of chunks and one item that the table has not reported to the tier yet; chunks
 * that no table holds any more and that a segment keeps until they are synced; memory that the
 * allocator keeps after it was freed.
 *
 * If the disk cannot be written, chunks stay in memory, inserts wait when memory is full, and
 * on_event reports the trouble. The spiller retries once a second until a write succeeds, even
 * if memory is not full, so that the trouble ends without an insert. If a record cannot be
 * read, only the call that sampled it fails. */
#ifndef RP_DURABLE_TIER_TIER_H
#define RP_DURABLE_TIER_TIER_H

#include "disk/segments.h"
#include "store/store.h"
#include "table/spill.h"

typedef struct rp_tier rp_tier;
typedef rp_sample_load rp_tier_load;

typedef struct rp_tier_options {
    const rp_allocator *alloc; /* NULL: the store's */
    rp_store *store;           /* borrowed; not in use yet, with empty tables */
    rp_segments *segments;     /* borrowed. Store and segments must outlive the tier */
    uint64_t max_memory;       /* > 0 */
    uint64_t cache_bytes;      /* part of max_memory for the read cache; 0: an eighth */
    size_t readers;            /* number of threads that read chunks; 0: 16 */
    /* Reports trouble, or its end. Called on a thread of the tier. May be NULL. */
    void (*on_event)(void *ctx, bool degraded, const char *text);
    void *ctx;
} rp_tier_options;

/* Makes a tier and starts its threads. RP_INVALID, RP_PRECONDITION (the store holds chunks or
 * has a tier), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_new(const rp_tier_options *options, rp_tier **out,
                                   rp_error *err);
/* Frees the tier. No thread may use the store any more, and no load may be pending. Afterwards
 * spilled chunks cannot be read. Samples that readers hold stay valid. NULL is fine. */
void rp_tier_free(rp_tier *tier);

/* For recovery: adds a chunk to the tier before a table holds it. The chunk must have been read
 * from stable storage and have its location (rp_segments_adopt()). So the tier need not write
 * the chunk, and frees its bytes at once if memory is short. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_admit(rp_tier *tier, rp_chunk *chunk);

/* Brings samples into memory. Returns true if this needs no read: the samples are in memory,
 * and on_done is not called. Otherwise load->on_done is called later, when the samples are in
 * memory or a read has failed. Tables call this function for items that are sampled or looked
 * up. */
bool rp_tier_start_load(rp_tier *tier, rp_tier_load *load);
/* Brings samples into memory, and waits for the reads. */
RP_NODISCARD rp_status rp_tier_load_now(rp_tier *tier, rp_sample *samples, size_t count,
                                        rp_error *err);

typedef struct rp_tier_info {
    uint64_t limit; /* limit of resident_bytes */
    uint64_t resident_bytes, spilled_bytes;
    uint64_t cached_bytes;      /* bytes in the read cache */
    uint64_t loads, load_bytes; /* number and bytes of the chunks read from disk */
    uint64_t cache_hits;
    uint64_t written_bytes; /* bytes of the chunks that the tier has written to disk */
    bool degraded;
} rp_tier_info;

void rp_tier_get_info(rp_tier *tier, rp_tier_info *out);

/* For tests: true if the invariants of tier_inside.h hold. */
bool rp_tier_check(rp_tier *tier);

#endif
