/* SPDX-License-Identifier: Apache-2.0 */
/* Trajectory writers to test without a client: they write to a store of this process, or to a
 * sink that the test controls. */
#ifndef RP_TEST_CLIENT_RIG_H
#define RP_TEST_CLIENT_RIG_H

#include "client/sink/local_sink.h"
#include "client/writer/trajectory_writer.h"
#include "support/writing.h"
#include "util/error.h"

/* A sink that keeps its items until the test reports their results. */
typedef struct rp_test_sink {
    rp_sink sink; /* first */
    rp_sink_events events;
    rp_runtime *runtime;
    rp_job job;
    rp_mutex mu; /* rank 78 */
    rp_cond cv;
    struct {
        uint64_t key;
        char table[32];
        double priority;
        rp_trajectory *trajectory;
        bool settled;
    } items[4096];
    size_t count;      /* items put so far */
    size_t settled;    /* how many of them, from the first, have a result */
    size_t puts;       /* calls of put */
    size_t fail_puts;  /* how many of the next calls of put fail */
    bool silent;       /* gives no reason */
    bool automatic;    /* confirms by itself, on a thread of the runtime */
    bool busy, closed; /* its job is queued or running; close was called */
    rp_status refuse;  /* the result that `automatic` reports; RP_OK: confirmed */
} rp_test_sink;

/* Reports results. Releases the lock during the callback. */
static inline void rp_test_sink_settle_some(rp_test_sink *s, size_t count, rp_status status,
                                            const char *text) RP_REQUIRES(s->mu);
static inline void rp_test_sink_settle_some(rp_test_sink *s, size_t count, rp_status status,
                                            const char *text)
{
    while (count-- > 0 && s->settled < s->count) {
        uint64_t key = s->items[s->settled].key;
        s->settled++;
        rp_mutex_unlock(&s->mu);
        s->events.on_settled(s->events.user, &key, 1, status, text);
        rp_mutex_lock(&s->mu);
    }
}

