/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a connection: starts a task for each gRPC request, of the kind that its method
 * needs, and responds to GET and HEAD requests with the server's pages, such as /metrics. */
#ifndef RP_SERVER_CORE_CALLS_H
#define RP_SERVER_CORE_CALLS_H

#include "wire/h2/h2.h"

/* The handler of every connection's rp_h2. Its user is the rp_connection. */
extern const rp_h2_handler rp_calls_handler;

#endif
