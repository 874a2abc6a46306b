/* SPDX-License-Identifier: Apache-2.0 */
/* The fetches of SampleStream and SampleShared, which have the samples that a table has drawn.
 * Each worker keeps some that are not in use. A large fetch counts in the budget of queued
 * bytes while it is in use; a small one counts as part of its call.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_RPC_SAMPLE_FETCH_H
#define RP_SERVER_RPC_SAMPLE_FETCH_H

#include "reprise/table.h"
#include "server/core/served_table.h"

enum { RP_MAX_FETCH = 512 /* samples of a fetch */ };

typedef struct rp_sample_stream rp_sample_stream;

/* Samples that are being fetched from a table. */
struct rp_sample_fetch {
    rp_op op;
    rp_sample_options options;
    rp_post post;
    rp_timer timer;
    rp_worker *worker;
    rp_sample_stream *stream; /* NULL: its call has ended */
    rp_served_table *served;  /* a reference while the fetch is in use, as is the next field */
    rp_drawn *drawn;
    rp_sample_fetch *next;
    int64_t started_ns;
    size_t written, written_bytes; /* samples, and the bytes of their chunks */
    size_t given_bytes;            /* part of written_bytes that was returned to `drawn` */
    size_t capacity;               /* RP_MAX_FETCH, or less if it is small */
    rp_sample samples[];
};

/* Returns a fetch with room for `count` samples (<= RP_MAX_FETCH), or NULL if there is no
 * memory. `worker` and `capacity` are set; the caller sets the other fields. */
rp_sample_fetch *rp_sample_fetch_new(rp_worker *worker, size_t count);
/* Returns op.held_bytes to `drawn`, and drops both references. The samples have been released.
 */
void rp_sample_fetch_release(rp_sample_fetch *fetch);
/* Frees the fetches that the worker keeps. */
void rp_sample_fetches_free(rp_worker *worker);

#endif
