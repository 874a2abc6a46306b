/* SPDX-License-Identifier: Apache-2.0 */
/* A bound on the work of a turn of the loop. The work of some calls is out of proportion to the
 * bytes that a turn reads: calls that visit every table, calls with many keys, and messages
 * with many items or bytes, of which a peer can have thousands complete at the same moment. So
 * every call asks before it handles a message. The bytes of the message and of responses count
 * as work; a call with more work adds the units of that work. A unit is about the work for one
 * key. When a turn has done RP_TURN_WORK units, calls that ask are deferred to the following
 * turns.
 *
 * Deferred calls continue round robin, one of each connection, so that a connection with many
 * calls does not delay one with few. A stream of samples that continues may add RP_TURN_SHARE
 * units, and goes to the end of the queue then: after smaller shares, neither its samples nor
 * the socket's buffers would still be in the cache. A change that has begun and is deferred is
 * the first to continue, so only one large change is in progress at a time. Every turn
 * continues one deferred call at least.
 *
 * A small call whose connection has no deferred calls does not wait for those of others: it may
 * begin until the turn has done twice RP_TURN_WORK units. So it is not deferred because a large
 * call was handled before it in the same turn. A further small message of the connection whose
 * deferred call continues may not begin then: it asks as a large one does.
 *
 * Messages of a read that has been made must be copied to wait. So a connection with more than
 * a few bytes to read waits before the read, once the turn has done almost RP_TURN_WORK units.
 * Its bytes stay in the socket. Such connections are read in the next turns, after the deferred
 * calls, in the order in which they came. Until none waits, others with many bytes wait behind
 * them. Every turn reads from one of them at least, even if calls are still deferred.
 *
 * Messages that wait are kept by the session (rp_h2_handler.may_deliver). So they count in the
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

/* Whether the task may begin to work, for a request of `size` bytes or units; SIZE_MAX if it is
 * not small. If not, it has been deferred: its on_turn is called in one of the next turns, or
 * the call is resumed if the kind has none. */
RP_NODISCARD bool rp_defer_may_begin(rp_task *task, size_t size);
/* Whether a task that has begun may go on in this turn. If not, it has been deferred, and is
 * the first to continue. Kinds that use this function have an on_turn. */
RP_NODISCARD bool rp_defer_may_go_on(rp_task *task);
/* Adds units of work to those of this turn. */
void rp_defer_add_work(rp_worker *worker, size_t units);
/* Call rp_defer_begin_message() before a message of `size` bytes is handled, which adds the
 * work for its bytes, and rp_defer_end_message() afterwards. */
void rp_defer_begin_message(rp_worker *worker, size_t size);
void rp_defer_end_message(rp_worker *worker);

/* Whether the connection may be read now. If not, it waits, and the function of rp_defer_init()
 * is called in this turn or one of the next. */
RP_NODISCARD bool rp_defer_may_read(rp_connection *connection);

/* The task, or all tasks and the reads of the connection, are not deferred any more. */
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
 * have ended or lack room by then. `write` writes the responses of a deferred call that has
 * continued, or touches the connection. */
void rp_defer_init(rp_worker *worker, void (*read)(rp_connection *connection),
                   void (*write)(rp_connection *connection));
void rp_defer_end_turn(rp_worker *worker);

#endif
