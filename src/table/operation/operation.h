/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of inserts and samples (operations, table/op.h), shared by the three files that
 * implement them:
 *
 *   operation.c   starts operations, parks them, resumes them, completes them
 *   insert.c      inserts items
 *   draw.c        draws samples */
#ifndef RP_TABLE_OPERATION_OPERATION_H
#define RP_TABLE_OPERATION_OPERATION_H

#include "table/table_log.h"

typedef enum rp_progress {
    RP_OVER,    /* complete: op->status is set */
    RP_BLOCKED, /* must wait */
    RP_READY,   /* can continue */
    RP_YIELD,   /* can continue, but should first release the lock, which it held for long */
} rp_progress;

/* The next two functions complete an operation with a status, and return RP_OVER. */
static inline rp_progress rp_op_end(rp_op *op, rp_status status)
{
    op->status = status;
    return RP_OVER;
}
rp_progress rp_op_end_out_of_memory(const rp_table *t, rp_op *op);

/* Returns true if inserts, or samples, must wait for another reason than the rate limiter: this
 * side of the table is paused, or deferred extensions or the log are behind. `side` is one of
 * RP_SIDE_.... */
static inline bool rp_op_is_held_up_locked(const rp_table *t, uint32_t side) RP_REQUIRES(t->mu);
static inline bool rp_op_is_held_up_locked(const rp_table *t, uint32_t side)
{
    const rp_table_log *log = rp_table_log_of(t);

    return (t->paused & side) != 0 || rp_events_is_behind_locked(t) ||
           (log != NULL && log->is_behind(log, (side & RP_SIDE_INSERTS) != 0));
}

/* The data of an item to insert that is computed without the lock. */
typedef struct rp_prepared {
    rp_weighed weighed;
    rp_trajectory *trajectory; /* a reference for the table; NULL once the table has taken it */
    size_t evicted;            /* items evicted for it */
    uint32_t tag;
    bool is_offered; /* the reference is the caller's (RP_INSERT_TAKE) */
} rp_prepared;

/* Checks all items of an operation before the first is inserted. If `block_size` is the number
 * of all items, does nothing, since rp_insert_prepare() checks the items of one block. */
RP_NODISCARD rp_status rp_insert_check(const rp_table *t, rp_op *op, size_t block_size);

/* Prepares items [first, first + count). After success the caller must call
 * rp_insert_clean_up().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_insert_prepare(const rp_table *t, rp_op *op, size_t first,
                                         size_t count, rp_prepared *block, rp_error *err);

/* Returns the disk space that the log reserved for a prepared block (op->claimed). Called after
 * rp_account_publish() has counted the block's items. */
void rp_insert_unclaim(const rp_table *t, uint64_t claimed);
/* Drops the references of a prepared block that the table did not take. The first `done` items
 * have been processed. For the others, the caller keeps the references that it offered. */
void rp_insert_clean_up(const rp_prepared *block, size_t count, size_t done);

/* Returns how many items, from op->done on, to insert under one acquisition of the lock: at
 * most `most` items, which have at most RP_BLOCK_CHUNKS chunks together, but at least one item.
 */
size_t rp_insert_block_size(const rp_op *op, size_t most);

/* Inserts a block of the operation's items, from op->done on. */
rp_progress rp_insert_block_locked(rp_table *t, rp_op *op, rp_prepared *block, size_t count,
                                   int64_t wall_ns) RP_REQUIRES(t->mu);

/* For an insert that was parked and is complete: drops the references that the caller offered
 * (RP_INSERT_TAKE) for the items inserted after it was parked, since the table has made its own
 * references to these. Must not be called under a lock. */
void rp_insert_finish(const rp_op *op);

/* Makes every allocation that inserting `count` items may need (T3 in table.c). */
RP_NODISCARD rp_status rp_insert_reserve_locked(rp_table *t, const rp_insert *items,
                                                size_t count) RP_REQUIRES(t->mu);

/* Puts an item into a slot. Cannot fail. */
void rp_insert_link_locked(rp_table *t, const rp_insert *item, rp_prepared *p, int64_t wall_ns)
    RP_REQUIRES(t->mu);

/* Continues a parked insert by one or two blocks. */
rp_progress rp_insert_resume_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu);

/* Checks the options of a sample. RP_INVALID. */
RP_NODISCARD rp_status rp_sample_check(const rp_table *t, rp_op *op);

/* Returns the number of samples that the operation must have drawn before it may complete. */
size_t rp_sample_least(const rp_op *op);

/* Computes the importance weights of a completed sample. Must not be called under a lock. */
void rp_sample_finish(rp_op *op);

/* Draws as many items as the operation wants and the table allows now. */
rp_progress rp_sample_run_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu);

#endif
