/* SPDX-License-Identifier: Apache-2.0 */
/* Responds to requests for the server's pages over HTTP/2. The responses are the same as over
 * HTTP/1.1 (http/page.h). */
#ifndef RP_SERVER_CORE_PAGE_RESPONSE_H
#define RP_SERVER_CORE_PAGE_RESPONSE_H

#include "server/core/connection_state.h"
#include "server/http/page.h"

/* Responds to a plain HTTP request of a connection. The worker responds to most requests at
 * once. If a request takes long, the worker passes it to another thread (http/page_maker.h) as
 * soon as the request's body has arrived. The worker responds when the other thread has
 * finished, and serves other calls until then. `path` and `authorization` are the members of
 * `head` with these names, as C strings. */
void rp_page_respond(rp_connection *connection, rp_call *call, const rp_request_head *head,
                     const char *path, const char *authorization);

/* Returns the description of the server that http/page.h needs. Its pointers are borrowed from
 * the server. */
rp_page_host rp_page_host_of(rp_server *server);

/* Makes the change that `action` describes and waits until it is safe, that is, on disk as far
 * as the journal's mode demands (safety.h). If this takes longer than RP_ACTION_WAIT_MS,
 * returns RP_OK and sets action->is_late. `server` is an rp_server. Must be called on a thread
 * of http/page_maker.h, never on an event loop. Defined in rpc/. Errors: RP_NOT_FOUND,
 * RP_INVALID, RP_DENIED (resets are disabled), RP_UNAVAILABLE (loading, draining, the journal
 * is behind), RP_NO_RESOURCE (memory; checkpoints too often), RP_CANCELLED (the table is
 * closed). */
RP_NODISCARD rp_status rp_page_act(void *server, rp_action *action, rp_error *err);

#endif
