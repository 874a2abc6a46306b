/* SPDX-License-Identifier: Apache-2.0 */
/* Where clients, sinks, sources, writers and samplers meet. Samplers of several shards are not
 * joined yet. */
#include "client/client.h"
#include "client/local_sink.h"
#include "client/local_source.h"
#include "client/remote_sink.h"
#include "client/remote_source.h"
#include "client/sampler.h"
#include "client/shard_sink.h"
#include "client/trajectory_writer.h"
#include "util/clock.h"
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
    sinks = rp_alloc_array(&client->alloc, count, sizeof(rp_sink *));
    if (sinks == NULL) return rp_fail_memory(err, count * sizeof(rp_sink *));
    while (made < count && st == RP_OK) {
        st = rp_remote_sink_new(live->channels[made], live->runtime, &client->alloc, events,
                                &sinks[made], err);
        if (st == RP_OK) made++;
    }
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
    return rp_remote_source_new(live->channels[shard], live->runtime, &client->alloc, options,
                                events, out, err);
}

static rp_status find_signature(void *ctx, const char *table, rp_wait wait, rp_signature **out,
                                rp_error *err)
{
    return rp_client_signature(ctx, table, wait, out, err);
}

rp_status rp_trajectory_writer_new(rp_client *client,
                                   const rp_trajectory_writer_options *options, rp_wait wait,
                                   rp_trajectory_writer **out, rp_error *err)
{
    rp_writer_parts parts = {
        .alloc = &client->alloc,
        .seed = 0,
        .find = options->unchecked ? NULL : find_signature,
        .find_ctx = client,
    };
    rp_trajectory_writer *w = NULL;
    rp_sink_events events;
    rp_sink *sink = NULL;
    rp_status st = rp_runtime_get(&parts.runtime, err);

    (void)wait;
    if (st != RP_OK) return st;
    parts.seed = rp_system_seed();
    st = rp_trajectory_writer_open(&parts, options, &w, err);
    if (st != RP_OK) {
        rp_runtime_put(parts.runtime);
        return st;
    }
    events = rp_trajectory_writer_events(w);
    st = rp_client_open_sink(client, &events, &sink, err);
    if (st != RP_OK) {
        rp_trajectory_writer_free(w);
        return st;
    }
    rp_trajectory_writer_attach(w, sink);
    *out = w;
    return RP_OK;
}

static rp_status open_source(void *ctx, size_t shard, const rp_source_options *options,
                             const rp_source_events *events, rp_source **out, rp_error *err)
{
    return rp_client_open_source(ctx, shard, options, events, out, err);
}

rp_status rp_sampler_new(rp_client *client, const rp_sampler_options *options, rp_sampler **out,
                         rp_error *err)
{
    rp_sampler_feed feed = {
        .shard_count = rp_client_shard_count(client),
        .open = open_source,
        .ctx = client,
        .seed = client->seed,
    };
    rp_client_live *live = NULL;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st != RP_OK) return st;
    if (feed.shard_count > 1)
        return rp_fail(err, RP_UNIMPLEMENTED, "samples of several servers at once");
    return rp_sampler_open(&client->alloc, live->runtime, &feed, options, out, err);
}
