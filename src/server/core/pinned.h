/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what insert streams make the server hold outside its tables: chunks that streams
 * keep and no table holds (pinned), and inserts that wait for their tables, with their chunks
 * that no table holds (parked).
 *
 * The sum of both over all connections is exact: a chunk is added when its last table releases
 * it, even if its stream is silent (chunk/keep.h). The part of a connection is exact as of the
 * last message of each stream, and is updated now and then while the sum is over P / 2.
 *
 * Let P be the limit pinned_bytes and C the number of connections:
 *   P1  any connection may add while the sum is below 3/4 P;
 *   P2  the last quarter is for connections within their share, P / 4C, but at least 64 KiB, so
 *       that peers that hold much leave room for the others; more is refused;
 *   P3  from P / 2 on, a stream with waiting inserts is paused if its connection is over its
 *       share, so that its peer waits and is not refused at 3/4 P. The stream continues when one
 *       of its inserts completes;
 *   P4  if items are removed whose chunks streams keep, and the sum passes P, a sweep refuses
 *       streams that hold bytes of it, of connections over their share, until it is 3/4 P.
 * So the sum stays below P + C * 64 KiB, and what arrives until the next sweep. Streams that
 * only hold chunks are not paused: the messages that release the chunks could not be read then.
 */
#ifndef RP_SERVER_CORE_PINNED_H
#define RP_SERVER_CORE_PINNED_H

#include "server/core/task.h"

/* Adds to the sum, modulo SIZE_MAX + 1: a difference below zero subtracts. Bytes of waiting
 * inserts without chunks; the results of rp_chunk_keep() and _unkeep(). */
void rp_pinned_add(rp_worker *worker, size_t change);
void rp_pinned_keep(rp_worker *worker, size_t change);
/* Any thread. */
size_t rp_pinned_sum(const rp_server *server);

/* True if this connection may not add to the sum (P1, P2). */
bool rp_pinned_is_full(const rp_connection *c);
/* True if its streams with waiting inserts have to be paused (P3). */
bool rp_pinned_is_short(const rp_connection *c);

/* Refuses a call because of P2. */
void rp_pinned_refuse(rp_task *task);

/* Changes the pinned bytes of a call from `*counted` to `bytes`. True if that is over a limit:
 * then the call has been refused. */
bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes);

void rp_pinned_init(rp_worker *worker);
/* At the end of each turn: looks, or sweeps (P4), if that is necessary. */
void rp_pinned_end_turn(rp_worker *worker);

#endif
