/* SPDX-License-Identifier: Apache-2.0 */
/* A sink (sink.h) over several servers, which are shards of the same tables.
 *
 * Each item goes to one shard, round robin or by a hash of its key. A shard that cannot be
 * reached gets no new items if another can be reached. The unsettled items of an unreachable
 * shard (items that were neither confirmed nor rejected) are of two kinds. Items that were
 * never written to a connection cannot have been inserted, so they go to the other shards at
 * once. Items that were written have possibly been inserted, so they wait for the shard and are
 * sent again when it is back.
 *
 * If the shard stays away for `give_up_ms`, the waiting items go to the other shards under the
 * same keys. If the shard had already inserted some of these items and comes back with its
 * data, they are in two shards. Priority updates and deletes go to all shards, so both copies
 * have the same priority. An item in two shards is sampled twice as often as it should be. */
#ifndef RP_CLIENT_SINK_SHARD_SINK_H
#define RP_CLIENT_SINK_SHARD_SINK_H

#include "client/sink/remote_sink.h"
#include "reprise/client.h" /* rp_spread */

typedef struct rp_shard_options {
    rp_spread spread;
    int64_t give_up_ms; /* how long an unreachable shard keeps its items; 0: 30,000 */
    uint64_t seed;      /* of the hash; also chooses the first shard of the round robin */
} rp_shard_options;

/* Creates a sink over `count` >= 1 results of rp_remote_sink_new(), which it owns on success.
 * The caller must close *out. The new sink has no events of its own: each of the `count` inner
 * sinks calls the on_settled() with which it was opened. Must not be called on the loop thread.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shard_sink_new(rp_sink *const *sinks, size_t count,
                                         rp_runtime *runtime, const rp_allocator *alloc,
                                         const rp_shard_options *options, rp_sink **out,
                                         rp_error *err);

#endif
