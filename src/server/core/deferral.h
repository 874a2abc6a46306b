/* SPDX-License-Identifier: Apache-2.0 */
/* Calls whose work is out of proportion to their request: they visit every table. A peer can
 * send thousands of them in one read, so a turn of a loop runs 16 of them and defers
 * the rest to the next turns: one call of each connection in turn, so that a connection with
 * many does not hold up one with few. 256 KiB of an answer count as one call more.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_DEFERRAL_H
#define RP_SERVER_CORE_DEFERRAL_H

#include "server/core/inside.h"

/* Runs the task's on_message with the message of its request, now or in one of the next turns;
 * until then task->deferred is set. Without memory the call is ended. */
void rp_defer_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block);
/* Whether rp_defer_message() is for this method. */
bool rp_defer_applies(rp_method method);
/* Drops what is deferred. For a task that is over. */
void rp_defer_forget(rp_task *task);
/* Counts a large answer of such a call as several calls of this turn. */
void rp_defer_weigh(rp_worker *worker, size_t answer_bytes);
/* Before the worker's loop runs; at the end of every turn. */
void rp_defer_init(rp_worker *worker);
void rp_defer_end_turn(rp_worker *worker);

#endif
