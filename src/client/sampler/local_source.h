/* SPDX-License-Identifier: Apache-2.0 */
/* A source of samples of a table in this process: no copy, no thread that sleeps.
 *
 * Draws on the runtime's working threads, as a parked operation where the rate limiter refuses,
 * in batches that double. The table is looked for when samples are wanted and it is not at
 * hand: it may be made later, or dropped and made again. */
#ifndef RP_CLIENT_SAMPLER_LOCAL_SOURCE_H
#define RP_CLIENT_SAMPLER_LOCAL_SOURCE_H

#include "client/channel/runtime.h"
#include "client/sampler/source.h"
#include "reprise/store.h"

/* Runtime and store must outlive it. RP_INVALID, RP_NO_RESOURCE. Returns owned: closing it
 * frees it. */
RP_NODISCARD rp_status rp_local_source_open(const rp_allocator *alloc, rp_runtime *runtime,
                                            rp_store *store, const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err);

#endif
