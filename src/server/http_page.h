/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 for browsers, curl and Prometheus: libmicrohttpd in a thread of its own, without a
 * listening socket. Connections are accepted elsewhere and handed over once their first bytes
 * are known not to be HTTP/2.
 *
 * At most 64 connections, 16 KiB of memory for each, 10 s of silence. Where there are more, the
 * oldest is cut, so that nobody can keep others out by doing nothing. */
#ifndef RP_SERVER_HTTP_PAGE_H
#define RP_SERVER_HTTP_PAGE_H

#include "server/page.h"

typedef struct rp_http_page rp_http_page;

enum { RP_HTTP_PAGE_CONNECTIONS = 64, RP_HTTP_PAGE_IDLE_S = 10 };

/* Starts the thread. The host is copied; what it points at must outlive the page.
 * RP_NO_RESOURCE (memory, threads, descriptors). Returns owned. libmicrohttpd has memory of its
 * own from the C library; bodies come from `alloc`. */
RP_NODISCARD rp_status rp_http_page_new(const rp_allocator *alloc, const rp_page_host *host,
                                        rp_http_page **out, rp_error *err);

/* Ends all connections and the thread. NULL is fine. */
void rp_http_page_free(rp_http_page *page);

/* Takes a connected stream socket with nothing read from it: TCP, Unix or one end of a pair.
 * `peer` is its address for the brake of the gate, `certificate` the common name of a verified
 * one (NULL or "": there was none). Both are copied; one that is too long counts as nobody. The
 * descriptor is the page's in every case. False if it had to be closed. Any thread. */
bool rp_http_page_take(rp_http_page *page, int fd, const char *peer, const char *certificate);

#endif
