/* SPDX-License-Identifier: Apache-2.0 */
/* A source (source.h) of samples of a table in this process. No data is copied, and no thread
 * is blocked.
 *
 * Workers of the runtime draw the samples, in batches that double in size. If the rate limiter
 * delays a draw, the draw waits in the table and the worker goes on. The table may be created
 * later than the source, or be replaced. Therefore, while the source has no table, for example
 * because the table was dropped, it looks the table up by name at each draw. */
#ifndef RP_CLIENT_SAMPLER_LOCAL_SOURCE_H
#define RP_CLIENT_SAMPLER_LOCAL_SOURCE_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/store.h"

/* Opens a source, which the caller must close. The runtime and the store must outlive the
 * source. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_local_source_open(const rp_allocator *alloc, rp_runtime *runtime,
                                            rp_store *store, const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err);

#endif
