/* SPDX-License-Identifier: Apache-2.0 */
/* A sink whose items go to one server, over one InsertStream.
 *
 * If a stream ends because the server has stopped or is stopping, the sink opens a new stream
 * and sends all unconfirmed items again, in order, under the same keys. If the server had
 * already inserted such an item, it only sets the priority again. But if the item has left the
 * table since (evicted, or sampled as often as allowed), the server inserts it a second time.
 *
 * If the server ends a stream because of an item, it does not say which. So the sink probes: it
 * sends the unconfirmed items again in small messages, one message at a time and ever smaller,
 * until a message with one item ends the stream: that item is rejected. RP_NOT_FOUND rejects
 * all items that wait for the same table. RP_DENIED, RP_UNAUTHENTICATED and RP_UNIMPLEMENTED
 * reject all items.
 *
 * put() may be called by any thread. */
#ifndef RP_CLIENT_SINK_REMOTE_SINK_H
#define RP_CLIENT_SINK_REMOTE_SINK_H

#include "client/channel/channel.h"
#include "client/sink/sink.h"

/* Creates a sink. It opens a stream when it has the first item. `channel` and `runtime` are
 * borrowed and must outlive the sink. `events` is copied; its callback runs on the loop thread
 * or on a guest of the loop. Must not be called on the loop thread. RP_NO_RESOURCE. Returns
 * owned: close it. */
RP_NODISCARD rp_status rp_remote_sink_new(rp_channel *channel, rp_runtime *runtime,
                                          const rp_allocator *alloc,
                                          const rp_sink_events *events, rp_sink **out,
                                          rp_error *err);

/* Returns the monotonic time since which the server is known to be unreachable. 0: it can be
 * reached, or the sink has not tried. Any thread. */
int64_t rp_remote_sink_away_since(const rp_sink *sink);

/* Reserves room for `count` items that the caller puts next. Until then other threads may put
 * items, but the loop takes none. One caller at a time. Returns false if there is no memory. */
bool rp_remote_sink_reserve(rp_sink *sink, size_t count);
/* Puts all items for which room was reserved, or none: a `count` of 0 cancels the
 * reservation. */
void rp_remote_sink_put_reserved(rp_sink *sink, const rp_sink_item *items, size_t count);

/* Makes the sink one of several shards: errors of items that it rejects begin with its address.
 * Calls `on_refused` on the loop thread whenever the server cannot be reached and the sink has
 * items that it has never sent. If the channel is away already, the sink counts as away from
 * now on, and finds out when the server is there. Call it once, before the first item; not on
 * the loop thread. */
void rp_remote_sink_on_refused(rp_sink *sink, void (*on_refused)(void *user), void *user);
/* As rp_remote_sink_give_back(), but only items that were never written to a connection: this
 * server cannot have them. Loop thread. */
size_t rp_remote_sink_give_unsent(rp_sink *sink, rp_sink_item *items, size_t capacity);

/* Moves up to `capacity` unsettled items to `items`, oldest first, and returns their number.
 * The sink no longer owns them and does not call on_settled for them. Returns 0 if the server
 * can be reached. Loop thread. */
size_t rp_remote_sink_give_back(rp_sink *sink, rp_sink_item *items, size_t capacity);

#endif
