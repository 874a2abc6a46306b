/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler over any sources: what is below rp_sampler_new(). */
#ifndef RP_CLIENT_SAMPLER_SAMPLER_H
#define RP_CLIENT_SAMPLER_SAMPLER_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/sampler.h"

/* What is known of the table on one shard. */
typedef struct rp_shard_state {
    double weight; /* of all its items, as its sampler weighs them; 0: nothing is drawn there */
    int64_t size;  /* items */
    bool by_turns; /* its sampler is not random (fifo, lifo, heaps): shards take turns */
} rp_shard_state;

/* Where a sampler gets its sources, and what it is told of the shards. */
typedef struct rp_sampler_feed {
    size_t shard_count; /* >= 1 */
    /* Makes a source of the table on a shard, as often as the sampler wants streams. */
    rp_status (*open)(void *ctx, size_t shard, const rp_source_options *options,
                      const rp_source_events *events, rp_source **out, rp_error *err);
    /* Fills in the states of all shards; those that cannot be reached are all 0. It may wait
     * and is called on a working thread, one call at a time, every 100 ms or 1,000 samples
     * while samples are taken. RP_NOT_FOUND (no shard that was reached has the table) ends the
     * sampler; any other failure leaves it with the states it had. Not called with one shard;
     * may be NULL then. */
    rp_status (*weigh)(void *ctx, const char *table, rp_wait wait, rp_shard_state *out,
                       rp_error *err);
    void *ctx;
    size_t batch_bytes;      /* of a batch, decoded; 0: no limit */
    uint64_t seed;           /* of the choice of shards and streams */
    rp_signature *signature; /* to check samples with, or NULL. The sampler takes a reference */
} rp_sampler_feed;

/* Begins to fetch. Copies feed and options. The runtime, and what the feed's functions use,
 * must outlive the sampler and its batches. RP_INVALID, RP_NO_RESOURCE, what `open` answers.
 * Returns owned: rp_sampler_free(). */
RP_NODISCARD rp_status rp_sampler_open(const rp_allocator *alloc, rp_runtime *runtime,
                                       const rp_sampler_feed *feed,
                                       const rp_sampler_options *options, rp_sampler **out,
                                       rp_error *err);

#endif
