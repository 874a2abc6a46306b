/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the pages about all tables on a thread of its own, so that neither an event loop nor
 * /healthz waits for them.
 *
 *   M1  A page is made once for all requests that arrive before the thread begins to make it.
 *       So each request gets a page that is newer than the request, and for a thousand requests
 *       at once a page is made only once or twice.
 *   M2  After making a page, the thread pauses for three times as long as that took. So it
 *       takes at most a quarter of a processor, however many requests there are.
 *   M3  A page has at most rp_page_most_bytes(), so making it takes a bounded time.
 *   M4  All requests share the bytes of a page, which are freed with the last reference. */
#ifndef RP_SERVER_HTTP_PAGE_MAKER_H
#define RP_SERVER_HTTP_PAGE_MAKER_H

#include "server/http/page.h"
#include "util/refcount.h"

/* A finished page. It does not change. */
typedef struct rp_made_page {
    rp_refcount refs;
    rp_allocator alloc;
    uint64_t number; /* pages are numbered in the order in which they are made */
    rp_page_response answer;
} rp_made_page;

rp_made_page *rp_made_page_ref(rp_made_page *made);
void rp_made_page_unref(rp_made_page *made); /* NULL is fine */

typedef struct rp_page_wait rp_page_wait;
/* A request for a page. Embed it in another struct; its memory must stay valid until on_made
 * has been called. */
struct rp_page_wait {
    /* Called on the maker's thread, or on the thread that stops the maker. Must not block.
     * `made` is a reference, which the callee owns; NULL: there is no memory, or the maker has
     * been stopped. */
    void (*on_made)(rp_page_wait *wait, rp_made_page *made);
    rp_page_wait *next; /* private */
};

typedef struct rp_page_maker rp_page_maker;

/* Starts the thread. `host` is copied; its pointers must outlive the maker. RP_NO_RESOURCE
 * (memory, threads). Returns owned. */
RP_NODISCARD rp_status rp_page_maker_new(const rp_allocator *alloc, const rp_page_host *host,
                                         rp_page_maker **out, rp_error *err);
/* Ends the thread after the page that it is making, and calls on_made of all waiting requests.
 * Later calls of rp_page_maker_ask() return false. */
void rp_page_maker_stop(rp_page_maker *maker);
/* Stops the maker and frees it. NULL is fine. */
void rp_page_maker_free(rp_page_maker *maker);

/* Requests a page: on_made will be called once. Returns false, and does not call on_made, if
 * the maker has been stopped. Any thread. */
RP_NODISCARD bool rp_page_maker_ask(rp_page_maker *maker, rp_page_kind kind,
                                    rp_page_wait *wait);

#endif
