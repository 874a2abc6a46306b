/* SPDX-License-Identifier: Apache-2.0 */
/* The pages over HTTP/2: the same answers as over HTTP/1.1. */
#ifndef RP_SERVER_CORE_PAGE_ANSWER_H
#define RP_SERVER_CORE_PAGE_ANSWER_H

#include "server/core/inside.h"

/* Answers a call with a page. False: it needs a page about all tables, and nothing is answered
 * yet; then `*kind` says which one, and rp_page_await() has to be called. */
RP_NODISCARD bool rp_page_answer_call(rp_connection *connection, rp_call *call,
                                      const rp_page_request *request, rp_page_kind *kind);

/* A call that waits for a page about all tables. Its call is answered when the page is made;
 * the event loop goes on meanwhile. `head_only`: the answer has no body. */
extern const rp_task_kind rp_page_kind_of_task;
void rp_page_await(rp_task *task, rp_page_kind kind, bool head_only);

/* What the pages need to know of the server. */
rp_page_host rp_page_host_of(rp_server *server);

#endif
