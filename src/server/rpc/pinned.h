/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what insert streams make the server hold outside its tables: chunks that no item
 * refers to (pinned), and inserts that wait for their tables (parked).
 *
 * Let P be the limit pinned_bytes, C the number of connections, and the sum that of both kinds
 * over all connections:
 *   P1  any connection may add while the sum is below 3/4 P;
 *   P2  the last quarter is for connections within their share, P / 4C, but at least 64 KiB, so
 *       that peers that hold much leave room for the others; more is refused;
 *   P3  from P / 2 on, a stream with waiting inserts is paused if its connection is over its
 *       share, so that its peer waits and is not refused at 3/4 P. The stream continues when one
 *       of its inserts completes.
 * So the sum stays below P + C * 64 KiB. Streams that only hold chunks are not paused: the
 * messages that release the chunks could not be read then. */
#ifndef RP_SERVER_RPC_PINNED_H
#define RP_SERVER_RPC_PINNED_H

#include "server/core/task.h"

/* Adds to the server's sum, modulo SIZE_MAX + 1: a difference below zero subtracts. */
void rp_pinned_add(rp_worker *worker, size_t change);

/* True if this connection may not add to the sum (P1, P2). */
bool rp_pinned_is_full(const rp_connection *c);
/* True if its streams with waiting inserts have to be paused (P3). */
bool rp_pinned_is_short(const rp_connection *c);

/* Refuses a call because of P2. */
void rp_pinned_refuse(rp_task *task);

/* Changes the pinned bytes of a call from `*counted` to `bytes`. True if that is over a limit:
 * then the call has been refused. */
bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes);

#endif
