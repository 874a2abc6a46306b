/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 for browsers, curl and Prometheus: libmicrohttpd in a thread of its own, without a
 * listening socket. The workers accept connections, and hand over those that do not use HTTP/2.
 * libmicrohttpd gets plain sockets only; TLS connections are relayed to it (relay.h).
 *
 * There are at most RP_HTTP_PAGE_CONNECTIONS (open_fds.h), with 16 KiB of memory each, and the
 * body of one request, of at most RP_ASK_BODY_BYTES. A new connection beyond that closes
 * another one, so that idle peers cannot keep others out; connections that wait for a page come
 * last (open_fds.h). A connection is also closed after host->idle_s of silence, and if the body
 * of a request takes longer than that. A page stays in memory while it is being sent. All these
 * pages together take at most twice the bound of the largest page; a page that is sent to
 * several connections counts once. If they would take more, the connections that read the
 * oldest page are closed. */
#ifndef RP_SERVER_HTTP_HTTP_PAGE_H
#define RP_SERVER_HTTP_HTTP_PAGE_H

#include "net/link.h"
#include "server/http/open_fds.h"

typedef struct rp_http_page rp_http_page;

/* Starts the thread. `host` is copied; its pointers must outlive the page. RP_NO_RESOURCE
 * (memory, threads, descriptors). Returns owned. Bodies of responses come from `alloc`;
 * libmicrohttpd gets its memory from the C library. */
RP_NODISCARD rp_status rp_http_page_new(const rp_allocator *alloc, const rp_page_host *host,
                                        rp_http_page **out, rp_error *err);

/* Ends all connections and the thread. NULL is fine. */
void rp_http_page_free(rp_http_page *page);

/* The maker of pages about all tables, which other threads may use too. Borrowed from the page.
 */
rp_page_maker *rp_http_page_maker(rp_http_page *page);

/* Takes over a connected stream socket from which nothing has been read: TCP, Unix or one end
 * of a pair. `peer` is its address, which the gate needs to limit attempts to guess tokens
 * (server/auth/gate.h); `certificate` is the common name of a verified certificate (NULL or "":
 * none). Both are copied; one that is too long counts as none. Takes the descriptor in every
 * case. False if there was no memory and the descriptor was closed. After true, the connection
 * may still be refused later. Any thread. */
bool rp_http_page_take(rp_http_page *page, int fd, const char *peer, const char *certificate);

/* As rp_http_page_take(), for a link: plain, or with a completed TLS handshake. The link is
 * empty afterwards. */
bool rp_http_page_take_link(rp_http_page *page, rp_link *link, const char *peer,
                            const char *certificate);

#endif
