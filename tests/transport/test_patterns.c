/* SPDX-License-Identifier: Apache-2.0 */
/* Structured, batch and step writers over every transport. */
#include <math.h>

#include "support/transports.h"

enum { X = 0, ERROR = 1, MAX_READ = 64 };

typedef struct rig {
    rp_test_transport *t;
    const char *bag;
    rp_structured_writer *writer;
    rp_sample out[MAX_READ];
    size_t count;
} rig;

static void open_rig(rig *g, rp_test_transport *t, rp_pattern *patterns, size_t count)
{
    *g = (rig){.t = t, .bag = rp_test_bag(t)};
    for (size_t i = 0; i < count; i++) patterns[i].table = g->bag;
    assert_ok_err(
        rp_structured_writer_new(t->client, patterns, count, NULL, &g->writer, &t->err),
        &t->err);
}

static void step(rig *g, int32_t x, double error)
{
    rp_value values[] = {{X, "x", rp_test_int(&x)},
                         {ERROR, "error", {RP_FLOAT64, {0, {0}}, &error}}};

    assert_ok_err(
        rp_structured_writer_append(g->writer, values, 2, 0, rp_test_soon(), &g->t->err),
        &g->t->err);
}

static void end(rig *g, bool clear)
{
    assert_ok_err(
        rp_structured_writer_end_episode(g->writer, clear, rp_test_soon(), &g->t->err),
        &g->t->err);
}

/* The last row of the first column: what items are ordered by here. */
static int32_t last_of(rig *g, const rp_sample *sample)
{
    const rp_trajectory *trajectory = sample->trajectory;
    rp_trajectory_column c = rp_trajectory_get_column(trajectory, 0);
    rp_decoder *decoder = NULL;
    int32_t rows[16];

    assert_true(c.bytes <= sizeof rows && c.bytes > 0);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok_err(rp_decoder_stack(decoder, &trajectory, 1, 0, rows, c.bytes, &g->t->err),
                  &g->t->err);
    rp_decoder_free(decoder);
    return rows[c.bytes / sizeof rows[0] - 1];
}

/* Takes everything out: there must be exactly so many items. They are put in order. */
static void take(rig *g, size_t count)
{
    assert_ok_err(rp_structured_writer_flush(g->writer, 0, rp_test_soon(), &g->t->err),
                  &g->t->err);
    assert_int_equal(rp_test_table_sum(g->t, g->bag).info.size, count);
    assert_true(count <= MAX_READ);
    rp_test_draw_samples(g->t, g->bag, count, g->out);
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && last_of(g, &g->out[k]) < last_of(g, &g->out[k - 1]); k--) {
            rp_sample other = g->out[k];

            g->out[k] = g->out[k - 1];
            g->out[k - 1] = other;
        }
    g->count = count;
}

static void let_go(rig *g)
{
    rp_samples_release(g->out, g->count);
    g->count = 0;
}

static void close_rig(rig *g)
{
    let_go(g);
    rp_structured_writer_free(g->writer);
}

static void nodes_pick_rows_from_the_end(rp_test_transport *t)
{
    static const rp_pattern_node nodes[] = {
        {.source = X, .has_stop = true, .stop = -1},
        {.source = X, .has_start = true, .start = -3},
        {.source = X, .has_start = true, .start = -4, .has_stop = true, .stop = -1},
        {.source = X, .has_start = true, .start = -5, .step = 2},
        {.source = X, .has_stop = true, .stop = -5},
    };
    rp_pattern p = {.nodes = nodes, .node_count = COUNT_OF(nodes), .priority = {.value = 2.5}};
    rig g;

    open_rig(&g, t, &p, 1);
    for (int32_t x = 0; x < 7; x++) step(&g, x, 0);
    take(&g, 3); /* from the fifth step on */
    for (int32_t i = 0; i < 3; i++) {
        int32_t x = 4 + i;

        rp_test_expect(t, &g.out[i], 0, RP_INT32, (rp_shape){0}, &x);
        RP_TEST_EXPECT_INTS(t, &g.out[i], 1, x - 2, x - 1, x);
        RP_TEST_EXPECT_INTS(t, &g.out[i], 2, x - 3, x - 2, x - 1);
        RP_TEST_EXPECT_INTS(t, &g.out[i], 3, x - 4, x - 2, x);
        rp_test_expect(t, &g.out[i], 4, RP_INT32, (rp_shape){0}, &(int32_t){x - 4});
        assert_true(g.out[i].priority == 2.5);
    }
    close_rig(&g);
}

