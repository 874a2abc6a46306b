/* SPDX-License-Identifier: Apache-2.0 */
/* Unary calls: one request and one response per server. A call goes to several shards (servers
 * of the client) at the same time, and the calling thread waits for the responses. */
#ifndef RP_CLIENT_UNARY_H
#define RP_CLIENT_UNARY_H

#include "client/client.h"
#include "util/buf.h"

typedef struct rp_unary_request {
    const char *path;
    const rp_buf *message; /* NULL: an empty message */
    /* The request is idempotent. If the connection breaks, the call is retried once. */
    bool repeatable;
    /* Do not wait for servers that are away (rp_channel_is_away()): the call to such a server
     * ends at once, and the channel tries to connect in the background. */
    bool skips_away;
    /* A call that has no connection at this monotonic time ends with RP_DEADLINE, even if the
     * wait ends later. 0: a call waits for a connection until the wait ends. */
    int64_t connect_by_ns;
} rp_unary_request;

/* The result of the call on one shard. */
typedef struct rp_unary_response {
    rp_status status;
    bool is_reached;                /* the request was sent */
    const uint8_t *data;            /* the response, if `status` is RP_OK */
    size_t size;                    /* size of the response in bytes */
    char text[RP_ERROR_TEXT_BYTES]; /* of the error */
} rp_unary_response;

typedef struct rp_unary rp_unary;

/* Calls the shards [first, first + count), and waits until all have responded or the wait ends.
 * RP_OK only means that there are responses to inspect; the status of a response can be an
 * error. The caller must free *out. Errors: RP_NO_RESOURCE, statuses of rp_client_get_live().
 */
RP_NODISCARD rp_status rp_unary_call(rp_client *client, const rp_unary_request *request,
                                     size_t first, size_t count, rp_wait wait, rp_unary **out,
                                     rp_error *err);
/* Return the response of shard first + i, and the number of responses. */
const rp_unary_response *rp_unary_response_of(const rp_unary *unary, size_t i);
size_t rp_unary_count(const rp_unary *unary);
/* Returns the status of the whole call. reprise/client.h has the rule by which it follows from
 * the statuses of the shards. If no shard could be reached, the error text has the reason for
 * each shard, as far as there is room. Adds to the counts of calls that have left out a shard
 * (rp_client_why_away()), and therefore must be called only once per call. */
rp_status rp_unary_result(const rp_unary *unary, rp_error *err);
void rp_unary_free(rp_unary *unary); /* NULL is fine */

#endif
