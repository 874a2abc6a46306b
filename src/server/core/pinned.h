/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the memory that insert streams use outside the tables:
 *
 *   pinned   chunks that streams keep and that no table holds
 *   parked   inserts that wait for their tables, with their chunks, except chunks that a table
 *            holds; calls that wait for rollouts; groups of rollouts in responses that wait for
 *            room
 *
 * The sum of both over all connections is exact: a chunk is added when its last table releases
 * it, even if its stream is silent (chunk/keep.h). The count of a connection is exact as of the
 * last message of each of its streams, and is updated now and then while the sum is over P / 2.
 *
 * Let P be the limit pinned_bytes and C the number of connections:
 *   P1  while the sum is below 3/4 P, any connection may add to it;
 *   P2  the last quarter is for connections within their share, P / 4C, but at least 64 KiB, so
 *       that peers that hold much leave room for the others. Streams of connections over their
 *       share are refused then;
 *   P3  from P / 2 on, a stream with waiting inserts is paused if its connection is over its
 *       share, so that its peer waits and is not refused at 3/4 P. The stream continues when
 *       one of its inserts completes;
 *   P4  if items are removed and streams keep their chunks, the sum may pass P. Then a sweep
 *       visits the connections over their share, and refuses those of their streams that have
 *       pinned or parked bytes, until the sum is 3/4 P.
 * So the sum stays below P + C * 64 KiB + the bytes that arrive until the next sweep. Streams
 * that only keep chunks are not paused, because then the messages that release these chunks
 * could not be read. */
#ifndef RP_SERVER_CORE_PINNED_H
#define RP_SERVER_CORE_PINNED_H

#include "server/core/task.h"

/* Add `change` to the sum, modulo SIZE_MAX + 1: a difference below zero subtracts.
 * rp_pinned_add() is for bytes of waiting inserts without their chunks, rp_pinned_keep() for
 * the results of rp_chunk_keep() and rp_chunk_unkeep(). */
void rp_pinned_add(rp_worker *worker, size_t change);
void rp_pinned_keep(rp_worker *worker, size_t change);
/* The sum of all connections. Any thread. */
size_t rp_pinned_sum(const rp_server *server);

/* True if the connection may not add to the sum (P1, P2). */
bool rp_pinned_is_full(const rp_connection *c);
/* True if the connection's streams with waiting inserts have to be paused (P3). */
bool rp_pinned_is_short(const rp_connection *c);

/* Refuses a call because of P2. */
void rp_pinned_refuse(rp_task *task);

/* Changes the pinned bytes of a call from `*counted` to `bytes`. Returns true, and refuses the
 * call, if that is over a limit. */
bool rp_pinned_set(rp_task *task, size_t *counted, size_t bytes);

void rp_pinned_init(rp_worker *worker);
/* Updates the counts of the worker's connections, or sweeps (P4), if that is necessary. Call it
 * at the end of each turn of the loop. */
void rp_pinned_end_turn(rp_worker *worker);

#endif
