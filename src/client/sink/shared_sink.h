/* SPDX-License-Identifier: Apache-2.0 */
/* Lets several writers share one sink: many environments use one stream to a server. */
#ifndef RP_CLIENT_SINK_SHARED_SINK_H
#define RP_CLIENT_SINK_SHARED_SINK_H

#include "client/sink/sink.h"

typedef struct rp_shared_sink rp_shared_sink;

/* Creates an object that provides `count` sinks over one inner sink. Open the inner sink with
 * the events of rp_shared_sink_events(), then attach it. rp_shared_sink_give() gives out the
 * sinks, each of which is closed separately. Closing the last one closes the inner sink and
 * frees the object. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_sink_new(const rp_allocator *alloc, size_t count,
                                          rp_shared_sink **out, rp_error *err);
rp_sink_events rp_shared_sink_events(rp_shared_sink *shared);
void rp_shared_sink_attach(rp_shared_sink *shared, rp_sink *sink); /* takes it */
/* Returns the next sink, for a writer with these events. Returns owned: close it. */
rp_sink *rp_shared_sink_give(rp_shared_sink *shared, const rp_sink_events *events);
/* Drops the sinks that were not given out. If none of the others is open, frees the object. */
void rp_shared_sink_release(rp_shared_sink *shared);

#endif
