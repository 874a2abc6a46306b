/* SPDX-License-Identifier: Apache-2.0 */
/* A host for the pages: the server of observed.h behind a gate. The token "reader" has the role
 * read, "boss" has admin; the token "nothing" is unknown. */
#ifndef RP_TEST_HOSTED_H
#define RP_TEST_HOSTED_H

#include <semaphore.h>

#include "server/http/page.h"
#include "support/observed.h"

typedef struct rp_test_hosted {
    rp_test_observed observed;
    rp_page_host host;
    atomic_size_t described; /* how often the server was described: once for each page made */
    atomic_bool holds;
    sem_t reached, go;
} rp_test_hosted;

static inline void rp_test_describe(void *ctx, rp_server_view *view)
{
    rp_test_hosted *h = ctx;

    atomic_fetch_add(&h->described, 1);
    if (atomic_exchange(&h->holds, false)) {
        (void)sem_post(&h->reached);
        (void)sem_wait(&h->go);
    }
    *view = h->observed.view;
}

/* Makes the next page wait until rp_test_release(). */
static inline void rp_test_hold(rp_test_hosted *h)
{
    atomic_store(&h->holds, true);
}
/* Waits until that page waits. */
static inline void rp_test_await_held(rp_test_hosted *h)
{
    (void)sem_wait(&h->reached);
}
static inline void rp_test_release(rp_test_hosted *h)
{
    (void)sem_post(&h->go);
}

/* Makes the response to a request, on this thread. */
static inline void rp_test_render(const rp_test_hosted *h, const rp_page_request *request,
                                  rp_page_response *answer)
{
    rp_page_ask ask;
    bool head_only;

    rp_buf_init(&ask.body, answer->body.alloc);
    if (rp_page_respond_now(&h->host, request, answer, &ask)) return;
    head_only = answer->head_only;
    rp_page_make(&h->host, &ask, answer);
    answer->head_only = head_only;
}

/* Returns a route, by its method and pattern. */
static inline const rp_route *rp_test_route(const char *method, const char *pattern)
{
    size_t count;
    const rp_route *routes = rp_routes(&count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(routes[i].method, method) == 0 && strcmp(routes[i].pattern, pattern) == 0)
            return &routes[i];
    fail_msg("there is no route %s %s", method, pattern);
    return NULL;
}

/* Sets the request for a page, by its path. */
static inline void rp_test_ask_for(rp_page_ask *ask, const char *path)
{
    const char *allow;
    size_t count;
    const rp_route *routes = rp_routes(&count);

    *ask = (rp_page_ask){.route = NULL};
    rp_buf_init(&ask->body, rp_allocator_default());
    assert_int_equal(
        rp_route_find(routes, count, "GET", (rp_string){path, strlen(path)}, ask, &allow),
        RP_ROUTE_FOUND);
}

/* Makes the host. `open`: no token is needed. */
static inline void rp_test_hosted_init(rp_test_hosted *h, bool open)
{
    static const char tokens[] =
        "read dash "
        "sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\n"
        "read cert cert:dash\n"
        "admin boss "
        "sha256:a5e7c002443743c5836758c7d1cd8ddefd9fcf2061daa0efaac683fb99966057\n";
    rp_auth_source source = {open ? NULL : tokens, open ? 0 : sizeof tokens - 1, !open};
    rp_auth *auth = NULL;

    rp_test_observed_init(&h->observed);
    atomic_init(&h->described, 0);
    atomic_init(&h->holds, false);
    assert_int_equal(sem_init(&h->reached, 0, 0), 0);
    assert_int_equal(sem_init(&h->go, 0, 0), 0);
    assert_ok(rp_auth_new(&h->observed.bed.alloc, &source, &auth, NULL));
    h->host = (rp_page_host){.ctx = h,
                             .is_open = open,
                             .describe = rp_test_describe,
                             .counters = rp_metrics_shared(h->observed.view.metrics)};
    assert_ok(rp_gate_new(&h->observed.bed.alloc, auth, &h->host.gate));
}

static inline void rp_test_hosted_deinit(rp_test_hosted *h)
{
    rp_gate_free(h->host.gate);
    (void)sem_destroy(&h->reached);
    (void)sem_destroy(&h->go);
    rp_test_observed_deinit(&h->observed);
}

#endif
