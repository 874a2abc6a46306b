/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of inserts and samples that the three files which implement them share. An
 * insert or a sample is an operation, an rp_op (table/op.h). An operation that has to wait is
 * parked: it is in a queue of its table.
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

/* Returns true if one side of the table must wait for another reason than the rate limiter.
 * `side` is RP_SIDE_INSERTS or RP_SIDE_SAMPLES. There are three reasons: the side is paused;
 * too many events wait for deferred extensions (events.c); or the log is behind (is_behind() in
 * log_record.h). */
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
    /* The reference that the table gets; NULL once the table has taken it. */
    rp_trajectory *trajectory;
    size_t evicted; /* items evicted for this item because of max_size */
    uint32_t tag;
    bool is_offered; /* the reference is the one that the caller of the insert offered
                        (RP_INSERT_TAKE). Otherwise rp_insert_prepare() has added it */
} rp_prepared;

/* Checks all items of an insert before the first item is inserted. Items are inserted in
 * blocks, and rp_insert_prepare() checks each block. So if there is only one block, this
 * function does nothing. */
RP_NODISCARD rp_status rp_insert_check(const rp_table *t, rp_op *op, size_t block_size);

/* Prepares items [first, first + count) for rp_insert_block_locked(): checks them, computes
 * what needs no lock, and announces them to the log. After success the caller must call
 * rp_insert_clean_up(). Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_insert_prepare(const rp_table *t, rp_op *op, size_t first,
                                         size_t count, rp_prepared *block, rp_error *err);

/* Gives `claimed` bytes of disk space, which the log has reserved for a prepared block
 * (op->claimed), back to the log. Called after rp_account_publish() has counted the block's
 * items. */
void rp_insert_unclaim(const rp_table *t, uint64_t claimed);
/* Drops the references of a prepared block that the table did not take. For an item that was
 * not processed (index `done` or more), drops only a reference that rp_insert_prepare() has
 * added: the caller of the insert keeps a reference that it offered. */
void rp_insert_clean_up(const rp_prepared *block, size_t count, size_t done);

/* Returns how many items, from op->done on, to insert under one acquisition of the lock: at
 * least 1 and at most `most`. If there is more than one, they have at most RP_BLOCK_CHUNKS
 * chunks together. */
size_t rp_insert_block_size(const rp_op *op, size_t most);

/* Inserts a block of the operation's items, from op->done on. */
rp_progress rp_insert_block_locked(rp_table *t, rp_op *op, rp_prepared *block, size_t count,
                                   int64_t wall_ns) RP_REQUIRES(t->mu);

/* Called when an insert is complete; has an effect only if the insert was parked. For an item
 * that is inserted after the insert was parked, the table adds its own reference to the
 * trajectory. So this function drops the references to such trajectories that the caller of the
 * insert offered (RP_INSERT_TAKE). Must not be called under a lock. */
void rp_insert_finish(const rp_op *op);

/* Makes every allocation that inserting `count` items can need, so that the inserts cannot fail
 * half-way (invariant T3 in table.c). */
RP_NODISCARD rp_status rp_insert_reserve_locked(rp_table *t, const rp_insert *items,
                                                size_t count) RP_REQUIRES(t->mu);

/* Puts an item into a slot, and evicts the items over max_size. Cannot fail. */
void rp_insert_link_locked(rp_table *t, const rp_insert *item, rp_prepared *p, int64_t wall_ns)
    RP_REQUIRES(t->mu);

/* Continues a parked insert by one or two blocks. */
rp_progress rp_insert_resume_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu);

/* Checks the options of a sample. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_sample_check(const rp_table *t, rp_op *op);

/* Returns the number of samples that the operation must have drawn before it may complete. */
size_t rp_sample_least(const rp_op *op);

/* Computes the importance weights of a completed sample. Must not be called under a lock. */
void rp_sample_finish(rp_op *op);

/* Draws as many items as the operation wants and the table allows now. */
rp_progress rp_sample_run_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu);

#endif
