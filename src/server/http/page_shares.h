/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the room for waiting requests in a lane of page_maker.h fairly. The room is first
 * divided between the peers, and the part of a peer between its connections. A peer is an
 * address together with the name of its credentials. A share records what a peer or a
 * connection holds of the room.
 *
 * Invariants:
 *   S1  each waiting request is in the list of its connection, in order of arrival;
 *   S2  the amounts of a peer are the sums of the amounts of its connections;
 *   S3  a share that has neither a request nor a page is freed.
 *
 * Only one thread at a time may use an rp_page_shares. The time of each call grows with the
 * number of shares. There are at most two shares for each waiting request. */
#ifndef RP_SERVER_HTTP_PAGE_SHARES_H
#define RP_SERVER_HTTP_PAGE_SHARES_H

#include <stdint.h>

#include "util/mem.h"

typedef struct rp_page_share rp_page_share;

/* A waiting request, in the list of its connection. Embed it in another struct and
 * zero-initialise it. */
typedef struct rp_page_entry {
    struct rp_page_entry *older, *younger;
    rp_page_share *share; /* share of the connection; NULL: the request does not wait */
    size_t weight;
} rp_page_entry;

/* The two kinds of room that are divided. */
typedef enum rp_page_measure {
    RP_SHARE_WEIGHT, /* bytes of requests: for each, RP_SHARE_REQUEST_BYTES and its body */
    RP_SHARE_PAGES,  /* number of different pages that wait to be made */
    RP_SHARE_MEASURES,
} rp_page_measure;

enum { RP_SHARE_REQUEST_BYTES = 4096 };

struct rp_page_share {
    uint64_t key;
    rp_page_share *peer;        /* share of the peer; NULL: this is the share of a peer */
    rp_page_share *prev, *next; /* links of the list of all peers, or of the connections of one
                                   peer */
    rp_page_share *first;       /* of a peer: its connections */
    size_t amounts[RP_SHARE_MEASURES];
    uint64_t turn; /* number of the turn in which it was last served, or was added */
    rp_page_entry *oldest, *newest; /* requests of a connection (S1) */
};

/* The shares of a lane. Zero-initialise it and set the first field. */
typedef struct rp_page_shares {
    const rp_allocator *alloc;
    rp_page_share *first; /* list of the peers */
    uint64_t turns;
} rp_page_shares;

/* Adds a request with a body of `body_bytes` to the share of connection `connection` of peer
 * `peer`. Returns false if there is no memory. */
RP_NODISCARD bool rp_page_shares_enter(rp_page_shares *shares, rp_page_entry *entry,
                                       uint64_t peer, uint64_t connection, size_t body_bytes);
/* Removes a request that was added. */
void rp_page_shares_leave(rp_page_shares *shares, rp_page_entry *entry);

/* rp_page_share_add_page() adds 1 to the waiting pages that a connection holds.
 * rp_page_shares_drop_page() subtracts 1. */
void rp_page_share_add_page(rp_page_share *share);
void rp_page_shares_drop_page(rp_page_shares *shares, rp_page_share *share);

/* Finds the connection that must give up some room for a new request, which needs `amount` and
 * comes from `connection` of `peer`. First selects the peer that holds most. But if `peer`
 * holds something, and together with `amount` would hold no less than the selected peer,
 * selects `peer` instead. Then selects the connection of the selected peer that holds most.
 * Returns this connection. But if it belongs to `peer`, and `connection` holds something and
 * together with `amount` would hold no less than it, returns NULL. */
rp_page_share *rp_page_shares_richest(const rp_page_shares *shares, uint64_t peer,
                                      uint64_t connection, rp_page_measure measure,
                                      size_t amount);

/* Returns whether connection `a` holds less than `b`. If their peers differ, compares the
 * amounts of the peers, otherwise the amounts of the connections. */
bool rp_page_share_has_less(const rp_page_share *a, const rp_page_share *b,
                            rp_page_measure measure);

/* Returns whether connection `a` is served before `b`. If their peers differ, the members
 * `turn` of the peers decide, otherwise the members `turn` of the connections. */
bool rp_page_share_is_before(const rp_page_share *a, const rp_page_share *b);
/* Returns the connection to serve next; NULL if there is none. */
rp_page_share *rp_page_shares_next(const rp_page_shares *shares);
/* Records that a connection is served: from now on the connection is the last of its peer's
 * connections, and its peer is the last of the peers. */
void rp_page_shares_serve(rp_page_shares *shares, rp_page_share *share);

#endif
