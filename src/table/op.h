/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: asynchronous inserts into a table and samples from a table, for event loops,
 * which must not block. */
#ifndef RP_TABLE_OP_H
#define RP_TABLE_OP_H

#include "reprise/table.h"

/* A limit on the bytes of items that are drawn but not yet sent to the client. Many operations
 * may share one limit. Without the limit these bytes would have no bound, because no table
 * counts the bytes of a drawn item that was removed from its table. The functions are called
 * under the lock of a table, on any thread. They must not block or call the library. */
typedef struct rp_draw_room rp_draw_room;
struct rp_draw_room {
    /* Takes between `least` and `most` bytes from the limit, and returns how many. If fewer
     * than `least` bytes are left, takes none and returns 0. */
    size_t (*take)(rp_draw_room *room, size_t least, size_t most);
    /* Gives back bytes that were taken. */
    void (*give)(rp_draw_room *room, size_t bytes);
    /* Returns about how many bytes can be taken. The table picks no more items than this number
     * permits. */
    size_t (*left)(const rp_draw_room *room);
};

/* An asynchronous operation. If the operation cannot complete at once, the table parks it
 * (keeps it in a queue of waiting operations) and calls on_done when it is complete. The caller
 * must zero-initialise the struct, and set the input fields that the operation uses: those
 * before the comment "results", and `count`. Until the operation is complete, the caller must
 * hold a reference to the table, and must neither move nor free the struct or the memory that
 * the struct points to. */
typedef struct rp_op rp_op;
struct rp_op {
    /* An insert: its items. `count` below is their number. */
    const rp_insert *items;
    /* A sample: its options, and the array for the drawn items. */
    const rp_sample_options *options;
    rp_sample *samples;
    /* A sample: the limit from which each drawn item takes its bytes; NULL: no limit. When the
     * limit is reached, the sample completes with the items drawn so far, possibly fewer than
     * options->at_least. If no item was drawn, the sample fails with RP_NO_RESOURCE and sets
     * `lacked_bytes`. */
    rp_draw_room *room;

    /* The deadline. With RP_NOW the operation does not wait for the rate limiter. Drawn items
     * whose data is on disk are read nevertheless. If on_done is set, a thread of the disk tier
     * reads them and then calls on_done; otherwise the call blocks for the read. */
    int64_t until_ns;
    /* Called when the operation is complete, once, with no lock held. Not called if the
     * function that started the operation returned true, or if rp_op_withdraw() returned true.
     * Called on the thread whose change let the operation proceed, or on the thread that read
     * the last of its samples from disk. on_done is possibly called before
     * rp_table_start_insert() or rp_table_start_sample() has returned. on_done may start other
     * operations, but must not wait for one. Must be set unless until_ns is RP_NOW. */
    void (*on_done)(rp_op *op);
    /* Called under the table's lock when an insert is parked, on the thread that started it.
     * Called again each time that some items of the parked insert were inserted and the rest
     * must wait. `done` is the number of items inserted so far. The function may complete the
     * operation by setting `count` to `done`. Never called after on_done. Must not block or
     * call the library. May be NULL. */
    void (*on_progress)(rp_op *op);
    void *user;
    /* Id of the client that waits for the operation; 0: a thread of this process. */
    uint64_t client;
    /* For an insert without a deadline: the caller's previous insert into this table, if that
     * one was parked; otherwise NULL. While the previous insert is parked, this insert waits
     * behind it, outside the table's queue. When the previous insert leaves the queue, this
     * insert enters the queue at the end. So a caller with many waiting inserts has only one
     * place in the queue, and its inserts stay in order. At most one operation may wait behind
     * another. The field is not used after the call that starts the operation has returned. */
    rp_op *after;

    /* results: set when the operation is complete */
    /* Not a result: number of items of an insert (a sample uses options->count). */
    size_t count;
    size_t done; /* items inserted or drawn */
    rp_status status;
    rp_error error;
    size_t refused;      /* if status is RP_INVALID: index of the item that caused it; else 0 */
    size_t held_bytes;   /* bytes taken from `room` for the samples. The caller must give them
                            back after it has released the samples */
    size_t lacked_bytes; /* if > 0, the operation ended because `room` had fewer bytes left */
    /* Log sequence number of the last journal record that the operation wrote or depends on.
     * The operation is durable when all records up to this one are durable (reprise/durable.h).
     * 0: the table has no journal, or nothing was done */
    uint64_t lsn;

    /* private */
    rp_table *table;
    rp_op *prev, *next;
    int64_t started_ns;
    rp_op *ahead, *behind; /* while parked: the caller's operations before and behind this one
                              (`after`) */
    int64_t number;   /* number of its place in the queue; the numbers ascend along the queue */
    size_t parked_at; /* `done` when it was parked */
    size_t turn_at;   /* `done` when it last went to the end of the queue */
    uint64_t claimed; /* bytes of disk space that the log has reserved for the block of items
                         being inserted */
    size_t more_bytes; /* the part of held_bytes that was taken in advance, for items that are
                          not drawn yet */
    bool is_insert, parked, was_parked;
    bool waits_for_disk; /* the journal had no room for the next items */
};

/* Each of these functions starts an operation. Returns true if the operation is complete:
 * op->status is set, and on_done is not called. Returns false if the operation is parked or its
 * samples are being read from disk: on_done is called later. */
RP_NODISCARD bool rp_table_start_insert(rp_table *table, rp_op *op);
RP_NODISCARD bool rp_table_start_sample(rp_table *table, rp_op *op);

/* Cancels a parked operation. Returns true if this call has completed the operation; on_done is
 * then not called. The operation's status becomes `status`, or RP_OK if it is a sample that has
 * drawn items. Returns false if on_done was called or is going to be called: the operation was
 * complete already, or samples that it has drawn are being read from disk. */
bool rp_op_withdraw(rp_op *op, rp_status status);

/* Completes the parked operations of a table whose deadlines are at or before `now_ns`, and
 * calls their on_done. Returns the earliest remaining deadline, or RP_FOREVER if there is
 * none. */
int64_t rp_table_expire(rp_table *table, int64_t now_ns);

/* Does the same as rp_table_waiting(), and also writes the client id (rp_op.client) of each
 * entry of `out` to `clients`. `clients` may be NULL. */
size_t rp_table_waiting_clients(rp_table *table, rp_waiting *out, uint64_t *clients,
                                size_t capacity);

/* Fills in the importance weights of a batch of samples, with the exponent `beta`
 * (rp_sample_options). */
void rp_samples_weigh(rp_sample *samples, size_t count, double beta);

#endif
