/* SPDX-License-Identifier: Apache-2.0 */
/* A source (source.h) of samples of a table in this process. No data is copied, and no thread
 * is blocked.
 *
 * Workers of the runtime draw the samples, in batches that double in size. If the rate limiter
 * delays a draw, the draw waits in a queue of the table, and the worker does other jobs. The
 * source can be opened before the table exists, and can exist longer than the table. While the
 * source has no table, for example because the table was dropped, each draw looks the table up
 * by name. */
#ifndef RP_CLIENT_SAMPLER_LOCAL_SOURCE_H
#define RP_CLIENT_SAMPLER_LOCAL_SOURCE_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/store.h"

/* Opens a source, which the caller must close. The runtime and the store must outlive the
 * source. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_local_source_open(const rp_allocator *alloc, rp_runtime *runtime,
                                            rp_store *store, const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err);

#endif
