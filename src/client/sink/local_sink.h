/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that inserts into a store of this process. Data is not copied: tables get references
 * to the trajectories. */
#ifndef RP_CLIENT_SINK_LOCAL_SINK_H
#define RP_CLIENT_SINK_LOCAL_SINK_H

#include "client/channel/runtime.h"
#include "client/sink/sink.h"
#include "reprise/store.h"

/* Store and runtime must outlive the sink. An item that the rate limiter delays waits in its
 * table without blocking a thread; later items for the same table wait behind it. Items are
 * rejected with RP_NOT_FOUND (the table does not exist or was dropped), RP_CANCELLED (the table
 * is closed), or the RP_INVALID or RP_NO_RESOURCE of the table. Returns owned: close it.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_local_sink_open(const rp_allocator *alloc, rp_store *store,
                                          rp_runtime *runtime, const rp_sink_events *events,
                                          rp_sink **out, rp_error *err);

#endif
