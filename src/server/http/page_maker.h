/* SPDX-License-Identifier: Apache-2.0 */
/* The page maker handles plain HTTP requests on its own threads, so that neither an event loop
 * nor a request for /healthz waits for them. It has a lane for each rp_route_lane (route.h) but
 * RP_ROUTE_NOW. A lane has queues and one thread, which starts with the first request of the
 * lane. Each lane has its own bounds, so requests of one lane never exclude requests of another
 * lane. The rules are:
 *
 *   M1  In the lanes RP_ROUTE_OVERVIEW, RP_ROUTE_PAGE and RP_ROUTE_RUN, requests for the same
 *       page share one page if they arrive before the thread begins to make it. So each request
 *       gets a page that is newer than the request, and a thousand requests at once cause only
 *       one or two pages. In the other lanes, each request is handled by itself, and the
 *       requests of a connection are handled in the order of their arrival.
 *   M2  After making a page of the lanes named in M1, the lane's thread pauses for three times
 *       the processor time that the page took. So it uses at most a quarter of a processor,
 *       however many requests there are.
 *   M3  A page has a bounded size, so making it takes a bounded time.
 *   M4  All requests for a page share its bytes, which are freed with the last reference.
 *   M5  Requests of a live route (rp_route.is_live) with ?after= wait for the next version of
 *       their page. A new version is made at most once in RP_LIVE_NS. All waiting requests for
 *       the same page share the version.
 *   M6  In a lane, at most RP_PAGE_WAITS requests wait, not counting those that are being
 *       handled. The waiting requests are for at most RP_PAGE_QUEUES different pages, and their
 *       bodies have at most RP_PAGE_WAIT_BODIES bytes in total.
 *   M7  If a request is cancelled before the thread begins its page, the request no longer
 *       counts in M6, and no page is made for it.
 *   M8  A thread holds the maker's lock for at most RP_PAGE_QUEUES comparisons of names, and a
 *       constant number of steps for each waiting request.
 *   M9  A lane serves its peers round robin, and also the connections of a peer
 *       (page_shares.h). If there is no room for a new request (M6), the connection that holds
 *       most gives up room: its newest request is refused. If there is no room for a new page,
 *       all requests for the newest page of that connection are refused. But if the connection
 *       of the new request would then hold no less than the connection that holds most, the new
 *       request is refused instead. A connection that holds nothing always gets room. If
 *       several connections request a page, the page counts only for the one of them with the
 *       fewest pages. */
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
    uint64_t number; /* number of the page, in the order in which pages were begun */
    rp_page_response answer;
} rp_made_page;

rp_made_page *rp_made_page_ref(rp_made_page *made);
void rp_made_page_unref(rp_made_page *made); /* NULL is fine */

typedef struct rp_page_wait rp_page_wait;
typedef struct rp_page_queue rp_page_queue;

/* A request that waits for its page. Embed it in another struct. Its memory must stay valid
 * until on_made has been called. */
struct rp_page_wait {
    /* Called once: on a thread of the maker, on the thread that stops the maker or cancels the
     * request, or on the thread whose new request takes the room of this one (M9). Must not
     * block. `made` is a reference that the callee owns. `made` is NULL if there is no memory,
     * the maker has been stopped, or the request was cancelled or refused. The function may
     * free `wait`. */
    void (*on_made)(rp_page_wait *wait, rp_made_page *made);
    rp_page_ask ask; /* the request. The owner must free ask.body, in on_made or later */
    /* Private. */
    rp_page_wait *prev, *next;
    rp_page_entry entry;            /* the entry in the share of its connection */
    _Atomic(rp_page_queue *) queue; /* the queue in which it waits; NULL: none */
};

typedef struct rp_page_maker rp_page_maker;

/* Makes a page maker, which the caller owns. `host` is copied; its pointers must outlive the
 * maker. Errors: RP_NO_RESOURCE (memory). */
RP_NODISCARD rp_status rp_page_maker_new(const rp_allocator *alloc, const rp_page_host *host,
                                         rp_page_maker **out, rp_error *err);
/* Ends each thread after the request that it is handling, and calls on_made with NULL for all
 * waiting requests. Later calls of rp_page_maker_ask() return false. */
void rp_page_maker_stop(rp_page_maker *maker);
/* Stops the maker and frees it. NULL is fine. */
void rp_page_maker_free(rp_page_maker *maker);

/* Requests the page of wait->ask. Returns true if on_made will be called. Returns false, and
 * never calls on_made, if the maker has been stopped, too many requests wait (M6, M9), there is
 * no memory, or the thread cannot be started. Any thread may call it. */
RP_NODISCARD bool rp_page_maker_ask(rp_page_maker *maker, rp_page_wait *wait);

/* Cancels a request. If the request still waits, calls on_made with NULL and returns true (M7).
 * If its page is being made or on_made has been called, returns false. The memory of `wait`
 * must still be valid. Any thread may call it. */
bool rp_page_maker_cancel(rp_page_maker *maker, rp_page_wait *wait);

#endif