static inline void rp_test_sink_run(rp_job *job)
{
    rp_test_sink *s = (rp_test_sink *)(void *)((char *)job - offsetof(rp_test_sink, job));

    rp_mutex_lock(&s->mu);
    rp_test_sink_settle_some(s, SIZE_MAX, s->refuse, s->refuse == RP_OK ? "" : "no, thanks");
    s->busy = false;
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

/* Reports the result of the next `count` items, which have been put. */
static inline void rp_test_sink_settle(rp_test_sink *s, size_t count, rp_status status,
                                       const char *text)
{
    rp_mutex_lock(&s->mu);
    assert_true(s->settled + count <= s->count);
    rp_test_sink_settle_some(s, count, status, text);
    rp_mutex_unlock(&s->mu);
}

static inline rp_status rp_test_sink_put(rp_sink *sink, const rp_sink_item *items, size_t count,
                                         rp_error *err)
{
    rp_test_sink *s = (rp_test_sink *)sink;
    rp_status st = RP_OK;

    rp_mutex_lock(&s->mu);
    s->puts++;
    if (s->fail_puts > 0) {
        s->fail_puts--;
        st = rp_fail_memory(err, 1);
    } else {
        for (size_t i = 0; i < count; i++, s->count++) {
            assert_true(s->count < COUNT_OF(s->items));
            s->items[s->count].key = items[i].key;
            s->items[s->count].priority = items[i].priority;
            s->items[s->count].trajectory = items[i].trajectory;
            (void)snprintf(s->items[s->count].table, 32, "%s", items[i].table);
        }
        if (s->automatic && !s->busy) {
            s->busy = true;
            rp_runtime_submit(s->runtime, &s->job);
        }
    }
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
    return st;
}

static inline void rp_test_sink_why(rp_sink *sink, char *text, size_t size)
{
    (void)snprintf(text, size, "%s",
                   ((rp_test_sink *)sink)->silent ? "" : "the test has not said so yet");
}

static inline void rp_test_sink_close(rp_sink *sink)
{
    rp_test_sink *s = (rp_test_sink *)sink;

    rp_mutex_lock(&s->mu);
    while (s->busy) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
    for (size_t i = 0; i < s->count; i++) rp_trajectory_unref(s->items[i].trajectory);
    s->closed = true;
    rp_mutex_unlock(&s->mu);
}

/* Waits until `count` items have been put. */
static inline void rp_test_sink_await(rp_test_sink *s, size_t count)
{
    rp_mutex_lock(&s->mu);
    while (s->count < count)
        assert_true(rp_cond_wait(&s->cv, &s->mu, rp_wait_ms(20000).until_ns));
    rp_mutex_unlock(&s->mu);
}

typedef struct rp_test_client_rig {
    rp_test_rig in; /* the store and its tables */
    rp_runtime *runtime;
    rp_trajectory_writer *writer;
    rp_test_sink *sink; /* NULL: items go to the store */
    rp_error err;
} rp_test_client_rig;

/* Returns the signature of a table of the store. */
static inline rp_status rp_test_find_signature(void *ctx, const char *table, rp_wait wait,
                                               rp_signature **out, rp_error *err)
{
    rp_table *t = rp_test_table(ctx, table);
    rp_table_info info;

    (void)wait;
    if (t == NULL) return rp_fail(err, RP_NOT_FOUND, "no table '%s'", table);
    rp_table_get_info(t, &info);
    *out = info.signature != NULL ? rp_signature_ref(info.signature) : NULL;
    return RP_OK;
}

static inline rp_sink *rp_test_client_sink(rp_test_client_rig *r, bool local)
{
    static const rp_sink_class class = {
        .put = rp_test_sink_put, .why = rp_test_sink_why, .close = rp_test_sink_close};
    rp_sink_events events = rp_trajectory_writer_events(r->writer);
    rp_sink *sink = NULL;

    if (local) {
        assert_ok_err(
            rp_local_sink_open(&r->in.alloc, r->in.store, r->runtime, &events, &sink, &r->err),
            &r->err);
        return sink;
    }
    r->sink = calloc(1, sizeof *r->sink);
    assert_non_null(r->sink);
    r->sink->sink.class = &class;
    r->sink->events = events;
    r->sink->runtime = r->runtime;
    r->sink->job.run = rp_test_sink_run;
    rp_mutex_init(&r->sink->mu, RP_RANK_CLIENT);
    rp_cond_init(&r->sink->cv);
    return &r->sink->sink;
}

/* Makes a store with tables 'a' and 'b', whose calls never wait. */
static inline void rp_test_client_open_store(rp_test_client_rig *r)
{
    rp_table_options a = rp_test_open_table("a"), b = rp_test_open_table("b");

    *r = (rp_test_client_rig){0};
    rp_test_rig_open(&r->in, NULL);
    assert_ok_err(rp_store_add_table(r->in.store, &a, &r->in.a, &r->err), &r->err);
    assert_ok_err(rp_store_add_table(r->in.store, &b, &r->in.b, &r->err), &r->err);
    assert_ok_err(rp_runtime_get(&r->runtime, &r->err), &r->err);
}

static inline rp_writer_parts rp_test_client_parts(rp_test_client_rig *r)
{
    rp_runtime *mine = NULL;

    assert_ok_err(rp_runtime_get(&mine, &r->err), &r->err);
    return (rp_writer_parts){.alloc = &r->in.alloc,
                             .runtime = mine,
                             .seed = 5,
                             .find = rp_test_find_signature,
                             .find_ctx = r->in.store};
}

static inline void rp_test_client_open_writer(rp_test_client_rig *r,
                                              const rp_trajectory_writer_options *options,
                                              bool local)
{
    rp_writer_parts parts = rp_test_client_parts(r);

    assert_ok_err(rp_trajectory_writer_open(&parts, options, &r->writer, &r->err), &r->err);
    rp_trajectory_writer_attach(r->writer, rp_test_client_sink(r, local));
}

/* Makes the fixture, with a writer of this history and chunk length (0: tuned). */
static inline void rp_test_client_init(rp_test_client_rig *r, int32_t history,
                                       int32_t chunk_length, bool local)
{
    rp_trajectory_writer_options o = {
        .column = {.history = history, .chunk_length = chunk_length}};

    rp_test_client_open_store(r);
    rp_test_client_open_writer(r, &o, local);
}

/* Frees the fixture. Fails if memory was not freed. */
static inline void rp_test_client_deinit(rp_test_client_rig *r)
{
    rp_trajectory_writer_free(r->writer);
    if (r->sink != NULL) {
        assert_true(r->sink->closed);
        rp_cond_deinit(&r->sink->cv);
        rp_mutex_deinit(&r->sink->mu);
        free(r->sink);
    }
    rp_runtime_put(r->runtime);
    rp_decoder_clear(r->in.decoder);
    rp_test_rig_deinit(&r->in);
}

#endif
