/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that visit every table: their work is out of proportion to their request. A peer can
 * send thousands of them in one read. So a turn of a loop runs 16 of them and defers the rest
 * to the next turns: one call of each connection in turn, so that a connection with many does
 * not delay one with few.
 *
 * Invariants:
 *   F1  task->deferred is set exactly while the task is in connection->deferred;
 *   F2  a connection is in worker->deferring exactly while connection->deferred is not empty;
 *   F3  the timer is armed while worker->deferring is not empty.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_DEFERRAL_H
#define RP_SERVER_CORE_DEFERRAL_H

#include "server/core/task.h"

/* Calls on_message of a task whose kind has visits_tables, now or in one of the next turns.
 * Ends the call if there is no memory. */
void rp_defer_message(rp_task *task, const uint8_t *data, size_t size, rp_block *block);
/* Drops the deferred message of a task, if there is one. */
void rp_defer_forget(rp_task *task);
/* Counts one visit of every table, by a call or a page. False: this turn has had enough. */
bool rp_defer_may_visit(rp_worker *worker);
/* Before the worker's loop runs; at the end of every turn. */
void rp_defer_init(rp_worker *worker);
void rp_defer_end_turn(rp_worker *worker);

#endif
