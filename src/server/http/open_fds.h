/* SPDX-License-Identifier: Apache-2.0 */
/* The open descriptors of the HTTP/1.1 daemon (http_page.h), used to close (cut) connections. A
 * descriptor is in the list from libmicrohttpd's notification that the connection has started
 * to the one that it is about to be closed. So no number in the list can have been reused.
 *
 * Invariants:
 *   P1  `live` is the number of entries that are open and not cut;
 *   P2  pages that are being sent to entries that are not cut take at most RP_HELD_PAGES times
 *       the bound of the largest, each page counted once;
 *   P3  groups[entries[i].group] has the peer of an open entry i: `open` counts these entries,
 *       and `live` those that are not cut.
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
    RP_NEW_FDS = 32, /* connections without an accepted request that others do not close */
};

typedef struct rp_open_fd {
    int fd; /* -1: free */
    bool cut;
    bool is_accepted; /* it has had a request that its role allows */
    size_t group;     /* index of its peer (P3) */
    uint64_t number;  /* in order of arrival */
    int64_t
        body_due_ns; /* when the body that is being read must be complete; 0: there is none */
    rp_made_page *made; /* the page that is being sent, a reference; or NULL */
    rp_page_wait *wait; /* the request that is suspended, borrowed; or NULL */
    rp_client client;
} rp_open_fd;

/* The connections of a peer. */
typedef struct rp_fd_group {
    uint64_t peer; /* rp_gate_peer() */
    size_t open, live;
} rp_fd_group;

typedef struct rp_open_fds {
    rp_open_fd entries[RP_OPEN_FDS];
    rp_fd_group groups[RP_OPEN_FDS]; /* P3 */
    size_t live;                     /* P1 */
    uint64_t arrivals;
    rp_page_maker *maker;      /* of suspended requests; set it before the first of them */
    rp_clients *clients;       /* NULL: they are not listed */
    rp_loop_metrics *counters; /* cut connections are counted there; NULL: nowhere */
} rp_open_fds;

void rp_open_fds_init(rp_open_fds *fds, rp_loop_metrics *counters, rp_clients *clients);

/* Adds a descriptor of a peer, whose rp_gate_peer() is `number`. If there are more than
 * RP_HTTP_PAGE_CONNECTIONS, cuts another one. Connections that have had no accepted request
 * come first, if there are more than RP_NEW_FDS of them; then those without a request; then
 * those whose body is being read; then the others. Among these, it cuts the oldest connection
 * of the peer that has most. */
void rp_open_fds_enter(rp_open_fds *fds, int fd, uint64_t number, const char *peer);
/* Removes a descriptor, if it is there. */
void rp_open_fds_leave(rp_open_fds *fds, int fd);

/* Cuts a descriptor, if it is there and not cut yet. */
void rp_open_fds_cut(rp_open_fds *fds, int fd);

/* The entry of a descriptor, or NULL. */
rp_open_fd *rp_open_fds_find(rp_open_fds *fds, int fd);
/* Its client, or NULL. */
rp_client *rp_open_fds_client(rp_open_fds *fds, int fd);

/* Cuts the connections whose bodies are due. Returns how long it is until the next one is. */
int64_t rp_open_fds_cut_due(rp_open_fds *fds, int64_t now_ns);

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