static void the_td_error_becomes_the_priority(rp_test_transport *t)
{
    static const rp_pattern_node nodes[] = {
        {.source = X, .has_stop = true, .stop = -1},
        {.source = ERROR, .has_start = true, .start = -3},
    };
    rp_pattern p = {.nodes = nodes,
                    .node_count = 2,
                    .priority = {.kind = RP_PRIORITY_TD_ERROR,
                                 .max_priority_weight = 0.75,
                                 .column = ERROR}};
    static const double errors[] = {1, -4, 2, 0.5};
    rig g;

    open_rig(&g, t, &p, 1);
    for (int32_t x = 0; x < 4; x++) step(&g, x, errors[x]);
    take(&g, 2);
    assert_true(fabs(g.out[0].priority - (0.75 * 4 + 0.25 * 7 / 3)) < 1e-9);
    assert_true(fabs(g.out[1].priority - (0.75 * 4 + 0.25 * 6.5 / 3)) < 1e-9);
    close_rig(&g);
}

static void conditions_choose_the_steps(rp_test_transport *t)
{
    static const rp_pattern_node last[] = {{.source = X, .has_start = true, .start = -1}};
    static const rp_condition every_third = {
        .left = RP_LEFT_STEP_INDEX, .compare = RP_COMPARE_MOD_EQ, .mod = 3, .value = 1};
    static const rp_condition data[] = {
        {.left = RP_LEFT_DATA, .column = X, .compare = RP_COMPARE_GE, .value = 6},
        {.left = RP_LEFT_DATA, .column = X, .value = 7, .inverse = true},
    };
    rp_pattern p[] = {
        {.nodes = last, .node_count = 1, .conditions = &every_third, .condition_count = 1},
        {.nodes = last, .node_count = 1, .conditions = data, .condition_count = 2},
    };
    rig g;

    open_rig(&g, t, p, 2);
    for (int32_t x = 0; x < 9; x++) step(&g, x, 0);
    take(&g, 5); /* 1, 4, 7 and 6, 8 */
    RP_TEST_EXPECT_INTS(t, &g.out[0], 0, 1);
    RP_TEST_EXPECT_INTS(t, &g.out[1], 0, 4);
    RP_TEST_EXPECT_INTS(t, &g.out[2], 0, 6);
    RP_TEST_EXPECT_INTS(t, &g.out[3], 0, 7);
    RP_TEST_EXPECT_INTS(t, &g.out[4], 0, 8);
    close_rig(&g);
}

static void the_end_of_an_episode_fires(rp_test_transport *t)
{
    static const rp_pattern_node last[] = {{.source = X, .has_start = true, .start = -2}};
    static const rp_condition at_end = {.left = RP_LEFT_IS_END_EPISODE, .value = 1};
    rp_pattern p = {
        .nodes = last, .node_count = 1, .conditions = &at_end, .condition_count = 1};
    rig g;

    open_rig(&g, t, &p, 1);
    for (int32_t x = 0; x < 4; x++) step(&g, x, 0);
    take(&g, 0);
    end(&g, true);
    take(&g, 1);
    RP_TEST_EXPECT_INTS(t, &g.out[0], 0, 2, 3);
    let_go(&g);
    step(&g, 10, 0);
    end(&g, true); /* one row is not enough */
    take(&g, 0);
    close_rig(&g);
}

