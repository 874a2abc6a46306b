/* SPDX-License-Identifier: Apache-2.0 */
/* One sink for several writers: a stream to a server that many environments share. */
#ifndef RP_CLIENT_SINK_SHARED_SINK_H
#define RP_CLIENT_SINK_SHARED_SINK_H

#include "client/sink/sink.h"

typedef struct rp_shared_sink rp_shared_sink;

/* Makes `count` sinks of one. Open the one with the events of the second, then attach it. The
 * sinks are given out and then closed one by one; with the last of them all is freed, and the
 * one that was attached is closed. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_shared_sink_new(const rp_allocator *alloc, size_t count,
                                          rp_shared_sink **out, rp_error *err);
rp_sink_events rp_shared_sink_events(rp_shared_sink *shared);
void rp_shared_sink_attach(rp_shared_sink *shared, rp_sink *sink); /* takes it */
/* The next sink, for a writer with these events. Returns owned: close it. */
rp_sink *rp_shared_sink_give(rp_shared_sink *shared, const rp_sink_events *events);
/* Gives back those that were never given out; frees all if no other is left. */
void rp_shared_sink_release(rp_shared_sink *shared);

#endif
