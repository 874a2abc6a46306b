/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler (reprise/sampler.h) over any sources of samples (source.h). This is the part of
 * rp_sampler_new() that does not depend on a client. */
#ifndef RP_CLIENT_SAMPLER_SAMPLER_H
#define RP_CLIENT_SAMPLER_SAMPLER_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/sampler.h"

/* The state of the table on one shard. */
typedef struct rp_shard_state {
    double weight; /* sum of the sampling weights of the items; 0: the shard gives no samples */
    int64_t size;  /* number of items */
    bool by_turns; /* the sampler is not random (fifo, lifo, heaps): shards take turns */
} rp_shard_state;

/* How a sampler opens its sources and queries its shards. */
typedef struct rp_sampler_feed {
    size_t shard_count; /* >= 1 */
    /* Opens a source of the table on a shard. Called once for each stream. */
    rp_status (*open)(void *ctx, size_t shard, const rp_source_options *options,
                      const rp_source_events *events, rp_source **out, rp_error *err);
    /* Writes the states of all shards; all fields of an unreachable shard are 0. May wait.
     * Called on a worker, one call at a time, while samples are taken. The next call follows
     * after 100 ms or 1,000 samples, or after 10 ms while no shard can give samples. If it
     * returns RP_NOT_FOUND (no shard that was reached has the table) or RP_CANCELLED (the
     * client has given up), the sampler ends. After any other failure, the sampler uses the
     * previous states. If there is only one shard, the function is not called and may be NULL.
     */
    rp_status (*weigh)(void *ctx, const char *table, rp_wait wait, rp_shard_state *out,
                       rp_error *err);
    /* Writes why samples of the table wait on a shard, or "" if that is not known. May wait
     * for a tenth of `waited_ns`, the time that the call has waited, between 50 ms and half a
     * second. NULL: only the sources report reasons. */
    void (*why)(void *ctx, const char *table, size_t shard, int64_t waited_ns, char *text,
                size_t size);
    /* Rewrites the error about a table that does not exist on any shard. May wait for half a
     * second. NULL: the source's error is used. */
    void (*missing)(void *ctx, const char *table, rp_error *err);
    /* Returns true, and the reason, if no server will ever accept this client: the sampler ends
     * with RP_UNAVAILABLE. Does not wait; called on the loop thread when a server could not be
     * reached. NULL: every server may come back. */
    bool (*is_refused)(void *ctx, char *text, size_t size);
    void *ctx;
    size_t batch_bytes;      /* limit of the size of a decoded batch; 0: no limit */
    uint64_t seed;           /* for the choice of shards and streams */
    rp_signature *signature; /* of the table, for the option `checked`; may be NULL. The sampler
                                takes a reference */
} rp_sampler_feed;

/* Creates a sampler and starts prefetching. The caller must free it with rp_sampler_free().
 * Copies `feed` and `options`. The runtime and feed->ctx must outlive the sampler and its
 * batches. RP_INVALID, RP_NO_RESOURCE, statuses of feed->open. */
RP_NODISCARD rp_status rp_sampler_open(const rp_allocator *alloc, rp_runtime *runtime,
                                       const rp_sampler_feed *feed,
                                       const rp_sampler_options *options, rp_sampler **out,
                                       rp_error *err);

#endif
