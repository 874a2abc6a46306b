/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of queued bytes: what all connections together hold for their peers.
 *
 * Counted are messages that are not whole or wait for a paused call, with the bytes of them
 * that are still to come, responses that wait to be written, responses that are being made, and
 * the sample arrays of calls. Each worker counts on its own thread and publishes to the other
 * workers in blocks and at the end of a turn, so that a small message costs no shared atomic.
 *
 * With L, the limit queued_bytes, and C connections:
 *   Q1  any connection may add while the count is below 3/4 L;
 *   Q2  the last quarter is for connections within their share, L / 4C and at most 256 KiB, so
 *       that peers that do not read leave room for the others;
 *   Q3  beyond, a connection may hold FLOOR_BYTES, enough for a small request and its response,
 *       and as much again of frames while its responses wait for a window update;
 *   Q4  a response whose size is not known beforehand is made in steps, each of which is
 *       counted before the next; one that does not fit is refused or waits;
 *   Q5  a message whose size is known is counted as a whole, by the rules above, before more of
 *       it is read (intake.h); so the limit message_bytes is at most 3/4 L.
 * So the count stays below L + C * 3 * FLOOR_BYTES + loops * (one step + PUBLISH_BYTES), where
 * a step is a response, or about 2 MiB and an item of a long one.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_QUEUE_BUDGET_H
#define RP_SERVER_QUEUE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rp_worker rp_worker;

enum { RP_QUEUE_FLOOR_BYTES = 4096 };

/* Counts bytes more, or fewer: `bytes` wraps around like an unsigned difference. */
void rp_queue_count(rp_worker *worker, size_t bytes);
/* Tells the other workers. At the end of a turn. */
void rp_queue_publish(rp_worker *worker);

/* The count, as this worker knows it. */
size_t rp_queue_bytes(const rp_worker *worker);
/* Bytes that a connection which holds `own` may add. */
size_t rp_queue_room(const rp_worker *worker, size_t own);
/* Whether what is counted already, `own` of it for this connection, is within the rules. */
bool rp_queue_fits(const rp_worker *worker, size_t own);

/* Says that a connection has found less room than it needs; whether one has lately. Who waits
 * for room tries again 20 times a second. */
void rp_queue_note_short(rp_worker *worker);
bool rp_queue_is_short(const rp_worker *worker);

#endif
