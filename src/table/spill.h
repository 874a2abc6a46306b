/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between tables and a disk tier (durable/tier/tier.h), which keeps chunks on
 * disk that do not fit into memory. A chunk is a block of encoded steps, to which the items of
 * tables refer. The tables report to the tier which chunks enter and leave them, and ask the
 * tier for room in memory. The tier reads the chunks of samples into memory before the samples
 * are delivered. If there is no tier, this interface costs a branch. */
#ifndef RP_TABLE_SPILL_H
#define RP_TABLE_SPILL_H

#include <stdatomic.h>

#include "chunk/chunk_api.h"
#include "table/op.h"

/* A load: a request to read samples into memory. The caller fills in the fields before `status`
 * and zeroes the rest. The struct must stay valid until the load is complete. */
typedef struct rp_sample_load {
    rp_sample *samples; /* if a trajectory has chunks that can go to disk, the load replaces it.
                           The new trajectory has the same columns and bytes, and all of its
                           chunks are in memory. A trajectory NULL stays NULL */
    size_t count;
    size_t max_bytes; /* bound on the memory of the load: the bytes of the chunks to read, plus
                         bookkeeping for all chunks; 0: no bound. A load beyond the bound reads
                         nothing and fails with RP_NO_RESOURCE */
    void (*on_done)(struct rp_sample_load *load); /* called on a thread of the tier, with no
                                                     lock held; must not wait */
    void *user;
    rp_status status; /* result: RP_OK, RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE or
                         RP_NO_RESOURCE. Unless it is RP_OK, the samples are unchanged */
    rp_error error;
    void *job; /* private */
} rp_sample_load;

typedef struct rp_spill rp_spill;
struct rp_spill {
    /* Reports chunks that have got their first holder (a table that refers to the chunk,
     * chunk/holders.h) or lost their last holder. By the time of the call, another thread has
     * possibly changed the holders again, so the tier itself tests whether a chunk has holders.
     * The table that became or stopped being the holder calls this function under its own lock
     * (without it while the table is being freed). A table that stops being the holder still
     * has its references to the chunks during the call. The function cannot fail. Only chunks
     * whose bytes can go to disk are reported. A call with `count` 0 reports no chunk. It
     * reports that bytes have been added to or removed from the field `small` (below) and that
     * the field `resident` is over three quarters of the field `limit`. */
    void (*moved)(rp_spill *spill, rp_chunk *const *chunks, size_t count);
    /* Reports that an insert waits until `bytes` more bytes fit into memory. When they fit, or
     * after some time in any case, the tier makes the tables retry their waiting inserts. If
     * the insert still does not fit, the table calls make_room again. Called under the lock of
     * the table. */
    void (*make_room)(rp_spill *spill, uint64_t bytes);
    /* Starts a load. Returns true if nothing has to be read: the load is then complete, and
     * on_done is not called. */
    bool (*start_load)(rp_spill *spill, rp_sample_load *load);
    uint64_t limit; /* bound on `resident`; constant */
    /* Bytes of the tables' items and chunks that are in memory. */
    atomic_uint_fast64_t resident;
    atomic_uint_fast64_t small; /* the part of `resident` that never goes to disk: items, chunk
                                   headers and small chunks */
    atomic_bool is_failing;     /* the disk cannot be written */
};

/* Reads samples into memory and waits until the load is complete. */
RP_NODISCARD rp_status rp_spill_load(rp_spill *spill, rp_sample *samples, size_t count,
                                     rp_error *err);

/* Reads the samples of a completed operation (op.h) into memory, if there is a tier. If reading
 * fails, releases the samples and fails the operation. Returns true if there is nothing more to
 * read. If it returns false, a thread of the tier reads the samples and then calls op->on_done.
 * The caller must not use the operation after false, since on_done was possibly called already.
 * Must not be called under a lock. */
bool rp_op_load(rp_op *op);

/* Looks items up by key, which does not count as sampling. Sets out[i] to the item with the key
 * keys[i], with probability and weight 0. If there is no such item, the trajectory of out[i] is
 * NULL. Sets `*found` to the number of items found. The caller must release the results with
 * rp_samples_release(). Returns RP_CANCELLED if the table is closed; there is then nothing to
 * release. */
RP_NODISCARD rp_status rp_table_peek(rp_table *table, const uint64_t *keys, size_t count,
                                     rp_sample *out, size_t *found, rp_error *err);

/* Like rp_table_peek(), but reads nothing from disk. The caller must call rp_table_start_load()
 * before it uses the data of the items. */
RP_NODISCARD rp_status rp_table_peek_unread(rp_table *table, const uint64_t *keys, size_t count,
                                            rp_sample *out, size_t *found, rp_error *err);
/* Reads samples of a table into memory and waits until they are read. On failure the samples
 * are unchanged. */
RP_NODISCARD rp_status rp_table_load(rp_table *table, rp_sample *samples, size_t count,
                                     rp_error *err);
bool rp_table_has_tier(const rp_table *table);
/* Starts to read samples of a table into memory. If the load is complete at once, returns true
 * and does not call on_done. */
bool rp_table_start_load(rp_table *table, rp_sample_load *load);

#endif
