/* SPDX-License-Identifier: Apache-2.0 */
/* A sink whose items go to one server, over one InsertStream.
 *
 * A stream that ends because a server is gone, or going, is begun again, and everything that
 * was not confirmed is sent again, in order, under its keys. A server that had inserted an item
 * and could not say so any more only has its priority set once more; only a server that has
 * inserted it and let it go since (evicted, or sampled as often as it may be) inserts it again.
 *
 * A stream that is ended because of what was on it does not say which item it was. So what was
 * unconfirmed is sent again in small messages, one at a time and smaller and smaller, until one
 * message with one item ends the stream: that item is refused. RP_NOT_FOUND refuses all that
 * wait for the same table; RP_DENIED, RP_UNAUTHENTICATED and RP_UNIMPLEMENTED all that wait.
 *
 * put() may be called by any thread. */
#ifndef RP_CLIENT_SINK_REMOTE_SINK_H
#define RP_CLIENT_SINK_REMOTE_SINK_H

#include "client/channel/channel.h"
#include "client/sink/sink.h"

/* Nothing is sent before the first item. `channel` and `runtime` are borrowed and must outlive
 * it; `events` is copied, and called on the loop's thread or a guest's. Not on the loop's
 * thread. RP_NO_RESOURCE. Returns owned: close it. */
RP_NODISCARD rp_status rp_remote_sink_new(rp_channel *channel, rp_runtime *runtime,
                                          const rp_allocator *alloc,
                                          const rp_sink_events *events, rp_sink **out,
                                          rp_error *err);

/* Since when the server cannot be reached, as far as is known (monotonic); 0: it can, or nobody
 * has tried. Any thread. */
int64_t rp_remote_sink_away_since(const rp_sink *sink);

/* Makes room for `count` items that the caller puts next; others may put theirs meanwhile, but
 * the loop takes none. One caller at a time. False: no memory. */
bool rp_remote_sink_reserve(rp_sink *sink, size_t count);
/* Puts the items for which room was made, all of them or none: 0 takes it back. */
void rp_remote_sink_put_reserved(rp_sink *sink, const rp_sink_item *items, size_t count);

/* Hands out up to `capacity` unsettled items, the oldest first: they are no longer this sink's,
 * and nothing is told of them. 0 if the server can be reached. The loop's thread. */
size_t rp_remote_sink_give_back(rp_sink *sink, rp_sink_item *items, size_t capacity);

#endif
