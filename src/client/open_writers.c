/* SPDX-License-Identifier: Apache-2.0 */
/* Opens writers: gives them a sink over the shards, a seed and a way to find signatures. */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "client/client.h"
#include "client/sink/shared_sink.h"
#include "client/writer/batch_writer.h"
#include "client/writer/step_writer.h"
#include "client/writer/structured_writer.h"
#include "util/error.h"
#include "util/mem.h"

/* Returns the seed of a new writer. Writers must not draw the same keys, nor the keys of
 * clients whose seeds are consecutive. So a mixed seed is incremented, not the seed itself.
 * Relaxed order is enough: the values only have to differ. */
static uint64_t next_seed(const rp_client_live *live)
{
    static atomic_uint_fast64_t writers;
    uint64_t state = live->seed;

    state = rp_splitmix64(&state);
    state += atomic_fetch_add_explicit(&writers, 1, memory_order_relaxed);
    return rp_splitmix64(&state);
}

/* Signatures need the role read only. Names the role that the items of a writer need. */
static void name_role(rp_error *err)
{
    static const char lesser[] = "needs the role read";
    char *at = err != NULL ? strstr(err->text, lesser) : NULL;
    rp_error was;

    if (at == NULL) return;
    was = *err;
    *at = '\0';
    (void)rp_fail(err, was.code, "%.*sneeds the role write%s", (int)(at - err->text), was.text,
                  was.text + (at - err->text) + sizeof lesser - 1);
}

/* A server that is away is not waited for. RP_UNAVAILABLE: it will not accept this client
 * later either. */
static rp_status find_signature(void *ctx, const char *table, rp_wait wait, rp_signature **out,
                                rp_error *err)
{
    char refusal[RP_ERROR_TEXT_BYTES];
    rp_status st = rp_client_signature_soon(ctx, table, wait, out, err);

    if (st == RP_UNAUTHENTICATED) name_role(err);
    if (st != RP_UNAVAILABLE && st != RP_DEADLINE) return st;
    if (rp_client_is_refused(ctx, refusal, sizeof refusal))
        return rp_fail(err, RP_UNAVAILABLE, "%s", refusal);
    return RP_DEADLINE;
}

static void forget_signature(void *ctx, const char *table)
{
    rp_client_forget_signature(ctx, table);
}

static void why(void *ctx, const char *table, int64_t waited_ns, char *text, size_t size)
{
    const rp_why_question question = {
        .table = table, .is_insert = true, .shard = RP_ANY_SHARD, .waited_ns = waited_ns};

    rp_client_ask_why(ctx, &question, text, size);
}

static void missing(void *ctx, const char *table, rp_wait wait, rp_error *err)
{
    (void)rp_client_name_tables(ctx, table, wait, RP_NOT_FOUND, err);
}

static void away(void *ctx, char *text, size_t size)
{
    size_t count = rp_client_shard_count(ctx);

    text[0] = '\0';
    for (size_t i = count; i > 0; i--) { /* the text of the first one stays */
        (void)rp_client_why_away(ctx, i - 1, text, size);
        if (text[0] == '\0') return;
    }
}

static rp_status no_client(const char *kind, rp_error *err)
{
    return rp_fail(err, RP_INVALID, "%s writer: no client", kind);
}

/* Opens a trajectory writer without a sink. */
static rp_status open_bare(rp_client *client, const rp_trajectory_writer_options *options,
                           size_t max_in_flight, rp_trajectory_writer **out, rp_error *err)
{
    rp_writer_parts parts = {.alloc = &client->alloc,
                             .find = find_signature,
                             .forget = forget_signature,
                             .why = why,
                             .missing = missing,
                             .away = away,
                             .find_ctx = client,
                             .max_in_flight = max_in_flight};
    rp_client_live *live;
    rp_status st = rp_client_get_live(client, &live, err);

    if (st == RP_OK) st = rp_runtime_get(&parts.runtime, err);
    if (st != RP_OK) return st;
    parts.seed = next_seed(live);
    st = rp_trajectory_writer_open(&parts, options, out, err);
    if (st != RP_OK) rp_runtime_put(parts.runtime);
    return st;
}

/* Fetches the signatures in advance, so that the first item does not wait for them. A failure
 * is ignored: the item asks for them again. */
static void fetch_signatures(rp_client *client, rp_wait wait)
{
    rp_signature *signature = NULL;

    if (rp_client_signature(client, "", wait, &signature, NULL) == RP_OK)
        rp_signature_unref(signature);
}

static rp_status open_writer(rp_client *client, const rp_trajectory_writer_options *options,
                             size_t max_in_flight, rp_trajectory_writer **out, rp_error *err)
{
    rp_trajectory_writer *writer;
    rp_sink_events events;
    rp_sink *sink;
    rp_status st = open_bare(client, options, max_in_flight, &writer, err);

    if (st != RP_OK) return st;
    events = rp_trajectory_writer_events(writer);
    st = rp_client_open_sink(client, &events, &sink, err);
    if (st != RP_OK) {
        rp_trajectory_writer_free(writer);
        return st;
    }
    assert(sink != NULL);
    rp_trajectory_writer_attach(writer, sink);
    *out = writer;
    return RP_OK;
}

