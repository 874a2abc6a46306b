/* SPDX-License-Identifier: Apache-2.0 */
/* A sink over several servers that are shards of the same tables.
 *
 * Each item goes to one of them: by turns, or by a hash of its key. A shard that is known to be
 * away gets no new items as long as another can be reached; what it had not settled stays its
 * own and is sent when it is back.
 *
 * A shard that stays away longer than a bound gives its unsettled items to the others, under
 * the same keys. If it had inserted some of them and comes back with its memory, which a server
 * that died has not, these items are in two shards; priorities are set and items deleted on all
 * shards, so they stay alike, but they are sampled twice as often as they should be. */
#ifndef RP_CLIENT_SINK_SHARD_SINK_H
#define RP_CLIENT_SINK_SHARD_SINK_H

#include "client/sink/remote_sink.h"
#include "reprise/client.h" /* rp_spread */

typedef struct rp_shard_options {
    rp_spread spread;
    int64_t give_up_ms; /* until items of a shard that is away go elsewhere; 0: 30,000 */
    uint64_t seed;      /* of the hash, and of where the turns begin */
} rp_shard_options;

/* Takes the `count` (>= 1) sinks, all of rp_remote_sink_new(), which tell their events
 * themselves; on failure they are still the caller's. Not on the loop's thread. Returns owned:
 * close it. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shard_sink_new(rp_sink *const *sinks, size_t count,
                                         rp_runtime *runtime, const rp_allocator *alloc,
                                         const rp_shard_options *options, rp_sink **out,
                                         rp_error *err);

#endif
