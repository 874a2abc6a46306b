/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the requests that arrive on an HTTP/2 connection. For each gRPC request, the handler
 * starts a task (task.h) of the kind of the request's method. To a plain HTTP request (GET,
 * HEAD, or POST to a path below /v1/), it responds with one of the server's pages
 * (page_response.h), such as /metrics. */
#ifndef RP_SERVER_CORE_CALLS_H
#define RP_SERVER_CORE_CALLS_H

#include "wire/h2/h2.h"

/* The handler (wire/h2/h2.h) of the rp_h2 of every connection. The functions of the handler get
 * the rp_connection as `user`. */
extern const rp_h2_handler rp_calls_handler;

#endif
