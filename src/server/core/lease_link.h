/* SPDX-License-Identifier: Apache-2.0 */
/* A connection on which a client of this host holds a lease on shared memory. lease.h describes
 * the protocol. All functions belong to the worker's thread.
 *
 * Invariants:
 *   N1  connection->lease is set from rp_lease_link_begin() to rp_lease_link_free();
 *   N2  the link's buffer is never full before a read. Once the lease is granted, it holds less
 *       than one number (8 bytes) after a read has been handled. */
#ifndef RP_SERVER_CORE_LEASE_LINK_H
#define RP_SERVER_CORE_LEASE_LINK_H

#include "server/core/connection_state.h"

/* Takes over a connection that begins with RP_LEASE_MAGIC. False: the caller must close it. */
bool rp_lease_link_begin(rp_connection *connection);
/* Reads and handles bytes that have arrived. False: the caller must close the connection. */
bool rp_lease_link_read(rp_connection *connection);
/* True until the client has been authorized. */
bool rp_lease_link_is_greeting(const rp_connection *connection);
/* Ends the lease, if there is one, and frees the state of the link. */
void rp_lease_link_free(rp_connection *connection);

#endif
