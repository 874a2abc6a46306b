/* SPDX-License-Identifier: Apache-2.0 */
/* The connection behind a lease: lease.h has what is said on it. On its worker's thread. */
#ifndef RP_SERVER_CORE_LEASE_LINK_H
#define RP_SERVER_CORE_LEASE_LINK_H

#include "server/core/inside.h"

/* The connection begins with RP_LEASE_MAGIC: it goes on here. False: it is to be closed. */
bool rp_lease_link_begin(rp_connection *connection);
/* Reads what there is. False: it is to be closed. */
bool rp_lease_link_read(rp_connection *connection);
/* True while it has not said who it is. */
bool rp_lease_link_is_greeting(const rp_connection *connection);
void rp_lease_link_free(rp_connection *connection); /* without one: nothing */

#endif
