/* SPDX-License-Identifier: Apache-2.0 */
/* The open descriptors of the HTTP/1.1 daemon (http_page.h), used to close (cut) connections. A
 * descriptor is in the list from libmicrohttpd's notification that the connection has started
 * to the one that it is about to be closed. So no number in the list can have been reused.
 *
 * Invariants:
 *   P1  `live` is the number of entries that are open and not cut;
 *   P2  pages that are being sent to entries that are not cut take at most RP_HELD_PAGES times
 *       the bound of the largest, each page counted once.
 *
 * A plain value, not thread-safe. */
#ifndef RP_SERVER_HTTP_OPEN_FDS_H
#define RP_SERVER_HTTP_OPEN_FDS_H

#include "server/http/page_maker.h"

enum {
    RP_HTTP_PAGE_CONNECTIONS =
        256, /* for 100 open pages, whose browsers open several at first */
    RP_OPEN_FDS = 2 * RP_HTTP_PAGE_CONNECTIONS, /* cut connections are closed a little later */
    RP_HELD_PAGES = 2,                          /* P2 */
};

typedef struct rp_open_fd {
    int fd; /* -1: free */
    bool cut;
    uint64_t number;    /* in order of arrival */
    rp_made_page *made; /* the page that is being sent, a reference; or NULL */
    rp_page_wait *wait; /* the request that is suspended, borrowed; or NULL */
    rp_client client;
} rp_open_fd;

typedef struct rp_open_fds {
    rp_open_fd entries[RP_OPEN_FDS];
    size_t live; /* P1 */
    uint64_t arrivals;
    rp_page_maker *maker;      /* of suspended requests; set it before the first of them */
    rp_clients *clients;       /* NULL: they are not listed */
    rp_loop_metrics *counters; /* cut connections are counted there; NULL: nowhere */
} rp_open_fds;

void rp_open_fds_init(rp_open_fds *fds, rp_loop_metrics *counters, rp_clients *clients);

/* Adds a descriptor. If there are more than RP_HTTP_PAGE_CONNECTIONS, cuts the oldest. */
void rp_open_fds_enter(rp_open_fds *fds, int fd, const char *peer);
/* Removes a descriptor, if it is there. */
void rp_open_fds_leave(rp_open_fds *fds, int fd);

/* Cuts a descriptor, if it is there and not cut yet. */
void rp_open_fds_cut(rp_open_fds *fds, int fd);

/* The client of a descriptor, or NULL. */
rp_client *rp_open_fds_client(rp_open_fds *fds, int fd);

/* A request of a descriptor waits for its page: if the descriptor is cut, the request is
 * cancelled, since libmicrohttpd closes no connection that is suspended. NULL: it waits no
 * longer. */
void rp_open_fds_wait(rp_open_fds *fds, int fd, rp_page_wait *wait);

/* A page is being sent to a descriptor: keeps a reference to it. Cuts the connections that read
 * the oldest pages, never those that read this page, until P2 holds. */
void rp_open_fds_hold(rp_open_fds *fds, int fd, rp_made_page *made);
/* The page has been sent. */
void rp_open_fds_drop(rp_open_fds *fds, int fd);

#endif
