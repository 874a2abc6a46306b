/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler over any sources: the part of rp_sampler_new() that does not depend on a client. */
#ifndef RP_CLIENT_SAMPLER_SAMPLER_H
#define RP_CLIENT_SAMPLER_SAMPLER_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/sampler.h"

/* The state of the table on one shard. */
typedef struct rp_shard_state {
    double weight; /* sum of the weights of its items; 0: no samples are drawn there */
    int64_t size;  /* items */
    bool by_turns; /* its sampler is not random (fifo, lifo, heaps): shards take turns */
} rp_shard_state;

/* How a sampler opens its sources and queries its shards. */
typedef struct rp_sampler_feed {
    size_t shard_count; /* >= 1 */
    /* Opens a source of the table on a shard: called once for each stream. */
    rp_status (*open)(void *ctx, size_t shard, const rp_source_options *options,
                      const rp_source_events *events, rp_source **out, rp_error *err);
    /* Gets the states of all shards; the state of an unreachable shard is all 0. May wait.
     * Called on a worker, one call at a time, every 100 ms or 1,000 samples while samples are
     * taken. RP_NOT_FOUND (no shard that was reached has the table) ends the sampler; any other
     * failure keeps the previous states. With one shard it is not called and may be NULL. */
    rp_status (*weigh)(void *ctx, const char *table, rp_wait wait, rp_shard_state *out,
                       rp_error *err);
    /* Writes why samples of the table wait on a shard, "" if that is not known. May wait for
     * half a second. NULL: only the sources are asked. */
    void (*why)(void *ctx, const char *table, size_t shard, char *text, size_t size);
    /* Replaces the error of a table that no shard has. May wait for half a second. NULL: the
     * error is that of the source. */
    void (*missing)(void *ctx, const char *table, rp_error *err);
    void *ctx;
    size_t batch_bytes;      /* largest batch, decoded; 0: no limit */
    uint64_t seed;           /* of the choice of shards and streams */
    rp_signature *signature; /* for `checked`, or NULL. The sampler takes a reference */
} rp_sampler_feed;

/* Creates a sampler and starts prefetching. Copies feed and options. The runtime and the feed's
 * ctx must outlive the sampler and its batches. Returns owned: rp_sampler_free(). RP_INVALID,
 * RP_NO_RESOURCE, statuses of feed->open. */
RP_NODISCARD rp_status rp_sampler_open(const rp_allocator *alloc, rp_runtime *runtime,
                                       const rp_sampler_feed *feed,
                                       const rp_sampler_options *options, rp_sampler **out,
                                       rp_error *err);

#endif
