/* SPDX-License-Identifier: Apache-2.0 */
/* The step writer, which works like Reverb's older `Writer`. */
#include "client/writer/step_writer.h"
#include "support/client_rig.h"

typedef struct rig {
    rp_test_client_rig r;
    rp_step_writer *writer;
} rig;

static void open_rig(rig *g, const rp_step_writer_options *options, bool local)
{
    rp_trajectory_writer_options under;
    rp_writer_parts parts;

    rp_test_client_open_store(&g->r);
    parts = rp_test_client_parts(&g->r);
    parts.max_in_flight = options->max_in_flight;
    assert_ok_err(rp_step_writer_under(options, &under, &g->r.err), &g->r.err);
    assert_ok(rp_trajectory_writer_open(&parts, &under, &g->r.writer, &g->r.err));
    rp_trajectory_writer_attach(g->r.writer, rp_test_client_sink(&g->r, local));
    assert_ok(rp_step_writer_open(g->r.writer, options, &g->writer, &g->r.err));
    g->r.writer = NULL;
}

static void close_rig(rig *g)
{
    rp_step_writer_free(g->writer);
    rp_test_client_deinit(&g->r);
}

static rp_status append(rig *g, int32_t x)
{
    double y = x + 0.5;
    rp_tensor step[] = {{RP_INT32, SCALAR, &x}, {RP_FLOAT64, SCALAR, &y}};

    return rp_step_writer_append(g->writer, step, 2, &g->r.err);
}

static rp_status create(rig *g, int32_t steps, int64_t ms, uint64_t *key)
{
    return rp_step_writer_create_item(g->writer, "a", steps, 1, rp_wait_ms(ms), key, &g->r.err);
}

static void options_have_bounds(void **state)
{
    rp_step_writer_options o = {0};
    rp_trajectory_writer_options under;
    rp_error err = {0};
    (void)state;
    assert_fails(rp_step_writer_under(&o, &under, &err), RP_INVALID, &err,
                 "max_sequence_length must be >= 1, got 0");
    o.max_sequence_length = 4;
    o.chunk_length = 5;
    assert_fails(rp_step_writer_under(&o, &under, &err), RP_INVALID, &err,
                 "chunk_length must be in [1, max_sequence_length = 4], got 5");
    o.chunk_length = 0;
    assert_ok(rp_step_writer_under(&o, &under, &err));
    assert_int_equal(under.column.chunk_length, 4);
    o.max_sequence_length = 40;
    assert_ok(rp_step_writer_under(&o, &under, &err));
    assert_int_equal(under.column.chunk_length, 10);
}

static void items_are_the_latest_steps(void **state)
{
    rp_step_writer_options o = {.max_sequence_length = 5, .chunk_length = 2};
    uint64_t keys[8];
    rig g;
    (void)state;
    open_rig(&g, &o, true);
    for (int32_t x = 0; x < 8; x++) {
        assert_ok_err(append(&g, x), &g.r.err);
        assert_ok_err(create(&g, x < 4 ? x + 1 : 5, 0, &keys[x]), &g.r.err);
    }
    assert_ok_err(rp_step_writer_flush(g.writer, rp_wait_ms(20000), &g.r.err), &g.r.err);
    for (int32_t x = 0; x < 8; x++) {
        rp_trajectory *t = rp_test_peek(&g.r.in, g.r.in.a, keys[x]);
        int32_t count = x < 4 ? x + 1 : 5, got[5];
        assert_ok(rp_decoder_stack(g.r.in.decoder, (const rp_trajectory *const *)&t, 1, 0, got,
                                   (size_t)count * sizeof *got, &g.r.err));
        for (int32_t k = 0; k < count; k++) assert_int_equal(got[k], x - count + 1 + k);
        rp_test_expect_actions(&g.r.in, t, 1, x - count + 1, count, 1);
        rp_trajectory_unref(t);
    }
    close_rig(&g);
}

static void bad_steps_and_items_are_refused(void **state)
{
    rp_step_writer_options o = {.max_sequence_length = 3};
    int32_t x = 0;
    rp_tensor one = {RP_INT32, SCALAR, &x}, pair[] = {one, {RP_INT32, SCALAR, &x}};
    rig g;
    (void)state;
    open_rig(&g, &o, true);
    assert_fails(rp_step_writer_append(g.writer, &one, 0, &g.r.err), RP_INVALID, &g.r.err,
                 "got 0");
    assert_fails(create(&g, 1, 0, NULL), RP_INVALID, &g.r.err, "but the episode has 0");
    assert_ok(append(&g, 0));
    assert_fails(rp_step_writer_append(g.writer, &one, 1, &g.r.err), RP_INVALID, &g.r.err,
                 "steps of this writer have 2 columns, got 1");
    assert_fails(rp_step_writer_append(g.writer, pair, 2, &g.r.err), RP_INVALID, &g.r.err,
                 "column 1: got dtype int32 but expected float64");
    assert_fails(create(&g, 0, 0, NULL), RP_INVALID, &g.r.err, "at least one step, got 0");
    assert_fails(create(&g, 2, 0, NULL), RP_INVALID, &g.r.err, "but the episode has 1");
    assert_fails(create(&g, 4, 0, NULL), RP_INVALID, &g.r.err, "max_sequence_length is 3");
    close_rig(&g);
}

