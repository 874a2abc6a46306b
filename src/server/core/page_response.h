/* SPDX-License-Identifier: Apache-2.0 */
/* Pages over HTTP/2: the same responses as over HTTP/1.1 (http/page.h). */
#ifndef RP_SERVER_CORE_PAGE_RESPONSE_H
#define RP_SERVER_CORE_PAGE_RESPONSE_H

#include "server/core/connection_state.h"
#include "server/http/page.h"

/* Responds to a GET or HEAD of a connection. `method` is "GET" or "HEAD". */
void rp_page_respond(rp_connection *connection, rp_call *call, const char *method,
                     const char *path, const char *authorization);

/* The server as pages need it. Borrowed from the server. */
rp_page_host rp_page_host_of(rp_server *server);

#endif
