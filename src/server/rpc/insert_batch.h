/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of an insert stream: items that go into one table by one operation.
 *
 * A batch is open while the worker handles messages that were read together with the first
 * message of the batch. Before the worker handles any other event, it starts the batch. So the
 * table's lock is taken once for many messages. The only visible effect is that items of one
 * table may be inserted before earlier items of another.
 *
 * A batch is first open, then started. If its table makes it wait, it is parked until the
 * operation completes. Of the batches of a stream that wait for one table only the first is in
 * the table's queue; each of the others waits behind the one before it (rp_op.after).
 * Invariants:
 *
 *   W1  between turns of the worker's loop no batch is open;
 *   W2  all open batches belong to one stream, worker->batching, and have different tables. No
 *       other stream's messages are handled meanwhile;
 *   W3  a stream that ends has started its open batches;
 *   W4  stream->parked_bytes is the sum of `held` of the parked batches;
 *   W5  a parked batch keeps all chunks of its waiting items (chunk/keep.h). */
#ifndef RP_SERVER_RPC_INSERT_BATCH_H
#define RP_SERVER_RPC_INSERT_BATCH_H

#include "server/core/served_table.h"
#include "server/rpc/confirmations.h"
#include "server/rpc/insert_parts.h"
#include "table/table.h"

enum {
    RP_MAX_INSERT_BATCH = RP_BLOCK /* items; a table checks all before it inserts the first */
};

/* The message that a stream handles. If there is much work in it, it is handled in pieces, in
 * several turns of the loop (deferral.h). */
typedef struct rp_insert_message {
    bool is_begun; /* some of it may have been handled, not all of it */
    bool has_all_chunks;
    bool is_divisible; /* it may be handled in pieces */
    rp_insert_request request;
    rp_pb_reader reader;  /* of the chunks, then of the items, that have not been added */
    size_t chunk_bytes;   /* of the chunks that were added */
    size_t slices_left;   /* slices that its other items may have */
    size_t parts, slices; /* handled, and not yet counted as work */
} rp_insert_message;

typedef struct rp_insert_stream {
    rp_task task;
    rp_stream_chunks chunks;
    rp_chunk_template template; /* of the last small chunk: the next likely has the same form */
    rp_served_table *served;    /* table of the last item: recent[at] */
    rp_served_table *recent[RP_OPEN_BATCHES]; /* references to the tables of the last items */
    size_t recent_count, at;
    uint64_t messages; /* number of messages with items so far */
    rp_insert_message message;
    rp_insert_batch *parked;
    size_t parked_bytes; /* W4 */
    size_t pinned;       /* the stream's part of the connection's pinned_bytes */
    rp_confirmations confirmed;
    bool has_ended; /* the peer has sent its last message */
} rp_insert_stream;

/* Items that are being inserted into one table. */
struct rp_insert_batch {
    rp_op op;
    rp_post post, progress;
    atomic_size_t in;            /* items inserted so far, while the operation waits */
    atomic_uint_fast64_t in_lsn; /* LSN at which these items are safe; written before `in` */
    atomic_bool is_progress;     /* `progress` has been posted, and has not run */
    size_t confirmed;            /* items of `in` that have been confirmed */
    rp_worker *worker;
    rp_insert_stream *stream; /* NULL: its call has ended */
    rp_served_table *served;  /* a reference while in use */
    rp_insert_batch *prev, *next;
    rp_insert *items;
    size_t count, capacity;
    /* By item: whether it is the first one of its message in this batch. */
    bool begins[RP_MAX_INSERT_BATCH];
    uint64_t message; /* number, in the stream, of the last item's message */
    size_t bytes;     /* of the batch's messages and items */
    /* The next three fields are used while the batch is parked. */
    size_t waiting_from; /* first item that waits; the batch has its own references from this
                            one on */
    size_t own_bytes;    /* of the waiting items and the batch itself, without chunks */
    size_t held;         /* own_bytes, and the bytes of chunks that no table holds */
    int64_t came_ns;     /* when the first item arrived */
};

/* Finds or makes the open batch for stream->served, with room for one more item. NULL, with
 * `*err` filled in, if there is no memory or the stream is finished. */
rp_insert_batch *rp_insert_batch_for(rp_insert_stream *stream, rp_error *err);
/* Starts the open batches if a message of `items` items might not fit into one of them. A
 * message of up to RP_MAX_INSERT_BATCH items is not split between batches, as its table may
 * refuse it as a whole. All open batches
 * together hold at most RP_MAX_INSERT_BATCH items (unless one message has more), so that the
 * first items are still in the cache. They also hold few bytes, as the stream is paused only
 * after they have been started. */
void rp_insert_batches_make_room(rp_worker *worker, size_t items);
/* Starts the open batches. May end their stream. */
void rp_insert_batches_start(rp_worker *worker);
/* Withdraws the parked batches. Their items that are in no table yet are dropped. */
void rp_insert_batches_withdraw(rp_insert_stream *stream);
/* Updates `held` of the parked batches, since tables may have released chunks. */
void rp_insert_batches_update_held(rp_insert_stream *stream);

/* The following functions are in insert_stream.c. */

/* Whether the stream must be paused before more of it is read. */
bool rp_insert_stream_must_wait(const rp_insert_stream *stream);
/* Resumes the stream if it was paused and need not wait any more. */
void rp_insert_stream_continue(rp_insert_stream *stream);

static inline rp_safety *rp_insert_safety(const rp_insert_stream *stream)
{
    return &rp_task_worker(&stream->task)->server->safety;
}

#endif
