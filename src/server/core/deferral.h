/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that visit every table: their work is out of proportion to their request. A peer can
 * send thousands of them in one read. So a turn of a loop runs 16 of them and defers the rest
 * to the next turns: one call of each connection in turn, so that a connection with many does
 * not delay one with few. 256 KiB of a response count as one call more.
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
/* An empty response of such a call, or NULL with the call ended. It takes at most as many bytes
 * as the connection has room for. */
rp_message *rp_defer_reply(rp_task *task);
/* Sends the response and ends the call; refuses it if the room was too small. */
void rp_defer_respond(rp_task *task, rp_message *reply);
/* Before the worker's loop runs; at the end of every turn. */
void rp_defer_init(rp_worker *worker);
void rp_defer_end_turn(rp_worker *worker);

#endif
