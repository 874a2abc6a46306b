/* SPDX-License-Identifier: Apache-2.0 */
/* The answers to plain HTTP, whichever way they came: /healthz, /metrics, /v1/info and a page
 * that lists them. No sockets here: the HTTP/1.1 daemon (http_page.h) and the HTTP/2
 * connections ask the same functions. */
#ifndef RP_SERVER_HTTP_PAGE_H
#define RP_SERVER_HTTP_PAGE_H

#include "reprise/tensor.h" /* rp_string */
#include "server/auth/gate.h"
#include "server/http/server_view.h"
#include "util/buf.h"

/* The server that answers. Everything is borrowed and must outlive the use of the host. */
typedef struct rp_page_host {
    void *ctx;
    /* Fills in all of `view`. Called on any thread; must not wait. */
    void (*describe)(void *ctx, rp_server_view *view);
    rp_gate *gate;
    rp_loop_metrics *counters; /* rp_metrics_shared(): refusals are counted there */
    bool is_open;              /* nobody needs credentials: names are checked instead */
    const char *names;         /* under which it may be asked, separated by commas; or NULL */
    unsigned idle_s;           /* of silence before a connection of HTTP/1.1 is closed; 0: 10 */
} rp_page_host;

typedef struct rp_page_request {
    const char *method; /* "GET" */
    const char *path;   /* with or without a query, which is ignored */
    rp_string host;     /* the header "Host" of HTTP/1.1; its data is NULL if there is none */
    rp_credentials shown;
    int64_t now_ns;
} rp_page_request;

/* Whether a page of a server without credentials is answered under this name: an IP address,
 * a name without a dot, one below "localhost", or one of `names`. Any other may belong to a web
 * site that has its name resolve to our address, to read our pages through a visitor's browser
 * (DNS rebinding). The whole of `host` must be a name or an address and, if there is a colon, a
 * port, which is ignored. A name has labels of letters, digits, '-' and '_', separated by
 * single dots. A NULL in host.data is fine, as no browser leaves the header out. */
bool rp_page_is_own_name(rp_string host, const char *names);

typedef struct rp_page_answer {
    int status;               /* of HTTP */
    const char *content_type; /* static */
    const char *extra_name;  /* a header more (allow, www-authenticate, retry-after), or NULL */
    const char *extra_value; /* static */
    bool head_only; /* the request was HEAD: send the length of the body, not the body */
    rp_buf body;
} rp_page_answer;

/* Pages about all tables. To make one takes time: page_maker.h has a thread for it. */
typedef enum rp_page_kind { RP_PAGE_METRICS, RP_PAGE_INFO, RP_PAGE_KINDS } rp_page_kind;

/* Answers a request, unless that needs a page about all tables: then it returns false, sets
 * `*kind` and `answer->head_only`, and the rest of the answer is what rp_page_make() says. It
 * takes a bounded, short time. `answer->body` must be initialised and is cleared first; there
 * is an answer in every case (503 if there was no memory, with whatever text fits).
 *
 *   /healthz   200 serving, degraded; 503 loading, draining. Open to everybody
 *   /metrics   200; 401 and 403 without the role read; 421 under a name that is not ours
 *   /v1/info   the same
 *   /          200, the list. Open to everybody
 *   others     404; 405 for methods other than GET and HEAD */
RP_NODISCARD bool rp_page_answer_now(const rp_page_host *host, const rp_page_request *request,
                                     rp_page_answer *answer, rp_page_kind *kind);

/* Makes a page, of at most rp_page_most_bytes(). As above: there is an answer in every case. */
void rp_page_make(const rp_page_host *host, rp_page_kind kind, rp_page_answer *answer);

/* Has the answer be one sentence. */
void rp_page_say(rp_page_answer *answer, int status, const char *sentence);

#endif
