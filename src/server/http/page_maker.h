/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the pages that are about all tables: a thread of its own, so that neither an event loop
 * nor /healthz waits for them.
 *
 *   M1  A page is made once for all who ask for it before the making begins. So everybody gets
 *       a page that is newer than his request, and a thousand who ask at once cost one or two
 *       makings.
 *   M2  After a page the thread rests for three times as long as the making took. So it takes
 *       at most a quarter of a processor, however often somebody asks.
 *   M3  A page has at most rp_page_most_bytes(), so that a making is short.
 *   M4  Its bytes are shared by all who have it, and are freed with the last of them. */
#ifndef RP_SERVER_HTTP_PAGE_MAKER_H
#define RP_SERVER_HTTP_PAGE_MAKER_H

#include "server/http/page.h"
#include "util/refcount.h"

/* A page that is made. It does not change. */
typedef struct rp_made_page {
    rp_refcount refs;
    rp_allocator alloc;
    uint64_t number; /* in order of making */
    rp_page_response answer;
} rp_made_page;

rp_made_page *rp_made_page_ref(rp_made_page *made);
void rp_made_page_unref(rp_made_page *made); /* NULL is fine */

typedef struct rp_page_wait rp_page_wait;
/* Embed it; its memory must stay until on_made has been called. */
struct rp_page_wait {
    /* On the maker's thread, or on that which stops the maker. Must not wait. `made` is a
     * reference for the callee; NULL: there is no memory, or the maker has been stopped. */
    void (*on_made)(rp_page_wait *wait, rp_made_page *made);
    rp_page_wait *next; /* private */
};

typedef struct rp_page_maker rp_page_maker;

/* Starts the thread. The host is copied; what it points at must outlive the maker.
 * RP_NO_RESOURCE (memory, threads). Returns owned. */
RP_NODISCARD rp_status rp_page_maker_new(const rp_allocator *alloc, const rp_page_host *host,
                                         rp_page_maker **out, rp_error *err);
/* Ends the thread after the page that it is making, and calls on_made of all waiting requests.
 * Later calls of rp_page_maker_ask() return false. */
void rp_page_maker_stop(rp_page_maker *maker);
void rp_page_maker_free(rp_page_maker *maker); /* stops it first. NULL is fine */

/* Asks for a page: on_made will be called once. False, and it will not, if the maker has been
 * stopped. Any thread. */
RP_NODISCARD bool rp_page_maker_ask(rp_page_maker *maker, rp_page_kind kind,
                                    rp_page_wait *wait);

#endif
