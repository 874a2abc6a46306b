/* SPDX-License-Identifier: Apache-2.0 */
/* The pages over HTTP/2: the same answers as over HTTP/1.1. */
#ifndef RP_SERVER_CORE_PAGE_ANSWER_H
#define RP_SERVER_CORE_PAGE_ANSWER_H

#include "server/core/inside.h"

void rp_page_answer_call(rp_connection *connection, rp_call *call, const char *method,
                         const char *path, const char *authorization);

/* What the pages need to know of the server. */
rp_page_host rp_page_host_of(rp_server *server);

#endif
