/* SPDX-License-Identifier: Apache-2.0 */
/* Pages over HTTP/2: the same responses as over HTTP/1.1 (http/page.h). */
#ifndef RP_SERVER_CORE_PAGE_RESPONSE_H
#define RP_SERVER_CORE_PAGE_RESPONSE_H

#include "server/core/connection_state.h"
#include "server/http/page.h"

/* Responds to a GET or HEAD request of a connection. A page about all tables is made by another
 * thread (http/page_maker.h) and sent when it is ready; the worker serves other calls in the
 * meantime. Other pages are sent at once. */
void rp_page_respond(rp_connection *connection, rp_call *call, bool head_only, const char *path,
                     const char *authorization);

/* Describes the server to http/page.h. The fields are borrowed from the server. */
rp_page_host rp_page_host_of(rp_server *server);

#endif
