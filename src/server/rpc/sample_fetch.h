/* SPDX-License-Identifier: Apache-2.0 */
/* The fetches of SampleStream and SampleShared calls. A fetch is one draw of samples from a
 * table, and holds the samples until they are sent. Each worker keeps some unused fetches for
 * reuse. A fetch for more than 64 samples is large. While a large fetch is in use, the budget
 * of queued bytes (core/queue_budget.h) counts its memory. The budget does not count small
 * fetches.
 *
 * All functions must be called on the worker's thread. */
#ifndef RP_SERVER_RPC_SAMPLE_FETCH_H
#define RP_SERVER_RPC_SAMPLE_FETCH_H

#include "reprise/table.h"
#include "server/core/served_table.h"

enum { RP_MAX_FETCH = 512 /* the most samples of a fetch */ };

typedef struct rp_sample_stream rp_sample_stream;

/* A fetch: a draw of samples from a table. */
struct rp_sample_fetch {
    rp_op op;
    rp_sample_options options;
    rp_post post;
    rp_timer timer;
    rp_worker *worker;
    rp_sample_stream *stream; /* NULL: its call has ended */
    rp_served_table *served;  /* a reference while the fetch is in use, like `drawn` */
    rp_drawn *drawn;
    rp_sample_fetch *next;
    int64_t started_ns;
    size_t written, written_bytes; /* samples written to responses, and bytes of their chunks */
    size_t given_bytes;            /* part of written_bytes that was given back to `drawn`,
                                      because the responses count these bytes now */
    size_t capacity;               /* RP_MAX_FETCH, or less for a small fetch */
    rp_sample samples[];
};

/* Returns a fetch with room for `count` samples (<= RP_MAX_FETCH), or NULL if there is no
 * memory. The function sets the fields `worker` and `capacity`; the caller must set the others.
 */
rp_sample_fetch *rp_sample_fetch_new(rp_worker *worker, size_t count);
/* Ends the use of a fetch: gives the bytes that the fetch still holds (op.held_bytes) back to
 * `drawn` (core/drawn.h), and drops the fetch's references. The fetch is then kept for reuse or
 * freed. The caller must have released the samples. */
void rp_sample_fetch_release(rp_sample_fetch *fetch);
/* Frees the fetches that the worker keeps. */
void rp_sample_fetches_free(rp_worker *worker);

#endif
