/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the open connections of the HTTP/1.1 server (http_page.h), by descriptor. With
 * this list the server limits the number of connections and cuts connections. To cut a
 * connection, the server shuts its socket down, and libmicrohttpd closes the socket a little
 * later. A descriptor enters the list when libmicrohttpd reports that the connection has
 * started, and leaves it when libmicrohttpd reports that it is about to close the connection.
 * So a descriptor in the list is still open, and its number cannot have been reused.
 *
 * Invariants:
 *   P1  `live` is the number of open entries that are not cut;
 *   P2  the pages that are being sent to entries that are not cut take at most RP_HELD_PAGES
 *       times the bound of the largest page. A page sent to several entries counts once;
 *   P3  groups[entries[i].group] is the group of the peer of the open entry i. The group's
 *       `open` is the number of entries of the peer, and its `live` is the number of these
 *       entries that are not cut.
 *
 * Only one thread at a time may use an rp_open_fds. */
#ifndef RP_SERVER_HTTP_OPEN_FDS_H
#define RP_SERVER_HTTP_OPEN_FDS_H

#include "server/http/page_maker.h"

enum {
    RP_HTTP_PAGE_CONNECTIONS = 256,             /* for 100 browsers with several connections
                                                   each */
    RP_OPEN_FDS = 2 * RP_HTTP_PAGE_CONNECTIONS, /* twice as many, since connections that were
                                                   cut stay in the list until they are closed */
    RP_HELD_PAGES = 2,                          /* invariant P2 */
    RP_NEW_FDS = 32, /* idle connections without an accepted request are cut only if there are
                        more than this number */
};

typedef struct rp_open_fd {
    int fd; /* -1: the entry is free */
    bool cut;
    bool is_accepted;    /* the connection has had a request that the peer's role allows */
    size_t group;        /* index of the peer's group (P3) */
    uint64_t number;     /* number in the order of arrival */
    int64_t body_due_ns; /* deadline of the body that is being read; 0: none */
    rp_made_page *made;  /* a reference to the page that is being sent, or NULL */
    rp_page_wait *wait;  /* the request that is suspended, borrowed; or NULL */
    rp_client client;
} rp_open_fd;

/* The connections of a peer. */
typedef struct rp_fd_group {
    uint64_t peer; /* rp_gate_peer() */
    size_t open, live;
} rp_fd_group;

typedef struct rp_open_fds {
    rp_open_fd entries[RP_OPEN_FDS];
    rp_fd_group groups[RP_OPEN_FDS]; /* invariant P3 */
    size_t live;                     /* invariant P1 */
    uint64_t arrivals;
    rp_page_maker *maker;      /* the owner sets it before the first request waits */
    rp_clients *clients;       /* list of all connections (metrics/clients.h); NULL: not used */
    rp_loop_metrics *counters; /* counts the connections that were cut; NULL: they are not
                                  counted */
} rp_open_fds;

void rp_open_fds_init(rp_open_fds *fds, rp_loop_metrics *counters, rp_clients *clients);

/* Adds a descriptor. `number` is rp_gate_peer() of the peer. If `live` (P1) then exceeds
 * RP_HTTP_PAGE_CONNECTIONS, cuts another connection. Idle connections are cut first: those
 * without an accepted request, if there are more than RP_NEW_FDS of them, and then those with
 * an accepted request. Then come connections whose request body is being read, and last those
 * that wait for a page or receive one. Among the connections of one kind, the oldest one of the
 * peer with the most connections is cut. */
void rp_open_fds_enter(rp_open_fds *fds, int fd, uint64_t number, const char *peer);
/* Removes a descriptor, if it is in the list. */
void rp_open_fds_leave(rp_open_fds *fds, int fd);

/* Cuts a descriptor, if it is in the list and not cut yet. */
void rp_open_fds_cut(rp_open_fds *fds, int fd);

/* Returns the entry of a descriptor, or NULL. */
rp_open_fd *rp_open_fds_find(rp_open_fds *fds, int fd);
/* Returns the rp_client of a descriptor, or NULL. */
rp_client *rp_open_fds_client(rp_open_fds *fds, int fd);

/* Cuts the connections whose request bodies are past their deadline. Returns the time in
 * nanoseconds until the next deadline of a body; INT64_MAX if there is none. */
int64_t rp_open_fds_cut_due(rp_open_fds *fds, int64_t now_ns);

/* Records that a request of a descriptor waits for its page. If `wait` is NULL, records that it
 * no longer waits. When the descriptor is cut, the waiting request is cancelled, since
 * libmicrohttpd does not close a suspended connection. */
void rp_open_fds_wait(rp_open_fds *fds, int fd, rp_page_wait *wait);

/* Records that a page is being sent to a descriptor, and keeps a reference to the page. Then
 * cuts the connections that read the oldest other pages until P2 holds. */
void rp_open_fds_hold(rp_open_fds *fds, int fd, rp_made_page *made);
/* Records that the page has been sent to the descriptor. */
void rp_open_fds_drop(rp_open_fds *fds, int fd);

#endif
