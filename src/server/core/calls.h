/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the requests of a connection. For each gRPC request it starts a task (task.h) of the
 * kind of the request's method. To GET and HEAD requests it responds with the server's pages,
 * such as /metrics. */
#ifndef RP_SERVER_CORE_CALLS_H
#define RP_SERVER_CORE_CALLS_H

#include "wire/h2/h2.h"

/* The handler of every connection's rp_h2. Its functions get the rp_connection as `user`. */
extern const rp_h2_handler rp_calls_handler;

#endif
