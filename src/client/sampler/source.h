/* SPDX-License-Identifier: Apache-2.0 */
/* A source: delivers samples of one table to a sampler. The table belongs to a server, or to a
 * store of this process.
 *
 * The sampler requests a number of samples, and the source delivers at most that number. After
 * its connection breaks, the source reconnects on its own. */
#ifndef RP_CLIENT_SAMPLER_SOURCE_H
#define RP_CLIENT_SAMPLER_SOURCE_H

#include "reprise/table.h"

/* Callbacks, which are called on threads of the source, one at a time, and never during a call
 * to the source. */
typedef struct rp_source_events {
    /* Delivers `count` samples in the order in which they were drawn. The callback takes over
     * the references to their trajectories. */
    void (*on_samples)(void *user, const rp_sample *samples, size_t count);
    /* The source has failed and drops its requests for `forgotten` samples. It works again when
     * the sampler requests more samples. A request that another thread makes while on_end is
     * called is either included in `forgotten` or remains valid. `status` is RP_DEADLINE if the
     * rate limiter timed out, RP_CANCELLED if the table was closed or dropped, or RP_NOT_FOUND,
     * RP_INVALID, RP_DENIED, RP_UNAUTHENTICATED, RP_CORRUPT or RP_NO_RESOURCE. */
    void (*on_end)(void *user, size_t forgotten, rp_status status, const char *text);
    /* The server cannot be reached (`reached` is false), or can be reached again (true).
     * Requests remain valid. */
    void (*on_reach)(void *user, bool reached, const char *text);
    void *user;
} rp_source_events;

typedef struct rp_source_options {
    const char *table;               /* copied */
    int64_t rate_limiter_timeout_ms; /* negative: no timeout; 0: never wait */
    size_t request_samples;          /* the most samples of one request to a server */
    int64_t max_per_stream;          /* the most samples of one stream; 0: no limit */
    size_t item_bytes; /* limit of the decoded size of a server's sample; 0: 1 GiB */
    bool whole;        /* local tables only: deliver the samples of a request together when all
                          are drawn, instead of each as it is drawn */
} rp_source_options;

typedef struct rp_source rp_source;

typedef struct rp_source_class {
    /* Requests `count` more samples. Does not wait. Any thread may call it, even in a
     * callback. */
    void (*want)(rp_source *source, size_t count);
    /* Writes to `text` what the source waits for, or "" if that is not known. Any thread. */
    void (*why)(rp_source *source, char *text, size_t size);
    /* Frees the source. No callback runs after close() has returned. Must not be called in a
     * callback. */
    void (*close)(rp_source *source);
    /* Draws up to `count` samples on the caller's thread, without waiting for the table, and
     * returns their number. Returns 0 if requests are outstanding, or if a request would fail.
     * NULL: the source does not support this. */
    size_t (*draw)(rp_source *source, rp_sample *out, size_t count);
    /* Drops the requests for samples that have not been drawn, and returns their number.
     * Samples that have been drawn are still delivered. Waits for a running callback, and
     * therefore must not be called in one. Only one thread at a time may call it. NULL if
     * draw() is NULL. */
    size_t (*forget)(rp_source *source);
} rp_source_class;

struct rp_source {
    const rp_source_class *class; /* implementations embed rp_source as their first member */
};

#endif
