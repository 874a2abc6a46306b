/* SPDX-License-Identifier: Apache-2.0 */
/* Handles requests on threads of its own, so that neither an event loop nor /healthz waits for
 * them. There is a lane for each rp_route_lane but RP_ROUTE_NOW. A lane has queues and a
 * thread, which starts with the first request of the lane. The lanes share no bound, so
 * requests of one lane never keep those of another out.
 *
 *   M1  In the lanes RP_ROUTE_OVERVIEW, RP_ROUTE_PAGE and RP_ROUTE_RUN, requests for the same
 *       page share it if they arrive before the thread begins to make it. So each request gets
 *       a page that is newer than the request, and a thousand requests at once cause only one
 *       or two pages. In the other lanes, requests are handled one by one; those of a
 *       connection in the order of their arrival.
 *   M2  After making a page of the lanes named in M1, the thread pauses for three times the
 *       processor time that the page took. So it takes at most a quarter of a processor,
 *       however many requests there are.
 *   M3  A page has a bounded size, so making it takes a bounded time.
 *   M4  All requests share the bytes of a page, which are freed with the last reference.
 *   M5  Requests of a live route (rp_route.is_live) with ?after= are answered together, at most
 *       once in RP_LIVE_NS. Other requests for the same page that wait then share that page.
 *   M6  In a lane, at most RP_PAGE_WAITS requests wait, besides those that are being handled,
 *       for at most RP_PAGE_QUEUES different pages, with bodies of at most RP_PAGE_WAIT_BODIES
 *       bytes in all.
 *   M7  A request that is cancelled before its page is begun takes no room, and no page is made
 *       for it.
 *   M8  The lock is held for at most RP_PAGE_QUEUES comparisons of names, and some steps for
 *       each request that waits.
 *   M9  The peers of a lane take turns, and so do the connections of a peer (page_shares.h). If
 *       there is no room for a request, the client that holds most gives some up: its newest
 *       request is refused, or all requests for its newest page. If the client of the new
 *       request would then hold more, the new request is refused instead. A client that holds
 *       nothing always gets room. */
#ifndef RP_SERVER_HTTP_PAGE_MAKER_H
#define RP_SERVER_HTTP_PAGE_MAKER_H

#include "server/http/page.h"
#include "server/http/page_shares.h"
#include "util/refcount.h"

enum {
    RP_LIVE_NS = 1000000000,
    RP_PAGE_WAITS = 1024,
    RP_PAGE_QUEUES = 64,
    RP_PAGE_WAIT_BODIES = 4 << 20,
};

/* A finished page. It does not change. */
typedef struct rp_made_page {
    rp_refcount refs;
    rp_allocator alloc;
    uint64_t number; /* pages are numbered in the order in which they were begun */
    rp_page_response answer;
} rp_made_page;

rp_made_page *rp_made_page_ref(rp_made_page *made);
void rp_made_page_unref(rp_made_page *made); /* NULL is fine */

typedef struct rp_page_wait rp_page_wait;
typedef struct rp_page_queue rp_page_queue;

/* A request for a page. Embed it in another struct; its memory must stay valid until on_made
 * has been called. */
struct rp_page_wait {
    /* Called on the maker's thread, or on the thread that stops the maker, cancels the request
     * or makes another one (M9). Must not block. `made` is a reference, which the callee owns;
     * NULL: there is no memory, the maker has been stopped, or the request was cancelled or
     * refused. `wait` may be freed in the call. */
    void (*on_made)(rp_page_wait *wait, rp_made_page *made);
    rp_page_ask ask; /* the request. The owner frees ask.body, in on_made or later */
    /* Private. */
    rp_page_wait *prev, *next;
    rp_page_entry entry;            /* in the share of its connection */
    _Atomic(rp_page_queue *) queue; /* where it waits; NULL: nowhere */
};

typedef struct rp_page_maker rp_page_maker;

/* `host` is copied; its pointers must outlive the maker. RP_NO_RESOURCE (memory). Returns
 * owned. */
RP_NODISCARD rp_status rp_page_maker_new(const rp_allocator *alloc, const rp_page_host *host,
                                         rp_page_maker **out, rp_error *err);
/* Ends the threads after the requests that they are handling, and calls on_made of all others.
 * Later calls of rp_page_maker_ask() return false. */
void rp_page_maker_stop(rp_page_maker *maker);
/* Stops the maker and frees it. NULL is fine. */
void rp_page_maker_free(rp_page_maker *maker);

/* Requests the page of wait->ask: on_made will be called once. Returns false, and does not call
 * on_made, if the maker has been stopped, too many requests wait (M6), or there is no thread.
 * Any thread. */
RP_NODISCARD bool rp_page_maker_ask(rp_page_maker *maker, rp_page_wait *wait);

/* Cancels a request: if it still waits, calls on_made with NULL and returns true (M7). Returns
 * false if its page is being made or on_made has been called. `wait` must be valid. Any thread.
 */
bool rp_page_maker_cancel(rp_page_maker *maker, rp_page_wait *wait);

#endif