static void sequences_are_steps(void **state)
{
    rp_step_writer_options o = {.max_sequence_length = 6};
    int32_t xs[] = {0, 1, 2, 3};
    double ys[] = {0.5, 1.5, 2.5, 3.5};
    rp_tensor steps[] = {{RP_INT32, SHAPE(4), xs}, {RP_FLOAT64, SHAPE(4), ys}};
    rp_tensor uneven[] = {{RP_INT32, SHAPE(4), xs}, {RP_FLOAT64, SHAPE(3), ys}};
    rp_tensor scalar[] = {{RP_INT32, SCALAR, xs}, {RP_FLOAT64, SHAPE(3), ys}};
    rp_trajectory *t;
    uint64_t key;
    rig g;
    (void)state;
    open_rig(&g, &o, true);
    assert_fails(rp_step_writer_append_sequence(g.writer, uneven, 2, &g.r.err), RP_INVALID,
                 &g.r.err, "column 1: a sequence of 3 rows, but column 0 has 4");
    assert_fails(rp_step_writer_append_sequence(g.writer, scalar, 2, &g.r.err), RP_INVALID,
                 &g.r.err, "column 0: a sequence must have at least one row");
    assert_ok_err(rp_step_writer_append_sequence(g.writer, steps, 2, &g.r.err), &g.r.err);
    assert_ok_err(append(&g, 4), &g.r.err);
    assert_ok_err(create(&g, 5, 0, &key), &g.r.err);
    assert_int_equal(rp_step_writer_pending(g.writer), 1);
    assert_ok_err(rp_step_writer_flush(g.writer, rp_wait_ms(20000), &g.r.err), &g.r.err);
    assert_int_equal(rp_step_writer_pending(g.writer), 0);
    t = rp_test_peek(&g.r.in, g.r.in.a, key);
    rp_test_expect_actions(&g.r.in, t, 1, 0, 5, 1);
    rp_trajectory_unref(t);
    close_rig(&g);
}

static void items_in_flight_are_bounded(void **state)
{
    rp_step_writer_options o = {
        .max_sequence_length = 4, .chunk_length = 2, .max_in_flight = 2};
    rig g;
    (void)state;
    open_rig(&g, &o, false);
    for (int32_t x = 0; x < 2; x++) {
        assert_ok(append(&g, x));
        assert_ok_err(create(&g, 1, 0, NULL), &g.r.err);
    }
    assert_ok(append(&g, 2)); /* the chunk of the first two is full: they are in flight */
    rp_test_sink_await(g.r.sink, 1);
    assert_int_equal(create(&g, 1, 5, NULL), RP_DEADLINE);
    rp_test_sink_await(g.r.sink, 2);
    rp_test_sink_settle(g.r.sink, 1, RP_OK, "");
    assert_ok_err(create(&g, 1, 5, NULL), &g.r.err);
    close_rig(&g);
}

static void items_are_of_one_episode(void **state)
{
    rp_step_writer_options o = {.max_sequence_length = 3};
    rig g;
    (void)state;
    open_rig(&g, &o, true);
    for (int32_t x = 0; x < 2; x++) {
        assert_ok(append(&g, x));
        assert_ok_err(create(&g, 1, 0, NULL), &g.r.err);
        assert_fails(create(&g, 2, 0, NULL), RP_INVALID, &g.r.err, "but the episode has 1");
        assert_ok_err(rp_step_writer_end_episode(g.writer, rp_wait_ms(20000), &g.r.err),
                      &g.r.err);
        assert_int_equal(rp_test_info(g.r.in.a).size, x + 1);
        assert_int_equal(rp_test_info(g.r.in.a).episodes, x + 1);
    }
    close_rig(&g);
}

RP_TESTS(step_writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_have_bounds),
        cmocka_unit_test(items_are_the_latest_steps),
        cmocka_unit_test(bad_steps_and_items_are_refused),
        cmocka_unit_test(sequences_are_steps),
        cmocka_unit_test(items_in_flight_are_bounded),
        cmocka_unit_test(items_are_of_one_episode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
