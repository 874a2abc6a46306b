/* SPDX-License-Identifier: Apache-2.0 */
/* A source of samples of one table of one server, over SampleStreams.
 *
 * A wish becomes requests of up to `request_samples`, two of them ahead of what has come. If
 * the server goes away the wish stays, and what had been asked for and had not come is asked
 * for again; samples that were on their way are lost, as they are in Reverb. A stream that is
 * cancelled by the server is tried once more, as servers that are going down do that; the
 * second time the wish ends. */
#ifndef RP_CLIENT_SAMPLER_REMOTE_SOURCE_H
#define RP_CLIENT_SAMPLER_REMOTE_SOURCE_H

#include "client/channel/channel.h"
#include "client/sampler/source.h"

/* `channel` and `runtime` are borrowed and must outlive it; `options` and `events` are copied,
 * the latter called on the loop's thread. Not on the loop's thread. RP_NO_RESOURCE. Returns
 * owned: close it. */
RP_NODISCARD rp_status rp_remote_source_new(rp_channel *channel, rp_runtime *runtime,
                                            const rp_allocator *alloc,
                                            const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err);

#endif
