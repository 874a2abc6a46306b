/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns each accepted connection to the worker that has the fewest connections. If as many
 * connections are open as the limits allow, the server closes the oldest newcomer, a connection
 * without an accepted call (newcomers.h). The new connection goes to the worker of the closed
 * connection. */
#ifndef RP_SERVER_CORE_DISPATCH_H
#define RP_SERVER_CORE_DISPATCH_H

#include "server/core/acceptor.h"

/* The handler of rp_server.acceptor. Its functions run on the first worker's loop. */
extern const rp_acceptor_handler rp_dispatch_handler;

#endif
