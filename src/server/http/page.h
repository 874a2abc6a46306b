/* SPDX-License-Identifier: Apache-2.0 */
/* Responses to plain HTTP requests: /healthz, /metrics, /v1/info and a page that lists them.
 * The HTTP/1.1 daemon (http_page.h) and HTTP/2 connections (core/page_response.h) call these
 * functions, which use no sockets. */
#ifndef RP_SERVER_HTTP_PAGE_H
#define RP_SERVER_HTTP_PAGE_H

#include "reprise/tensor.h" /* rp_string */
#include "server/auth/gate.h"
#include "server/http/server_view.h"
#include "util/buf.h"

/* The server whose pages are made. All pointers are borrowed and must outlive the host. */
typedef struct rp_page_host {
    void *ctx;
    /* Fills in all of `view`. Called on any thread; must not block. */
    void (*describe)(void *ctx, rp_server_view *view);
    rp_gate *gate;
    rp_loop_metrics *counters; /* rp_metrics_shared(): refusals are counted there */
    bool is_open;              /* no credentials are required: host names are checked instead */
    const char *names;         /* host names accepted in "Host", separated by commas; or NULL */
    unsigned idle_s;           /* seconds of silence that close an HTTP/1.1 connection; 0: 10 */
} rp_page_host;

typedef struct rp_page_request {
    const char *method; /* "GET" */
    const char *path;   /* with or without a query, which is ignored */
    rp_string host;     /* the header "Host" of HTTP/1.1; its data is NULL if there is none */
    rp_credentials shown;
    int64_t now_ns;
} rp_page_request;

/* Whether a server without credentials responds to requests for this host: an IP address, a
 * name without a dot, a name below "localhost", or one of `names`. Any other name may belong to
 * a web site that resolves it to the server's address, to read the server's pages through a
 * visitor's browser (DNS rebinding). All of `host` must be a name or an address, and a port if
 * there is a colon; the port is ignored. A name has labels of letters, digits, '-' and '_',
 * separated by single dots. True if host.data is NULL: browsers always send the header. */
bool rp_page_is_own_name(rp_string host, const char *names);

typedef struct rp_page_response {
    int status;               /* of HTTP */
    const char *content_type; /* static */
    const char
        *extra_name; /* an extra header (allow, www-authenticate, retry-after), or NULL */
    const char *extra_value; /* static */
    bool head_only; /* the request was HEAD: send the length of the body, not the body */
    rp_buf body;
} rp_page_response;

/* Pages about all tables. Making one takes long, so a thread does it: page_maker.h. */
typedef enum rp_page_kind { RP_PAGE_METRICS, RP_PAGE_INFO, RP_PAGE_KINDS } rp_page_kind;

/* Makes the response to a request and returns true. If the response is a page about all tables,
 * returns false; then `*kind` says which page, and rp_page_make() makes the response. Takes a
 * bounded, short time. `answer->body` must be initialised and is cleared first. There is a
 * response in every case (503 if there was no memory).
 *
 *   /healthz   200 serving, degraded; 503 loading, draining. Needs no role
 *   /metrics   200; 401 and 403 without the role read; 421 if rp_page_is_own_name() is false
 *   /v1/info   as /metrics
 *   /          200, the list. Needs no role
 *   others     404; 405 for methods other than GET and HEAD */
RP_NODISCARD bool rp_page_respond_now(const rp_page_host *host, const rp_page_request *request,
                                      rp_page_response *answer, rp_page_kind *kind);

/* Makes a page about all tables, of at most rp_page_most_bytes(). There is a response in every
 * case. */
void rp_page_make(const rp_page_host *host, rp_page_kind kind, rp_page_response *answer);

/* Makes a response of one sentence. */
void rp_page_say(rp_page_response *answer, int status, const char *sentence);

#endif
