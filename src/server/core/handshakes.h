/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of TLS handshakes of a worker.
 *
 * A step of a handshake can take a millisecond of arithmetic, and a hello costs its sender
 * nothing. So a turn of the loop makes RP_TURN_HANDSHAKES steps, and open connections are
 * served between them. The other handshakes wait in the order in which they became ready. The
 * time in the queue is the server's: it does not count as time that the client takes.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_HANDSHAKES_H
#define RP_SERVER_CORE_HANDSHAKES_H

#include "server/core/inside.h"

/* Whether the handshake of a connection that has become ready may make a step now. If not, it
 * is queued, its descriptor is not watched for reading, and rp_connection_shake_hands() is
 * called in one of the next turns. */
RP_NODISCARD bool rp_handshake_may_step(rp_connection *connection);
/* Takes a connection out of the queue, if it is there. Before it is closed. */
void rp_handshake_forget(rp_connection *connection);
/* Before the worker's loop runs; at the end of every turn. */
void rp_handshakes_init(rp_worker *worker);
void rp_handshakes_end_turn(rp_worker *worker);

#endif
