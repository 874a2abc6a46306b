/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an operation, for the three files that make it up:
 *
 *   operation.c   starts operations, parks them, resumes them, ends them
 *   insert.c      inserts items
 *   draw.c        draws samples
 */
#ifndef RP_TABLE_OPERATION_OPERATION_H
#define RP_TABLE_OPERATION_OPERATION_H

#include "table/table_log.h"

typedef enum rp_progress {
    RP_OVER,    /* op->status is set */
    RP_BLOCKED, /* must wait */
    RP_READY,   /* so far so good, there is more */
    RP_YIELD,   /* there is more, but the lock was held for long enough */
} rp_progress;

/* Sets the status. Both return RP_OVER. */
static inline rp_progress rp_op_end(rp_op *op, rp_status status)
{
    op->status = status;
    return RP_OVER;
}
rp_progress rp_op_end_out_of_memory(const rp_table *t, rp_op *op);

/* True if operations of a side wait whatever the limiter says. */
static inline bool rp_op_is_held_up_locked(const rp_table *t, uint32_t side) RP_REQUIRES(t->mu);
static inline bool rp_op_is_held_up_locked(const rp_table *t, uint32_t side)
{
    const rp_table_log *log = rp_table_log_of(t);

    return (t->paused & side) != 0 || rp_events_is_behind_locked(t) ||
           (log != NULL && log->is_behind(log, (side & RP_SIDE_INSERTS) != 0));
}

/* An item with all that can be known about it without a lock. */
typedef struct rp_prepared {
    rp_weighed weighed;
    rp_trajectory *trajectory; /* a reference for the table, until it has taken it */
    size_t evicted;            /* how many items had to go for it */
    uint32_t tag;
    bool is_offered; /* the reference is the owner's own */
} rp_prepared;

/* Checks items before the first is inserted. An operation of one block, of `block_size` items,
 * is checked by preparing it. */
RP_NODISCARD rp_status rp_insert_check(const rp_table *t, rp_op *op, size_t block_size);

/* Prepares items [first, first + count). RP_INVALID, RP_NO_RESOURCE. After success,
 * rp_insert_clean_up(). */
RP_NODISCARD rp_status rp_insert_prepare(const rp_table *t, rp_op *op, size_t first,
                                         size_t count, rp_prepared *block, rp_error *err);

/* Drops the references that the table did not need, of a block of which the first `done` items
 * have been dealt with. What its owner offered and was not dealt with stays his. */
void rp_insert_clean_up(const rp_prepared *block, size_t count, size_t done);

/* How many items, from op->done on, to insert under one lock: at most `most`, and no more than
 * have
 * RP_BLOCK_CHUNKS chunks, but at least one. */
size_t rp_insert_block_size(const rp_op *op, size_t most);

/* Inserts a block of the operation's items, from op->done on. */
rp_progress rp_insert_block_locked(rp_table *t, rp_op *op, rp_prepared *block, size_t count,
                                   int64_t wall_ns) RP_REQUIRES(t->mu);

/* Drops the references that were offered to an insert which was parked and is over. Not under a
 * lock. */
void rp_insert_finish(const rp_op *op);

/* Every allocation that inserting `count` items into slots that are free may need (T3). */
RP_NODISCARD rp_status rp_insert_reserve_locked(rp_table *t, const rp_insert *items,
                                                size_t count) RP_REQUIRES(t->mu);

/* Puts an item into a slot. Cannot fail. */
void rp_insert_link_locked(rp_table *t, const rp_insert *item, rp_prepared *p, int64_t wall_ns)
    RP_REQUIRES(t->mu);

/* Goes on with a parked insert, for a block or two. */
rp_progress rp_insert_resume_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu);

/* RP_INVALID. */
RP_NODISCARD rp_status rp_sample_check(const rp_table *t, rp_op *op);

/* How many samples the operation must have before it may end. */
size_t rp_sample_least(const rp_op *op);

/* Fills in the weights of a sample that is over, and the bytes it holds. Not under a lock. */
void rp_sample_finish(rp_op *op);

/* Draws what can be drawn now. */
rp_progress rp_sample_run_locked(rp_table *t, rp_op *op) RP_REQUIRES(t->mu);

#endif
