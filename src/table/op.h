/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: asynchronous inserts into a table and samples from it, for event loops. */
#ifndef RP_TABLE_OP_H
#define RP_TABLE_OP_H

#include "reprise/table.h"

/* A limit on the bytes of samples that are drawn but not delivered, which many operations may
 * share. It is needed because no table counts the bytes of a drawn item that is removed from
 * its table. All functions are called under the lock of a table, on any thread. They must not
 * block or call the library. */
typedef struct rp_draw_room rp_draw_room;
struct rp_draw_room {
    /* Takes between `least` and `most` bytes. Returns the number taken, or 0 if fewer than
     * `least` are left. */
    size_t (*take)(rp_draw_room *room, size_t least, size_t most);
    /* Gives back bytes that were taken. */ void (*give)(rp_draw_room *room, size_t bytes);
    /* Returns about how many bytes can be taken. The table picks no more items than fit. */
    size_t (*left)(const rp_draw_room *room);
};

/* An asynchronous operation. If it cannot complete at once, the table parks it and calls
 * on_done when it is complete. The caller must zero-initialise the struct and fill in the
 * fields before the results. The caller must hold a reference to the table. Until the operation
 * is complete, neither the struct nor the memory that it points to may be moved or freed. */
typedef struct rp_op rp_op;
struct rp_op {
    /* for an insert */
    const rp_insert *items;
    /* for a sample */
    const rp_sample_options *options;
    rp_sample *samples;
    /* NULL, or the limit against which the cost of each drawn item counts. If the limit is
     * reached, the sample completes with the items drawn so far, perhaps fewer than at_least.
     * If there are none, it fails with RP_NO_RESOURCE and sets `lacked_bytes`. */
    rp_draw_room *room;

    /* The deadline. With RP_NOW the operation does not wait for the rate limiter. A sample is
     * still read from disk: if on_done is set, the operation is complete after the read;
     * otherwise the call blocks for the read. */
    int64_t until_ns;
    /* Called once, with no lock held, if the operation was parked. The thread is the one whose
     * call let the operation proceed, or the one that read the last of its samples from disk.
     * May be called before rp_table_start_insert() or _sample() has returned. on_done may start
     * other operations, but must not wait for one. Must be set unless until_ns is RP_NOW. */
    void (*on_done)(rp_op *op);
    /* Called under the table's lock when an insert is parked, on the thread that started it.
     * Called again when some items of a parked insert have been inserted and the others wait.
     * Then `done` is the number of items inserted so far, and the function may complete the
     * operation by setting `count` to `done`. Never called after on_done. Must not block or
     * call the library. May be NULL. */
    void (*on_progress)(rp_op *op);
    void *user;
    uint64_t client; /* id of the client that waits for the operation; 0: this process */
    /* For an insert without a deadline: the caller's latest insert into this table that was
     * parked, or NULL. While that insert is parked, this one waits behind it, outside the
     * table's queue. Then this one enters the queue at the end. So a caller with many waiting
     * inserts has one place in the queue, and its inserts stay in order. Each operation may
     * have only one other behind it. The field is used until the call that starts the operation
     * returns. */
    rp_op *after;

    /* results: set when the operation is complete */
    size_t count; /* not a result: number of items of an insert. A sample uses options->count */
    size_t done;  /* items inserted or drawn */
    rp_status status;
    rp_error error;
    size_t refused;      /* if status is RP_INVALID: index of the item that caused it; else 0 */
    size_t held_bytes;   /* bytes taken from `room` for the samples. The caller must give them
                            back after it has released the samples */
    size_t lacked_bytes; /* if > 0, the operation ended because `room` had fewer bytes left */
    uint64_t lsn; /* log sequence number of the last journal record that the operation wrote or
                     depends on. The operation is durable when all records up to this one are
                     (reprise/durable.h). 0: no journal, or nothing was done */

    /* private */
    rp_table *table;
    rp_op *prev, *next;
    int64_t started_ns;
    rp_op *ahead, *behind; /* while parked: the operations before and behind it (`after`) */
    int64_t number;        /* its place in the queue; ascending */
    size_t parked_at;      /* `done` when it was parked */
    size_t turn_at;        /* `done` when it last went to the end of the queue */
    uint64_t claimed;      /* disk space that the log reserves for the block being inserted */
    size_t more_bytes;     /* part of held_bytes for items that are not drawn yet */
    bool is_insert, parked, was_parked;
    bool waits_for_disk; /* the journal had no room for the next items */
};

/* Each of these functions starts an operation. Returns true if the operation is complete: then
 * op->status is set, and on_done is not called. Returns false if the operation is parked. */
RP_NODISCARD bool rp_table_start_insert(rp_table *table, rp_op *op);
RP_NODISCARD bool rp_table_start_sample(rp_table *table, rp_op *op);

/* Cancels a parked operation. Returns true if this has completed the operation; then on_done is
 * not called. Its status is `status`, or RP_OK if a sample had drawn items. Returns false if
 * the operation was complete already, or on_done is about to be called. */
bool rp_op_withdraw(rp_op *op, rp_status status);

/* Completes the parked operations of a table whose deadlines are not after `now_ns`, and calls
 * their on_done. Returns the earliest remaining deadline, or RP_FOREVER. */
int64_t rp_table_expire(rp_table *table, int64_t now_ns);

/* As rp_table_waiting(). `clients` (may be NULL) also receives the client ids of the calls in
 * `out`. */
size_t rp_table_waiting_clients(rp_table *table, rp_waiting *out, uint64_t *clients,
                                size_t capacity);

/* Fills in the importance weights of a batch of samples, with the exponent `beta`
 * (rp_sample_options). */
void rp_samples_weigh(rp_sample *samples, size_t count, double beta);

#endif
