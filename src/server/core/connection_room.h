/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the budget of queued bytes to a connection: decides how many bytes of messages and
 * responses the server is allowed to hold for the connection. queue_budget.h has the rules Q1
 * to Q7. The budget has two sides: bytes that peers send, and bytes that are sent to peers.
 *
 * If there is no room at all for responses, a new call is refused, unless calls of its kind
 * wait for room (rp_task_kind.waits_for_room). A call that has begun waits if
 * rp_connection_may_queue() finds too little room for its responses. While one of its calls
 * waits, a connection is "starved". Once there is room, the call's on_room is called. All
 * functions must be called on the worker's thread. */
#ifndef RP_SERVER_CORE_CONNECTION_ROOM_H
#define RP_SERVER_CORE_CONNECTION_ROOM_H

#include "server/core/connection_state.h"

/* The error text of calls that are refused because rp_connection_is_full(). */
#define RP_NO_ROOM_TEXT "too many responses wait to be read"

enum { RP_HELD_NS = 50000000 }; /* time between two tries of a connection that waits for room */

/* Updates the connection's bytes in the budget (invariant C5 in connection_state.h). Must be
 * called whenever messages or responses, or bytes of them, were added or removed. */
void rp_connection_count(rp_connection *connection);
/* Updates the copies of limits and counts in connection->drawn (drawn.h). Must be called before
 * the start of an operation that can draw items. */
void rp_connection_update_drawn(rp_connection *connection);

/* Returns the bytes of the connection's queued responses and of the items drawn for responses.
 */
size_t rp_connection_held(const rp_connection *connection);
/* Returns how many bytes the connection may add to a side now. */
size_t rp_connection_room(const rp_connection *connection, rp_queue_side side);
/* Returns whether the connection may add one message or item of `bytes`. By Q1, `bytes` is
 * allowed to be more than rp_connection_room(). If false, records that room on the side is
 * short (rp_queue_mark_short()). */
bool rp_connection_has_room(rp_connection *connection, rp_queue_side side, size_t bytes);
/* Returns whether the caller must refuse a call that cannot wait for room: the budget has no
 * room for responses of the connection, or connection_queued_bytes + message_bytes are queued
 * for it. If true, `*why` receives the reason. */
bool rp_connection_is_full(const rp_connection *connection, rp_refusal *why);

/* Returns whether a call may add about `bytes` of responses. `bytes` is 0 for a response made
 * of items that the budget counts already (Q5). If false, the call's on_room is called once
 * there is room. When there is room, the waiting calls without queued responses continue first,
 * one after the other. */
bool rp_connection_may_queue(rp_connection *connection, const rp_call *call, size_t bytes);
/* Requests that on_room is called once there is room for `bytes`. Used by a call whose draw of
 * items failed for lack of room. Before, the draw must have given its bytes back to the budget.
 * If there seems to be room already, on_room is called after RP_HELD_NS, since another draw now
 * might fail again. */
void rp_connection_wait_for_room(rp_connection *connection, size_t bytes);
/* Returns whether the calls that wait for room may continue now. */
bool rp_connection_may_feed(rp_connection *connection);

/* Asks for a loan (Q7): room beyond the limit of the budget, for one item that a waiting call
 * of the connection draws. Returns whether the connection has got the loan. If true, one item
 * can be drawn against the loan until the caller calls rp_connection_drew(). */
RP_NODISCARD bool rp_connection_may_draw(rp_connection *connection);
void rp_connection_drew(rp_connection *connection);
/* If the connection waits in the queue for a loan of rp_connection_may_draw(), removes the
 * connection from the queue. If the connection already has a loan, the loan continues. */
void rp_connection_leave_loan_queue(rp_connection *connection);
/* Adds the work for a response to the work of this turn of the loop (deferral.h). Bytes that
 * the response borrows cost less, since they are written to the socket but not copied. */
void rp_connection_add_work(rp_connection *connection, const rp_message *response);
/* Returns whether the connection has a loan on either side. */
bool rp_connection_has_loan(const rp_connection *connection);
/* Returns whether the peer sends or reads too slowly to keep the connection's loan on `side`
 * (rule T3 in loans.h). */
RP_NODISCARD bool rp_connection_is_behind(rp_connection *connection, rp_queue_side side);
/* Extends the time limits of the connection's loans by `late_ns`, the time for which the
 * worker's thread was too busy to serve the connection. */
void rp_connection_excuse(rp_connection *connection, int64_t late_ns);

#endif
