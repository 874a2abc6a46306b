/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns: when they make an item, of which rows, and with which priority. */
#include <math.h>

#include "client/writer/structured_writer.h"
#include "support/client_rig.h"

enum { X = 0, Y = 1, Z = 5 }; /* int32 scalars, but for Z, a float64 */

typedef struct rig {
    rp_test_client_rig r;
    rp_structured_writer *writer;
} rig;

static void open_rig(rig *g, const rp_pattern *patterns, size_t count)
{
    rp_structured_writer_options options = {.chunk_length = 2};
    rp_trajectory_writer_options under;
    rp_error err = {0};

    rp_test_client_open_store(&g->r);
    assert_ok_err(rp_pattern_check(patterns, count, &err), &err);
    under = rp_structured_writer_under(patterns, count, &options);
    rp_test_client_open_writer(&g->r, &under, false);
    assert_ok_err(rp_structured_writer_open(g->r.writer, patterns, count, &g->writer, &err),
                  &err);
    g->r.writer = NULL; /* it has it now */
    g->r.sink->automatic = true;
}

static void close_rig(rig *g)
{
    rp_structured_writer_free(g->writer);
    rp_test_client_deinit(&g->r);
}

static rp_value int_of(uint32_t column, const int32_t *x)
{
    return (rp_value){column, NULL, {RP_INT32, SCALAR, x}};
}

static rp_status put(rig *g, const rp_value *values, size_t count, uint32_t flags)
{
    return rp_structured_writer_append(g->writer, values, count, flags, rp_wait_ms(20000),
                                       &g->r.err);
}

/* Appends x and 10 x. */
static void step(rig *g, int32_t x)
{
    int32_t y = 10 * x;
    rp_value values[] = {int_of(X, &x), int_of(Y, &y)};

    assert_ok_err(put(g, values, 2, 0), &g->r.err);
}

static size_t flushed(rig *g)
{
    assert_ok_err(rp_structured_writer_flush(g->writer, 0, rp_wait_ms(20000), &g->r.err),
                  &g->r.err);
    return g->r.sink->count;
}

static void end(rig *g, bool clear)
{
    assert_ok_err(
        rp_structured_writer_end_episode(g->writer, clear, rp_wait_ms(20000), &g->r.err),
        &g->r.err);
}

