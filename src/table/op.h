/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous inserts and samples, for event loops. */
#ifndef RP_TABLE_OP_H
#define RP_TABLE_OP_H

#include "reprise/table.h"

/* A limit on the bytes of samples that are drawn but not delivered, which many operations may
 * share. If a drawn item is removed from its table, no table counts its bytes: this limit does.
 * All functions are called under the lock of a table, on any thread: they must not block or
 * call the library. */
typedef struct rp_draw_room rp_draw_room;
struct rp_draw_room {
    /* Takes between `least` and `most` bytes. Returns the number taken, or 0 if fewer than
     * `least` are left. */
    size_t (*take)(rp_draw_room *room, size_t least, size_t most);
    /* Returns bytes that were taken. */
    void (*give)(rp_draw_room *room, size_t bytes);
    /* Returns about how many bytes can be taken. No more items are picked than may fit. */
    size_t (*left)(const rp_draw_room *room);
};

/* An asynchronous operation. If it cannot complete at once, the table parks it and calls
 * on_done when it is complete. The caller owns the struct and holds a reference to the table.
 * Until the operation is complete, neither the struct nor the memory that it points to may be
 * moved or freed. Zero-initialise it and fill in the fields before the results. */
typedef struct rp_op rp_op;
struct rp_op {
    /* for an insert */
    const rp_insert *items;
    /* for a sample */
    const rp_sample_options *options;
    rp_sample *samples;
    /* NULL, or the limit against which the cost of each item counts when it is drawn. If the
     * limit is reached, the sample completes with the items drawn so far, perhaps fewer than
     * at_least; if there are none, with RP_NO_RESOURCE and `lacked_bytes`. */
    rp_draw_room *room;

    /* The deadline. RP_NOW does not wait for the rate limiter. Disk reads still happen: with an
     * on_done the operation is complete after them, without one the call blocks for them. */
    int64_t until_ns;
    /* Called once if the operation was parked, with no lock held: on the thread whose call made
     * the operation possible, or on the thread that read the last of its samples from disk. May
     * be called before rp_table_start_insert() or _sample() has returned. It may start other
     * operations, but must not wait for one. Must be set unless until_ns is RP_NOW. */
    void (*on_done)(rp_op *op);
    /* Called under the table's lock when an insert is parked, on the thread that started it;
     * and again when some items of a parked insert have been inserted and the rest waits:
     * `done` is the number of all items inserted so far. In this second case it may lower
     * `count` to `done`: then the operation is complete. Never called after on_done. It must
     * not block or call the library. May be NULL. */
    void (*on_progress)(rp_op *op);
    void *user;
    uint64_t client; /* the number of the client that waits for it; 0: this process */
    /* NULL, or for an insert without a deadline: the latest insert of the same caller into this
     * table that was parked. While that one is parked, this one waits behind it and is not in
     * the queue; then it goes to the end of the queue. So a caller with many waiting inserts
     * has one place in the queue, and its inserts stay in order. Only one operation may follow
     * another. Used until the call that starts the operation returns. */
    rp_op *after;

    /* results, once complete */
    size_t count; /* not a result: the items of an insert; a sample uses options->count */
    size_t done;  /* items inserted or drawn */
    rp_status status;
    rp_error error;
    size_t refused;    /* index of the item because of which the status is RP_INVALID; else 0 */
    size_t held_bytes; /* taken from `room` for the samples: the caller gives these bytes back
                          after it has released the samples */
    size_t lacked_bytes; /* > 0: the operation ended because `room` has fewer bytes left than
                            this */
    uint64_t lsn; /* of the last journal record that the operation wrote or depends on: the
                     operation is durable when all records up to this one are
                     (reprise/durable.h). 0: no journal, or nothing was done */

    /* private */
    rp_table *table;
    rp_op *prev, *next;
    int64_t started_ns;
    rp_op *ahead, *behind; /* while parked: the one it waits behind, the one behind it */
    int64_t number;        /* its place in the queue: places ascend */
    size_t parked_at;      /* `done` when it was parked */
    size_t turn_at;        /* `done` when it went to the end of the queue */
    uint64_t claimed;  /* disk space that the log keeps for the block that is being inserted */
    size_t more_bytes; /* part of held_bytes that is for items not drawn yet */
    bool is_insert, parked, was_parked;
    bool waits_for_disk; /* the journal had no room for the next items */
};

/* Starts an insert or a sample. Returns true if it is complete: op->status is set, and on_done
 * is not called. Returns false if it is parked. */
RP_NODISCARD bool rp_table_start_insert(rp_table *table, rp_op *op);
RP_NODISCARD bool rp_table_start_sample(rp_table *table, rp_op *op);

/* Cancels a parked operation. Returns true if the operation is now complete, with `status`
 * (RP_OK if a sample had drawn items); then on_done is not called. Returns false if it was
 * complete already, or on_done is about to be called. */
bool rp_op_withdraw(rp_op *op, rp_status status);

/* Completes the parked operations of a table whose deadline is not after `now_ns`, and calls
 * their on_done. Returns the earliest remaining deadline, or RP_FOREVER. */
int64_t rp_table_expire(rp_table *table, int64_t now_ns);

/* As rp_table_waiting(); `clients` (may be NULL) receives the clients of the described calls.
 */
size_t rp_table_waiting_clients(rp_table *table, rp_waiting *out, uint64_t *clients,
                                size_t capacity);

/* Fills in the importance weights of a batch (rp_sample_options). Pure. */
void rp_samples_weigh(rp_sample *samples, size_t count, double beta);

#endif
