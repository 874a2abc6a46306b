/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts and samples without a thread to wait for them: for event loops. */
#ifndef REPRISE_OP_H
#define REPRISE_OP_H

#include "reprise/table.h"

RP_BEGIN_DECLS

/* Memory for samples that are drawn and not delivered yet, which many operations may share. An
 * item that was drawn may leave its table while its sample waits: then no table counts it any
 * more. All functions are called under the lock of any table, by any thread: they may count,
 * and nothing else. */
typedef struct rp_draw_room rp_draw_room;
struct rp_draw_room {
    /* Takes from `least` to `most` bytes. Returns how many, or 0 if there are fewer. */
    size_t (*take)(rp_draw_room *room, size_t least, size_t most);
    /* Gives back bytes that were taken. */
    void (*give)(rp_draw_room *room, size_t bytes);
    /* About how many bytes could be taken now. No more items are picked than might fit. */
    size_t (*left)(const rp_draw_room *room);
};

/* An operation that may be left waiting in the table while its caller does something else: an
 * event loop starts it and is called back. The caller owns the memory, which must stay where it
 * is, with all it points at, until the operation is over. Zero-initialise it and fill in the
 * first part. */
typedef struct rp_op rp_op;
struct rp_op {
    /* for an insert */
    const rp_insert *items;
    /* for a sample */
    const rp_sample_options *options;
    rp_sample *samples;
    /* NULL, or what the items count against, by their cost, before they are drawn. A sample for
     * which there is no more room ends: with what it has, perhaps fewer than at_least, or, if
     * that is nothing, with RP_NO_RESOURCE and `lacked_bytes`. */
    rp_draw_room *room;

    int64_t
        until_ns; /* RP_NOW: never left waiting; but samples that lie on disk are read first:
                     with an on_done the operation waits for that, without one the call */
    /* Called once if the operation was left waiting, on the thread of whoever made it possible
     * or read the last of its samples from disk, and with no lock held; perhaps before
     * rp_table_start_insert() or _sample() has returned. It may start other operations, but
     * must not wait for one. Needed unless until_ns is
     * RP_NOW. */
    void (*on_done)(rp_op *op);
    /* Called when some items of an insert have gone in, `done` of them by now, and the rest
     * waits; never after on_done, which is told of all of them. Under the table's lock: it may
     * take note, and nothing else. May be NULL. */
    void (*on_progress)(rp_op *op);
    void *user;

    /* results, once over */
    size_t count; /* in: items of an insert; a sample's is options->count */
    size_t done;  /* items inserted or drawn */
    rp_status status;
    rp_error error;
    size_t refused; /* RP_INVALID: an item that the table does not take; 0 if that is not why */
    size_t held_bytes;   /* taken from `room` for the samples: the owner of the operation gives
                            them back after it has released the samples */
    size_t lacked_bytes; /* > 0: it ended because `room` has not as many */
    uint64_t lsn; /* the number in the journal of the last change that the operation made, or
                     waited for: it is safe when everything up to here is
                     (reprise/durable.h). 0: there is no journal, or nothing was done */

    /* private */
    rp_table *table;
    rp_op *prev, *next;
    int64_t started_ns;
    int64_t number; /* among those that were ever parked in its queue */
    size_t parked_at;
    size_t more_bytes; /* of held_bytes: for items that have not been drawn yet */
    bool is_insert, parked, was_parked;
    bool waits_for_disk; /* the journal had no room for the next items */
};

/* Starts an insert or a sample. True if it is over already: look at op->status; on_done is not
 * called. False if it waits. */
RP_API RP_NODISCARD bool rp_table_start_insert(rp_table *table, rp_op *op);
RP_API RP_NODISCARD bool rp_table_start_sample(rp_table *table, rp_op *op);

/* Takes a waiting operation back. True: it is over, with `status` (RP_OK for a sample that had
 * drawn something), and on_done will not be called. False: it is over already, or on_done is
 * about to be called. */
RP_API bool rp_op_withdraw(rp_op *op, rp_status status);

/* Ends the waiting operations of a table whose deadline is not after `now_ns`, calling on_done.
 * Returns the earliest deadline that is left, or RP_FOREVER. */
RP_API int64_t rp_table_expire(rp_table *table, int64_t now_ns);

RP_END_DECLS

#endif
