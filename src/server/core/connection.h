/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection to the server, from its first byte to its last. It has these states
 * (`sniff` is for a plain socket):
 *
 *   handshake (TLS) -> h2 -> closing -> closed
 *   sniff (plain)   -> h2 -> closing -> closed
 *                   -> given to the HTTP/1.1 daemon, if the peer speaks HTTP/1.1
 *                   -> lease, on a Unix socket, if the peer asks for shared memory
 *
 * The server sends nothing before the peer's first bytes show which protocol it uses. The
 * worker reads bytes into its buffer, or directly into a large message. It writes small
 * responses at the end of the turn of its event loop. A timer checks whether the peer is too
 * slow (connection_watch.h).
 *
 * All functions must be called on the worker's thread. connection_state.h has the invariants.
 */
#ifndef RP_SERVER_CORE_CONNECTION_H
#define RP_SERVER_CORE_CONNECTION_H

#include "server/core/connection_state.h"

/* Opens an accepted connection and takes ownership of its descriptor `fd`. The caller must have
 * added the connection to the connection_count of the server and of the worker. `tls` is
 * borrowed, and NULL for a plain socket. */
void rp_connection_open(rp_worker *worker, int fd, const char *peer, rp_tls *tls);
/* Subtracts an accepted connection that is not opened from both counts. */
void rp_connection_count_out(rp_worker *worker);
/* Ends the claim of a connection that has arrived at the worker (newcomers.h), and closes the
 * oldest newcomer to make a place for it. Returns false if the worker has no newcomer and too
 * many connections are open. */
RP_NODISCARD bool rp_connection_make_place(rp_worker *worker);
/* Closes the connection. Its calls are ended now or in the next turns of the loop (closing.h).
 * The caller must not use the pointer afterwards. */
void rp_connection_close(rp_connection *connection);
/* Ends all calls with RP_UNAVAILABLE and closes the connection. The peer receives the status
 * only if the socket takes it at once. */
void rp_connection_end(rp_connection *connection);
/* Flushes the connection's tasks, writes its responses, and updates the events that the loop
 * waits for. Called at the end of a turn. May close the connection. */
void rp_connection_flush(rp_connection *connection);
/* Flushes the connection if at least 16 KiB of its responses are queued, while they are in the
 * processor's cache. Otherwise has it flushed at the end of the turn. May close the connection.
 */
void rp_connection_flush_warm(rp_connection *connection);
/* Reads from the connection if it has room for messages. Called after a read was delayed. May
 * close the connection. */
void rp_connection_read(rp_connection *connection);
/* Sends GOAWAY, so that the peer opens no new calls. Closes the connection if it has not begun
 * HTTP/2. */
void rp_connection_drain(rp_connection *connection);

/* Callbacks that the worker passes to rp_closing_init() (closing.h) and rp_handshakes_init()
 * (handshakes.h). */
void rp_connection_on_calls_ended(rp_closed *closed);
void rp_connection_on_all_calls_ended(rp_closed *closed);
extern const rp_handshakes_handler rp_connection_handshakes;

#endif
