/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's part of the budget of queued bytes: queue_budget.h has the rules Q1 to Q7.
 *
 * Calls that find no room for their responses wait: their connection is "starved", and their
 * on_room is called once there is room. All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_CONNECTION_ROOM_H
#define RP_SERVER_CORE_CONNECTION_ROOM_H

#include "server/core/connection_state.h"

/* The error of calls that are refused because of rp_connection_is_full(). */
#define RP_NO_ROOM_TEXT "too many answers wait to be read"

enum { RP_HELD_NS = 50000000 }; /* between two tries of a connection that waits for room */

/* Updates what the budget counts for the connection (C5): after anything was added. */
void rp_connection_count(rp_connection *connection);
/* Before an operation is started: updates the copies in connection->drawn. */
void rp_connection_update_drawn(rp_connection *connection);

/* Bytes of responses that wait, and of items that were drawn for responses. */
size_t rp_connection_held(const rp_connection *connection);
/* Bytes that the connection may add to a side now. */
size_t rp_connection_room(const rp_connection *connection, rp_queue_side side);
/* Whether it may add one message or item of so many bytes, which may be more than
 * rp_connection_room(). If not, the side is marked as short. */
bool rp_connection_has_room(rp_connection *connection, rp_queue_side side, size_t bytes);
/* True if so many response bytes wait that no call is accepted which cannot wait for room;
 * `*why` receives the reason. */
bool rp_connection_is_full(const rp_connection *connection, rp_refusal *why);

/* True if a call may add about `bytes` of responses. Pass 0 for items that are counted already,
 * which need their reader only. After a false the call gets on_room when it may: calls without
 * queued responses first, in turn. */
bool rp_connection_may_queue(rp_connection *connection, const rp_call *call, size_t bytes);
/* A draw had no room for `bytes` and has returned all that it had taken: on_room is called once
 * there is room. If there seems to be room already, on_room is called after RP_HELD_NS: the
 * next draw may find too little again. */
void rp_connection_wait_for_room(rp_connection *connection, size_t bytes);
/* Whether calls that wait for room may continue now. */
bool rp_connection_may_feed(rp_connection *connection);

/* Q7: whether one of its calls that wait for room may draw an item by a turn. If true, there is
 * room for that item until rp_connection_drew(). */
RP_NODISCARD bool rp_connection_may_draw(rp_connection *connection);
void rp_connection_drew(rp_connection *connection);
/* Stops waiting for a turn to draw. A turn that it has continues. */
void rp_connection_leave_turn_queue(rp_connection *connection);
/* Whether it has room by a turn on any side. */
bool rp_connection_has_turn(const rp_connection *connection);
/* Whether the peer moves too few bytes on that side to keep its turn (turns.h, T3). */
RP_NODISCARD bool rp_connection_is_behind(rp_connection *connection, rp_queue_side side);
/* Extends its turns by the time for which the worker's thread was busy. */
void rp_connection_excuse(rp_connection *connection, int64_t late_ns);

#endif
