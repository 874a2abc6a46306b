/* SPDX-License-Identifier: Apache-2.0 */
/* Responses to plain HTTP requests: the files of the page, and the routes of route.h. The
 * HTTP/1.1 daemon (http_page.h) and HTTP/2 connections (core/page_response.h) call these
 * functions, which use no sockets. */
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

/* The server whose pages are made. All pointers are borrowed and must outlive the host. */
struct rp_page_host {
    void *ctx;
    /* Fills in all of `view`. Called on any thread; must not block. */
    void (*describe)(void *ctx, rp_server_view *view);
    /* Makes a change and waits for the disk, for a bounded time. On a thread of page_maker.h.
     * NULL: nothing can be changed. */
    rp_status (*act)(void *ctx, rp_action *action, rp_error *err);
    rp_gate *gate;
    rp_clients *clients;       /* of connections; NULL: they are not listed */
    rp_loop_metrics *counters; /* rp_metrics_shared(): refusals are counted there */
    bool is_open;              /* no credentials are required: host names are checked instead */
    const char *names;         /* host names accepted in "Host", separated by commas; or NULL */
    unsigned idle_s; /* seconds of silence that close an HTTP/1.1 connection, and seconds that
                        the body of a request may take; 0: 10 */
};

typedef struct rp_page_request {
    const char *method; /* "GET" */
    const char *path;   /* as the peer sent it, with or without a query */
    rp_string host;     /* the header "Host" of HTTP/1.1; its data is NULL if there is none */
    rp_string confirm;  /* the header "x-reprise-confirm"; its data is NULL if there is none */
    rp_string if_none_match; /* as above */
    rp_credentials shown;
    bool is_repeated;    /* there are several headers "authorization", which is refused */
    uint64_t connection; /* a number of its own for each connection */
    int64_t now_ns;
} rp_page_request;

/* Whether a server without credentials responds to requests for this host: an IP address, a
 * name without a dot, a name below "localhost", or one of `names`. Any other name may belong to
 * a web site that resolves it to the server's address, to read the server's pages through a
 * visitor's browser (DNS rebinding). All of `host` must be a name or an address, and a port if
 * there is a colon; the port is ignored. A name has labels of letters, digits, '-' and '_',
 * separated by single dots. Also true if host.data is NULL: a request without the header is not
 * from a browser. */
bool rp_page_is_own_name(rp_string host, const char *names);

struct rp_page_response {
    int status;               /* of HTTP */
    const char *content_type; /* static */
    const char *extra_name;   /* one more header: allow, etag or retry-after. NULL: none */
    const char *extra_value;  /* static */
    rp_role role;   /* of the credentials that were shown, for routes that need a role */
    bool head_only; /* the request was HEAD: send the length of the body, not the body */
    bool says_json; /* rp_page_say() writes {"error": sentence} */
    bool is_file;   /* the body is `file`, which is static, and `body` is empty */
    rp_string file;
    rp_buf body;
};

/* The bytes of the body. */
static inline rp_string rp_page_body(const rp_page_response *answer)
{
    return answer->is_file ? answer->file
                           : (rp_string){(const char *)answer->body.data, answer->body.size};
}

enum {
    RP_PAGE_HEADERS = 6,
    RP_PAGE_MOST_BYTES = 4 << 20, /* of a page, unless its handler sets another bound */
};
/* Writes the headers of a response, content-type first. Returns their number. Names are in
 * lower case. The security headers are the same for all responses. */
size_t rp_page_headers(const rp_page_response *answer, rp_http_header out[RP_PAGE_HEADERS]);

/* Makes the response to a request and returns true. If another thread has to make it, returns
 * false, and `ask` describes the request. Then the caller passes `ask` to rp_page_maker_ask().
 * If ask->route is for POST, the caller first appends the request's body to ask->body, at most
 * RP_ASK_BODY_BYTES. Takes a bounded, short time. `answer->body` and `ask->body` must be
 * initialised; `answer->body` is cleared. If it returns true, there is a response in every case
 * (503 if there was no memory).
 *
 * Roles are checked here: 401 and 403 without the role of the route, 429 after too many wrong
 * tokens, 421 if rp_page_is_own_name() is false. 404 for other paths, 405 for other methods,
 * 400 for malformed names and numbers, for several headers "authorization", and for a
 * confirmation that is missing or wrong. */
RP_NODISCARD bool rp_page_respond_now(const rp_page_host *host, const rp_page_request *request,
                                      rp_page_response *answer, rp_page_ask *ask);

/* Calls the handler of a request's route. There is a response in every case. */
void rp_page_make(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer);

/* Makes a response of one sentence. */
void rp_page_say(rp_page_response *answer, int status, const char *sentence);
/* As rp_page_say(), formatted, for handlers: returns `status`. */
int rp_page_fail(rp_page_response *answer, int status, const char *format, ...) RP_PRINTF(3, 4);

#endif
