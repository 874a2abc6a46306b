/* SPDX-License-Identifier: Apache-2.0 */
/* The disk tier bounds the memory that the chunks of a store take (max_memory): it keeps the
 * bytes of some chunks only on disk, in segments (disk/segments.h). When an item with such a
 * chunk is sampled, the tier reads a copy of the chunk.
 *
 * The bytes of a chunk, its wire bytes, are the serialised message with its rows
 * (chunk/chunk.h). A chunk of 1 KiB or more has its wire bytes in a separate block. So they can
 * be freed while the chunk, with the types and shapes of its columns, stays in memory. A thread
 * that reads the bytes of a chunk of a table must pin them (rp_chunk_pin()). The thread that
 * writes the bytes to disk for the first time need not pin them, since bytes are not freed
 * before they are on stable storage. Samples get views: a view is another chunk with the same
 * bytes, and keeps the bytes in memory while it exists.
 *
 * A chunk is in one of four states:
 *
 *   dirty     in memory, not known to be on stable storage
 *   writing   dirty, and being written by the spiller
 *   clean     in memory and on stable storage: bytes that are not pinned can be freed
 *   spilled   only on disk. The chunk stays in this state: reading its bytes back creates
 *             another chunk, which the read cache holds
 *
 * A chunk enters the tier when the first item of any table refers to it (in recovery before
 * that, with rp_tier_admit()), and leaves the tier when the last item that refers to it is
 * removed. The limit for chunks in memory is max_memory less the size of the read cache. An
 * insert that does not fit waits until the tier has freed enough bytes, even if the store's
 * policy for full memory is to evict items or to fail. (This policy belongs to the store's
 * budget, whose limit max_bytes counts all bytes, including those on disk.) A thread, the
 * spiller, frees the bytes of chunks, the oldest first. It starts when more than three quarters
 * of the limit are used and stops at three fifths. If a large insert waits, the spiller starts
 * earlier and goes on until this insert fits. The read cache (by default an eighth of
 * max_memory) has the chunks that were read back recently.
 *
 * The limit also includes data that always stays in memory: items, chunks below 1 KiB, and the
 * part of every other chunk that is not its wire bytes. All of them count as in the store's
 * budget (rp_trajectory_cost()). If this data alone leaves no space for an insert, freeing the
 * bytes of chunks would not help. Only in this case does the policy of the store's budget
 * decide whether the insert evicts items from its table, waits, or fails.
 *
 * The limit does not include:
 *
 *   - samples that readers hold, and waiting inserts;
 *   - for each inserting thread, one item and about 1 MiB of chunks, as long as the table has
 *     not reported them to the tier;
 *   - chunks that no table holds any more and that a segment keeps until they are synced;
 *   - memory that the allocator keeps after it was freed.
 *
 * If the disk cannot be written, chunks stay in memory, inserts wait when memory is full, and
 * on_event reports the trouble. Once a second the spiller tries to write again, even if memory
 * is not full and no insert waits, so that it can report the end of the trouble. If a record
 * cannot be read, only the call that sampled it fails. */
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

/* Makes a tier and starts its threads. Errors: RP_INVALID, RP_PRECONDITION (the store holds
 * chunks or has a tier), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_new(const rp_tier_options *options, rp_tier **out,
                                   rp_error *err);
/* Frees the tier. The caller ensures that no thread uses the store any more and that no load is
 * pending. Afterwards spilled chunks cannot be read. Samples that readers hold stay valid. NULL
 * is fine. */
void rp_tier_free(rp_tier *tier);

/* For recovery: adds a chunk to the tier before a table holds it. The chunk must have been read
 * from stable storage and have its location (rp_segments_adopt()), so the tier need not write
 * it. If the admitted chunks, including this one, take more than three fifths of the limit, the
 * tier frees the bytes of this chunk at once. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_tier_admit(rp_tier *tier, rp_chunk *chunk);

/* Reads the chunks of samples into memory. Returns true if nothing has to be read: then the
 * samples are in memory already, and on_done is not called. Otherwise returns false, and
 * load->on_done is called later, when the samples are in memory or a read has failed. Tables
 * call this function for items that are sampled or looked up. */
bool rp_tier_start_load(rp_tier *tier, rp_tier_load *load);
/* Reads the chunks of samples into memory, and waits until they are read. */
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

/* For tests: returns true if the invariants of tier_inside.h hold. */
bool rp_tier_check(rp_tier *tier);

#endif
