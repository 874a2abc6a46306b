/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are closed and still have calls. Ending a call takes it back from its table,
 * under the table's lock, and frees what it holds; a connection may have thousands, and many
 * connections may be closed at once. So a turn of a loop ends 512 calls of closed connections,
 * and the next turns the others, in the order in which the connections were closed.
 *
 * A call of a closed connection goes on until it is ended: its timers and operations may call
 * it. It starts no new draw (rp_connection_may_queue()), and what it sends stays in its rp_h2.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_CLOSING_H
#define RP_SERVER_CORE_CLOSING_H

#include "server/core/inside.h"

/* Takes a connection that is closed: nothing reads from it, writes to it or lists it. Ends its
 * calls, now as far as the turn allows, and then calls rp_connection_free(). A worker that
 * stops ends all of them now. */
void rp_closing_add(rp_connection *connection);
/* Before the worker's loop runs; at the end of every turn; when the worker stops. */
void rp_closing_init(rp_worker *worker);
void rp_closing_end_turn(rp_worker *worker);
void rp_closing_finish(rp_worker *worker);

#endif
