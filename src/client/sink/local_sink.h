/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that is a store of this process. Data is not copied: tables get the trajectories. */
#ifndef RP_CLIENT_SINK_LOCAL_SINK_H
#define RP_CLIENT_SINK_LOCAL_SINK_H

#include "client/channel/runtime.h"
#include "client/sink/sink.h"
#include "reprise/store.h"

/* Store and runtime must outlive it. An item that a rate limiter holds up waits in its table
 * without a thread; those behind it that go to the same table wait behind it. Items are refused
 * for good with RP_NOT_FOUND (no such table, or no more), RP_CANCELLED (it is closed),
 * RP_INVALID and RP_NO_RESOURCE (what the table says, also if it lacks memory). Returns owned:
 * close it. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_local_sink_open(const rp_allocator *alloc, rp_store *store,
                                          rp_runtime *runtime, const rp_sink_events *events,
                                          rp_sink **out, rp_error *err);

#endif