/* A pattern is tried after each part of a step, and fires once in it. */
static void partial_steps_fire_once(rp_test_transport *t)
{
    static const rp_pattern_node both[] = {
        {.source = X, .has_start = true, .start = -1},
        {.source = ERROR, .has_start = true, .start = -1},
    };
    rp_pattern p = {.nodes = both, .node_count = 2};
    rig g;

    open_rig(&g, t, &p, 1);
    for (int32_t x = 0; x < 3; x++) {
        double error = x;
        rp_value values[] = {{X, NULL, rp_test_int(&x)},
                             {ERROR, NULL, {RP_FLOAT64, {0, {0}}, &error}}};

        for (size_t k = 0; k < 2; k++)
            assert_ok_err(rp_structured_writer_append(g.writer, &values[k], 1,
                                                      k == 0 ? RP_STEP_OPEN : 0, rp_test_soon(),
                                                      &t->err),
                          &t->err);
    }
    assert_false(rp_structured_writer_is_open(g.writer));
    take(&g, 3);
    for (int32_t x = 0; x < 3; x++) RP_TEST_EXPECT_INTS(t, &g.out[x], 0, x);
    close_rig(&g);
}

static void bad_patterns_are_refused(rp_test_transport *t)
{
    static const rp_pattern_node node = {.source = X, .has_start = true, .start = 3};
    rp_pattern p = {.table = "x", .nodes = &node, .node_count = 1};
    rp_structured_writer *writer = NULL;

    assert_fails(rp_structured_writer_new(t->client, &p, 1, NULL, &writer, &t->err), RP_INVALID,
                 &t->err, "Invalid configuration at position 0: `start` must be < 0");
}

static void a_batch_writer_appends_for_all_environments(rp_test_transport *t)
{
    enum { ENVIRONMENTS = 5 };
    static const rp_pattern_node nodes[] = {{.source = X, .has_start = true, .start = -2}};
    rp_pattern p = {.table = rp_test_bag(t), .nodes = nodes, .node_count = 1};
    const bool ends[ENVIRONMENTS] = {false, true, false, true, false};
    rp_batch_writer *writer = NULL;
    rig g = {.t = t, .bag = p.table};
    size_t expected = 0;

    assert_ok_err(rp_batch_writer_new(t->client, ENVIRONMENTS, &p, 1, NULL, &writer, &t->err),
                  &t->err);
    for (int32_t i = 0; i < 4; i++) {
        int32_t x[ENVIRONMENTS];
        rp_value value = {X, "x", {RP_INT32, rp_test_shape(1, ENVIRONMENTS, 0), x}};

        for (int32_t e = 0; e < ENVIRONMENTS; e++) x[e] = 100 * e + i;
        assert_ok_err(rp_batch_writer_append(writer, &value, 1, i == 1 ? ends : NULL,
                                             rp_test_soon(), &t->err),
                      &t->err);
    }
    assert_ok_err(rp_batch_writer_flush(writer, rp_test_soon(), &t->err), &t->err);
    /* Three items of whole episodes, two where one began anew behind the second step. */
    rp_test_draw_samples(t, g.bag, 13, g.out);
    for (int32_t e = 0; e < ENVIRONMENTS; e++)
        for (int32_t i = 1; i < 4; i++) {
            size_t k = 0;

            if (ends[e] && i == 2) continue;
            while (k < 13 && last_of(&g, &g.out[k]) != 100 * e + i) k++;
            assert_true(k < 13);
            RP_TEST_EXPECT_INTS(t, &g.out[k], 0, 100 * e + i - 1, 100 * e + i);
            expected++;
        }
    assert_int_equal(expected, 13);
    rp_samples_release(g.out, 13);
    rp_batch_writer_free(writer);
}

