/* SPDX-License-Identifier: Apache-2.0 */
/* Batch writers: one call appends steps of many environments, to one sink. */
#include "client/sink/shared_sink.h"
#include "client/writer/batch_writer.h"
#include "support/client_rig.h"

enum { ENVIRONMENTS = 5, X = 0, R = 1 };

typedef struct rig {
    rp_test_client_rig r;
    rp_batch_writer *batch;
    rp_shared_sink *shared;
} rig;

static const rp_pattern_node nodes[] = {{.source = X, .has_start = true, .start = -2},
                                        {.source = R, .has_stop = true, .stop = -1}};
static const rp_condition at_end = {.left = RP_LEFT_IS_END_EPISODE, .value = 1};
static const rp_pattern_node last[] = {{.source = X, .has_stop = true, .stop = -1}};
static const rp_pattern patterns[] = {
    {.table = "a", .nodes = nodes, .node_count = 2, .priority = {.value = 1}},
    {.table = "b",
     .nodes = last,
     .node_count = 1,
     .conditions = &at_end,
     .condition_count = 1,
     .priority = {.value = 1}},
};

static rp_sink *open_sink(rig *g, bool local)
{
    static const rp_sink_class class = {
        .put = rp_test_sink_put, .why = rp_test_sink_why, .close = rp_test_sink_close};
    rp_sink_events events = rp_shared_sink_events(g->shared);
    rp_sink *sink = NULL;

    if (local) {
        assert_ok(rp_local_sink_open(&g->r.in.alloc, g->r.in.store, g->r.runtime, &events,
                                     &sink, &g->r.err));
        return sink;
    }
    g->r.sink = calloc(1, sizeof *g->r.sink);
    assert_non_null(g->r.sink);
    g->r.sink->sink.class = &class;
    g->r.sink->events = events;
    g->r.sink->runtime = g->r.runtime;
    g->r.sink->job.run = rp_test_sink_run;
    rp_mutex_init(&g->r.sink->mu, RP_RANK_CLIENT);
    rp_cond_init(&g->r.sink->cv);
    return &g->r.sink->sink;
}

static void open_rig(rig *g, const rp_structured_writer_options *options, bool local)
{
    rp_trajectory_writer_options under =
        rp_structured_writer_under(patterns, COUNT_OF(patterns), options);

    rp_test_client_open_store(&g->r);
    assert_ok(rp_batch_writer_open(&g->r.in.alloc, ENVIRONMENTS, &g->batch, &g->r.err));
    assert_ok(rp_shared_sink_new(&g->r.in.alloc, ENVIRONMENTS, &g->shared, &g->r.err));
    rp_shared_sink_attach(g->shared, open_sink(g, local));
    for (uint64_t i = 0; i < ENVIRONMENTS; i++) {
        rp_writer_parts parts = rp_test_client_parts(&g->r);
        rp_trajectory_writer *writer;
        rp_structured_writer *structured;
        rp_sink_events events;
        parts.seed = 40 + i;
        assert_ok(rp_trajectory_writer_open(&parts, &under, &writer, &g->r.err));
        assert_ok(rp_structured_writer_open(writer, patterns, COUNT_OF(patterns), &structured,
                                            &g->r.err));
        events = rp_trajectory_writer_events(writer);
        rp_trajectory_writer_attach(writer, rp_shared_sink_give(g->shared, &events));
        rp_batch_writer_add(g->batch, structured);
    }
}

static void close_rig(rig *g)
{
    rp_batch_writer_free(g->batch);
    rp_test_client_deinit(&g->r);
}

/* Environment e has x = [1000 e + step, step] and r = step / 2. */
static rp_status append(rig *g, int32_t step, const bool *ends, int64_t ms)
{
    int32_t xs[ENVIRONMENTS][2];
    float rs[ENVIRONMENTS];
    rp_value values[] = {{X, "x", {RP_INT32, SHAPE(ENVIRONMENTS, 2), xs}},
                         {R, "r", {RP_FLOAT32, SHAPE(ENVIRONMENTS), rs}}};

    for (int32_t e = 0; e < ENVIRONMENTS; e++) {
        xs[e][0] = 1000 * e + step;
        xs[e][1] = step;
        rs[e] = (float)step / 2;
    }
    return rp_batch_writer_append(g->batch, values, 2, ends, rp_wait_ms(ms), &g->r.err);
}

static void every_environment_writes_its_own_rows(void **state)
{
    rp_structured_writer_options o = {.chunk_length = 3};
    bool ends[ENVIRONMENTS] = {false, true, false, false, false};
    int counts[ENVIRONMENTS] = {0};
    rig g;
    (void)state;
    open_rig(&g, &o, false);
    g.r.sink->automatic = true;
    for (int32_t step = 0; step < 10; step++)
        assert_ok_err(append(&g, step, step == 4 ? ends : NULL, 20000), &g.r.err);
    assert_ok_err(rp_batch_writer_flush(g.batch, rp_wait_ms(20000), &g.r.err), &g.r.err);

    /* nine pairs each; one less where an episode began anew, and its last step in 'b' */
    assert_int_equal(g.r.sink->count, 9 * ENVIRONMENTS - 1 + 1);
    for (size_t i = 0; i < g.r.sink->count; i++) {
        const rp_trajectory *t = g.r.sink->items[i].trajectory;
        int32_t got[4];
        if (g.r.sink->items[i].table[0] == 'b') {
            assert_ok(rp_decoder_stack(g.r.in.decoder, &t, 1, 0, got, 8, &g.r.err));
            assert_int_equal(got[0], 1004);
            continue;
        }
        assert_ok(rp_decoder_stack(g.r.in.decoder, &t, 1, 0, got, sizeof got, &g.r.err));
        assert_int_equal(got[0] + 1, got[2]);
        assert_int_equal(got[0] % 1000, got[1]);
        assert_int_equal(got[3], got[1] + 1);
        counts[got[0] / 1000]++;
    }
    for (int e = 0; e < ENVIRONMENTS; e++) assert_int_equal(counts[e], e == 1 ? 8 : 9);
    close_rig(&g);
}

