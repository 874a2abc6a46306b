/* SPDX-License-Identifier: Apache-2.0 */
/* A host for the pages: the server of observed.h behind a gate. The token "reader" has the role
 * read; the token "nothing" is unknown. */
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
    rp_page_kind kind;

    if (!rp_page_respond_now(&h->host, request, answer, &kind))
        rp_page_make(&h->host, kind, answer);
}

/* Makes the host. `open`: no token is needed. */
static inline void rp_test_hosted_init(rp_test_hosted *h, bool open)
{
    static const char tokens[] =
        "read dash "
        "sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\n"
        "read cert cert:dash\n";
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
