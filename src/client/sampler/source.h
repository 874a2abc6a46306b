/* SPDX-License-Identifier: Apache-2.0 */
/* A source delivers samples of one table, of a server or of a store of this process, to a
 * sampler.
 *
 * The sampler requests a number of samples; the source delivers at most as many. The source
 * reconnects by itself. */
#ifndef RP_CLIENT_SAMPLER_SOURCE_H
#define RP_CLIENT_SAMPLER_SOURCE_H

#include "reprise/table.h"

/* Called on threads of the source, one at a time, never from within a call to the source. */
typedef struct rp_source_events {
    /* Delivers `count` samples in the order in which they were drawn. The receiver takes the
     * references to their trajectories. */
    void (*on_samples)(void *user, const rp_sample *samples, size_t count);
    /* The source has failed: it drops its requests for `forgotten` samples. It continues if
     * more are requested. A request that is made at the same time is either counted in
     * `forgotten` or still stands.
     * RP_DEADLINE (the rate limiter timed out), RP_NOT_FOUND, RP_INVALID, RP_DENIED,
     * RP_UNAUTHENTICATED, RP_CANCELLED (the table was closed or dropped), RP_CORRUPT,
     * RP_NO_RESOURCE. */
    void (*on_end)(void *user, size_t forgotten, rp_status status, const char *text);
    /* The server cannot be reached (`reached` is false), or can be again (true). Requests still
     * stand. */
    void (*on_reach)(void *user, bool reached, const char *text);
    void *user;
} rp_source_events;

typedef struct rp_source_options {
    const char *table;               /* copied */
    int64_t rate_limiter_timeout_ms; /* negative: none; 0: do not wait at all */
    size_t request_samples;          /* most samples of one request to a server */
    int64_t max_per_stream;          /* most samples of one stream; 0: no limit */
    size_t item_bytes;               /* largest sample of a server, decoded; 0: 1 GiB */
    bool whole;                      /* deliver all samples that were requested at once, not as
                                        they are drawn; not of a server */
} rp_source_options;

typedef struct rp_source rp_source;

typedef struct rp_source_class {
    /* Requests `count` more samples. Any thread, also from a callback; does not wait. */
    void (*want)(rp_source *source, size_t count);
    /* Writes to `text` what the source waits for, "" if that is not known. Any thread. */
    void (*why)(rp_source *source, char *text, size_t size);
    /* Frees the source. No callback runs after it returns. Must not be called from a callback.
     */
    void (*close)(rp_source *source);
    /* Draws up to `count` samples on this thread, without waiting for the table, and returns
     * their number: 0 if the source still has a request, or if a request would fail. NULL: the
     * source cannot do this. */
    size_t (*draw)(rp_source *source, rp_sample *out, size_t count);
    /* Drops the requests for samples that have not been drawn, and returns their number. Those
     * that have been drawn are delivered. Waits for a callback that runs: must not be called
     * from one. One thread at a time. NULL if `draw` is. */
    size_t (*forget)(rp_source *source);
} rp_source_class;

struct rp_source {
    const rp_source_class *class; /* embed as the first member */
};

#endif