static void items_of_the_latest_steps(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_step_writer_options options = {.max_sequence_length = 4, .chunk_length = 2};
    rp_step_writer *writer = NULL;
    int32_t more[] = {3, 4, 5};
    double more_y[] = {30, 40, 50};
    uint64_t keys[3];
    rp_sample out[3];

    assert_ok_err(rp_step_writer_new(t->client, &options, rp_test_soon(), &writer, &t->err),
                  &t->err);
    for (int32_t i = 0; i < 3; i++) {
        double y = 10 * i;
        rp_tensor step[] = {rp_test_int(&i), {RP_FLOAT64, {0, {0}}, &y}};

        assert_ok_err(rp_step_writer_append(writer, step, 2, &t->err), &t->err);
    }
    assert_ok_err(
        rp_step_writer_create_item(writer, bag, 2, 1, rp_test_soon(), &keys[0], &t->err),
        &t->err);
    rp_tensor steps[] = {{RP_INT32, rp_test_shape(1, 3, 0), more},
                         {RP_FLOAT64, rp_test_shape(1, 3, 0), more_y}};
    assert_ok_err(rp_step_writer_append_sequence(writer, steps, 2, &t->err), &t->err);
    assert_ok_err(
        rp_step_writer_create_item(writer, bag, 4, 2, rp_test_soon(), &keys[1], &t->err),
        &t->err);
    assert_ok_err(
        rp_step_writer_create_item(writer, bag, 1, 3, rp_test_soon(), &keys[2], &t->err),
        &t->err);
    assert_int_equal(
        rp_step_writer_create_item(writer, bag, 5, 1, rp_test_soon(), NULL, &t->err),
        RP_INVALID);
    assert_int_equal(
        rp_step_writer_create_item(writer, "nowhere", 1, 1, rp_test_soon(), NULL, &t->err),
        RP_NOT_FOUND);
    assert_ok_err(rp_step_writer_flush(writer, rp_test_soon(), &t->err), &t->err);
    rp_test_take_keys(t, bag, keys, 3, out);
    RP_TEST_EXPECT_INTS(t, &out[0], 0, 1, 2);
    RP_TEST_EXPECT_INTS(t, &out[1], 0, 2, 3, 4, 5);
    rp_test_expect(t, &out[1], 1, RP_FLOAT64, rp_test_shape(1, 4, 0),
                   (const double[]){20, 30, 40, 50});
    RP_TEST_EXPECT_INTS(t, &out[2], 0, 5);
    assert_true(out[1].priority == 2);
    rp_samples_release(out, 3);
    rp_step_writer_free(writer);
}

/* Freeing does not wait: what is not confirmed is dropped, what is stays. */
static void freeing_a_step_writer_drops_open_items(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_step_writer_options options = {.max_sequence_length = 4, .chunk_length = 4};
    rp_step_writer *writer = NULL;
    int32_t x = 9;
    rp_tensor step = rp_test_int(&x);
    uint64_t keys[2];
    rp_sample out;

    assert_ok_err(rp_step_writer_new(t->client, &options, rp_test_soon(), &writer, &t->err),
                  &t->err);
    for (size_t i = 0; i < 2; i++) {
        assert_ok_err(rp_step_writer_append(writer, &step, 1, &t->err), &t->err);
        assert_ok_err(
            rp_step_writer_create_item(writer, bag, 1, 1, rp_test_soon(), &keys[i], &t->err),
            &t->err);
        if (i == 0)
            assert_ok_err(rp_step_writer_flush(writer, rp_test_soon(), &t->err), &t->err);
    }
    rp_step_writer_free(writer);
    rp_test_take_keys(t, bag, keys, 1, &out);
    RP_TEST_EXPECT_INTS(t, &out, 0, 9);
    rp_samples_release(&out, 1);
    assert_int_equal(rp_test_table_sum(t, bag).info.inserts, 1);
}

RP_TESTS(patterns)
{
    static const rp_test_case cases[] = {
        RP_TEST_CASE(nodes_pick_rows_from_the_end),
        RP_TEST_CASE(the_td_error_becomes_the_priority),
        RP_TEST_CASE(conditions_choose_the_steps),
        RP_TEST_CASE(the_end_of_an_episode_fires),
        RP_TEST_CASE(partial_steps_fire_once),
        RP_TEST_CASE(bad_patterns_are_refused),
        RP_TEST_CASE(a_batch_writer_appends_for_all_environments),
        RP_TEST_CASE(items_of_the_latest_steps),
        RP_TEST_CASE(freeing_a_step_writer_drops_open_items),
    };
    return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
}
