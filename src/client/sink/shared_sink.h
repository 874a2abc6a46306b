/* SPDX-License-Identifier: Apache-2.0 */
/* Lets several writers share one sink (sink.h), so that the writers of many environments use a
 * single stream to a server. */
#ifndef RP_CLIENT_SINK_SHARED_SINK_H
#define RP_CLIENT_SINK_SHARED_SINK_H

#include "client/sink/sink.h"

typedef struct rp_shared_sink rp_shared_sink;

/* Creates an object that provides `count` sinks over one inner sink. The caller must open the
 * inner sink with the events of rp_shared_sink_events(), and then attach it.
 * rp_shared_sink_give() returns the `count` sinks one by one; each must be closed separately.
 * When the last of them is closed, the inner sink is closed and the object freed.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_sink_new(const rp_allocator *alloc, size_t count,
                                          rp_shared_sink **out, rp_error *err);
rp_sink_events rp_shared_sink_events(rp_shared_sink *shared);
void rp_shared_sink_attach(rp_shared_sink *shared,
                           rp_sink *sink); /* takes ownership of `sink` */
/* Returns the next sink, for a writer with these events. The caller must close it. */
rp_sink *rp_shared_sink_give(rp_shared_sink *shared, const rp_sink_events *events);
/* Releases the sinks that rp_shared_sink_give() has not returned yet. If all other sinks are
 * closed, also closes the inner sink and frees the object. */
void rp_shared_sink_release(rp_shared_sink *shared);

#endif