/* Item `index` has in column `column` these rows of int32. */
static void expect(rig *g, size_t index, size_t column, const int32_t *rows, size_t count)
{
    const rp_trajectory *t = g->r.sink->items[index].trajectory;
    int32_t got[16];

    assert_true(index < g->r.sink->count);
    assert_int_equal(rp_trajectory_get_column(t, column).bytes, count * sizeof *rows);
    assert_ok(
        rp_decoder_stack(g->r.in.decoder, &t, 1, column, got, count * sizeof *rows, &g->r.err));
    assert_memory_equal(got, rows, count * sizeof *rows);
}
#define EXPECT(g, index, column, ...)                                                          \
    expect((g), (index), (column), (const int32_t[]){__VA_ARGS__},                             \
           sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

#define PATTERN_IF(nodes_, ...)                                                                \
    ((rp_pattern){.table = "a",                                                                \
                  .nodes = (nodes_),                                                           \
                  .node_count = COUNT_OF(nodes_),                                              \
                  .priority = {.value = 1},                                                    \
                  __VA_ARGS__})
#define PATTERN(nodes_) PATTERN_IF(nodes_, .condition_count = 0)
#define CONDITION(...) .conditions = &(rp_condition){__VA_ARGS__}, .condition_count = 1

static const rp_pattern_node last_x[] = {{.source = X, .has_stop = true, .stop = -1}};

static void patterns_are_checked(void **state)
{
    static const struct {
        rp_pattern_node node;
        const char *says;
    } bad[] = {
        {{0}, "At least one of `start` and `stop` must be specified"},
        {{.has_start = true, .start = 0}, "`start` must be < 0 but got 0"},
        {{.has_start = true, .start = -2, .has_stop = true, .stop = 1},
         "`stop` must be <= 0 but got 1"},
        {{.has_start = true, .start = -2, .has_stop = true, .stop = -2},
         "`stop` (-2) must be > `start` (-2) when both are specified"},
        {{.has_stop = true, .stop = 0}, "`stop` must be < 0 when `start` isn't set but got 0"},
        {{.has_stop = true, .stop = -1, .step = 2}, "`step` must only be set when `start` is"},
        {{.has_start = true, .start = -1, .step = -1}, "`step` must be > 0 but got -1"},
        {{.source = 5000, .has_stop = true, .stop = -1}, "`flat_source_index` must be < 4096"},
    };
    rp_error err = {0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        rp_pattern two[2] = {PATTERN(last_x), PATTERN(last_x)};
        two[1].nodes = &bad[i].node;
        assert_fails(rp_pattern_check(two, 2, &err), RP_INVALID, &err, bad[i].says);
        assert_non_null(strstr(err.text, "Invalid configuration at position 1: "));
    }
}

static void every_part_of_a_pattern_is_checked(void **state)
{
    rp_pattern p = PATTERN(last_x);
    rp_error err = {0};
    (void)state;
    assert_fails(rp_pattern_check(&p, 0, &err), RP_INVALID, &err, "At least one config");
    p.table = "";
    assert_fails(rp_pattern_check(&p, 1, &err), RP_INVALID, &err,
                 "Invalid configuration at position 0: `table` must not be empty");
    p = PATTERN(last_x);
    p.node_count = 0;
    assert_fails(rp_pattern_check(&p, 1, &err), RP_INVALID, &err, "`flat` must not be empty");
    p = PATTERN(last_x);
    p.priority.value = -1;
    assert_fails(rp_pattern_check(&p, 1, &err), RP_INVALID, &err, "`priority` must be >= 0");
    p.priority.value = NAN;
    assert_int_equal(rp_pattern_check(&p, 1, &err), RP_INVALID);
    p.priority = (rp_pattern_priority){.kind = RP_PRIORITY_TD_ERROR, .column = Y};
    assert_fails(rp_pattern_check(&p, 1, &err), RP_INVALID, &err, "TD error is that of column");
    p.priority = (rp_pattern_priority){
        .kind = RP_PRIORITY_TD_ERROR, .column = X, .max_priority_weight = 1.5};
    assert_fails(rp_pattern_check(&p, 1, &err), RP_INVALID, &err, "`max_priority_weight`");
}

static void conditions_are_checked(void **state)
{
    static const struct {
        rp_condition condition;
        const char *says;
    } bad[] = {
        {{.left = (rp_condition_left)9}, "Conditions must specify a value for `left`"},
        {{.compare = (rp_condition_compare)9}, "Conditions must specify a value for `cmp`"},
        {{.compare = RP_COMPARE_MOD_EQ, .mod = 0}, "`mod_eq.mod` must be > 0 but got 0"},
        {{.compare = RP_COMPARE_MOD_EQ, .mod = 2, .value = -1},
         "`mod_eq.eq` must be >= 0 but got -1"},
        {{.left = RP_LEFT_IS_END_EPISODE, .value = 0},
         "Condition must use `eq=1` when using `is_end_episode`"},
        {{.left = RP_LEFT_IS_END_EPISODE, .value = 1, .inverse = true}, "`is_end_episode`"},
        {{.left = RP_LEFT_IS_END_EPISODE, .value = 1, .compare = RP_COMPARE_GE},
         "`is_end_episode`"},
        {{.left = RP_LEFT_DATA, .column = 4096}, "flat_source_index must be < 4096"},
    };
    rp_error err = {0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        rp_pattern p =
            PATTERN_IF(last_x, .conditions = &bad[i].condition, .condition_count = 1);
        assert_fails(rp_pattern_check(&p, 1, &err), RP_INVALID, &err, bad[i].says);
    }
}

static void nodes_pick_rows_from_the_end(void **state)
{
    static const rp_pattern_node nodes[] = {
        {.source = X, .has_stop = true, .stop = -1},
        {.source = X, .has_start = true, .start = -3},
        {.source = Y, .has_start = true, .start = -4, .has_stop = true, .stop = -1},
        {.source = X, .has_start = true, .start = -5, .step = 2},
        {.source = X, .has_start = true, .start = -4, .has_stop = true, .stop = 0, .step = 3},
        {.source = Y, .has_stop = true, .stop = -5},
        {.source = Y, .has_start = true, .start = -1},
    };
    rp_pattern p = PATTERN(nodes);
    rig g;
    (void)state;
    open_rig(&g, &p, 1);

    for (int32_t x = 0; x < 4; x++) step(&g, x);
    assert_int_equal(flushed(&g), 0); /* -5 is not there yet */
    step(&g, 4);
    step(&g, 5);
    assert_int_equal(flushed(&g), 2);
    EXPECT(&g, 1, 0, 5);
    EXPECT(&g, 1, 1, 3, 4, 5);
    EXPECT(&g, 1, 2, 20, 30, 40);
    EXPECT(&g, 1, 3, 1, 3, 5);
    EXPECT(&g, 1, 4, 2, 5);
    EXPECT(&g, 1, 5, 10);
    EXPECT(&g, 1, 6, 50);
    EXPECT(&g, 0, 3, 0, 2, 4);
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        assert_int_equal(rp_trajectory_get_column(g.r.sink->items[0].trajectory, i).squeeze,
                         i == 0 || i == 5);
    close_rig(&g);
}

static void unused_columns_are_dropped(void **state)
{
    rp_pattern p = PATTERN(last_x);
    int32_t x = 1, huge[64] = {0};
    rp_value values[] = {int_of(X, &x),
                         int_of(Y, &x),
                         {Z, "z", {RP_INT32, SHAPE(64), huge}},
                         {123456, "far", {(rp_dtype)77, SCALAR, NULL}}};
    rp_spec spec;
    rig g;
    (void)state;
    open_rig(&g, &p, 1);

    assert_ok_err(put(&g, values, 4, 0), &g.r.err);
    assert_true(rp_trajectory_writer_spec(rp_structured_writer_inner(g.writer), X, &spec));
    assert_false(rp_trajectory_writer_spec(rp_structured_writer_inner(g.writer), Y, &spec));
    assert_false(rp_trajectory_writer_spec(rp_structured_writer_inner(g.writer), Z, &spec));
    assert_int_equal(flushed(&g), 1);
    close_rig(&g);
}

static void pattern_does_not_fire_over_a_missing_row(void **state)
{
    static const rp_pattern_node nodes[] = {{.source = X, .has_start = true, .start = -2},
                                            {.source = Y, .has_stop = true, .stop = -1}};
    rp_pattern p = PATTERN(nodes);
    int32_t x = 7;
    rp_value only_y = int_of(Y, &x);
    rig g;
    (void)state;
    open_rig(&g, &p, 1);

    step(&g, 0);
    step(&g, 1); /* fires */
    assert_ok(put(&g, &only_y, 1, 0));
    step(&g, 3); /* x of the step before is missing */
    step(&g, 4); /* fires */
    assert_int_equal(flushed(&g), 2);
    EXPECT(&g, 1, 0, 3, 4);
    close_rig(&g);
}

static void partial_steps_fire_when_the_rows_are_there_and_once(void **state)
{
    static const rp_pattern_node both[] = {{.source = X, .has_stop = true, .stop = -1},
                                           {.source = Y, .has_stop = true, .stop = -1}};
    rp_pattern patterns[] = {PATTERN(both), PATTERN(last_x)};
    int32_t x = 1, y = 2;
    double z = 0;
    rp_value vx = int_of(X, &x), vy = int_of(Y, &y), vz = {Z, "z", {RP_FLOAT64, SCALAR, &z}};
    rig g;
    (void)state;
    open_rig(&g, patterns, 2);

    assert_ok(put(&g, &vx, 1, RP_STEP_OPEN));
    assert_true(rp_structured_writer_is_open(g.writer));
    assert_int_equal(flushed(&g), 1); /* the second pattern */
    assert_ok(put(&g, &vz, 1, RP_STEP_OPEN));
    assert_int_equal(flushed(&g), 1);
    assert_ok(put(&g, &vy, 1, RP_STEP_OPEN));
    assert_int_equal(flushed(&g), 2); /* and the first */
    assert_ok(put(&g, NULL, 0, 0));
    assert_false(rp_structured_writer_is_open(g.writer));
    assert_int_equal(flushed(&g), 2);
    assert_fails(put(&g, (const rp_value[]){vx, vx}, 2, 0), RP_INVALID, &g.r.err, "already");
    end(&g, true);
    assert_int_equal(flushed(&g), 2); /* both had fired on that step */
    close_rig(&g);
}

static void a_step_without_used_values_counts_as_a_step(void **state)
{
    static const rp_pattern_node nodes[] = {{.source = X, .has_stop = true, .stop = -2},
                                            {.source = Y, .has_stop = true, .stop = -1}};
    rp_pattern patterns[] = {
        PATTERN(nodes),
        PATTERN_IF(last_x, CONDITION(.left = RP_LEFT_STEPS_SINCE_APPLIED, .value = 2))};
    int32_t x = 1;
    rp_value vx = int_of(X, &x);
    rig g;
    (void)state;
    open_rig(&g, patterns, 2);

    assert_ok(put(&g, &vx, 1, 0));
    assert_ok(put(&g, NULL, 0, 0)); /* not even counted */
    assert_int_equal(flushed(&g), 0);
    step(&g, 3); /* x of two steps before is two steps back */
    assert_int_equal(flushed(&g), 1);
    close_rig(&g);
}

/* Which of ten steps of an episode, and its end (10), fire; two episodes. */
static void expect_fires(rp_condition condition, const int *expected, size_t count)
{
    rp_pattern p = PATTERN_IF(last_x, .conditions = &condition, .condition_count = 1);
    rig g;

    open_rig(&g, &p, 1);
    for (int e = 0; e < 2; e++) {
        size_t fired = 0;
        for (int32_t x = 0; x <= 10; x++) {
            size_t before = flushed(&g);
            if (x < 10)
                step(&g, x);
            else
                end(&g, true);
            if (flushed(&g) == before) continue;
            if (fired >= count || expected[fired] != x) print_error("fired on step %d\n", x);
            assert_true(fired < count && expected[fired] == x);
            fired++;
        }
        assert_int_equal(fired, count);
    }
    close_rig(&g);
}
#define FIRES(condition, ...)                                                                  \
    expect_fires((rp_condition)UNWRAP condition, (const int[]){__VA_ARGS__},                   \
                 sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
#define UNWRAP(...)                                                                            \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

static void conditions_are_evaluated(void **state)
{
    (void)state;
    FIRES((.left = RP_LEFT_STEP_INDEX, .value = 3), 3);
    FIRES((.left = RP_LEFT_STEP_INDEX, .compare = RP_COMPARE_GE, .value = 7), 7, 8, 9);
    FIRES((.left = RP_LEFT_STEP_INDEX, .compare = RP_COMPARE_GE, .value = 2, .inverse = true),
          0, 1);
    FIRES((.left = RP_LEFT_STEP_INDEX, .compare = RP_COMPARE_MOD_EQ, .mod = 4, .value = 1), 1,
          5, 9);
    FIRES((.left = RP_LEFT_IS_END_EPISODE, .value = 1), 10);
    FIRES((.left = RP_LEFT_DATA, .column = Y, .value = 60), 6);
    FIRES(
        (.left = RP_LEFT_DATA, .column = X, .compare = RP_COMPARE_MOD_EQ, .mod = 5, .value = 2),
        2, 7);
    FIRES((.left = RP_LEFT_STEPS_SINCE_APPLIED, .compare = RP_COMPARE_GE, .value = 5), 4, 9);
}

static void steps_since_applied_begin_at_one(void **state)
{
    rp_pattern p =
        PATTERN_IF(last_x, CONDITION(.left = RP_LEFT_STEPS_SINCE_APPLIED, .value = 1));
    rig g;
    (void)state;
    open_rig(&g, &p, 1);
    for (int32_t x = 0; x < 4; x++) step(&g, x);
    assert_int_equal(flushed(&g), 4);
    close_rig(&g);
}

static void buffer_length_is_bounded_by_the_kept_history(void **state)
{
    static const rp_pattern_node three[] = {{.source = Y, .has_start = true, .start = -3}};
    rp_pattern patterns[] = {
        PATTERN_IF(last_x, CONDITION(.left = RP_LEFT_BUFFER_LENGTH, .value = 2)),
        PATTERN_IF(last_x, CONDITION(.left = RP_LEFT_BUFFER_LENGTH, .value = 3)),
        PATTERN_IF(last_x, CONDITION(.left = RP_LEFT_BUFFER_LENGTH, .value = 4)),
        PATTERN_IF(three, CONDITION(.left = RP_LEFT_STEP_INDEX, .value = 77)),
    };
    rig g;
    (void)state;
    open_rig(&g, patterns, 4);
    for (int32_t x = 0; x < 5; x++) step(&g, x);
    assert_int_equal(flushed(&g), 1 + 3);
    close_rig(&g);
}

static void condition_on_data_needs_an_integer_of_this_step(void **state)
{
    rp_pattern patterns[] = {
        PATTERN_IF(last_x, CONDITION(.left = RP_LEFT_DATA, .column = Y,
                                     .compare = RP_COMPARE_GE, .value = INT32_MIN)),
        PATTERN_IF(last_x,
                   CONDITION(.left = RP_LEFT_DATA, .column = Z, .compare = RP_COMPARE_GE,
                             .value = INT32_MIN, .inverse = true)),
    };
    int32_t x = 1;
    double z = 3;
    rp_value values[] = {int_of(X, &x), {Z, "z", {RP_FLOAT64, SCALAR, &z}}, int_of(Y, &x)};
    rig g;
    (void)state;
    open_rig(&g, patterns, 2);
    assert_ok(put(&g, values, 2, 0)); /* y has no value, z is no integer */
    assert_int_equal(flushed(&g), 0);
    assert_ok(put(&g, values, 3, 0));
    assert_int_equal(flushed(&g), 1);
    assert_ok(put(&g, values, 2, 0)); /* an old value of y does not count */
    assert_int_equal(flushed(&g), 1);
    close_rig(&g);
}

static void condition_reads_every_integer_type(void **state)
{
    static const struct {
        rp_dtype dtype;
        union {
            int64_t i;
            uint64_t u;
            uint8_t b;
        } data;
        int32_t value;
    } cases[] = {
        {RP_INT8, {.i = -5}, -5},
        {RP_INT16, {.i = -500}, -500},
        {RP_INT32, {.i = -70000}, -70000},
        {RP_INT64, {.i = -7}, -7},
        {RP_UINT8, {.u = 200}, 200},
        {RP_UINT16, {.u = 60000}, 60000},
        {RP_UINT32, {.u = 80000}, 80000},
        {RP_UINT64, {.u = 9}, 9},
        {RP_BOOL, {.b = 1}, 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_pattern p = PATTERN_IF(
            last_x, CONDITION(.left = RP_LEFT_DATA, .column = Y, .value = cases[i].value));
        int32_t x = 1;
        rp_value values[] = {int_of(X, &x), {Y, "y", {cases[i].dtype, SCALAR, &cases[i].data}}};
        rig g;
        open_rig(&g, &p, 1);
        assert_ok(put(&g, values, 2, 0));
        assert_int_equal(flushed(&g), 1);
        close_rig(&g);
    }
}

static void patterns_look_over_episodes_only_if_the_history_is_kept(void **state)
{
    static const rp_pattern_node two[] = {{.source = X, .has_start = true, .start = -2}};
    rp_pattern p = PATTERN(two);
    rig g;
    (void)state;
    open_rig(&g, &p, 1);
    step(&g, 0);
    end(&g, true);
    step(&g, 1); /* alone */
    assert_int_equal(flushed(&g), 0);
    end(&g, false);
    step(&g, 2);
    assert_int_equal(flushed(&g), 1);
    EXPECT(&g, 0, 0, 1, 2);
    end(&g, false);
    end(&g, false); /* nothing new */
    assert_int_equal(flushed(&g), 1);
    close_rig(&g);
}

static void td_error_weighs_the_largest_and_the_mean(void **state)
{
    static const rp_pattern_node nodes[] = {
        {.source = Z, .has_stop = true, .stop = -1},
        {.source = X, .has_stop = true, .stop = -1},
        {.source = Z, .has_start = true, .start = -4, .step = 2}, /* the last that has z */
    };
    rp_pattern p = PATTERN(nodes);
    double zs[] = {-8, 100, 2, -100, 0.5};
    rig g;
    (void)state;
    p.priority = (rp_pattern_priority){
        .kind = RP_PRIORITY_TD_ERROR, .max_priority_weight = 0.25, .column = Z};
    open_rig(&g, &p, 1);
    for (int32_t x = 0; x < 5; x++) {
        rp_value values[] = {int_of(X, &x), {Z, "z", {RP_FLOAT64, SCALAR, &zs[x]}}};
        assert_ok_err(put(&g, values, 2, 0), &g.r.err);
    }
    assert_int_equal(flushed(&g), 2);
    assert_true(fabs(g.r.sink->items[0].priority - (0.25 * 8 + 0.75 * 5)) < 1e-12);
    assert_true(fabs(g.r.sink->items[1].priority - (0.25 * 100 + 0.75 * 100)) < 1e-12);
    close_rig(&g);
}

static void td_error_needs_numbers(void **state)
{
    static const rp_pattern_node nodes[] = {{.source = Z, .has_stop = true, .stop = -1}};
    rp_pattern p = PATTERN(nodes);
    double z[2] = {NAN, 1};
    rp_value pair = {Z, "z", {RP_FLOAT64, SHAPE(2), z}},
             nan_one = {Z, "z", {RP_FLOAT64, SCALAR, z}};
    rig g;
    (void)state;
    p.priority = (rp_pattern_priority){.kind = RP_PRIORITY_TD_ERROR, .column = Z};
    open_rig(&g, &p, 1);
    assert_fails(put(&g, &pair, 1, 0), RP_INVALID, &g.r.err,
                 "column 5 'z': a TD error is computed from it");
    assert_fails(put(&g, &nan_one, 1, 0), RP_INVALID, &g.r.err, "NaN");
    assert_int_equal(flushed(&g), 0);
    close_rig(&g);
}

static void append_that_times_out_appends_nothing(void **state)
{
    rp_pattern p = PATTERN(last_x);
    rp_structured_writer_options options = {.max_items = 2};
    rp_trajectory_writer_options under = rp_structured_writer_under(&p, 1, &options);
    int32_t x = 1;
    rp_value v = int_of(X, &x);
    rig g;
    (void)state;
    rp_test_client_open_store(&g.r);
    rp_test_client_open_writer(&g.r, &under, false);
    assert_ok(rp_structured_writer_open(g.r.writer, &p, 1, &g.writer, &g.r.err));
    g.r.writer = NULL;
    assert_ok(put(&g, &v, 1, 0));
    assert_ok(put(&g, &v, 1, 0));

    assert_int_equal(rp_structured_writer_append(g.writer, &v, 1, 0, rp_wait_ms(5), &g.r.err),
                     RP_DEADLINE);
    assert_int_equal(rp_trajectory_writer_steps(rp_structured_writer_inner(g.writer)), 2);
    rp_test_sink_await(g.r.sink, 2);
    rp_test_sink_settle(g.r.sink, 1, RP_OK, "");
    assert_ok(rp_structured_writer_append(g.writer, &v, 1, 0, rp_wait_ms(5), &g.r.err));
    close_rig(&g);
}

static rp_status open_and_close(const rp_allocator *alloc)
{
    static const rp_pattern_node nodes[] = {
        {.source = Z, .has_start = true, .start = -3, .name = "zs"},
        {.source = X, .has_stop = true, .stop = -1}};
    static const rp_condition condition = {.left = RP_LEFT_DATA, .column = 9};
    rp_pattern patterns[2] = {PATTERN_IF(nodes, .conditions = &condition, .condition_count = 1),
                              PATTERN(last_x)};
    rp_writer_parts parts = {.alloc = alloc};
    rp_structured_writer_options options = {0};
    rp_trajectory_writer_options under;
    rp_trajectory_writer *writer = NULL;
    rp_structured_writer *structured = NULL;
    rp_status st;

    patterns[0].priority = (rp_pattern_priority){.kind = RP_PRIORITY_TD_ERROR, .column = Z};
    assert_ok(rp_runtime_get(&parts.runtime, NULL));
    under = rp_structured_writer_under(patterns, 2, &options);
    st = rp_trajectory_writer_open(&parts, &under, &writer, NULL);
    if (st != RP_OK) rp_runtime_put(parts.runtime);
    if (st == RP_OK) st = rp_structured_writer_open(writer, patterns, 2, &structured, NULL);
    if (structured != NULL)
        rp_structured_writer_free(structured);
    else
        rp_trajectory_writer_free(writer);
    return st;
}

static void opening_survives_a_lack_of_memory(void **state)
{
    rp_runtime *runtime = NULL;
    (void)state;
    assert_ok(rp_runtime_get(&runtime, NULL));
    rp_test_survives_oom(open_and_close);
    rp_runtime_put(runtime);
}

/* The server hangs. */
static rp_status find_in_vain(void *ctx, const char *table, rp_wait wait, rp_signature **out,
                              rp_error *err)
{
    (void)table;
    (void)out;
    (void)err;
    ++*(int *)ctx;
    assert_true(wait.until_ns <= rp_now_ns() + INT64_C(250000000));
    return RP_DEADLINE;
}

static void an_append_waits_a_quarter_of_a_second_for_signatures(void **state)
{
    const rp_pattern_node nodes[] = {{.source = X, .has_stop = true, .stop = -1, .name = "x"}};
    const rp_pattern pattern = PATTERN(nodes);
    const rp_structured_writer_options options = {.chunk_length = 1};
    rp_trajectory_writer_options under = rp_structured_writer_under(&pattern, 1, &options);
    rp_writer_parts parts;
    int asked = 0;
    rig g = {0};

    (void)state;
    rp_test_client_open_store(&g.r);
    parts = rp_test_client_parts(&g.r);
    parts.find = find_in_vain;
    parts.find_ctx = &asked;
    assert_ok_err(rp_trajectory_writer_open(&parts, &under, &g.r.writer, &g.r.err), &g.r.err);
    rp_trajectory_writer_attach(g.r.writer, rp_test_client_sink(&g.r, false));
    assert_ok_err(rp_structured_writer_open(g.r.writer, &pattern, 1, &g.writer, &g.r.err),
                  &g.r.err);
    g.r.writer = NULL; /* it has it now */
    g.r.sink->automatic = true;
    step(&g, 1);
    assert_int_equal(asked, 1);
    assert_int_equal(flushed(&g), 1);
    close_rig(&g);
}

RP_TESTS(structured_writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_waits_a_quarter_of_a_second_for_signatures),
        cmocka_unit_test(patterns_are_checked),
        cmocka_unit_test(every_part_of_a_pattern_is_checked),
        cmocka_unit_test(conditions_are_checked),
        cmocka_unit_test(nodes_pick_rows_from_the_end),
        cmocka_unit_test(unused_columns_are_dropped),
        cmocka_unit_test(pattern_does_not_fire_over_a_missing_row),
        cmocka_unit_test(partial_steps_fire_when_the_rows_are_there_and_once),
        cmocka_unit_test(a_step_without_used_values_counts_as_a_step),
        cmocka_unit_test(conditions_are_evaluated),
        cmocka_unit_test(steps_since_applied_begin_at_one),
        cmocka_unit_test(buffer_length_is_bounded_by_the_kept_history),
        cmocka_unit_test(condition_on_data_needs_an_integer_of_this_step),
        cmocka_unit_test(condition_reads_every_integer_type),
        cmocka_unit_test(patterns_look_over_episodes_only_if_the_history_is_kept),
        cmocka_unit_test(td_error_weighs_the_largest_and_the_mean),
        cmocka_unit_test(td_error_needs_numbers),
        cmocka_unit_test(append_that_times_out_appends_nothing),
        cmocka_unit_test(opening_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
