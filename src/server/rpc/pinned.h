/* SPDX-License-Identifier: Apache-2.0 */
/* What insert streams make the server keep outside its tables, against the limits: chunks that
 * no item refers to (pinned), and inserts that wait for their tables (parked).
 *
 * With P, the limit pinned_bytes, and C connections, of the server's sum of both:
 *   P1  any connection may add while the sum is below 3/4 P;
 *   P2  the last quarter is for connections within their share, P / 4C, but at least 64 KiB, so
 *       that peers that hold much leave room for the others; what does not fit is refused;
 *   P3  from P / 2 on a stream with inserts that wait is paused, if its connection is over its
 *       share: its peer waits, instead of being refused at 3/4 P. The stream goes on when one of
 *       its inserts does.
 * So the sum stays below P + C * 64 KiB. Streams that only hold chunks are not paused: the
 * messages that let them go could not be read then. */
#ifndef RP_SERVER_RPC_PINNED_H
#define RP_SERVER_RPC_PINNED_H

#include "server/core/inside.h"

/* Adds to the server's sum; modulo SIZE_MAX + 1, so `change` may stand for less. */
void rp_pinned_add(rp_worker *worker, size_t change);

/* True if this connection may not add to the sum (P1, P2). */
bool rp_pinned_is_full(const rp_connection *c);
/* True if its streams with inserts that wait are to be paused (P3). */
bool rp_pinned_is_short(const rp_connection *c);

/* Refuses the call because of that. */
void rp_pinned_refuse(rp_task *task);

/* The call's stream has `bytes` of chunks without an item, where it had `*counted`. True if
 * that is over a limit: then the call has been refused. */
bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes);

#endif
