/* SPDX-License-Identifier: Apache-2.0 */
/* A connection, from its first byte to its last.
 *
 *   handshake (TLS) -> h2 -> closing -> closed
 *   sniff (plain)   -> h2 -> closing -> closed
 *                   -> given to the HTTP/1.1 daemon, if that is what the peer speaks
 *                   -> lease, on a Unix socket, if the peer asks for shared memory
 *
 * Nothing is sent before the peer has shown which protocol it uses. Bytes are read into the
 * worker's one buffer, or directly into a large message. Responses are written at the end of
 * the turn. A timer checks whether the peer is too slow (connection_watch.h).
 *
 * All functions belong to the worker's thread. connection_state.h has the invariants. */
#ifndef RP_SERVER_CORE_CONNECTION_H
#define RP_SERVER_CORE_CONNECTION_H

#include "server/core/connection_state.h"

/* Takes a descriptor that was accepted and is counted in both connection_count. `tls` is
 * borrowed; NULL: a plain socket. */
void rp_connection_open(rp_worker *worker, int fd, const char *peer, rp_tls *tls);
/* Closes it and ends its calls, which may take some turns. The pointer is invalid afterwards.
 */
void rp_connection_close(rp_connection *connection);
/* The same, but its calls end with RP_UNAVAILABLE, if that can be written at once. */
void rp_connection_end(rp_connection *connection);
/* At the end of a turn: flushes tasks, writes, and updates the events to wait for. May close
 * it. */
void rp_connection_flush(rp_connection *connection);
/* Sends GOAWAY: the peer shall open no new calls here. */
void rp_connection_drain(rp_connection *connection);

/* Callbacks for the queues of a worker: closing.h, handshakes.h. */
void rp_connection_on_calls_ended(rp_closed *closed);
void rp_connection_on_all_calls_ended(rp_closed *closed);
void rp_connection_on_handshake(rp_handshake *handshake, int64_t waited_ns);

#endif
