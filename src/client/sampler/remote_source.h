/* SPDX-License-Identifier: Apache-2.0 */
/* A source (source.h) of samples of one table of one server. The source uses one call of
 * SampleStream (a stream) at a time.
 *
 * The sampler requests samples from the source. The source sends requests for these samples to
 * the server, each for up to `request_samples` samples. At most two requests are outstanding.
 * If the connection breaks, the source makes new requests for the samples that have not
 * arrived. Samples that the server had sent and the source had not received are lost, as in
 * Reverb. Servers cancel streams when they stop, so if the server cancels a stream, the source
 * opens another one. If the server cancels the new stream as well, the source calls on_end. */
#ifndef RP_CLIENT_SAMPLER_REMOTE_SOURCE_H
#define RP_CLIENT_SAMPLER_REMOTE_SOURCE_H

#include "client/channel/channel.h"
#include "client/sampler/source.h"

/* Creates a source, which the caller must close. The source borrows `channel` and `runtime`,
 * which must outlive it, and copies `options` and `events`. The callbacks of `events` run on
 * the loop thread. Must not be called on the loop thread. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_remote_source_new(rp_channel *channel, rp_runtime *runtime,
                                            const rp_allocator *alloc,
                                            const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err);

#endif
