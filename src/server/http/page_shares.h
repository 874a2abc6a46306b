/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a lane of page_maker.h each client holds. A client is a peer, which is an address
 * with a name of credentials; each of its connections has a share of its own. The room of a
 * lane is divided between peers, and the part of a peer between its connections.
 *
 * Invariants:
 *   S1  each waiting request is in the list of one connection, in order of arrival;
 *   S2  the amounts of a peer are the sums of those of its connections;
 *   S3  a share without a request and without a page is freed.
 *
 * A plain value, not thread-safe. Each call takes a time that grows with the number of shares,
 * of which there are at most two for each waiting request. */
#ifndef RP_SERVER_HTTP_PAGE_SHARES_H
#define RP_SERVER_HTTP_PAGE_SHARES_H

#include <stdint.h>

#include "util/mem.h"

typedef struct rp_page_share rp_page_share;

/* A waiting request, in the list of its connection. Embed it; zero-initialise it. */
typedef struct rp_page_entry {
    struct rp_page_entry *older, *younger;
    rp_page_share *share; /* of the connection; NULL: it does not wait */
    size_t weight;
} rp_page_entry;

/* What is divided. */
typedef enum rp_page_measure {
    RP_SHARE_WEIGHT, /* of requests: RP_SHARE_REQUEST_BYTES and the body of each */
    RP_SHARE_PAGES,  /* different pages that wait to be made */
    RP_SHARE_MEASURES,
} rp_page_measure;

enum { RP_SHARE_REQUEST_BYTES = 4096 };

struct rp_page_share {
    uint64_t key;
    rp_page_share *peer;        /* NULL: this is a peer */
    rp_page_share *prev, *next; /* the other peers, or the other connections of this one */
    rp_page_share *first;       /* of a peer: its connections */
    size_t amounts[RP_SHARE_MEASURES];
    uint64_t turn;                  /* when it was served last, or came */
    rp_page_entry *oldest, *newest; /* of a connection (S1) */
};

/* Zero-initialise it, and set the first field. */
typedef struct rp_page_shares {
    const rp_allocator *alloc;
    rp_page_share *first; /* peers */
    uint64_t turns;
} rp_page_shares;

/* Adds a request with a body of `body_bytes` to the share of a connection of a peer. False if
 * there is no memory. */
RP_NODISCARD bool rp_page_shares_enter(rp_page_shares *shares, rp_page_entry *entry,
                                       uint64_t peer, uint64_t connection, size_t body_bytes);
/* Removes a request that was added. */
void rp_page_shares_leave(rp_page_shares *shares, rp_page_entry *entry);

/* A page counts for a connection, or no longer. */
void rp_page_share_add_page(rp_page_share *share);
void rp_page_shares_drop_page(rp_page_shares *shares, rp_page_share *share);

/* The connection that has to give up some room for a request of another, which needs `amount`:
 * the one with most, of the peer with most. NULL if the client of the request would then have
 * more than it. A client that holds nothing gets room in every case. */
rp_page_share *rp_page_shares_richest(const rp_page_shares *shares, uint64_t peer,
                                      uint64_t connection, rp_page_measure measure,
                                      size_t amount);

/* Whether `a` has less than `b`: its peer has, or its peer is the same and it has. */
bool rp_page_share_has_less(const rp_page_share *a, const rp_page_share *b,
                            rp_page_measure measure);

/* Whether it is the turn of `a` before that of `b`, two connections: that of its peer is. */
bool rp_page_share_is_before(const rp_page_share *a, const rp_page_share *b);
/* The connection whose turn is next; NULL if there is none. */
rp_page_share *rp_page_shares_next(const rp_page_shares *shares);
/* A connection is served: its turn, and that of its peer, comes after all others. */
void rp_page_shares_serve(rp_page_shares *shares, rp_page_share *share);

#endif
