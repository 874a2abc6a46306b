/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of a connection on which a client of the same host holds a lease, the right
 * to read samples in the server's shared memory. shm/lease.h describes leases and the protocol.
 * All functions must be called on the worker's thread.
 *
 * Invariants:
 *   N1  connection->lease is set from rp_lease_link_begin() to rp_lease_link_free();
 *   N2  the link's buffer is never full before a read. Once the lease is granted, the buffer
 *       holds less than one number (8 bytes) after each rp_lease_link_read(). */
#ifndef RP_SERVER_CORE_LEASE_LINK_H
#define RP_SERVER_CORE_LEASE_LINK_H

#include "server/core/connection_state.h"

/* Takes over a connection whose first bytes are RP_LEASE_MAGIC. Returns false on failure: the
 * caller must then close the connection. */
bool rp_lease_link_begin(rp_connection *connection);
/* Reads and handles the bytes that have arrived. If it returns false, the caller must close the
 * connection. */
bool rp_lease_link_read(rp_connection *connection);
/* Returns true until the client's credentials have been accepted. */
bool rp_lease_link_is_greeting(const rp_connection *connection);
/* Ends the lease, if there is one, and frees the state of the link. */
void rp_lease_link_free(rp_connection *connection);

#endif
