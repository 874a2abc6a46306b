/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler of a client: what the sampler itself does not know of. */
#include <string.h>

#include "client/client.h"
#include "client/sampler.h"
#include "util/error.h"

enum { SIGNATURE_MS = 30000 }; /* Reverb's datasets go on unchecked after that, too */

static rp_status open_source(void *ctx, size_t shard, const rp_source_options *options,
                             const rp_source_events *events, rp_source **out, rp_error *err)
{
    return rp_client_open_source(ctx, shard, options, events, out, err);
}

static bool is_random(rp_selector_kind kind)
{
    return kind == RP_UNIFORM || kind == RP_PRIORITIZED;
}

static rp_status weigh(void *ctx, const char *table, rp_wait wait, rp_shard_state *out,
                       rp_error *err)
{
    rp_client *client = ctx;
    rp_client_tables *tables = NULL;
    size_t found = 0;
    rp_status st = rp_client_get_tables(client, wait, &tables, err);

    if (st != RP_OK) return st;
    memset(out, 0, rp_client_shard_count(client) * sizeof *out);
    for (size_t i = 0; i < tables->count; i++) {
        const rp_client_table *t = &tables->tables[i];
        if (strcmp(t->info.name, table) != 0) continue;
        out[t->shard] = (rp_shard_state){.weight = t->total_weight,
                                         .size = t->info.size,
                                         .by_turns = !is_random(t->info.sampler.kind)};
        found++;
    }
    rp_client_tables_free(tables);
    if (found == 0) return rp_fail(err, RP_NOT_FOUND, "no server has a table \"%s\"", table);
    return RP_OK;
}

rp_status rp_sampler_new(rp_client *client, const rp_sampler_options *options, rp_sampler **out,
                         rp_error *err)
{
    rp_sampler_feed feed = {
        .shard_count = rp_client_shard_count(client),
        .open = open_source,
        .weigh = weigh,
        .ctx = client,
        .seed = client->seed,
    };
    rp_client_live *live = NULL;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st != RP_OK) return st;
    if (options->checked && options->table != NULL)
        st = rp_client_signature(client, options->table, rp_wait_ms(SIGNATURE_MS),
                                 &feed.signature, err);
    if (st == RP_NOT_FOUND) return st;
    st = rp_sampler_open(&client->alloc, live->runtime, &feed, options, out, err);
    rp_signature_unref(feed.signature);
    return st;
}
