/* SPDX-License-Identifier: Apache-2.0 */
/* A source of samples of a table in this process, without a copy and without a blocked thread.
 *
 * Workers of the runtime draw the samples, in batches that double in size. If the rate limiter
 * refuses, the draw is parked in the table. The source looks up the table at each draw until it
 * finds the table, and again after the table was dropped: a table may be created later than its
 * source, or be replaced. */
#ifndef RP_CLIENT_SAMPLER_LOCAL_SOURCE_H
#define RP_CLIENT_SAMPLER_LOCAL_SOURCE_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/store.h"

/* Runtime and store must outlive the source. RP_INVALID, RP_NO_RESOURCE. Returns owned: close
 * it. */
RP_NODISCARD rp_status rp_local_source_open(const rp_allocator *alloc, rp_runtime *runtime,
                                            rp_store *store, const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err);

#endif
