/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of an insert stream. A batch holds items of the stream that one operation inserts
 * into one table.
 *
 * One read of a connection can bring many messages of a stream. A batch is open from its first
 * item until the worker has handled these messages. Before the worker handles any other event,
 * it starts the batch's operation. So the worker takes the table's lock once for many messages.
 * The only visible effect is that items of one table can be inserted before earlier items of
 * another table.
 *
 * If the table makes a started batch wait, the batch is parked until its operation completes.
 * Of the parked batches of a stream that wait for one table, only the first is in the table's
 * queue. Each other batch waits behind the one before it (rp_op.after).
 *
 * Invariants:
 *
 *   W1  between turns of the worker's loop no batch is open;
 *   W2  all open batches of a worker belong to one stream, worker->batching, and have different
 *       tables. While there is an open batch, the worker handles no messages of other streams;
 *   W3  when a stream ends, it has started all of its batches;
 *   W4  stream->parked_bytes is the sum of `held` over the parked batches;
 *   W5  rp_chunk_keep() was called for all chunks of the waiting items of a parked batch
 *       (chunk/keep.h). */
#ifndef RP_SERVER_RPC_INSERT_BATCH_H
#define RP_SERVER_RPC_INSERT_BATCH_H

#include "server/core/served_table.h"
#include "server/rpc/confirmations.h"
#include "server/rpc/insert_parts.h"
#include "table/table.h"

enum {
    RP_MAX_INSERT_BATCH = RP_BLOCK /* in items. A table inserts at most this many items per
                                      acquisition of its lock, and checks all of them before it
                                      inserts the first */
};

/* The message that a stream handles. A message with much work is handled in pieces, in several
 * turns of the loop (core/deferral.h). */
typedef struct rp_insert_message {
    bool is_begun; /* the worker has begun to handle the message and has not finished */
    bool has_all_chunks;
    bool is_divisible; /* the message may be handled in pieces */
    rp_insert_request request;
    rp_pb_reader reader;  /* reads the chunks, then the items, that have not been added yet */
    size_t chunk_bytes;   /* bytes of the chunks that were added */
    size_t slices_left;   /* slices that the remaining items may have */
    size_t parts, slices; /* handled but not yet counted as work (core/deferral.h): `parts` is
                             the number of chunks, items and keys to keep, `slices` the number
                             of slices in the items */
} rp_insert_message;

typedef struct rp_insert_stream {
    rp_task task;
    rp_stream_chunks chunks;
    rp_chunk_template template; /* form of the last small chunk; the next chunk likely has the
                                   same form */
    rp_served_table *served;    /* table of the last item: recent[at] */
    rp_served_table *recent[RP_OPEN_BATCHES]; /* references to the tables of the last items */
    size_t recent_count, at;
    uint64_t messages; /* number of messages with items so far */
    rp_insert_message message;
    rp_insert_batch *parked;
    size_t parked_bytes; /* invariant W4 */
    size_t pinned;       /* the stream's part of the connection's pinned_bytes */
    rp_confirmations confirmed;
    bool has_ended; /* the client has sent its last message */
} rp_insert_stream;

/* Items that are being inserted into one table. */
struct rp_insert_batch {
    rp_op op;
    rp_post post, progress;
    atomic_size_t in;            /* items inserted so far, while the operation waits */
    atomic_uint_fast64_t in_lsn; /* the journal's sequence number at which these items are safe
                                    (core/safety.h); written before `in` */
    atomic_bool is_progress;     /* the post `progress` is in the loop's queue */
    size_t confirmed;            /* how many of these items have been confirmed to the client */
    rp_worker *worker;
    rp_insert_stream *stream; /* NULL: its call has ended */
    rp_served_table *served;  /* a reference while in use */
    rp_insert_batch *prev, *next;
    rp_insert *items;
    size_t count, capacity;
    /* For each item: whether it is the first item of its message in this batch. */
    bool begins[RP_MAX_INSERT_BATCH];
    uint64_t message; /* number of the last item's message in the stream */
    size_t bytes;     /* bytes of the batch's messages and items */
    /* The next three fields are used while the batch is parked. */
    size_t waiting_from; /* index of the first item that waits. The batch owns the references of
                            this item and of the later ones */
    size_t own_bytes;    /* bytes of the waiting items and the batch itself, without chunks */
    size_t held;         /* own_bytes, and the bytes of chunks that no table holds */
    int64_t came_ns;     /* time at which the first item arrived */
};

/* Finds or makes the open batch for stream->served, with room for one more item. If there is no
 * memory or the stream is finished, fills in `*err` and returns NULL. */
rp_insert_batch *rp_insert_batch_for(rp_insert_stream *stream, rp_error *err);
/* Starts the open batches if a message of `items` items might not fit into one of them. A
 * message of up to RP_MAX_INSERT_BATCH items is not split between batches, since the table can
 * refuse the message as a whole. All open batches together hold at most RP_MAX_INSERT_BATCH
 * items, so that the first items are still in the processor's cache when the operations start.
 * Only a single message with more items may exceed this number. Also starts the open batches if
 * they hold OPEN_BYTES (insert_batch.c) or more, since these bytes do not count in the limits
 * at which the stream is paused. */
void rp_insert_batches_make_room(rp_worker *worker, size_t items);
/* Starts the worker's open batches. May end their stream. */
void rp_insert_batches_start(rp_worker *worker);
/* Withdraws the operations of the stream's parked batches from their tables, and drops the
 * items that are not in a table yet. */
void rp_insert_batches_withdraw(rp_insert_stream *stream);
/* Updates `held` of the parked batches, since tables may have released chunks. */
void rp_insert_batches_update_held(rp_insert_stream *stream);

/* The following functions are in insert_stream.c. */

/* Returns whether the stream must be paused before more of it is read. */
bool rp_insert_stream_must_wait(const rp_insert_stream *stream);
/* Resumes the stream if it was paused and need not wait any more. */
void rp_insert_stream_continue(rp_insert_stream *stream);

static inline rp_safety *rp_insert_safety(const rp_insert_stream *stream)
{
    return &rp_task_worker(&stream->task)->server->safety;
}

#endif
