/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of queued bytes: what all connections together hold for their peers.
 *
 * Counted are messages that are not whole or wait for a paused call, with the bytes of them
 * that are still to come, responses that wait to be written, responses that are being made,
 * large sample arrays, and the items that were drawn for calls and are in no response yet. Each
 * worker counts on its own thread and publishes to the other workers in blocks and at the end
 * of a turn, so that a small message costs no shared atomic. Items are counted before they are
 * drawn, by whichever thread draws.
 *
 * The limit queued_bytes has two sides, half of it each: what peers send, and what is sent to
 * them. Messages may wait behind an insert that waits for its table, and that for samples:
 * were both in one room, messages could fill it, and the samples that they wait for would have
 * none.
 *
 * With L, the limit queued_bytes, X = L / 2, its sides, and C connections, on each side:
 *   Q1  while a side counts less than 3/4 X, any connection may add to it what it needs: a
 *       message or an item as a whole, even if the side counts more than X then;
 *   Q2  the last quarter is for connections within their share, X / 4C and at most 256 KiB, so
 *       that peers that do not read leave room for the others;
 *   Q3  beyond, a connection may hold FLOOR_BYTES, enough for a small request and its response,
 *       and as much again of frames while its responses wait for a window update;
 *   Q4  calls draw items only as far as there is room for them, by the same rules. A connection
 *       whose other calls hold the limit connection_queued_bytes draws none;
 *   Q5  a response that is made of items that were drawn takes their room over: it is never
 *       refused, and waits for its reader only;
 *   Q6  a message whose size is known is counted as a whole, by the rules above, before more of
 *       it is read (intake.h). The limit message_bytes is at most X.
 *   Q7  connections that have no room by these rules take turns (turns.h): a side lends
 *       message_bytes past X, or one message or item that is larger. Without turns, peers that
 *       do not go on could hold all of a side, and nobody else could. A turn of a connection is
 *         - for the rest of its messages, if its peer has sent ARRIVING_BYTES of it, or all,
 *           that the server has not read; until none of its messages is incomplete, and calls
 *           that are paused hold no more than before,
 *         - for one item that one of its calls draws, if its peer has taken all responses that
 *           there were; until it has taken this one.
 * So the count stays below L + two messages + one item + the larger of these + C * 3 *
 * FLOOR_BYTES + loops * (one response + PUBLISH_BYTES).
 *
 * Functions belong to the worker's thread, unless they say otherwise. */
#ifndef RP_SERVER_CORE_QUEUE_BUDGET_H
#define RP_SERVER_CORE_QUEUE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "reprise/op.h"
#include "server/bounds/turns.h"

typedef struct rp_connection rp_connection;
typedef struct rp_worker rp_worker;
typedef struct rp_server rp_server;

enum { RP_QUEUE_FLOOR_BYTES = 4096 };

typedef enum rp_queue_side {
    RP_QUEUE_IN,  /* what peers send */
    RP_QUEUE_OUT, /* what is sent to them */
    RP_QUEUE_SIDES,
} rp_queue_side;

/* Counts bytes more, or fewer: `bytes` wraps around like an unsigned difference. */
void rp_queue_count(rp_worker *worker, rp_queue_side side, size_t bytes);
/* Tells the other workers. At the end of a turn. */
void rp_queue_publish(rp_worker *worker);

/* The count of a side, as this worker knows it. */
size_t rp_queue_bytes(const rp_worker *worker, rp_queue_side side);
/* What workers have published of both sides. Any thread. */
size_t rp_queue_published(const rp_server *server);

/* What the calls of one connection have drawn. Operations of tables use it, which may outlive
 * the connection. */
typedef struct rp_drawn {
    rp_draw_room room; /* first; for operations that may not say what their call holds */
    rp_server *server;
    size_t refs;         /* the worker's thread */
    atomic_size_t bytes; /* drawn and not given back */
    /* Copies, for threads other than the worker's: rp_drawn_tell(). */
    atomic_size_t counted; /* what else the connection holds on the side RP_QUEUE_OUT */
    atomic_size_t limit, connection_limit; /* of the side, and of the connection */
    /* Q7: bytes that may be drawn by a turn, times 2; plus 1 if some of them are. */
    atomic_size_t turn;
} rp_drawn;

/* With one reference, or NULL if there is no memory. */
rp_drawn *rp_drawn_new(rp_server *server);
rp_drawn *rp_drawn_ref(rp_drawn *drawn);
void rp_drawn_unref(rp_drawn *drawn); /* NULL is fine */

/* Before an operation is started: tells its connection's rp_drawn what the worker knows. */
void rp_drawn_tell(rp_connection *connection);

/* As rp_draw_room.take, for a call that holds `mine` already. Any thread. */
size_t rp_drawn_take(rp_drawn *drawn, size_t mine, size_t least, size_t most);
/* As rp_draw_room.left, for the same. */
size_t rp_drawn_left(const rp_drawn *drawn, size_t mine);
void rp_drawn_give(rp_drawn *drawn, size_t bytes);
/* As rp_draw_room.give: the same for bytes of items that were not drawn after all. If that is
 * all that it had, the room of a turn may be taken again. */
void rp_drawn_untake(rp_drawn *drawn, size_t bytes);

/* Says that a connection has found less room than it needs on a side; whether one has lately.
 * Who waits for room tries again 20 times a second. */
void rp_queue_note_short(rp_worker *worker, rp_queue_side side);
bool rp_queue_is_short(const rp_worker *worker, rp_queue_side side);

#endif
