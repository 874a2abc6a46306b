/* SPDX-License-Identifier: Apache-2.0 */
/* Serves HTTP/1.1 to browsers, curl and Prometheus with libmicrohttpd, which runs in a separate
 * thread and has no listening socket. The server accepts all connections itself, and its
 * workers pass those that use HTTP/1.1 to libmicrohttpd. libmicrohttpd gets plain sockets only:
 * a TLS connection is relayed to one end of a socket pair (relay.h).
 *
 * At most RP_HTTP_PAGE_CONNECTIONS connections are open (open_fds.h). Each takes 16 KiB of
 * memory, and the memory for the body of one request, at most RP_ASK_BODY_BYTES. If one more
 * connection arrives, another connection is closed, so that idle peers cannot keep new peers
 * out. Connections that wait for a page or receive one are closed last. A connection is also
 * closed after host->idle_s seconds of silence, or if the body of a request takes longer than
 * host->idle_s.
 *
 * A page stays in memory while it is being sent. All pages that are being sent may together
 * take twice the bound of the largest page. A page that is sent to several connections counts
 * once. If the pages would take more, the connections that read the oldest page are closed. */
#ifndef RP_SERVER_HTTP_HTTP_PAGE_H
#define RP_SERVER_HTTP_HTTP_PAGE_H

#include "net/link.h"
#include "server/http/open_fds.h"

typedef struct rp_http_page rp_http_page;

/* Starts the thread. `host` is copied; its pointers must outlive the rp_http_page. The caller
 * owns `*out`. Bodies of responses come from `alloc`; libmicrohttpd gets its memory from the C
 * library. Errors: RP_NO_RESOURCE (memory, threads, descriptors). */
RP_NODISCARD rp_status rp_http_page_new(const rp_allocator *alloc, const rp_page_host *host,
                                        rp_http_page **out, rp_error *err);

/* Ends all connections and the thread. NULL is fine. */
void rp_http_page_free(rp_http_page *page);

/* Returns the maker of pages (page_maker.h), which any thread may use. Borrowed from `page`. */
rp_page_maker *rp_http_page_maker(rp_http_page *page);

/* Takes over a connected stream socket (TCP, Unix or one end of a pair) from which nothing has
 * been read. `peer` is the peer's address, by which the gate limits guesses of tokens
 * (server/auth/gate.h). `certificate` is the common name of a verified certificate; NULL or "":
 * none. Both strings are copied; a name that is too long counts as none. Takes ownership of the
 * descriptor in every case. If there is no memory, closes the descriptor and returns false.
 * Even if the result is true, the connection can still be refused later. Any thread may call
 * it. */
bool rp_http_page_take(rp_http_page *page, int fd, const char *peer, const char *certificate);

/* As rp_http_page_take(), for a link: a plain socket, or one with a completed TLS handshake.
 * The function takes the socket and the TLS session out of the link. */
bool rp_http_page_take_link(rp_http_page *page, rp_link *link, const char *peer,
                            const char *certificate);

#endif
