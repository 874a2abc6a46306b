/* SPDX-License-Identifier: Apache-2.0 */
/* Opens samplers: a sampler has a source for each shard of its client. */
#include <assert.h>
#include <string.h>

#include "client/client.h"
#include "client/sampler/sampler.h"
#include "util/error.h"

enum { SIGNATURE_WAIT_MS = 30000 };

static rp_status open_source(void *ctx, size_t shard, const rp_source_options *options,
                             const rp_source_events *events, rp_source **out, rp_error *err)
{
    const rp_client *client = ctx;
    rp_source_options own = *options;

    own.item_bytes = client->options.item_bytes;
    return rp_client_open_source(ctx, shard, &own, events, out, err);
}

static bool is_random(rp_selector_kind kind)
{
    return kind == RP_UNIFORM || kind == RP_PRIORITIZED;
}

/* Gets the weight and size of the table on each shard. */
static rp_status weigh(void *ctx, const char *table, rp_wait wait, rp_shard_state *out,
                       rp_error *err)
{
    rp_client_tables *tables = NULL;
    rp_status st = rp_client_get_tables(ctx, wait, &tables, err);
    bool found = false;

    if (st == RP_CANCELLED && !rp_client_has_given_up(ctx)) return RP_UNAVAILABLE;
    if (st != RP_OK) return st;
    for (size_t i = 0; i < tables->count; i++) {
        const rp_client_table *t = &tables->tables[i];

        if (strcmp(t->info.name, table) != 0) continue;
        found = true;
        assert(t->shard < rp_client_shard_count(ctx));
        out[t->shard] = (rp_shard_state){.weight = t->total_weight,
                                         .size = t->info.size,
                                         .by_turns = !is_random(t->info.sampler.kind)};
    }
    if (!found) st = rp_client_no_table(tables, table, err);
    rp_client_tables_free(tables);
    return st;
}

static void missing(void *ctx, const char *table, rp_error *err)
{
    (void)rp_client_name_tables(ctx, table, rp_wait_forever(), RP_NOT_FOUND, err);
}

static void why(void *ctx, const char *table, size_t shard, int64_t waited_ns, char *text,
                size_t size)
{
    const rp_why_question question = {
        .table = table, .is_insert = false, .shard = shard, .waited_ns = waited_ns};

    rp_client_ask_why(ctx, &question, text, size);
}

static bool responds(void *ctx, const char *table, size_t shard, int64_t since_ns, rp_wait wait,
                     char *text, size_t size)
{
    return rp_client_responds(ctx, table, shard, since_ns, wait, text, size);
}

static bool is_refused(void *ctx, char *text, size_t size)
{
    return rp_client_is_refused(ctx, text, size);
}

rp_status rp_sampler_new(rp_client *client, const rp_sampler_options *options, rp_sampler **out,
                         rp_error *err)
{
    rp_sampler_feed feed = {.open = open_source,
                            .weigh = weigh,
                            .why = why,
                            .responds =
                                client == NULL || client->store != NULL ? NULL : responds,
                            .missing = missing,
                            .is_refused = is_refused,
                            .ctx = client};
    rp_client_live *live;
    rp_status st;

    if (client == NULL) return rp_fail(err, RP_INVALID, "sampler: no client");
    if (options == NULL) return rp_fail(err, RP_INVALID, "sampler: no options");
    feed.shard_count = rp_client_shard_count(client);
    feed.batch_bytes = client->options.batch_bytes;
    st = rp_client_get_live(client, &live, err);
    if (st != RP_OK) return st;
    feed.seed = live->seed;
    if (options->checked && options->table != NULL) {
        rp_wait wait = rp_wait_ms(SIGNATURE_WAIT_MS);

        st = rp_client_signature_again(client, options->table, wait, &feed.signature, err);
        if (st == RP_NOT_FOUND || st == RP_NO_RESOURCE) return st;
        if (st != RP_OK) feed.signature = NULL; /* samples are not checked, as in Reverb */
    }
    st = rp_sampler_open(&client->alloc, live->runtime, &feed, options, out, err);
    rp_signature_unref(feed.signature);
    return st;
}
