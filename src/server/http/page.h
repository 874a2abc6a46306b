/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the responses to plain HTTP requests: the files of the dashboard (static_files.h), and
 * the pages of the routes (route.h). The functions use no sockets. The HTTP/1.1 server
 * (http_page.h) and HTTP/2 connections (core/page_response.h) call them. */
#ifndef RP_SERVER_HTTP_PAGE_H
#define RP_SERVER_HTTP_PAGE_H

#include "reprise/tensor.h" /* rp_string */
#include "server/auth/gate.h"
#include "server/http/action.h"
#include "server/http/route.h"
#include "server/http/server_view.h"
#include "server/metrics/clients.h"
#include "util/buf.h"
#include "wire/h2/h2.h" /* rp_http_header */

/* Describes the server whose pages are made. All pointers are borrowed and must outlive the
 * rp_page_host. */
struct rp_page_host {
    void *ctx;
    /* Fills in `view`. Called on any thread; must not block. */
    void (*describe)(void *ctx, rp_server_view *view);
    /* Makes a change and waits a bounded time until it is on disk. Called on a thread of
     * page_maker.h. NULL: the server allows no changes. */
    rp_status (*act)(void *ctx, rp_action *action, rp_error *err);
    rp_gate *gate;
    rp_clients *clients;       /* list of the connections; NULL: they are not listed */
    rp_loop_metrics *counters; /* rp_metrics_shared(), for counting refusals */
    bool is_open;              /* no credentials are required, so the header "Host" is checked:
                                  rp_page_is_own_name() */
    const char *names;         /* host names accepted in "Host", separated by commas; or NULL */
    unsigned idle_s; /* seconds of silence after which an HTTP/1.1 connection is closed, and
                        seconds that the body of a request may take; 0 stands for 10 */
};

typedef struct rp_page_request {
    const char *method; /* "GET" */
    const char *path;   /* as the peer sent it, with or without a query */
    rp_string host;     /* the header "Host" of HTTP/1.1; its data is NULL if there is none */
    rp_string confirm;  /* the header "x-reprise-confirm"; its data is NULL if there is none */
    rp_string if_none_match; /* the header of this name; its data is NULL if there is none */
    rp_credentials shown;
    bool is_repeated;    /* the request has several headers "authorization", so it is refused */
    uint64_t connection; /* number that identifies the connection */
    int64_t now_ns;
} rp_page_request;

/* Returns whether a server without credentials responds to requests for this host. It does if
 * `host` is an IP address, a name without a dot, a name below "localhost", or one of `names`.
 * Any other name can belong to a web site that makes it resolve to the server's address, to
 * read the server's pages through a visitor's browser (DNS rebinding). `host` must be a name or
 * an address; a port after it is ignored. A name has labels of letters, digits, '-' and '_',
 * separated by single dots. If host.data is NULL, the result is true: a request without the
 * header does not come from a browser. */
bool rp_page_is_own_name(rp_string host, const char *names);

struct rp_page_response {
    int status;               /* status code of HTTP */
    const char *content_type; /* static */
    const char *extra_name;   /* one more header: allow, etag or retry-after. NULL: none */
    const char *extra_value;  /* static */
    rp_role role;             /* role that the request's credentials give; set only if the route
                                 needs a role */
    bool head_only; /* the request was HEAD: send the length of the body, not the body */
    bool says_json; /* rp_page_say() writes {"error": sentence} */
    bool is_file;   /* the body is `file`, which is static, and `body` is empty */
    rp_string file;
    rp_buf body;
};

/* Returns the bytes of the body. */
static inline rp_string rp_page_body(const rp_page_response *answer)
{
    return answer->is_file ? answer->file
                           : (rp_string){(const char *)answer->body.data, answer->body.size};
}

enum {
    RP_PAGE_HEADERS = 6,
    RP_PAGE_MOST_BYTES = 4 << 20, /* of a page, unless its handler sets another bound */
};
/* Writes the headers of a response, content-type first, and returns their number. Names are in
 * lower case. All responses have the same security headers. */
size_t rp_page_headers(const rp_page_response *answer, rp_http_header out[RP_PAGE_HEADERS]);

/* Makes the response to a request and returns true, or returns false if another thread must
 * make the response. If the result is false, `ask` describes the request, and the caller must
 * pass `ask` to rp_page_maker_ask(). Before that, if ask->route is for POST, the caller must
 * append the request's body, at most RP_ASK_BODY_BYTES, to ask->body. If the result is true,
 * `answer` is always a complete response (503 if there was no memory). `answer->body` and
 * `ask->body` must be initialised; the function clears `answer->body`. The function takes a
 * bounded, short time.
 *
 * This function also checks the request. The response is 401 or 403 if the peer lacks the role
 * of the route, 429 after too many wrong tokens, and 421 if rp_page_is_own_name() is false. It
 * is 404 for an unknown path and 405 for a wrong method. It is 400 for a malformed name or
 * number, for several headers "authorization", and for a missing or wrong confirmation. */
RP_NODISCARD bool rp_page_respond_now(const rp_page_host *host, const rp_page_request *request,
                                      rp_page_response *answer, rp_page_ask *ask);

/* Calls the handler of a request's route. Afterwards `answer` is always a complete response. */
void rp_page_make(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer);

/* Makes a response whose body is one sentence. */
void rp_page_say(rp_page_response *answer, int status, const char *sentence);
/* As rp_page_say(), with a formatted sentence. Returns `status`, so that a handler can return
 * the result. */
int rp_page_fail(rp_page_response *answer, int status, const char *format, ...) RP_PRINTF(3, 4);

#endif