static void shapes_are_checked_before_anything_is_appended(void **state)
{
    rp_structured_writer_options o = {0};
    int32_t x[2 * ENVIRONMENTS] = {0};
    rp_value few = {X, "x", {RP_INT32, SHAPE(2, 2), x}}, flat = {X, "x", {RP_INT32, SCALAR, x}};
    rig g;
    (void)state;
    open_rig(&g, &o, true);
    assert_fails(rp_batch_writer_append(g.batch, &few, 1, NULL, rp_wait_none(), &g.r.err),
                 RP_INVALID, &g.r.err,
                 "column 0 'x': got shape [2,2] but expected a row for each of 5");
    assert_int_equal(rp_batch_writer_append(g.batch, &flat, 1, NULL, rp_wait_none(), &g.r.err),
                     RP_INVALID);
    assert_ok_err(append(&g, 0, NULL, 0), &g.r.err);
    few.tensor.shape = SHAPE(ENVIRONMENTS);
    assert_fails(rp_batch_writer_append(g.batch, &few, 1, NULL, rp_wait_none(), &g.r.err),
                 RP_INVALID, &g.r.err,
                 "environment 0: column 0 'x': got shape [] but expected [2]");
    close_rig(&g);
}

static void append_waits_for_items_in_flight_before_appending(void **state)
{
    rp_structured_writer_options o = {.chunk_length = 1, .max_items = 1};
    rig g;
    (void)state;
    open_rig(&g, &o, false);
    assert_ok(append(&g, 0, NULL, 0));
    assert_ok_err(append(&g, 1, NULL, 0), &g.r.err);
    rp_test_sink_await(g.r.sink, ENVIRONMENTS);
    assert_int_equal(append(&g, 2, NULL, 5), RP_DEADLINE);
    rp_test_sink_settle(g.r.sink, ENVIRONMENTS, RP_OK, "");
    assert_ok_err(append(&g, 2, NULL, 0), &g.r.err);
    rp_test_sink_await(g.r.sink, 2 * ENVIRONMENTS);
    assert_fails(rp_batch_writer_flush(g.batch, rp_wait_ms(5), &g.r.err), RP_DEADLINE, &g.r.err,
                 "environment 0: ");
    assert_int_equal(rp_batch_writer_pending(g.batch), ENVIRONMENTS);
    rp_test_sink_settle(g.r.sink, ENVIRONMENTS, RP_INVALID, "bad");
    assert_int_equal(rp_batch_writer_pending(g.batch), 0);
    assert_fails(rp_batch_writer_flush(g.batch, rp_wait_ms(5), &g.r.err), RP_INVALID, &g.r.err,
                 "environment 0: 1 item was refused: bad");
    assert_ok(rp_batch_writer_flush(g.batch, rp_wait_ms(5), &g.r.err));
    close_rig(&g);
}

static void environments_share_a_store_too(void **state)
{
    rp_structured_writer_options o = {0};
    rig g;
    (void)state;
    open_rig(&g, &o, true);
    for (int32_t step = 0; step < 500; step++)
        assert_ok_err(append(&g, step, NULL, 20000), &g.r.err);
    assert_ok_err(rp_batch_writer_flush(g.batch, rp_wait_ms(20000), &g.r.err), &g.r.err);
    assert_int_equal(rp_test_info(g.r.in.a).size, 499 * ENVIRONMENTS);
    close_rig(&g);
}

static void unused_sinks_are_released(void **state)
{
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_shared_sink *shared;
    rp_sink_events events = {0};
    rp_sink *one;
    (void)state;
    assert_ok(rp_shared_sink_new(&alloc, 3, &shared, NULL));
    one = rp_shared_sink_give(shared, &events);
    rp_shared_sink_release(shared);
    assert_int_equal(oom.live, 1);
    one->class->close(one);
    assert_int_equal(oom.live, 0);
    assert_ok(rp_shared_sink_new(&alloc, 3, &shared, NULL));
    rp_shared_sink_release(shared);
    assert_int_equal(oom.live, 0);
}

RP_TESTS(batch_writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_environment_writes_its_own_rows),
        cmocka_unit_test(shapes_are_checked_before_anything_is_appended),
        cmocka_unit_test(append_waits_for_items_in_flight_before_appending),
        cmocka_unit_test(environments_share_a_store_too),
        cmocka_unit_test(unused_sinks_are_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
