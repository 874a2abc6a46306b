/* SPDX-License-Identifier: Apache-2.0 */
/* A unary call: one request and one response, on several shards at once. The calling thread
 * waits for it. */
#ifndef RP_CLIENT_UNARY_H
#define RP_CLIENT_UNARY_H

#include "client/client.h"
#include "util/buf.h"

typedef struct rp_unary_request {
    const char *path;
    const rp_buf *message; /* NULL: an empty one */
    /* The request is idempotent: it is retried once if the connection breaks. */
    bool repeatable;
    /* Does not wait for servers that are away: a call to them ends at once, and they are
     * connected to in the background. */
    bool skips_away;
} rp_unary_request;

/* The result of the call on one shard. */
typedef struct rp_unary_response {
    rp_status status;
    bool is_reached; /* the request was sent */
    const uint8_t *data;
    size_t size; /* of the response, if RP_OK */
    char text[RP_ERROR_TEXT_BYTES];
} rp_unary_response;

typedef struct rp_unary rp_unary;

/* Calls shards [first, first + count) and waits until all have responded or the wait ends.
 * RP_OK means only that there are results to inspect. Returns owned. RP_NO_RESOURCE, statuses
 * of rp_client_get_live(). */
RP_NODISCARD rp_status rp_unary_call(rp_client *client, const rp_unary_request *request,
                                     size_t first, size_t count, rp_wait wait, rp_unary **out,
                                     rp_error *err);
const rp_unary_response *rp_unary_response_of(const rp_unary *unary, size_t i);
size_t rp_unary_count(const rp_unary *unary);
/* Returns the status of the whole call, by the rule in reprise/client.h for calls to all
 * shards. Counts the shards that it leaves out (rp_client_why_away()): call it once. */
rp_status rp_unary_result(const rp_unary *unary, rp_error *err);
void rp_unary_free(rp_unary *unary); /* NULL is fine */

#endif
