/* SPDX-License-Identifier: Apache-2.0 */
/* What insert streams make the server keep outside its tables, against the limits: chunks that
 * streams keep and no table holds (pinned), and inserts that wait for their tables (parked),
 * with their chunks that no table holds.
 *
 * The server's sum of both is exact at every moment: a chunk enters it when the last table lets
 * go of it, however silent its stream is (chunk/keep.h). What a connection has of it is known
 * as of the last message of each stream; from P / 2 on streams are looked at now and then.
 *
 * With P, the limit pinned_bytes, and C connections, of the server's sum of both:
 *   P1  any connection may add while the sum is below 3/4 P;
 *   P2  the last quarter is for connections within their share, P / 4C, but at least 64 KiB, so
 *       that peers that hold much leave room for the others; what does not fit is refused;
 *   P3  from P / 2 on a stream with inserts that wait is paused, if its connection is over its
 *       share: its peer waits, instead of being refused at 3/4 P. The stream goes on when one of
 *       its inserts does.
 *   P4  when the sum is over P, because items were evicted or deleted whose chunks streams
 * keep,
 *       a sweep looks at all streams and refuses those that hold bytes of it, on the connections
 *       over their share, those that hold most first, until the sum is 3/4 P.
 * So the sum stays below P + C * 64 KiB, and what one turn of each loop adds. Streams that only
 * hold chunks are not paused: the messages that let them go could not be read then. */
#ifndef RP_SERVER_RPC_PINNED_H
#define RP_SERVER_RPC_PINNED_H

#include "server/core/inside.h"

/* Adds to the server's sum; modulo SIZE_MAX + 1, so `change` may stand for less: bytes of
 * inserts that wait, and what rp_chunk_keep() and its like return. */
void rp_pinned_add(rp_worker *worker, size_t change);
void rp_pinned_keep(rp_worker *worker, size_t change);
/* The sum. Any thread. */
size_t rp_pinned_sum(const rp_server *server);

/* True if this connection may not add to the sum (P1, P2). */
bool rp_pinned_is_full(const rp_connection *c);
/* True if its streams with inserts that wait are to be paused (P3). */
bool rp_pinned_is_short(const rp_connection *c);

/* Refuses the call because of that. */
void rp_pinned_refuse(rp_task *task);

/* The call's stream has `bytes` of chunks without an item, where it had `*counted`. True if
 * that is over a limit: then the call has been refused. */
bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes);

/* P4: at the end of each turn of a loop. */
void rp_pinned_init(rp_worker *worker);
void rp_pinned_end_turn(rp_worker *worker);

#endif
