/* SPDX-License-Identifier: Apache-2.0 */
/* A bound on the work of a turn of the loop. The work of some calls is out of proportion to the
 * bytes that a turn reads: calls that visit every table, calls with many keys, and messages
 * with many items or bytes, of which a peer can have thousands complete at the same moment. So
 * every call asks rp_defer_may_begin() before it handles a message. The bytes of the message
 * and of responses count as work; a call with more work adds the units of that work. A unit is
 * about the work for one key. When a turn has done RP_TURN_WORK units, calls that ask are
 * deferred to the following turns.
 *
 * Deferred calls continue round robin, one of each connection, so that a connection with many
 * calls does not delay one with few. A stream of samples that continues may add RP_TURN_SHARE
 * units, then goes to the end of the queue. With smaller shares, the stream would find neither
 * its samples nor the socket's buffers in the cache. A change that has begun and is deferred is
 * the first to continue, so only one large change is in progress at a time. Every turn
 * continues at least one deferred call.
 *
 * A small call whose connection has no deferred calls does not wait for those of others: it may
 * begin until the turn has done twice RP_TURN_WORK units. So a large call in the same turn does
 * not defer it. There is one exception: while a deferred call of a connection continues, the
 * other small messages of this connection have only the rights of large ones.
 *
 * A message that waits after it was read must be copied. To avoid that, once the turn has done
 * almost RP_TURN_WORK units, a connection with more than a few bytes to read waits before the
 * read. Its bytes stay in the socket. Such connections are read in the next turns, after the
 * deferred calls, in the order in which they came. While some of them wait, every other
 * connection with many bytes goes to the end of their queue. Every turn reads from at least one
 * of them, even if calls are still deferred.
 *
 * The session keeps the messages that wait (rp_h2_handler.may_deliver). So they count in the
 * budget of queued bytes, and stay in order.
 *
 * Invariants:
 *   F1  task->is_deferred is set exactly while the task is in connection->deferred;
 *   F2  a connection is in worker->deferring exactly while connection->deferred is not empty;
 *   F3  the timer is armed while worker->deferring or worker->unread is not empty;
 *   F4  connection->is_unread is set exactly while the connection is in worker->unread.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_DEFERRAL_H
#define RP_SERVER_CORE_DEFERRAL_H

#include "server/core/task.h"

enum {
    RP_TURN_WORK = 64 << 10, /* units in one turn; small requests may add as many */
    RP_TURN_SHARE = 8 << 10, /* units that a stream may add when it continues */
    RP_TURN_VISITS = 16,     /* calls that visit every table, in one turn */
    RP_UNIT_BYTES = 256,     /* bytes of a message that count as one unit */
};

/* Returns true if the task may begin to work. `size` is the size of its request in bytes or
 * units; SIZE_MAX: the request is not small. Otherwise defers the task: one of the next turns
 * calls its on_turn, or resumes the call if the kind has no on_turn. */
RP_NODISCARD bool rp_defer_may_begin(rp_task *task, size_t size);
/* Returns true if a task that has begun may go on in this turn. Otherwise defers the task, as
 * the first to continue. Kinds that use this function have an on_turn. */
RP_NODISCARD bool rp_defer_may_go_on(rp_task *task);
/* Adds units of work to those of this turn. */
void rp_defer_add_work(rp_worker *worker, size_t units);
/* Call rp_defer_begin_message() before a message of `size` bytes is handled: it adds the work
 * for these bytes. Call rp_defer_end_message() afterwards. */
void rp_defer_begin_message(rp_worker *worker, size_t size);
void rp_defer_end_message(rp_worker *worker);

/* Returns true if the connection may be read now. Otherwise the connection waits: this turn or
 * one of the next calls the function `read` of rp_defer_init(). */
RP_NODISCARD bool rp_defer_may_read(rp_connection *connection);

/* Removes the task, or all tasks and the read of the connection, from the deferred ones. */
void rp_defer_forget(rp_task *task);
void rp_defer_forget_all(rp_connection *connection);

/* For calls that visit every table. Returns an empty response, or NULL with the call ended. The
 * response cannot grow beyond the room that the connection has now. Adds the work of a visit.
 */
rp_message *rp_defer_reply(rp_task *task);
/* Sends the response and ends the call. If the connection has too little room for the response,
 * ends the call with RP_NO_RESOURCE instead. */
void rp_defer_respond(rp_task *task, rp_message *reply);

/* Call rp_defer_init() before the worker's loop runs, and rp_defer_end_turn() at the end of
 * each turn of the loop. `read` reads from a connection that has waited; the connection may
 * have ended or lack room by then. `write` is called after a deferred call has continued with
 * much work: it writes the responses of the connection now, or touches the connection
 * (rp_connection_touch()) so that they are written at the end of the turn. */
void rp_defer_init(rp_worker *worker, void (*read)(rp_connection *connection),
                   void (*write)(rp_connection *connection));
void rp_defer_end_turn(rp_worker *worker);

#endif
