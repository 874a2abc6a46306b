/* SPDX-License-Identifier: Apache-2.0 */
/* A source of samples of one table of one server. It uses one SampleStream at a time.
 *
 * A request to the server asks for up to `request_samples` of the samples that the sampler
 * wants. At most two requests are outstanding. If the connection breaks, the source makes new
 * requests for the samples that have not arrived; samples that were in transit are lost, as
 * they are in Reverb. If the server cancels a stream, the source opens another one, because
 * servers cancel streams when they stop; if that one is cancelled too, the source reports the
 * end (on_end). */
#ifndef RP_CLIENT_SAMPLER_REMOTE_SOURCE_H
#define RP_CLIENT_SAMPLER_REMOTE_SOURCE_H

#include "client/channel/channel.h"
#include "client/sampler/source.h"

/* `channel` and `runtime` are borrowed and must outlive the source. `options` and `events` are
 * copied; the callbacks of `events` run on the loop thread. Must not be called on the loop
 * thread. RP_NO_RESOURCE. Returns owned: close it. */
RP_NODISCARD rp_status rp_remote_source_new(rp_channel *channel, rp_runtime *runtime,
                                            const rp_allocator *alloc,
                                            const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err);

#endif
