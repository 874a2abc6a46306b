/* SPDX-License-Identifier: Apache-2.0 */
/* Pages over HTTP/2: the same responses as over HTTP/1.1 (http/page.h). */
#ifndef RP_SERVER_CORE_PAGE_RESPONSE_H
#define RP_SERVER_CORE_PAGE_RESPONSE_H

#include "server/core/connection_state.h"
#include "server/http/page.h"

/* Responds to a plain HTTP request of a connection. Some requests are handled by another
 * thread (http/page_maker.h): the worker passes such a request on once its body has arrived,
 * serves other calls meanwhile, and responds when that thread is done. Other requests are
 * answered at once. `path` is the path of `head`, and `authorization` its header, as C
 * strings. */
void rp_page_respond(rp_connection *connection, rp_call *call, const rp_request_head *head,
                     const char *path, const char *authorization);

/* Describes the server to http/page.h. The fields are borrowed from the server. */
rp_page_host rp_page_host_of(rp_server *server);

/* Makes a change and waits until it is safe (safety.h). If that takes longer than
 * RP_ACTION_WAIT_MS, returns RP_OK and sets action->is_late. `server` is an rp_server. On a
 * thread of http/page_maker.h, never on an event loop. Defined by rpc/. RP_NOT_FOUND,
 * RP_INVALID, RP_DENIED (resets are disabled), RP_UNAVAILABLE (loading, draining, the journal
 * is behind), RP_NO_RESOURCE (memory; checkpoints too often), RP_CANCELLED (the table is
 * closed). */
RP_NODISCARD rp_status rp_page_act(void *server, rp_action *action, rp_error *err);

#endif
