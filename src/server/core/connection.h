/* SPDX-License-Identifier: Apache-2.0 */
/* A connection, from its first byte to its last.
 *
 *   handshake (TLS) -> h2 -> closing -> closed
 *   sniff (plain)   -> h2 -> closing -> closed
 *                   -> given to the HTTP/1.1 daemon, if the peer speaks HTTP/1.1
 *                   -> lease, on a Unix socket, if the peer asks for shared memory
 *
 * The server sends nothing before the peer's first bytes show which protocol it uses. Bytes are
 * read into the worker's buffer, or directly into a large message. Small responses are written
 * at the end of the turn. A timer checks whether the peer is too slow (connection_watch.h).
 *
 * All functions belong to the worker's thread. connection_state.h has the invariants. */
#ifndef RP_SERVER_CORE_CONNECTION_H
#define RP_SERVER_CORE_CONNECTION_H

#include "server/core/connection_state.h"

/* Takes the descriptor `fd` of an accepted connection, which the connection_count of the server
 * and that of the worker include already. `tls` is borrowed; NULL: a plain socket. */
void rp_connection_open(rp_worker *worker, int fd, const char *peer, rp_tls *tls);
/* Counts out a connection that was accepted and is not opened. */
void rp_connection_count_out(rp_worker *worker);
/* Ends the claim of an arrived connection (newcomers.h), and closes the oldest newcomer for it.
 * False if there is none and too many connections are open. */
RP_NODISCARD bool rp_connection_make_place(rp_worker *worker);
/* Closes the connection and ends its calls, which may take several turns (closing.h). The
 * pointer is invalid afterwards. */
void rp_connection_close(rp_connection *connection);
/* Ends all calls with RP_UNAVAILABLE and closes the connection. Peers receive the status only
 * if it can be written at once. */
void rp_connection_end(rp_connection *connection);
/* Flushes tasks, writes responses, and updates the events that the loop waits for. Called at
 * the end of a turn. May close the connection. */
void rp_connection_flush(rp_connection *connection);
/* Flushes if at least 16 KiB of responses are queued, while they are in the cache; otherwise
 * touches the connection. May close it. */
void rp_connection_flush_warm(rp_connection *connection);
/* Reads from the connection, if it has room for messages. Called when a read was delayed. May
 * close the connection. */
void rp_connection_read(rp_connection *connection);
/* Sends GOAWAY, so that the peer opens no new calls. A connection that has not begun HTTP/2 is
 * closed. */
void rp_connection_drain(rp_connection *connection);

/* Callbacks for the queues of a worker: closing.h, handshakes.h. */
void rp_connection_on_calls_ended(rp_closed *closed);
void rp_connection_on_all_calls_ended(rp_closed *closed);
extern const rp_handshakes_handler rp_connection_handshakes;

#endif