rp_status rp_trajectory_writer_new(rp_client *client,
                                   const rp_trajectory_writer_options *options, rp_wait wait,
                                   rp_trajectory_writer **out, rp_error *err)
{
    rp_status st;

    if (client == NULL) return no_client("trajectory", err);
    if (options == NULL) return rp_fail(err, RP_INVALID, "trajectory writer: no options");
    st = open_writer(client, options, 0, out, err);
    if (st == RP_OK && !options->unchecked) fetch_signatures(client, wait);
    return st;
}

rp_status rp_step_writer_new(rp_client *client, const rp_step_writer_options *options,
                             rp_wait wait, rp_step_writer **out, rp_error *err)
{
    rp_trajectory_writer_options under;
    rp_trajectory_writer *writer;
    size_t in_flight;
    rp_status st;

    if (client == NULL) return no_client("step", err);
    if (options == NULL) return rp_fail(err, RP_INVALID, "step writer: no options");
    in_flight = options->max_in_flight > 0 ? options->max_in_flight : RP_STEP_IN_FLIGHT;
    st = rp_step_writer_under(options, &under, err);
    if (st == RP_OK) st = open_writer(client, &under, in_flight, &writer, err);
    if (st != RP_OK) return st;
    st = rp_step_writer_open(writer, options, out, err);
    if (st != RP_OK)
        rp_trajectory_writer_free(writer);
    else
        fetch_signatures(client, wait);
    return st;
}

/* Checks the patterns and gets the options of the trajectory writer below a structured one. */
static rp_status choose(const rp_pattern *patterns, size_t count,
                        const rp_structured_writer_options *options,
                        rp_trajectory_writer_options *out, rp_error *err)
{
    static const rp_structured_writer_options defaults = {0};
    rp_status st;

    if (patterns == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "structured writer: %zu patterns, and no array", count);
    st = rp_pattern_check(patterns, count, err);
    if (st == RP_OK)
        *out =
            rp_structured_writer_under(patterns, count, options != NULL ? options : &defaults);
    return st;
}

rp_status rp_structured_writer_new(rp_client *client, const rp_pattern *patterns, size_t count,
                                   const rp_structured_writer_options *options,
                                   rp_structured_writer **out, rp_error *err)
{
    rp_trajectory_writer_options under;
    rp_trajectory_writer *writer;
    rp_status st = client == NULL ? no_client("structured", err)
                                  : choose(patterns, count, options, &under, err);

    if (st == RP_OK) st = open_writer(client, &under, 0, &writer, err);
    if (st != RP_OK) return st;
    st = rp_structured_writer_open(writer, patterns, count, out, err);
    if (st != RP_OK) rp_trajectory_writer_free(writer);
    return st;
}

/* Adds a writer for one environment. */
static rp_status add_environment(rp_client *client, const rp_trajectory_writer_options *under,
                                 const rp_pattern *patterns, size_t count,
                                 rp_shared_sink *shared, rp_batch_writer *batch, rp_error *err)
{
    rp_trajectory_writer *writer;
    rp_structured_writer *structured;
    rp_sink_events events;
    rp_status st = open_bare(client, under, 0, &writer, err);

    if (st != RP_OK) return st;
    st = rp_structured_writer_open(writer, patterns, count, &structured, err);
    if (st != RP_OK) {
        rp_trajectory_writer_free(writer);
        return st;
    }
    events = rp_trajectory_writer_events(writer);
    rp_trajectory_writer_attach(writer, rp_shared_sink_give(shared, &events));
    rp_batch_writer_add(batch, structured);
    return RP_OK;
}

rp_status rp_batch_writer_new(rp_client *client, size_t environments,
                              const rp_pattern *patterns, size_t count,
                              const rp_structured_writer_options *options,
                              rp_batch_writer **out, rp_error *err)
{
    rp_trajectory_writer_options under;
    rp_shared_sink *shared = NULL;
    rp_batch_writer *batch = NULL;
    rp_sink_events events;
    rp_sink *sink;
    rp_status st = client == NULL ? no_client("batch", err)
                                  : choose(patterns, count, options, &under, err);

    if (st == RP_OK) st = rp_batch_writer_open(&client->alloc, environments, &batch, err);
    if (st == RP_OK) st = rp_shared_sink_new(&client->alloc, environments, &shared, err);
    if (st == RP_OK) {
        events = rp_shared_sink_events(shared);
        st = rp_client_open_sink(client, &events, &sink, err);
        if (st == RP_OK) rp_shared_sink_attach(shared, sink);
    }
    for (size_t i = 0; st == RP_OK && i < environments; i++)
        st = add_environment(client, &under, patterns, count, shared, batch, err);
    if (st == RP_OK) {
        *out = batch;
        return RP_OK;
    }
    /* Added writers close their part of the sink; the parts of the others are released. */
    rp_batch_writer_free(batch);
    if (shared != NULL) rp_shared_sink_release(shared);
    return st;
}
