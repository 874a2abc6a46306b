/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of an insert stream: items that go into one table by one operation.
 *
 * A batch stays open for the messages that were read together with its first, and is started
 * before anything else is done for any call. So a lock is taken for many messages. All that can
 * be told from outside is that items for one table may be in before earlier ones for another.
 * Invariants of open batches:
 *
 *   W1  between turns of the worker's loop no batch is open;
 *   W2  while any are, they are of one stream, the worker's gatherer, and its messages are the
 *       only ones that are read;
 *   W3  a stream that ends, however it does, has started them. */
#ifndef RP_SERVER_RPC_INSERT_BATCH_H
#define RP_SERVER_RPC_INSERT_BATCH_H

#include "server/core/served.h"
#include "server/rpc/confirmations.h"
#include "server/rpc/insert_parts.h"
#include "table/table.h"

enum {
    RP_MAX_INSERT_BATCH = RP_BLOCK /* items: all are checked before the first is in */
};

typedef struct rp_insert_stream {
    rp_task task;
    rp_stream_chunks chunks;
    rp_chunk_mould mould; /* of the last small chunk: the next is likely of the same form */
    rp_served *served;    /* of the last item: recent[at] */
    rp_served *recent[RP_OPEN_BATCHES]; /* tables of the last items, references */
    size_t recent_count, at;
    uint64_t messages; /* with items, so far */
    rp_insert_batch *parked;
    size_t parked_bytes; /* of them, and of their chunks that no table holds */
    size_t pinned;       /* counted in the connection's pinned_bytes */
    rp_confirmations confirmed;
    bool has_ended; /* the peer has sent all */
} rp_insert_stream;

/* Items on their way into one table. */
struct rp_insert_batch {
    rp_op op;
    rp_post post, progress;
    atomic_size_t in;            /* items, so far, of an operation that waits */
    atomic_uint_fast64_t in_lsn; /* at which they are safe; written before `in` */
    atomic_bool is_progress;     /* that has been posted, and not been read */
    size_t told;                 /* items, of those, that the peer knows of */
    rp_worker *worker;
    rp_insert_stream *stream; /* NULL: its call is gone */
    rp_served *served;        /* a reference while in use */
    rp_insert_batch *prev, *next;
    rp_insert *items;
    size_t count, capacity;
    bool begins[RP_MAX_INSERT_BATCH]; /* whether an item is the first of its message here */
    uint64_t message;                 /* the stream's number of the last item's */
    size_t bytes;                     /* of all of its messages and items */
    size_t
        waiting_from; /* while it is parked: from this item on it has references of its own */
    size_t own_bytes; /* while it is parked: what it takes without chunks */
    size_t held;      /* the same with chunks that no table holds, when last looked at */
    int64_t came_ns;  /* the first */
};

/* The open batch of the stream's table, with room for an item; NULL with `*err` filled in, or
 * with the stream over. */
rp_insert_batch *rp_insert_batch_for(rp_insert_stream *stream, rp_error *err);
/* Starts the open batches if a message of so many items would not find room in any one of them:
 * it is not torn apart, as a table may refuse it as a whole. Nor do they have more items
 * together than one of them may, unless a single message has: those that were read first are
 * still in the cache. Nor do they have many bytes: if they have to wait, the stream is to be
 * paused first. */
void rp_insert_batches_make_room(rp_worker *worker, size_t items);
/* Starts the open batches. May end their stream. */
void rp_insert_batches_start(rp_worker *worker);
/* Takes back what still waits: nobody was told that it is in. */
void rp_insert_batches_withdraw(rp_insert_stream *stream);
/* Looks which chunks of those that wait are in no table any more, and counts these. */
void rp_insert_batches_look(rp_insert_stream *stream);

/* Of insert_stream.c: */

/* Looks at what the stream of the task holds outside of tables, and tells how many bytes it was
 * when last looked at. Between messages. */
void rp_insert_stream_look(rp_task *task);
size_t rp_insert_stream_holds(const rp_task *task);

/* Whether as much waits for its tables as may. */
bool rp_insert_stream_must_wait(const rp_insert_stream *stream);
/* A batch of it is in: reads on, if it was paused. */
void rp_insert_stream_go_on(rp_insert_stream *stream);

static inline rp_safety *rp_insert_safety(const rp_insert_stream *stream)
{
    return &rp_task_worker(&stream->task)->server->safety;
}

#endif
