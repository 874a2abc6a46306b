/* SPDX-License-Identifier: Apache-2.0 */
/* A call with one request and one answer, made on some shards at once, and the thread that
 * waits for it. */
#ifndef RP_CLIENT_UNARY_H
#define RP_CLIENT_UNARY_H

#include "client/client.h"
#include "util/buf.h"

typedef struct rp_unary_request {
    const char *path;
    const rp_buf *message; /* NULL: an empty one */
    /* Doing it twice is doing it once: it is made again, once, if the connection breaks. */
    bool repeatable;
} rp_unary_request;

/* How it went with one shard. */
typedef struct rp_unary_answer {
    rp_status status;
    bool is_reached; /* the request went out */
    const uint8_t *data;
    size_t size; /* of the answer, if RP_OK */
    char text[RP_ERROR_TEXT_BYTES];
} rp_unary_answer;

typedef struct rp_unary rp_unary;

/* Calls shards [first, first + count) and returns when all have answered, the wait is over or
 * it was cancelled. RP_OK says only that there are answers to be looked at; RP_NO_RESOURCE, and
 * what rp_client_get_live() gives. Returns owned. */
RP_NODISCARD rp_status rp_unary_call(rp_client *client, const rp_unary_request *request,
                                     size_t first, size_t count, rp_wait wait, rp_unary **out,
                                     rp_error *err);
const rp_unary_answer *rp_unary_answer_of(const rp_unary *unary, size_t i);
size_t rp_unary_count(const rp_unary *unary);
/* What it all comes to, as client.h says of calls to all shards. */
rp_status rp_unary_result(const rp_unary *unary, rp_error *err);
void rp_unary_free(rp_unary *unary); /* NULL is fine */

#endif
