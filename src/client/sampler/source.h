/* SPDX-License-Identifier: Apache-2.0 */
/* Where a sampler's samples come from: one table of one server, or of a store of this process.
 *
 * The sampler says how many samples more it wants; the source delivers at most as many. It
 * reconnects by itself. */
#ifndef RP_CLIENT_SAMPLER_SOURCE_H
#define RP_CLIENT_SAMPLER_SOURCE_H

#include "reprise/table.h"

/* Called on the source's threads, never from within a call to the source, one at a time. */
typedef struct rp_source_events {
    /* `count` samples, in the order drawn; the receiver takes the references to their
     * trajectories. */
    void (*on_samples)(void *user, const rp_sample *samples, size_t count);
    /* No more will come of what is wanted: RP_DEADLINE (the rate limiter's timeout),
     * RP_NOT_FOUND, RP_INVALID, RP_DENIED, RP_UNAUTHENTICATED, RP_CANCELLED (the table was
     * closed or dropped), RP_CORRUPT, RP_NO_RESOURCE. The wish is forgotten; asking again tries
     * again. `forgotten` is how many samples of it: a wish that is made while this is on its
     * way is either among them, or stands. */
    void (*on_end)(void *user, size_t forgotten, rp_status status, const char *text);
    /* The server cannot be reached (false), or again (true). A wish stays a wish. */
    void (*on_reach)(void *user, bool reached, const char *text);
    void *user;
} rp_source_events;

typedef struct rp_source_options {
    const char *table;               /* copied */
    int64_t rate_limiter_timeout_ms; /* negative: none; 0: do not wait at all */
    size_t request_samples;          /* asked for at once, at most */
    int64_t max_per_stream;          /* 0: no limit */
    size_t item_bytes;               /* of a server's sample, decoded; 0: 1 GiB */
} rp_source_options;

typedef struct rp_source rp_source;

typedef struct rp_source_class {
    /* Wants `count` samples more. Any thread, also from a callback; does not wait. */
    void (*want)(rp_source *source, size_t count);
    void (*why)(rp_source *source, char *text, size_t size);
    /* Frees it; no events once it returns. Not from a callback. */
    void (*close)(rp_source *source);
} rp_source_class;

struct rp_source {
    const rp_source_class *class; /* first in whatever implements it */
};

#endif
