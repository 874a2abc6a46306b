/* SPDX-License-Identifier: Apache-2.0 */
/* A sink (sink.h) that inserts items into a store of this process. No data is copied: the
 * tables get references to the trajectories. */
#ifndef RP_CLIENT_SINK_LOCAL_SINK_H
#define RP_CLIENT_SINK_LOCAL_SINK_H

#include "client/channel/runtime.h"
#include "client/sink/sink.h"
#include "reprise/store.h"

/* Opens a sink, which the caller must close. The store and the runtime must outlive the sink.
 * Errors: RP_NO_RESOURCE.
 *
 * If the rate limiter delays an item, the item waits in its table without blocking a thread,
 * and later items for the same table wait behind it. Items are rejected with RP_NOT_FOUND if
 * the table does not exist or was dropped, with RP_CANCELLED if the table is closed, or with
 * RP_INVALID or RP_NO_RESOURCE if the table reports this status. */
RP_NODISCARD rp_status rp_local_sink_open(const rp_allocator *alloc, rp_store *store,
                                          rp_runtime *runtime, const rp_sink_events *events,
                                          rp_sink **out, rp_error *err);

#endif
