/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of queued bytes: a bound on the bytes that all connections together hold for
 * their peers.
 *
 * The budget counts
 *   - messages that are incomplete or wait for a paused call, including their bytes that have
 *     not arrived;
 *   - responses that are being made or wait to be written, and the arrays that hold a call's
 *     samples, if they are large (not the data of the samples);
 *   - items that were drawn for calls and are in no response yet.
 * Each worker counts on its own thread. It publishes its changes whenever they exceed
 * PUBLISH_BYTES, and at the end of each turn of its event loop, so a small message costs no
 * shared atomic. Items are counted before they are drawn, by the thread that draws (drawn.h).
 *
 * The limit queued_bytes has two sides, half of it each: bytes that peers send, and bytes that
 * are sent to them. A message may wait for an insert before it, and that insert for samples.
 * With one common count, messages could use all of it, and the samples would have no room.
 *
 * Let L be the limit queued_bytes, X = L / 2 the limit of a side, and C the number of
 * connections. On each side:
 *   Q1  while a side counts less than 3/4 X, any connection may add one message or item of any
 *       size, even if the side then counts more than X;
 *   Q2  the last quarter is for connections within their share, X / 4C and at most 256 KiB, so
 *       that peers that do not read leave room for other connections;
 *   Q3  even if the side is full, a connection may hold FLOOR_BYTES, enough for a small request
 *       and its response, and FLOOR_BYTES more of frames while its responses wait for a window
 *       update;
 *   Q4  calls draw items only as far as there is room for them, by the same rules. A call
 *       draws none while other calls of its connection hold connection_queued_bytes or more;
 *   Q5  a response that is made of drawn items takes over the room of these items: it is never
 *       refused, and waits only until its peer reads;
 *   Q6  a message whose size is known is counted as a whole, by the rules above, before more of
 *       it is read (intake.h). The limit message_bytes is at most X.
 *   Q7  connections that have no room by these rules get loans of bytes past X, one after
 *       another (loans.h). A side lends from two pools: message_bytes for loans of any size (or
 *       one larger loan, if the pool has no other loan out), and message_bytes / 8 for loans no
 *       larger than that. Besides, one loan at a time may grow beyond its pool, to at most
 *       message_bytes. Without loans, peers that stop reading or sending could keep a whole
 *       side from all others. A connection has a loan either
 *         - for the rest of its incomplete messages. It gets the loan when the socket holds
 *           ARRIVING_BYTES of that rest, or all of it. The loan ends when none of its messages
 *           is incomplete and paused calls hold no more than before the loan; or
 *         - for one item that one of its calls draws. It gets the loan when its peer has taken
 *           all earlier responses. The loan ends when the peer has taken this response.
 * Let M be message_bytes, I the size of the largest item and R that of the largest response. By
 * Q1 a side exceeds X by less than M or I; by Q7 its loans are at most 17/8 M, or 9/8 M + I for
 * items. So the count stays below L + M + I + 3 1/4 * M + max(M, I) + C * 3 * FLOOR_BYTES +
 * (number of event loops) * (R + PUBLISH_BYTES).
 *
 * connection_room.h applies these rules to a connection. A rp_queue_part belongs to its
 * worker's thread; functions of rp_queue_budget may be called on any thread. */
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
    RP_QUEUE_OUT, /* bytes that are sent to them */
    RP_QUEUE_SIDES,
} rp_queue_side;

/* The count of all workers. */
typedef struct rp_queue_budget {
    const atomic_size_t *connection_count; /* C */
    rp_counter *drawn_counter;             /* a shared metric: bytes of items that were drawn */
    atomic_size_t published[RP_QUEUE_SIDES];
    atomic_size_t drawn_bytes; /* of items that were drawn for calls and are in no response
                                  yet */
    atomic_int_fast64_t short_ns[RP_QUEUE_SIDES]; /* when room was short last; 0: never */
    rp_loans loans[RP_QUEUE_SIDES];
} rp_queue_budget;

/* A worker's part of the count. A zeroed part has nothing to publish. */
typedef struct rp_queue_part {
    rp_queue_budget *budget;
    rp_counter *counter;                /* the worker's metric queued_bytes */
    size_t unpublished[RP_QUEUE_SIDES]; /* modulo SIZE_MAX + 1: may be negative */
} rp_queue_part;

/* `connection_count` is borrowed. */
void rp_queue_budget_init(rp_queue_budget *budget, const atomic_size_t *connection_count);
void rp_queue_budget_deinit(rp_queue_budget *budget);

/* Adds `bytes`, modulo SIZE_MAX + 1: a difference below zero subtracts. */
void rp_queue_count(rp_queue_part *part, rp_queue_side side, size_t bytes);
/* Adds the unpublished bytes of the part to the budget. Called at the end of a turn of the
 * event loop. */
void rp_queue_publish(rp_queue_part *part);

/* The count of a side: the published and drawn bytes, and the unpublished bytes of this part.
 */
size_t rp_queue_bytes(const rp_queue_part *part, rp_queue_side side);
/* The published and drawn bytes of one side, and of both sides. */
size_t rp_queue_published_side(const rp_queue_budget *budget, rp_queue_side side);
size_t rp_queue_published(const rp_queue_budget *budget);

/* Bytes that a connection which holds `own` may add to a side that counts `all`, by Q1 to Q3.
 * rp_queue_room_for_one() is for one message or item, which may pass the limit (Q1). `limit` is
 * X. */
size_t rp_queue_room(const rp_queue_budget *budget, size_t limit, size_t all, size_t own);
size_t rp_queue_room_for_one(const rp_queue_budget *budget, size_t limit, size_t all,
                             size_t own);

/* rp_queue_mark_short() records that a connection has found less room on a side than it needs.
 * rp_queue_is_short() tells whether that has happened within the last second. A connection that
 * waits for room tries again 20 times a second. */
void rp_queue_mark_short(rp_queue_budget *budget, rp_queue_side side, int64_t now_ns);
bool rp_queue_is_short(const rp_queue_budget *budget, rp_queue_side side, int64_t now_ns);

#endif
