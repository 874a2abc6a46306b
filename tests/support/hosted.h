/* SPDX-License-Identifier: Apache-2.0 */
/* A host for the pages: the server of observed.h behind a gate. The token "reader" may read,
 * "nothing" is known to nobody. */
#ifndef RP_TEST_HOSTED_H
#define RP_TEST_HOSTED_H

#include "server/http/page.h"
#include "support/observed.h"

typedef struct rp_test_hosted {
    rp_test_observed observed;
    rp_page_host host;
} rp_test_hosted;

static inline void rp_test_describe(void *ctx, rp_server_view *view)
{
    *view = ((rp_test_hosted *)ctx)->observed.view;
}

/* `open`: nobody needs a token. */
static inline void rp_test_hosted_init(rp_test_hosted *h, bool open)
{
    static const char tokens[] =
        "read dash "
        "sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\n"
        "read cert cert:dash\n";
    rp_auth_source source = {open ? NULL : tokens, open ? 0 : sizeof tokens - 1, !open};
    rp_auth *auth = NULL;

    rp_test_observed_init(&h->observed);
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
    rp_test_observed_deinit(&h->observed);
}

#endif
