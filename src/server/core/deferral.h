/* SPDX-License-Identifier: Apache-2.0 */
/* Defers calls that visit every table. The work of such a call is out of proportion to its
 * request, and a peer can send thousands of them in one read. So a turn of the loop runs 16 of
 * these calls; each 256 KiB of their responses count as one more call. The other calls are
 * deferred to the following turns. Deferred calls run round robin, one of each connection, so
 * that a connection with many calls does not delay one with few.
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
/* Returns an empty response for such a call, or NULL with the call ended. The response cannot
 * grow beyond the room that the connection has now. */
rp_message *rp_defer_reply(rp_task *task);
/* Sends the response and ends the call. If the connection has too little room for the response,
 * ends the call with RP_NO_RESOURCE instead. */
void rp_defer_respond(rp_task *task, rp_message *reply);
/* Call rp_defer_init() before the worker's loop runs, and rp_defer_end_turn() at the end of
 * each turn of the loop. */
void rp_defer_init(rp_worker *worker);
void rp_defer_end_turn(rp_worker *worker);

#endif
