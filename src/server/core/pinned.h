/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the memory that calls use outside the tables. The memory is of two kinds:
 *
 *   pinned   chunks that insert streams keep and that no table holds
 *   parked   inserts that wait for their tables, with their chunks, except chunks that a table
 *            holds; calls that wait for rollouts; rollouts in responses that wait for room
 *
 * The sum of both kinds over all connections is always exact: a chunk that a stream keeps is
 * added when the last table releases it, even if the stream is idle (chunk/keep.h). The count
 * of one connection is updated when one of its streams handles a message. While the sum is over
 * P / 2, all counts are also updated from time to time.
 *
 * Let P be the limit pinned_bytes and C the number of connections:
 *   P1  while the sum is below 3/4 P, any connection may add to it;
 *   P2  from 3/4 P on, streams of connections over their share are refused. The share of a
 *       connection is P / 4C, but at least 64 KiB. So the last quarter remains for connections
 *       that hold little;
 *   P3  from P / 2 on, a stream with waiting inserts is paused if its connection is over its
 *       share, so that the peer waits instead of being refused at 3/4 P. The stream continues
 *       when one of its inserts completes;
 *   P4  the sum can exceed P when tables remove items whose chunks streams keep. Then a sweep
 *       visits the connections over their share. It refuses their streams that have pinned or
 *       parked bytes, until the sum is 3/4 P.
 * So the sum stays below P + C * 64 KiB + the bytes that arrive until the next sweep. A stream
 * that only keeps chunks is not paused: it would then not read the messages by which its client
 * releases these chunks. */
#ifndef RP_SERVER_CORE_PINNED_H
#define RP_SERVER_CORE_PINNED_H

#include "server/core/task.h"

/* Each of these two functions adds `change` to the sum, modulo SIZE_MAX + 1: to subtract n
 * bytes, pass 0 - n. rp_pinned_add() is for the bytes of waiting inserts without their chunks,
 * rp_pinned_keep() for the results of rp_chunk_keep() and rp_chunk_unkeep(). */
void rp_pinned_add(rp_worker *worker, size_t change);
void rp_pinned_keep(rp_worker *worker, size_t change);
/* Returns the sum of pinned and parked bytes over all connections. Any thread may call it. */
size_t rp_pinned_sum(const rp_server *server);

/* Returns true if the connection `c` must not add to the sum (P1, P2). */
bool rp_pinned_is_full(const rp_connection *c);
/* Returns true if the streams of the connection `c` that have waiting inserts must be paused
 * (P3). */
bool rp_pinned_is_short(const rp_connection *c);

/* Refuses a call because of P2. */
void rp_pinned_refuse(rp_task *task);

/* Sets `*counted`, the pinned bytes counted for the call of `task`, to `bytes`. If the pinned
 * bytes then exceed a limit, refuses the call and returns true. */
bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes);

void rp_pinned_init(rp_worker *worker);
/* Updates the counts of the worker's connections, or sweeps (P4), if necessary. Must be called
 * at the end of each turn of the worker's loop. */
void rp_pinned_end_turn(rp_worker *worker);

#endif
