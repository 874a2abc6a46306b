/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the work that one turn (iteration) of an event loop does for calls. Some calls take
 * much work for few bytes: calls that visit every table, and calls with many keys or items. A
 * peer can also send the last bytes of thousands of large messages at once. So every call must
 * ask rp_defer_may_begin() before it handles a message. Work is counted in units. A unit is
 * about the work for one key. The bytes of messages and of responses count as work. A call
 * whose work is larger than its bytes suggest adds further units. When a turn has done
 * RP_TURN_WORK units, further calls are deferred to the following turns.
 *
 * Deferred calls continue round robin, one call of each connection, so that a connection with
 * many calls does not delay one with few. When a stream of samples continues, it may add
 * RP_TURN_SHARE units before it goes to the end of the queue. If it got a much smaller share,
 * it would continue in more turns, and each time its samples and the socket's buffers would
 * have left the processor's cache. A call that is deferred after it has begun a change
 * continues before all other calls, so only one large change is in progress at a time. Every
 * turn continues at least one deferred call.
 *
 * A small call, whose request has at most 4096 bytes, does not wait for the deferred calls of
 * other connections. If its own connection has no deferred calls, a small call may begin until
 * the turn has done twice RP_TURN_WORK units, so a large call in the same turn does not defer
 * it. While a deferred call of a connection continues, the small calls of this connection are
 * treated as large ones.
 *
 * A message that waits after it was read must be copied. To avoid the copy, reads are delayed:
 * once a turn has done almost RP_TURN_WORK units, a connection with more than 16 KiB to read
 * enters a queue, and its bytes stay in the socket. While the queue is not empty, every other
 * connection with more than 16 KiB to read also enters the queue. The next turns read from
 * these connections in the order of the queue, after the deferred calls. Every turn reads from
 * at least one of the connections in the queue, even if calls are still deferred.
 *
 * The HTTP/2 session keeps the messages of deferred calls (rp_h2_handler.may_deliver). So these
 * messages count as queued bytes (queue_budget.h), and stay in order.
 *
 * Invariants:
 *   F1  task->is_deferred is set exactly while the task is in connection->deferred;
 *   F2  a connection is in the list worker->deferring exactly while connection->deferred is not
 *       empty;
 *   F3  the timer is armed while worker->deferring or worker->unread is not empty;
 *   F4  connection->is_unread is set exactly while the connection is in the list
 *       worker->unread, the queue of delayed reads.
 *
 * All functions must be called on the worker's thread. */
#ifndef RP_SERVER_CORE_DEFERRAL_H
#define RP_SERVER_CORE_DEFERRAL_H

#include "server/core/task.h"

enum {
    RP_TURN_WORK = 64 << 10, /* units of one turn; small calls may add as many again */
    RP_TURN_SHARE = 8 << 10, /* units that a deferred stream may add when it continues */
    RP_TURN_VISITS = 16,     /* the most calls in one turn that visit every table */
    RP_UNIT_BYTES = 256,     /* bytes of a message that count as one unit */
};

/* Returns true if the task may begin to work now. `size` is the size of its request in bytes,
 * or in units of work. A request of at most 4096 is small; pass SIZE_MAX for one that is never
 * small. If false, the task is deferred: one of the next turns calls its on_turn, or resumes
 * the call if the task's kind has no on_turn. */
RP_NODISCARD bool rp_defer_may_begin(rp_task *task, size_t size);
/* Returns true if a task that has begun may go on in this turn. If false, the task is deferred,
 * and continues before all other deferred tasks. The task's kind must have an on_turn. */
RP_NODISCARD bool rp_defer_may_go_on(rp_task *task);
/* Adds `units` to the work that this turn has done. */
void rp_defer_add_work(rp_worker *worker, size_t units);
/* rp_defer_begin_message() adds the work for a message of `size` bytes. The caller must call it
 * before it handles a message, and rp_defer_end_message() afterwards. */
void rp_defer_begin_message(rp_worker *worker, size_t size);
void rp_defer_end_message(rp_worker *worker);

/* Returns true if the connection may be read now. If false, the read is delayed: the function
 * `read` of rp_defer_init() is called later in this turn, or in one of the next turns. */
RP_NODISCARD bool rp_defer_may_read(rp_connection *connection);

/* rp_defer_forget() cancels the deferral of a task. rp_defer_forget_all() cancels the deferrals
 * of all tasks of a connection, and the connection's delayed read. */
void rp_defer_forget(rp_task *task);
void rp_defer_forget_all(rp_connection *connection);

/* Makes an empty response for a call that visits every table, and adds the work of visiting the
 * tables. The response cannot grow beyond the room that the connection has now
 * (connection_room.h). If there is no memory, ends the call and returns NULL. */
rp_message *rp_defer_reply(rp_task *task);
/* Sends a response of rp_defer_reply() and ends the call. If the connection has too little room
 * for the response, ends the call with RP_NO_RESOURCE instead. */
void rp_defer_respond(rp_task *task, rp_message *reply);

/* The worker must call rp_defer_init() before its loop runs, and rp_defer_end_turn() at the end
 * of each turn. `read` is called for a connection whose read was delayed. At that time the
 * budget can be without room for the connection's messages, so `read` must check the room.
 * `write` is called after a deferred call has continued and done much work. It writes the
 * responses of the connection now, or has them written at the end of the turn
 * (rp_connection_touch()). */
void rp_defer_init(rp_worker *worker, void (*read)(rp_connection *connection),
                   void (*write)(rp_connection *connection));
void rp_defer_end_turn(rp_worker *worker);

#endif
