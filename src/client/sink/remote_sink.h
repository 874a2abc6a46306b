/* SPDX-License-Identifier: Apache-2.0 */
/* A sink (sink.h) whose items go to one server, over one call of InsertStream (the stream).
 *
 * If a stream ends because the server has stopped or is stopping, the sink opens a new stream
 * and sends all unconfirmed items again, in order, under the same keys. If the server has
 * already inserted one of these items, the server only sets the item's priority again. If the
 * item has left the table in the meantime, because it was evicted or sampled as often as
 * allowed, the server inserts it a second time.
 *
 * If the server ends a stream because of an item, it does not say which item that is. The sink
 * then probes: it sends the unconfirmed items again, one message at a time, with fewer and
 * fewer items per message, until a message with a single item ends the stream. The sink rejects
 * this item. If the status is RP_NOT_FOUND, or RP_CANCELLED with a text that says that the
 * table is closed, the sink rejects all items for the same table. If a stream ends with
 * RP_DENIED, RP_UNAUTHENTICATED or RP_UNIMPLEMENTED, the sink rejects all items.
 *
 * Any thread may call put(). */
#ifndef RP_CLIENT_SINK_REMOTE_SINK_H
#define RP_CLIENT_SINK_REMOTE_SINK_H

#include "client/channel/channel.h"
#include "client/sink/sink.h"

/* Creates a sink, which the caller must close. The sink opens a stream when it gets the first
 * item. The sink borrows `channel` and `runtime`, which must outlive it, and copies `events`.
 * The callback runs on the loop thread or on a guest of the loop (net/loop.h). Must not be
 * called on the loop thread. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_remote_sink_new(rp_channel *channel, rp_runtime *runtime,
                                          const rp_allocator *alloc,
                                          const rp_sink_events *events, rp_sink **out,
                                          rp_error *err);

/* Returns the monotonic time at which the sink found that the server cannot be reached. Returns
 * 0 if the server can be reached, or if the sink has not tried to reach it. Any thread. */
int64_t rp_remote_sink_away_since(const rp_sink *sink);

/* Reserves room for `count` items, for the caller's next rp_remote_sink_put_reserved(). Until
 * then, other threads can still put items, but the loop takes none. Only one caller at a time
 * is allowed to have a reservation. Returns false if memory runs out. */
bool rp_remote_sink_reserve(rp_sink *sink, size_t count);
/* Puts all items for which room was reserved. If `count` is 0, cancels the reservation instead.
 */
void rp_remote_sink_put_reserved(rp_sink *sink, const rp_sink_item *items, size_t count);

/* Makes the sink one of several shards, for shard_sink.h. The texts of rejections then begin
 * with the server's address. `on_refused` is called on the loop thread whenever the server
 * cannot be reached and the sink has items that it has never sent. If the server is already
 * away (rp_channel_is_away()), the sink regards it as unreachable from now on, and tries to
 * connect. Must be called once, before the first item is put, and not on the loop thread. */
void rp_remote_sink_on_refused(rp_sink *sink, void (*on_refused)(void *user), void *user);
/* Like rp_remote_sink_give_back() below, but only for items that were never written to a
 * connection, so the server cannot have inserted them. Loop thread. */
size_t rp_remote_sink_give_unsent(rp_sink *sink, rp_sink_item *items, size_t capacity);

/* Moves up to `capacity` unsettled items to `items`, oldest first, and returns their number.
 * The caller then owns them, and the sink never calls on_settled for them. Returns 0 if the
 * server can be reached. Loop thread. */
size_t rp_remote_sink_give_back(rp_sink *sink, rp_sink_item *items, size_t capacity);

#endif
