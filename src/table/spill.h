/* SPDX-License-Identifier: Apache-2.0 */
/* What tables ask of a disk tier (durable/tier/tier.h), if their store has one: to take note of
 * chunks that come and go, to say whether there is room in memory, and to bring samples into
 * memory before they are handed over. Without one this costs a branch. */
#ifndef RP_TABLE_SPILL_H
#define RP_TABLE_SPILL_H

#include <stdatomic.h>

#include "chunk/chunk_api.h"
#include "table/op.h"

/* Samples on their way into memory. The caller owns it, zeroed but for the first part, until it
 * is over. */
typedef struct rp_sample_load {
    rp_sample *samples; /* their trajectories are replaced by such that can be read; same
                           columns, same bytes. Those that are NULL stay so */
    size_t count;
    void (*on_done)(struct rp_sample_load *load); /* on a thread of the tier's, with no lock
                                                     held; it must not wait */
    void *user;
    rp_status status; /* RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE, RP_NO_RESOURCE: then all are
                         as they were */
    rp_error error;
    void *job; /* private */
} rp_sample_load;

typedef struct rp_spill rp_spill;
struct rp_spill {
    /* The first holder of these chunks has come, or the last gone, perhaps several times since:
     * the tier looks which it is. Under the lock of the table that was it, and before the table
     * lets go of the chunks; cannot fail. Only chunks whose bytes can go; none: memory has
     * become full of others. */
    void (*moved)(rp_spill *spill, rp_chunk *const *chunks, size_t count);
    /* An insert waits until so many bytes more fit into memory. It is given another try when
     * they do, or when that may take a while: if it still waits then, it asks again. Under its
     * table's lock. */
    void (*make_room)(rp_spill *spill, uint64_t bytes);
    /* True if it is over at once, with nothing to be read: on_done is not called. */
    bool (*start_load)(rp_spill *spill, rp_sample_load *load);
    uint64_t limit;                /* bytes of tables in memory; fixed at birth */
    atomic_uint_fast64_t resident; /* the same, now */
    atomic_uint_fast64_t small;    /* of these, what never goes to disk: items, heads of chunks,
                                      small chunks */
    atomic_bool is_failing;        /* the disk cannot be written */
};

/* Loads samples, waiting for it. */
RP_NODISCARD rp_status rp_spill_load(rp_spill *spill, rp_sample *samples, size_t count,
                                     rp_error *err);

/* For an operation that is over: brings in what it has drawn, if there is a tier. True: that
 * needed no wait. False: on_done will be called, and the operation may be gone already. If it
 * cannot be brought in, what was drawn is let go and the operation has failed. Not under a
 * lock. */
bool rp_op_bring_in(rp_op *op);

/* Looks items up without counting as sampling: out[i] is the item of keys[i], or has a NULL
 * trajectory if there is none. probability and weight are 0. Release as after sampling.
 * RP_CANCELLED (closed; nothing to release). */
RP_NODISCARD rp_status rp_table_peek(rp_table *table, const uint64_t *keys, size_t count,
                                     rp_sample *out, size_t *found, rp_error *err);

/* Looks items up like rp_table_peek(), but what is on disk stays there: rp_table_start_load()
 * comes next. */
RP_NODISCARD rp_status rp_table_peek_unread(rp_table *table, const uint64_t *keys, size_t count,
                                            rp_sample *out, size_t *found, rp_error *err);
bool rp_table_has_tier(const rp_table *table);
/* Brings in samples of a table. True if it is over at once; on_done is not called then. */
bool rp_table_start_load(rp_table *table, rp_sample_load *load);

#endif
