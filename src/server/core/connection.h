/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection to the server, from its first byte to its last. The states are those of
 * rp_connection_state (connection_state.h):
 *
 *   handshake   TLS only: the TLS handshake, which also selects the protocol
 *   sniff       plain sockets only: the peer's first bytes show the protocol
 *   h2          HTTP/2: the peer makes calls
 *   lease       Unix sockets only: the peer reads samples in shared memory (lease_link.h)
 *   closing     the queued responses are written, and nothing is read
 *   closed      the socket is closed, and the connection's calls are being ended (closing.h)
 *
 * handshake and sniff are followed by h2, then closing and closed. sniff can also be followed
 * by lease, and then closed. If the peer speaks HTTP/1.1, handshake or sniff is followed by
 * closed, and the HTTP/1.1 server (http/http_page.h) takes over the socket. An error leads to
 * closed from any state.
 *
 * On a plain socket, the server sends nothing before the peer's first bytes show which protocol
 * the peer uses. The worker (worker.h) reads bytes into its buffer. While a large message
 * arrives, the worker reads directly into the memory of that message. The worker writes small
 * responses at the end of each turn (iteration) of its event loop. A timer checks whether the
 * peer is too slow (connection_watch.h).
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
/* Subtracts 1 from the connection_count of the server and of the worker. Must be called for an
 * accepted connection that is not passed to rp_connection_open(). */
void rp_connection_count_out(rp_worker *worker);
/* Makes a place for a new connection that has arrived at the worker with a claim, the right to
 * take the place of a newcomer. A newcomer is a connection without an accepted call
 * (newcomers.h). Ends the claim and closes the worker's oldest newcomer. If the worker has no
 * newcomer and too many connections are open, returns false: the caller must reject the new
 * connection. */
RP_NODISCARD bool rp_connection_make_place(rp_worker *worker);
/* Closes the connection. Its calls are ended now or in the next turns of the loop (closing.h).
 * The caller must not use the pointer afterwards. */
void rp_connection_close(rp_connection *connection);
/* Ends all calls with RP_UNAVAILABLE and closes the connection. The peer receives the status
 * only if the socket takes it at once. */
void rp_connection_end(rp_connection *connection);
/* Calls on_flush of the connection's tasks that have requested it (rp_task_touch()), writes the
 * queued responses, and updates the events for which the loop watches the socket. Called at the
 * end of a turn. Can close the connection. */
void rp_connection_flush(rp_connection *connection);
/* If at least 16 KiB of responses are queued, calls rp_connection_flush() now, since the
 * responses are still in the processor's cache. Otherwise the connection is flushed at the end
 * of the turn. Can close the connection. */
void rp_connection_flush_warm(rp_connection *connection);
/* Reads from the connection if the budget of queued bytes (queue_budget.h) has room for its
 * messages. Called after a read was delayed. Can close the connection. */
void rp_connection_read(rp_connection *connection);
/* Sends GOAWAY, so that the peer begins no new calls. If the connection has not begun HTTP/2,
 * closes it instead. */
void rp_connection_drain(rp_connection *connection);

/* Callbacks for the worker: rp_closing_init() gets the first two as on_progress and on_done
 * (closing.h), and rp_handshakes_init() gets the third (handshakes.h). */
void rp_connection_on_calls_ended(rp_closed *closed);
void rp_connection_on_all_calls_ended(rp_closed *closed);
extern const rp_handshakes_handler rp_connection_handshakes;

#endif
