/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of queued bytes bounds the memory for messages and responses that wait, over all
 * connections of the server.
 *
 * The budget counts
 *   - messages that are incomplete or wait for a paused call. A message counts with its full
 *     size, including the bytes that have not arrived;
 *   - responses that are being made or wait to be written, and large arrays of a call's
 *     samples, without the data of the samples;
 *   - drawn items: items that calls have sampled from tables and have not put into a response
 *     yet.
 * Each worker counts on its own thread. It adds its changes to the shared count (publishes
 * them) whenever they exceed PUBLISH_BYTES, and at the end of each turn (iteration) of its
 * event loop. So a small message costs no access to a shared atomic. The thread that draws an
 * item counts it before the draw (drawn.h).
 *
 * The budget has two sides: bytes that peers send, and bytes that are sent to peers. Each side
 * may use half of the limit queued_bytes. The sides are separate because a message can wait for
 * an insert, and the insert for samples. With one common count, messages could use all of it,
 * and the samples would have no room.
 *
 * Let L be the limit queued_bytes, X = L / 2 the limit of a side, and C the number of
 * connections. On each side:
 *   Q1  while the count of a side is below 3/4 X, any connection may add one message or item of
 *       any size, even if the count then exceeds X;
 *   Q2  from 3/4 X on, only connections within their share may add bytes. The share is X / 4C,
 *       but at most 256 KiB. So peers that do not read leave room for other connections;
 *   Q3  even if the side is full, a connection may hold FLOOR_BYTES, enough for a small request
 *       and its response. While its responses wait for an HTTP/2 window update, the server
 *       reads up to FLOOR_BYTES more from it, since these bytes can contain the update;
 *   Q4  calls draw items only as far as these rules leave room for the items. A call draws no
 *       items while the other calls of its connection hold connection_queued_bytes or more in
 *       drawn items;
 *   Q5  a response made of drawn items takes over the room of these items. So it is never
 *       refused, and waits only until its peer reads;
 *   Q6  once the size of a message is known, the whole message is counted by the rules above,
 *       before more of it is read (intake.h). The limit message_bytes is at most X;
 *   Q7  connections that have no room by these rules get loans of bytes beyond X, one after
 *       another (loans.h). Without loans, peers that stop reading or sending could block a
 *       whole side. A side lends from two pools. The first has message_bytes, for loans of any
 *       size; while it has no other loan, it can make one loan that is larger than
 *       message_bytes. The second has message_bytes / 8, for loans no larger than that. In
 *       addition, one loan at a time may grow beyond its pool, to at most message_bytes. A
 *       connection has a loan either
 *         - for the rest of its incomplete messages. It gets the loan when the socket holds
 *           ARRIVING_BYTES of that rest, or all of it. The loan ends when the connection has no
 *           incomplete message, and its paused calls hold no more bytes of messages than before
 *           the loan; or
 *         - for one item that one of its calls draws. It gets the loan when its peer has read
 *           all responses sent before. The loan ends when the peer has read the response with
 *           that item.
 * Let M be message_bytes, I the size of the largest item and R that of the largest response. By
 * Q1 the count of a side exceeds X by less than M (bytes that peers send) or I (bytes that are
 * sent). By Q7 the loans of a side are at most 17/8 M, or 9/8 M + I for items. So the count
 * stays below L + M + I + 3 1/4 * M + max(M, I) + C * 3 * FLOOR_BYTES +
 * (number of event loops) * (R + PUBLISH_BYTES).
 *
 * The names in capitals are constants: FLOOR_BYTES is RP_QUEUE_FLOOR_BYTES, PUBLISH_BYTES is in
 * queue_budget.c and ARRIVING_BYTES in connection_room.c. connection_room.h applies these rules
 * to a connection. Functions that take an rp_queue_part must be called on its worker's thread.
 * Functions that take an rp_queue_budget may be called on any thread. */
#ifndef RP_SERVER_CORE_QUEUE_BUDGET_H
#define RP_SERVER_CORE_QUEUE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/bounds/loans.h"
#include "server/metrics/metrics.h"
#include "table/op.h"

enum { RP_QUEUE_FLOOR_BYTES = 4096 };

typedef enum rp_queue_side {
    RP_QUEUE_IN,  /* bytes that peers send */
    RP_QUEUE_OUT, /* bytes that are sent to peers */
    RP_QUEUE_SIDES,
} rp_queue_side;

/* The count over all workers. */
typedef struct rp_queue_budget {
    const atomic_size_t *connection_count; /* C in the rules */
    rp_counter *drawn_counter; /* a metric that all threads update: bytes of drawn items */
    atomic_size_t published[RP_QUEUE_SIDES];
    atomic_size_t drawn_bytes;                    /* bytes of drawn items */
    atomic_int_fast64_t short_ns[RP_QUEUE_SIDES]; /* time of the last shortage; 0: never */
    rp_loans loans[RP_QUEUE_SIDES];
} rp_queue_budget;

/* A worker's part of the count. A zeroed part has nothing to publish. */
typedef struct rp_queue_part {
    rp_queue_budget *budget;
    rp_counter *counter;                /* the worker's metric queued_bytes */
    size_t unpublished[RP_QUEUE_SIDES]; /* modulo SIZE_MAX + 1, since the difference can be
                                           negative */
} rp_queue_part;

/* `connection_count` is borrowed. */
void rp_queue_budget_init(rp_queue_budget *budget, const atomic_size_t *connection_count);
void rp_queue_budget_deinit(rp_queue_budget *budget);

/* Adds `bytes` to the count of a side, modulo SIZE_MAX + 1: to subtract n bytes, pass 0 - n. */
void rp_queue_count(rp_queue_part *part, rp_queue_side side, size_t bytes);
/* Adds the part's unpublished bytes to the budget. Called at the end of a turn of the event
 * loop. */
void rp_queue_publish(rp_queue_part *part);

/* Returns the count of a side: the published and drawn bytes of all workers, and the
 * unpublished bytes of this part. */
size_t rp_queue_bytes(const rp_queue_part *part, rp_queue_side side);
/* Return the published and drawn bytes of one side, and of both sides. */
size_t rp_queue_published_side(const rp_queue_budget *budget, rp_queue_side side);
size_t rp_queue_published(const rp_queue_budget *budget);

/* Both functions return how many bytes a connection may add to a side by Q1 to Q3. `own` is the
 * number of bytes that the budget counts for the connection on that side, `all` is the count of
 * the side, and `limit` is X. rp_queue_room_for_one() is for one message or item, which may
 * exceed the limit (Q1). */
size_t rp_queue_room(const rp_queue_budget *budget, size_t limit, size_t all, size_t own);
size_t rp_queue_room_for_one(const rp_queue_budget *budget, size_t limit, size_t all,
                             size_t own);

/* rp_queue_mark_short() records that a connection found less room on a side than it needs.
 * rp_queue_is_short() returns whether any connection has found too little room within the last
 * second. A connection that waits for room tries again 20 times a second. */
void rp_queue_mark_short(rp_queue_budget *budget, rp_queue_side side, int64_t now_ns);
bool rp_queue_is_short(const rp_queue_budget *budget, rp_queue_side side, int64_t now_ns);

#endif
