/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of plain HTTP requests. The method and path of a request select its route: the
 * function that handles it, the role that it needs, and the thread that handles it.
 * docs/http.md lists the routes for users.
 *
 * To add a route, write its handler in a file page_<subject>.c, declare the handler in pages.h,
 * and add a row for the route to the table in routes.c. */
#ifndef RP_SERVER_HTTP_ROUTE_H
#define RP_SERVER_HTTP_ROUTE_H

#include "reprise/table_options.h" /* RP_MAX_TABLE_NAME_BYTES */
#include "reprise/tensor.h"        /* rp_string */
#include "server/auth/method.h"
#include "util/buf.h"

enum {
    RP_ASK_NAMES = 2,                            /* the most names in a path */
    RP_ASK_NAME_BYTES = RP_MAX_TABLE_NAME_BYTES, /* the most bytes of a name, decoded */
    RP_ASK_BODY_BYTES = 64 << 10,                /* the most bytes of a request's body */
};

typedef struct rp_page_host rp_page_host;
typedef struct rp_page_response rp_page_response;
typedef struct rp_page_ask rp_page_ask;

/* Where a request is handled. Each lane but RP_ROUTE_NOW has a thread of page_maker.h. */
typedef enum rp_route_lane {
    RP_ROUTE_NOW,      /* on the event loop that has read the request: a few microseconds */
    RP_ROUTE_OVERVIEW, /* pages about the whole server. There are few of these pages, and
                          requests for the same page share it. Therefore a client with many
                          requests does not delay other clients for long */
    RP_ROUTE_PAGE,     /* pages about one table or item */
    RP_ROUTE_RUN,      /* pages about runs, which can be large */
    RP_ROUTE_CHANGE,   /* short changes */
    RP_ROUTE_ACT,      /* changes that can wait for the journal or a checkpoint */
    RP_ROUTE_LANES,
} rp_route_lane;

/* Handles a request: appends the body of the response to answer->body, which is empty, and
 * returns the HTTP status. The content type is application/json unless the handler sets
 * another. If the handler leaves the body empty or bad (no memory, or the page is too large),
 * the response is 503 and says that there is not enough memory. */
typedef int rp_page_handler(const rp_page_host *host, const rp_page_ask *ask,
                            rp_page_response *answer);

typedef struct rp_route {
    const char *method; /* "GET" (and HEAD) or "POST" */
    /* A path in which "{}" stands for a name: "/v1/tables/{}/items/{}", "/v1/runs/{}.csv". */
    const char *pattern;
    rp_role role;
    rp_route_lane lane;
    rp_page_handler *handle;
    bool confirms; /* the header x-reprise-confirm must equal the first name in the path. If the
                      path has no names, it must equal the path's last part. The header may have
                      percent escapes */
    bool is_live;  /* a request with ?after= waits for the next version of the page, which is
                      made at most once a second */
    bool is_part;  /* the page has only data newer than ?after=, so requests with different
                      numbers in ?after= do not share a page */
    const char *about; /* description in the list of pages; NULL: not listed */
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
    /* The number of the page that the handler makes. Each page has a higher number than the
     * pages begun before it. page_maker.h sets it; on RP_ROUTE_NOW it is 0. */
    uint64_t number;
    /* Identify the client to page_shares.h. `peer` is a hash of the client's address and the
     * name of its credentials. */
    uint64_t peer, connection;
    rp_buf body; /* body of a POST request. The caller initialises and frees it */
};

/* Returns all routes. The array is static. */
const rp_route *rp_routes(size_t *count);

typedef enum rp_route_found {
    RP_ROUTE_FOUND,
    RP_ROUTE_NONE,       /* no route has this path */
    RP_ROUTE_NO_METHOD,  /* there are routes with this path, but not with this method */
    RP_ROUTE_BAD_NAME,   /* a name is empty, too long, or has a bad escape or a zero byte */
    RP_ROUTE_BAD_NUMBER, /* `after` is not a whole number below 2^64 */
} rp_route_found;

/* Finds the route of a request among `routes` and fills in `ask`, except for `body`, `peer` and
 * `connection`. `path` is the path that the peer sent, with or without a query. HEAD finds the
 * routes of GET. If the result is RP_ROUTE_NO_METHOD, `*allow` is the value for the header
 * Allow (static). The result depends only on the arguments. fuzz/fuzz_page.c tests this
 * function, since a peer chooses the bytes. */
rp_route_found rp_route_find(const rp_route *routes, size_t count, const char *method,
                             rp_string path, rp_page_ask *ask, const char **allow);

/* Decodes the percent escapes of a name. Returns false if an escape is not "%" and two
 * hexadecimal digits, or if the result is empty, has a zero byte, or has more than
 * RP_ASK_NAME_BYTES bytes. */
bool rp_route_decode(rp_string text, rp_ask_name *out);

/* Reads a decimal whole number below 2^64. Returns false if the text is anything else. */
bool rp_route_read_number(rp_string text, uint64_t *out);

/* Returns whether two requests are for the same page, so that they can share it. */
bool rp_route_is_same(const rp_page_ask *a, const rp_page_ask *b);

#endif
