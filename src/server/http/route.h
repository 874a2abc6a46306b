/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of plain HTTP requests: method and path decide who handles a request, which role
 * it needs and on which thread it is handled. docs/http.md lists them for users.
 *
 * To add a route, write its handler in a file page_<subject>.c, declare the handler in pages.h
 * and add a row to the table in routes.c. */
#ifndef RP_SERVER_HTTP_ROUTE_H
#define RP_SERVER_HTTP_ROUTE_H

#include "reprise/table_options.h" /* RP_MAX_TABLE_NAME_BYTES */
#include "reprise/tensor.h"        /* rp_string */
#include "server/auth/method.h"
#include "util/buf.h"

enum {
    RP_ASK_NAMES = 2,                            /* names in a path, at most */
    RP_ASK_NAME_BYTES = RP_MAX_TABLE_NAME_BYTES, /* of a name, decoded */
    RP_ASK_BODY_BYTES = 64 << 10,                /* of a request's body */
};

typedef struct rp_page_host rp_page_host;
typedef struct rp_page_response rp_page_response;
typedef struct rp_page_ask rp_page_ask;

/* Where a request is handled. All but RP_ROUTE_NOW run on a thread of page_maker.h. */
typedef enum rp_route_lane {
    RP_ROUTE_NOW,      /* on the event loop that has read the request: a few microseconds */
    RP_ROUTE_OVERVIEW, /* pages about the whole server. There are only a few of these pages, and
                          requests for one page share it. So a reader that sends many requests
                          does not make other readers wait for long */
    RP_ROUTE_PAGE,     /* pages about one table or item */
    RP_ROUTE_RUN,      /* pages about runs, which may be large */
    RP_ROUTE_CHANGE,   /* short changes, one after the other */
    RP_ROUTE_ACT,      /* changes that may wait, for the journal or a checkpoint */
    RP_ROUTE_LANES,
} rp_route_lane;

/* Handles a request: appends the body of the response to answer->body, which is empty, and
 * returns the HTTP status. The content type is application/json unless the handler sets
 * another. If the handler leaves the body bad (memory ran out, or the page is too large) or
 * empty, the response is 503 and says that there is not enough memory. */
typedef int rp_page_handler(const rp_page_host *host, const rp_page_ask *ask,
                            rp_page_response *answer);

typedef struct rp_route {
    const char *method; /* "GET" (and HEAD) or "POST" */
    /* A path; "{}" is a name: "/v1/tables/{}/items/{}", "/v1/runs/{}.csv". */
    const char *pattern;
    rp_role role;
    rp_route_lane lane;
    rp_page_handler *handle;
    bool confirms; /* the header x-reprise-confirm must equal the first name in the path, or the
                      last part of a path without names; percent escapes are allowed in it */
    bool is_live;  /* a request with ?after= waits for the next version of the page, which is
                      made at most once a second */
    bool is_part;  /* the page has only what is newer than ?after=. So requests with different
                      numbers do not share a page, as they do on other routes */
    const char *about; /* for the list of pages; NULL: not in it */
} rp_route;

/* A name of a path, decoded. */
typedef struct rp_ask_name {
    size_t size;
    char text[RP_ASK_NAME_BYTES + 1]; /* ends with a zero byte and has no other */
} rp_ask_name;

/* A request, parsed. */
struct rp_page_ask {
    const rp_route *route;
    rp_ask_name names[RP_ASK_NAMES];
    bool has_after;
    uint64_t after; /* the number in ?after=; 0 without one */
    /* The number of the page that the handler makes: each page has a higher number than those
     * begun before it. Set by page_maker.h, 0 on RP_ROUTE_NOW. */
    uint64_t number;
    /* Identify the client to page_shares.h. `peer` stands for the address and the name of the
     * credentials together. */
    uint64_t peer, connection;
    rp_buf body; /* of a POST request; owned. The caller initialises it */
};

/* All routes. Static. */
const rp_route *rp_routes(size_t *count);

typedef enum rp_route_found {
    RP_ROUTE_FOUND,
    RP_ROUTE_NONE,       /* no route has this path */
    RP_ROUTE_NO_METHOD,  /* routes have this path, none of them this method */
    RP_ROUTE_BAD_NAME,   /* a name is empty, too long, or has a bad escape or a zero byte */
    RP_ROUTE_BAD_NUMBER, /* `after` is not a whole number below 2^64 */
} rp_route_found;

/* Finds the route of a request among `routes` and fills in `ask`, except for `body`, `peer` and
 * `connection`. `path` is
 * as the peer sent it, with or without a query. HEAD finds the routes of GET. After
 * RP_ROUTE_NO_METHOD, `*allow` is the value of the header Allow (static). A pure function of
 * bytes from a peer: fuzz/fuzz_page.c. */
rp_route_found rp_route_find(const rp_route *routes, size_t count, const char *method,
                             rp_string path, rp_page_ask *ask, const char **allow);

/* Decodes percent escapes. False if an escape is not "%" and two hexadecimal digits, if the
 * result has a zero byte, or if it has no byte or more than RP_ASK_NAME_BYTES. */
bool rp_route_decode(rp_string text, rp_ask_name *out);

/* Reads a whole number below 2^64 in decimal. False if the text is anything else. */
bool rp_route_read_number(rp_string text, uint64_t *out);

/* Whether two requests are for the same page, so that they may share it. */
bool rp_route_is_same(const rp_page_ask *a, const rp_page_ask *b);

#endif
