/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the sinks and sources of a client: local ones for a store, otherwise remote ones. */
#include <assert.h>

#include "client/client.h"
#include "client/sampler/local_source.h"
#include "client/sampler/remote_source.h"
#include "client/sink/local_sink.h"
#include "client/sink/remote_sink.h"
#include "client/sink/shard_sink.h"
#include "util/error.h"
#include "util/mem.h"

rp_status rp_client_open_sink(rp_client *client, const rp_sink_events *events, rp_sink **out,
                              rp_error *err)
{
    rp_shard_options options = {.spread = client->options.spread, .seed = client->seed};
    rp_client_live *live = NULL;
    rp_sink **sinks;
    size_t count, made = 0;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st != RP_OK) return st;
    if (client->store != NULL)
        return rp_local_sink_open(&client->alloc, client->store, live->runtime, events, out,
                                  err);
    count = live->channel_count;
    assert(count >= 1);
    sinks = rp_alloc_array(&client->alloc, count, sizeof(rp_sink *));
    if (sinks == NULL) return rp_fail_memory(err, count * sizeof(rp_sink *));
    while (made < count && st == RP_OK) {
        st = rp_remote_sink_new(live->channels[made], live->runtime, &client->alloc, events,
                                &sinks[made], err);
        if (st == RP_OK) made++;
    }
    assert(st != RP_OK || made == count);
    if (st == RP_OK && count == 1)
        *out = sinks[0];
    else if (st == RP_OK)
        st = rp_shard_sink_new(sinks, count, live->runtime, &client->alloc, &options, out, err);
    while (st != RP_OK && made > 0) {
        made--;
        sinks[made]->class->close(sinks[made]);
    }
    rp_release(&client->alloc, sinks, count * sizeof(rp_sink *));
    return st;
}

rp_status rp_client_open_source(rp_client *client, size_t shard,
                                const rp_source_options *options,
                                const rp_source_events *events, rp_source **out, rp_error *err)
{
    rp_client_live *live = NULL;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st != RP_OK) return st;
    if (client->store != NULL)
        return rp_local_source_open(&client->alloc, live->runtime, client->store, options,
                                    events, out, err);
    assert(shard < live->channel_count);
    return rp_remote_source_new(live->channels[shard], live->runtime, &client->alloc, options,
                                events, out, err);
}
