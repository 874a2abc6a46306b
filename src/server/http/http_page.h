/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 for browsers, curl and Prometheus: libmicrohttpd in a thread of its own, without a
 * listening socket. Connections are accepted elsewhere and handed over once they are known not
 * to use HTTP/2. libmicrohttpd gets plain sockets only; TLS connections are relayed to it.
 *
 * At most 64 connections, 16 KiB of memory for each, host->idle_s of silence. One connection
 * more closes the oldest, so that idle peers cannot keep others out. */
#ifndef RP_SERVER_HTTP_HTTP_PAGE_H
#define RP_SERVER_HTTP_HTTP_PAGE_H

#include "net/link.h"
#include "server/http/page.h"

typedef struct rp_http_page rp_http_page;

enum { RP_HTTP_PAGE_CONNECTIONS = 64 };

/* Starts the thread. The host is copied; what it points at must outlive the page.
 * RP_NO_RESOURCE (memory, threads, descriptors). Returns owned. libmicrohttpd has memory of its
 * own from the C library; bodies come from `alloc`. */
RP_NODISCARD rp_status rp_http_page_new(const rp_allocator *alloc, const rp_page_host *host,
                                        rp_http_page **out, rp_error *err);

/* Ends all connections and the thread. NULL is fine. */
void rp_http_page_free(rp_http_page *page);

/* Takes a connected stream socket with nothing read from it: TCP, Unix or one end of a pair.
 * `peer` is its address, for the gate, `certificate` the common name of a verified certificate
 * (NULL or "": none). Both are copied; one that is too long is dropped. Takes the descriptor in
 * every case. False if it had to be closed for lack of memory; it may still be refused later.
 * Any thread. */
bool rp_http_page_take(rp_http_page *page, int fd, const char *peer, const char *certificate);

/* The same for a link, plain or with its TLS handshake over. The link is empty afterwards. */
bool rp_http_page_take_link(rp_http_page *page, rp_link *link, const char *peer,
                            const char *certificate);

#endif
