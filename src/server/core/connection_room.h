/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's part of the budget of queued bytes: queue_budget.h has the rules Q1 to Q7.
 *
 * A call that finds no room for its responses waits. Its connection is "starved" then, and the
 * call's on_room is called once there is room. All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_CONNECTION_ROOM_H
#define RP_SERVER_CORE_CONNECTION_ROOM_H

#include "server/core/connection_state.h"

/* The error of calls that are refused because of rp_connection_is_full(). */
#define RP_NO_ROOM_TEXT "too many responses wait to be read"

enum { RP_HELD_NS = 50000000 }; /* between two tries of a connection that waits for room */

/* Updates the connection's part of the budget (C5). Call it whenever messages, responses or
 * their bytes were added or removed. */
void rp_connection_count(rp_connection *connection);
/* Updates the copies in connection->drawn. Call it before an operation is started that may
 * draw items. */
void rp_connection_update_drawn(rp_connection *connection);

/* Bytes of queued responses, and of items that were drawn for responses. */
size_t rp_connection_held(const rp_connection *connection);
/* Bytes that the connection may add to a side now. */
size_t rp_connection_room(const rp_connection *connection, rp_queue_side side);
/* Whether the connection may add one message or item of `bytes`, which may be more than
 * rp_connection_room() (Q1). If not, marks the side as short. */
bool rp_connection_has_room(rp_connection *connection, rp_queue_side side, size_t bytes);
/* True if so many response bytes are queued that calls which cannot wait for room are refused;
 * `*why` receives the reason. */
bool rp_connection_is_full(const rp_connection *connection, rp_refusal *why);

/* True if a call may add about `bytes` of responses. Pass 0 for a response made of items that
 * the budget counts already (Q5). If the result is false, on_room of the call is called once
 * there is room: for calls without queued responses first, one after the other. */
bool rp_connection_may_queue(rp_connection *connection, const rp_call *call, size_t bytes);
/* Requests that on_room is called once there is room for `bytes`. Used by a call whose draw
 * found too little room and has returned all bytes that it had taken. If there seems to be room
 * already, on_room is called after RP_HELD_NS, since the next draw may find too little
 * again. */
void rp_connection_wait_for_room(rp_connection *connection, size_t bytes);
/* Whether calls that wait for room may continue now. */
bool rp_connection_may_feed(rp_connection *connection);

/* Q7: whether a call of the connection that waits for room may draw an item by a loan. If true,
 * the loan has room for that item until rp_connection_drew() is called. */
RP_NODISCARD bool rp_connection_may_draw(rp_connection *connection);
void rp_connection_drew(rp_connection *connection);
/* Stops waiting for a loan to draw. If the connection has a loan, the loan continues. */
void rp_connection_leave_loan_queue(rp_connection *connection);
/* Adds the work for the bytes of a response to that of this turn of the loop (deferral.h): they
 * are copied, or at least written. */
void rp_connection_add_work(rp_connection *connection, const rp_message *response);
/* Whether the connection has a loan on any side. */
bool rp_connection_has_loan(const rp_connection *connection);
/* Whether the peer moves too few bytes on that side to keep its loan (loans.h, T3). */
RP_NODISCARD bool rp_connection_is_behind(rp_connection *connection, rp_queue_side side);
/* Extends the connection's loans by `late_ns`, the time for which the worker's thread was too
 * busy to serve it. */
void rp_connection_excuse(rp_connection *connection, int64_t late_ns);

#endif
