/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler (reprise/sampler.h) over any sources of samples (source.h). rp_sampler_new() opens
 * it for a client; this file does not depend on a client. */
#ifndef RP_CLIENT_SAMPLER_SAMPLER_H
#define RP_CLIENT_SAMPLER_SAMPLER_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/sampler.h"

/* The state of the table on one shard. A shard is a server; a store of this process is one
 * shard. */
typedef struct rp_shard_state {
    double weight; /* sum of the sampling weights of the items; 0: the shard gives no samples */
    int64_t size;  /* number of items */
    bool by_turns; /* the table's order of sampling is not random (fifo, lifo, heaps): shards
                      take turns */
} rp_shard_state;

/* How a sampler opens its sources and queries its shards. */
typedef struct rp_sampler_feed {
    size_t shard_count; /* >= 1 */
    /* Opens a source of the table on a shard. Called once for each stream. */
    rp_status (*open)(void *ctx, size_t shard, const rp_source_options *options,
                      const rp_source_events *events, rp_source **out, rp_error *err);
    /* Writes the states of all shards; all fields of an unreachable shard are 0. Is allowed to
     * block. Called on a worker of the runtime, one call at a time, while callers take samples:
     * again after 100 ms or 1,000 samples, or after 10 ms while no shard can give samples. If
     * it returns RP_NOT_FOUND (no shard that was reached has the table) or RP_CANCELLED (the
     * client has given up), the sampler ends. After any other failure, the sampler uses the
     * previous states. If there is only one shard, the function is not called and may be NULL.
     */
    rp_status (*weigh)(void *ctx, const char *table, rp_wait wait, rp_shard_state *out,
                       rp_error *err);
    /* Writes why samples of the table wait on a shard, or "" if that is not known. `waited_ns`
     * is the time that the call has waited so far. The function is allowed to block for a tenth
     * of this time, but at least 50 ms and at most 500 ms. NULL: only the sources report
     * reasons. */
    void (*why)(void *ctx, const char *table, size_t shard, int64_t waited_ns, char *text,
                size_t size);
    /* Asks a shard whether it responds. Returns false, and writes why, if the shard has sent
     * nothing since since_ns. Is allowed to block for half a second, but not longer than
     * `wait`. If `wait` is cancelled, returns true. NULL: shards always respond. */
    bool (*responds)(void *ctx, const char *table, size_t shard, int64_t since_ns, rp_wait wait,
                     char *why, size_t size);
    /* Rewrites the error about a table that does not exist on any shard. The function is
     * allowed to block for half a second. NULL: the source's error is used. */
    void (*missing)(void *ctx, const char *table, rp_error *err);
    /* Returns true, and writes the reason to `text`, if no server will ever accept this client.
     * The sampler then ends with RP_UNAVAILABLE. Does not wait; called on the loop thread when
     * a server could not be reached. NULL: the sampler never ends for this reason. */
    bool (*is_refused)(void *ctx, char *text, size_t size);
    void *ctx;
    size_t batch_bytes;      /* limit of the size of a decoded batch; 0: no limit */
    uint64_t seed;           /* for the choice of shards and streams */
    rp_signature *signature; /* signature of the table, for the option `checked`; may be NULL.
                                The sampler takes a reference */
} rp_sampler_feed;

/* Creates a sampler and starts prefetching. The caller must free it with rp_sampler_free().
 * Copies `feed` and `options`. The runtime and feed->ctx must outlive the sampler and its
 * batches. Errors: RP_INVALID, RP_NO_RESOURCE, statuses of feed->open. */
RP_NODISCARD rp_status rp_sampler_open(const rp_allocator *alloc, rp_runtime *runtime,
                                       const rp_sampler_feed *feed,
                                       const rp_sampler_options *options, rp_sampler **out,
                                       rp_error *err);

#endif
