/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between tables and a disk tier (durable/tier/tier.h): the tables report chunks
 * that enter and leave them and ask for room in memory, and the tier reads samples into memory
 * before they are delivered. Without a tier this costs a branch. */
#ifndef RP_TABLE_SPILL_H
#define RP_TABLE_SPILL_H

#include <stdatomic.h>

#include "chunk/chunk_api.h"
#include "table/op.h"

/* Reads samples into memory. The caller fills in the fields before `status`, zeroes the others,
 * and owns the struct until the load is complete. */
typedef struct rp_sample_load {
    rp_sample *samples; /* their trajectories are replaced by ones whose chunks are in memory,
                           with the same columns and bytes. NULL trajectories stay NULL */
    size_t count;
    size_t max_bytes; /* of the chunks that are read, and of the memory to keep track of all
                         chunks; 0: no bound. A load over it is RP_NO_RESOURCE and reads nothing
                       */
    void (*on_done)(struct rp_sample_load *load); /* on a thread of the tier, with no lock held;
                                                     it must not wait */
    void *user;
    rp_status status; /* RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE, RP_NO_RESOURCE: the samples
                         are unchanged */
    rp_error error;
    void *job; /* private */
} rp_sample_load;

typedef struct rp_spill rp_spill;
struct rp_spill {
    /* Reports chunks that have got their first holder (a table that refers to them:
     * chunk/holders.h) or lost their last one. Their holders may have changed again meanwhile,
     * so the tier tests whether a chunk has holders. Called under the lock of the table that
     * changed, before the table drops its references; cannot fail. Only chunks whose bytes can
     * go to disk are reported. With `count` 0, reports only that `small` has changed and
     * `resident` is over three quarters of `limit`. */
    void (*moved)(rp_spill *spill, rp_chunk *const *chunks, size_t count);
    /* Reports that an insert waits until `bytes` more fit into memory. When they fit, or after
     * a while if they do not, the tier makes the tables try their waiting inserts again. For an
     * insert that still does not fit, this is called again. Called under the lock of the
     * table. */
    void (*make_room)(rp_spill *spill, uint64_t bytes);
    /* Starts a load. Returns true if nothing has to be read: the load is complete, and on_done
     * is not called. */
    bool (*start_load)(rp_spill *spill, rp_sample_load *load);
    uint64_t limit;                /* on `resident`; constant */
    atomic_uint_fast64_t resident; /* bytes of tables in memory */
    atomic_uint_fast64_t small; /* the part of `resident` that never goes to disk: items, chunk
                                   headers and small chunks */
    atomic_bool is_failing;     /* the disk cannot be written */
};

/* Loads samples and waits for completion. */
RP_NODISCARD rp_status rp_spill_load(rp_spill *spill, rp_sample *samples, size_t count,
                                     rp_error *err);

/* Reads the samples of a completed operation into memory, if there is a tier. If reading fails,
 * the samples are released and the operation fails. Returns true if reading is over. Returns
 * false if a thread of the tier reads the samples and then calls op->on_done: it may do so
 * before this function returns, so the operation may be freed already. Not under a lock. */
bool rp_op_load(rp_op *op);

/* Looks items up, which does not count as sampling: out[i] is the item of keys[i], or has a
 * NULL trajectory if there is none. probability and weight are 0. Release the results with
 * rp_samples_release().
 * RP_CANCELLED (closed; nothing to release). */
RP_NODISCARD rp_status rp_table_peek(rp_table *table, const uint64_t *keys, size_t count,
                                     rp_sample *out, size_t *found, rp_error *err);

/* Looks items up like rp_table_peek(), but reads nothing from disk: rp_table_start_load() must
 * follow. */
RP_NODISCARD rp_status rp_table_peek_unread(rp_table *table, const uint64_t *keys, size_t count,
                                            rp_sample *out, size_t *found, rp_error *err);
/* Reads samples of a table into memory and waits for that. If it fails, the samples are
 * unchanged. */
RP_NODISCARD rp_status rp_table_load(rp_table *table, rp_sample *samples, size_t count,
                                     rp_error *err);
bool rp_table_has_tier(const rp_table *table);
/* Reads samples of a table into memory. Returns true if the load is complete at once; then
 * on_done is not called. */
bool rp_table_start_load(rp_table *table, rp_sample_load *load);

#endif
