/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of adders: options, signatures, episodes, waits and failures. */
#include "reprise/rl/adder.h"

#include <math.h>

#include "support/adder_rig.h"

enum { COPIES = 3, WIDTH = 4 };

/* Three copies of CartPole with an adder. */
typedef struct fixture {
    rp_test_adder t;
    rp_env *env;
    float observations[COPIES * WIDTH], last[COPIES * WIDTH];
    int32_t actions[COPIES];
    double rewards[COPIES];
    bool terminated[COPIES], truncated[COPIES];
    rp_env_buffers out;
    rp_adder_step step;
} fixture;

static rp_adder_options n_step(int32_t n)
{
    return (rp_adder_options){.kind = RP_ADDER_N_STEP, .n = n, .discount = 0.99F};
}

static rp_adder_options sequence(int32_t length, int32_t period)
{
    return (rp_adder_options){.kind = RP_ADDER_SEQUENCE, .length = length, .period = period};
}

static void open_env(fixture *f)
{
    memset(f, 0, sizeof *f);
    f->out =
        (rp_env_buffers){f->observations, f->last, f->rewards, f->terminated, f->truncated};
    f->step = (rp_adder_step){.actions = f->actions,
                              .observations = f->observations,
                              .last_observations = f->last,
                              .rewards = f->rewards,
                              .terminated = f->terminated,
                              .truncated = f->truncated};
    assert_ok(rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = COPIES},
                         &f->env, NULL));
    assert_ok(rp_env_reset(f->env, (uint64_t[]){1, 2, 3}, f->observations, NULL));
}

static void open_fixture(fixture *f, rp_adder_options options)
{
    open_env(f);
    rp_adder_fit_env(&options, f->env);
    rp_test_adder_open(&f->t, options, false);
    assert_ok_err(rp_adder_first(f->t.adder, f->observations, NULL, &f->t.err), &f->t.err);
}

static void close_fixture(fixture *f)
{
    rp_test_adder_close(&f->t);
    rp_env_free(f->env);
}

static rp_status step(fixture *f, rp_wait wait)
{
    assert_ok_err(rp_env_step(f->env, f->actions, &f->out, &f->t.err), &f->t.err);
    return rp_adder_add(f->t.adder, &f->step, wait, &f->t.err);
}

static size_t drain(fixture *f, size_t table)
{
    rp_test_item item;
    size_t count = 0;

    while (rp_test_adder_take(&f->t, table, &item)) {
        rp_test_item_deinit(&item);
        count++;
    }
    return count;
}

static void an_environment_gives_copies_observation_and_action(void **state)
{
    (void)state;
    rp_adder_options options = {0};
    rp_env *env = NULL;
    fixture f;

    open_env(&f);
    rp_adder_fit_env(&options, f.env);
    assert_int_equal(options.copies, COPIES);
    assert_int_equal(options.observation.dtype, RP_FLOAT32);
    assert_int_equal(options.observation.shape.dims[0], WIDTH);
    assert_int_equal(options.action.dtype, RP_INT32);
    assert_int_equal(options.action.shape.rank, 0);
    rp_env_free(f.env);

    assert_ok(
        rp_env_new(NULL, rp_env_find("pendulum"), &(rp_env_options){.copies = 1}, &env, NULL));
    rp_adder_fit_env(&options, env);
    assert_int_equal(options.action.dtype, RP_FLOAT32);
    assert_int_equal(options.action.shape.rank, 1);
    assert_int_equal(options.action.shape.dims[0], 1);
    rp_env_free(env);
}

static void expect_column(const rp_signature *s, size_t at, const char *name, rp_dtype dtype,
                          const char *shape)
{
    const rp_spec *spec = rp_signature_column(s, at);
    char text[64];

    assert_string_equal(spec->name, name);
    assert_int_equal(spec->dtype, dtype);
    assert_string_equal(rp_shape_text(&spec->shape, text, sizeof text), shape);
}

static void signatures_are_those_of_acme(void **state)
{
    (void)state;
    const rp_spec extras[] = {{"core", RP_FLOAT32, {1, {8}}}, {"logits", RP_FLOAT32, {0}}};
    rp_adder_options options = n_step(3);
    rp_signature *s = NULL;
    size_t count;

    options.copies = 1;
    options.observation = (rp_spec){NULL, RP_UINT8, {2, {84, 84}}};
    options.action = (rp_spec){NULL, RP_INT32, {0}};
    options.reward_shape = (rp_shape){2, {2, 1}};
    options.discount_shape = (rp_shape){1, {3}};
    options.extras = extras;
    options.extra_count = 2;
    assert_ok(rp_adder_signature(&options, &s, NULL));
    assert_int_equal(rp_signature_column_count(s), 7);
    expect_column(s, 0, "observation", RP_UINT8, "[84,84]");
    expect_column(s, 2, "reward", RP_FLOAT32, "[2,3]");
    expect_column(s, 3, "discount", RP_FLOAT32, "[3]");
    expect_column(s, 4, "next_observation", RP_UINT8, "[84,84]");
    expect_column(s, 5, "extras/core", RP_FLOAT32, "[8]");
    expect_column(s, 6, "extras/logits", RP_FLOAT32, "[]");
    assert_string_equal(rp_signature_nodes(s, &count)[0].type_name, "Transition");
    rp_signature_unref(s);

    options.kind = RP_ADDER_SEQUENCE;
    options.length = options.period = 5;
    assert_ok(rp_adder_signature(&options, &s, NULL));
    expect_column(s, 0, "observation", RP_UINT8, "[5,84,84]");
    expect_column(s, 2, "reward", RP_FLOAT32, "[5,2,1]");
    expect_column(s, 4, "start_of_episode", RP_BOOL, "[5]");
    expect_column(s, 6, "extras/logits", RP_FLOAT32, "[5]");
    rp_signature_unref(s);

    options.kind = RP_ADDER_EPISODE;
    options.extra_count = 0;
    assert_ok(rp_adder_signature(&options, &s, NULL));
    assert_int_equal(rp_signature_column_count(s), 5);
    expect_column(s, 4, "start_of_episode", RP_BOOL, "[?]");
    rp_signature_unref(s);
}

static void expect_refused(rp_adder_options options, const char *why)
{
    rp_adder_table tables[] = {{.name = "first"}, {.name = "first"}};
    rp_adder *adder = NULL;
    rp_test_adder t;

    rp_test_adder_store(&t, NULL);
    if (options.tables == NULL) {
        options.tables = tables;
        options.table_count = options.table_count == 0 ? 1 : options.table_count;
    }
    assert_fails(rp_adder_new(t.client, &options, rp_wait_none(), &adder, &t.err), RP_INVALID,
                 &t.err, why);
    assert_null(adder);
    rp_test_adder_close(&t);
}

static void bad_options_are_named(void **state)
{
    (void)state;
    const rp_spec unsorted[] = {{"b", RP_INT32, {0}}, {"a", RP_INT32, {0}}};
    const rp_spec nameless = {NULL, RP_INT32, {0}};
    rp_adder_options good = n_step(2), o;

    good.copies = 2;
    good.observation = (rp_spec){NULL, RP_FLOAT32, {1, {WIDTH}}};
    good.action = (rp_spec){NULL, RP_INT32, {0}};

    o = good, o.copies = 0;
    expect_refused(o, "copies must be in [1, 1048576], got 0");
    o = good, o.n = 0;
    expect_refused(o, "n must be in [1, ");
    o = good, o.discount = (float)NAN;
    expect_refused(o, "discount must be finite");
    o = good, o.observation.dtype = RP_STRING;
    expect_refused(o, "observation has no dtype of fixed size");
    o = good, o.action.shape = (rp_shape){1, {0}};
    expect_refused(o, "action must have 1 to");
    o = good, o.reward_shape = (rp_shape){1, {2}}, o.discount_shape = (rp_shape){1, {3}};
    expect_refused(o, "do not broadcast");
    o = good, o.extras = unsorted, o.extra_count = 2;
    expect_refused(o, "in byte order of their names, got 'b' before 'a'");
    o = good, o.extras = &nameless, o.extra_count = 1;
    expect_refused(o, "extra 0 has no name");
    o = good, o.table_count = 2;
    expect_refused(o, "table 'first' is given twice");
    o = good, o.kind = (rp_adder_kind)9;
    expect_refused(o, "kind 9 is unknown");

    o = good, o.kind = RP_ADDER_SEQUENCE, o.length = 3;
    expect_refused(o, "period must be in [1, ");
    o.period = 4, o.end = RP_ADDER_TRUNCATE;
    expect_refused(o, "period must be at most length = 3, got 4");
    o.period = 1, o.copies = 1000;
    expect_refused(o, "has at most 819 copies, got 1000");
    o = good, o.kind = RP_ADDER_EPISODE, o.length = 1;
    expect_refused(o, "length must be in [2, ");
}

static void steps_without_arrays_are_refused(void **state)
{
    (void)state;
    fixture f;
    rp_adder_step empty = {0};

    open_fixture(&f, n_step(1));
    assert_fails(rp_adder_add(f.t.adder, &empty, rp_wait_none(), &f.t.err), RP_INVALID,
                 &f.t.err, "are missing");
    assert_fails(rp_adder_first(f.t.adder, NULL, NULL, &f.t.err), RP_INVALID, &f.t.err,
                 "no observations");
    assert_ok_err(step(&f, rp_wait_none()), &f.t.err);
    close_fixture(&f);
}

static void a_rate_limiter_holds_up_the_adder_and_nothing_is_lost(void **state)
{
    (void)state;
    fixture f;
    rp_table_alteration narrow = {.which = RP_ALTER_LIMITER, .limiter = rp_limiter_queue(4)};
    rp_adder_options options = n_step(1);
    size_t taken = 0, refused = 0, added = 0;

    options.max_in_flight = 1;
    open_fixture(&f, options);
    assert_ok_err(rp_table_alter(f.t.tables[0], &narrow, &f.t.err), &f.t.err);
    for (size_t i = 0; i < 20; i++) {
        rp_status st;
        assert_ok(rp_env_step(f.env, f.actions, &f.out, NULL));
        while ((st = rp_adder_add(f.t.adder, &f.step, rp_wait_none(), &f.t.err)) != RP_OK) {
            assert_int_equal(st, RP_DEADLINE);
            taken += drain(&f, 0);
            refused++;
        }
        added += COPIES;
    }
    while (taken < added) taken += drain(&f, 0);

    assert_true(refused > 5);
    assert_int_equal(rp_adder_created(f.t.adder), added);
    assert_ok_err(rp_adder_flush(f.t.adder, rp_wait_forever(), &f.t.err), &f.t.err);
    assert_int_equal(drain(&f, 0), 0);
    close_fixture(&f);
}

static void a_reset_drops_open_episodes(void **state)
{
    (void)state;
    const bool second[COPIES] = {false, true, false};
    const int32_t kinds[] = {RP_ADDER_N_STEP, RP_ADDER_SEQUENCE};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        fixture f;
        rp_adder_options options = kinds[i] == RP_ADDER_N_STEP ? n_step(3) : sequence(3, 3);
        size_t items;
        open_fixture(&f, options);
        for (int k = 0; k < 2; k++) assert_ok_err(step(&f, rp_wait_forever()), &f.t.err);
        assert_ok_err(rp_adder_reset(f.t.adder, second, rp_wait_none(), &f.t.err), &f.t.err);
        assert_fails(step(&f, rp_wait_none()), RP_PRECONDITION, &f.t.err,
                     "copy 1 has not begun");
        assert_ok_err(rp_adder_first(f.t.adder, f.observations, second, &f.t.err), &f.t.err);
        assert_ok_err(rp_adder_flush(f.t.adder, rp_wait_forever(), &f.t.err), &f.t.err);
        items = drain(&f, 0);
        assert_int_equal(items, kinds[i] == RP_ADDER_N_STEP ? 2 * COPIES : 0);
        assert_ok_err(step(&f, rp_wait_forever()), &f.t.err);
        assert_ok_err(rp_adder_flush(f.t.adder, rp_wait_forever(), &f.t.err), &f.t.err);
        assert_int_equal(drain(&f, 0), kinds[i] == RP_ADDER_N_STEP ? COPIES : COPIES - 1);

        assert_ok_err(rp_adder_reset(f.t.adder, NULL, rp_wait_forever(), &f.t.err), &f.t.err);
        assert_ok_err(rp_adder_first(f.t.adder, f.observations, NULL, &f.t.err), &f.t.err);
        assert_ok_err(step(&f, rp_wait_forever()), &f.t.err);
        close_fixture(&f);
    }
}

static void an_episode_that_is_too_long_is_refused(void **state)
{
    (void)state;
    fixture f;
    rp_adder_options options = {.kind = RP_ADDER_EPISODE, .length = 4};

    open_fixture(&f, options);
    for (int i = 0; i < 3; i++) assert_ok_err(step(&f, rp_wait_forever()), &f.t.err);
    assert_fails(step(&f, rp_wait_forever()), RP_PRECONDITION, &f.t.err,
                 "the episode of copy 0 has 4 rows");

    /* An end at this step does not help: row 4 would be the fifth. */
    f.terminated[0] = f.terminated[1] = f.terminated[2] = true;
    assert_fails(rp_adder_add(f.t.adder, &f.step, rp_wait_forever(), &f.t.err), RP_PRECONDITION,
                 &f.t.err, "exceed length = 4");
    assert_int_equal(rp_adder_created(f.t.adder), 0);
    assert_true(rp_adder_verify(f.t.adder));
    close_fixture(&f);
}

static rp_status refuse(void *ctx, const rp_adder_items *items, double *priorities,
                        rp_error *err)
{
    int *left = ctx;

    priorities[0] = (double)items->count;
    if (--*left >= 0) return RP_OK;
    err->code = RP_INTERNAL;
    (void)strcpy(err->text, "no priority");
    return RP_INTERNAL;
}

static void a_failed_adder_works_again_after_a_reset(void **state)
{
    (void)state;
    for (int kind = RP_ADDER_N_STEP; kind <= RP_ADDER_SEQUENCE; kind++) {
        fixture f;
        int left = 4;
        rp_adder_table table = {"first", refuse, &left};
        rp_adder_options options = kind == RP_ADDER_N_STEP ? n_step(2) : sequence(2, 1);
        rp_status st = RP_OK;
        uint64_t before;

        options.tables = &table;
        options.table_count = 1;
        open_fixture(&f, options);
        for (int i = 0; st == RP_OK && i < 10; i++) st = step(&f, rp_wait_forever());
        assert_fails(st, RP_INTERNAL, &f.t.err, "no priority");
        assert_fails(step(&f, rp_wait_forever()), RP_PRECONDITION, &f.t.err,
                     "an earlier call failed");
        assert_fails(rp_adder_reset(f.t.adder, f.terminated, rp_wait_none(), &f.t.err),
                     RP_PRECONDITION, &f.t.err, "an earlier call failed");
        left = 1000;
        assert_ok_err(rp_adder_reset(f.t.adder, NULL, rp_wait_forever(), &f.t.err), &f.t.err);
        (void)drain(&f, 0);
        before = rp_adder_created(f.t.adder);
        assert_ok_err(rp_adder_first(f.t.adder, f.observations, NULL, &f.t.err), &f.t.err);
        for (int i = 0; i < 5; i++) assert_ok_err(step(&f, rp_wait_forever()), &f.t.err);
        assert_ok_err(rp_adder_flush(f.t.adder, rp_wait_forever(), &f.t.err), &f.t.err);
        assert_true(rp_adder_created(f.t.adder) - before >= 4 * COPIES);
        assert_int_equal(drain(&f, 0), rp_adder_created(f.t.adder) - before);
        close_fixture(&f);
    }
}

static void an_item_that_does_not_fit_its_table_is_an_error(void **state)
{
    (void)state;
    fixture f;
    rp_adder_options three = n_step(1), two = n_step(1);
    rp_adder_table table = {.name = "first"};

    open_env(&f);
    rp_adder_fit_env(&three, f.env);
    rp_adder_fit_env(&two, f.env);
    three.observation.shape.dims[0] = WIDTH + 1;
    two.tables = &table;
    two.table_count = 1;
    rp_test_adder_store(&f.t, &three);
    assert_ok(rp_adder_new(f.t.client, &two, rp_wait_forever(), &f.t.adder, &f.t.err));
    assert_ok(rp_adder_first(f.t.adder, f.observations, NULL, &f.t.err));
    assert_fails(step(&f, rp_wait_forever()), RP_INVALID, &f.t.err, "table 'first'");
    close_fixture(&f);
}

static void a_table_that_is_closed_ends_the_adder(void **state)
{
    (void)state;
    fixture f;
    rp_status st = RP_OK;

    open_fixture(&f, sequence(2, 1));
    rp_store_close(f.t.store);
    for (int i = 0; st == RP_OK && i < 20; i++) {
        st = step(&f, rp_wait_forever());
        if (st == RP_OK) st = rp_adder_flush(f.t.adder, rp_wait_forever(), &f.t.err);
    }
    assert_int_equal(st, RP_CANCELLED);
    close_fixture(&f);
}

/* What sequences show to prioritize() is what the table gets. */
static rp_status sum(void *ctx, const rp_adder_items *items, double *priorities, rp_error *err)
{
    const float *observations = items->columns[0], *rewards = items->columns[2];
    const bool *starts = items->columns[4];
    double total = 0;

    (void)ctx;
    (void)err;
    assert_int_equal(items->count, 1);
    for (size_t i = 0; i < items->rows * WIDTH; i++) total += fabs((double)observations[i]);
    for (size_t i = 0; i < items->rows; i++) total += (double)rewards[i] + (starts[i] ? 1 : 0);
    priorities[0] = total;
    return RP_OK;
}

static void priorities_of_sequences_are_computed_from_their_rows(void **state)
{
    (void)state;
    for (int end = RP_ADDER_ZERO_PAD; end <= RP_ADDER_CONTINUE; end++) {
        fixture f;
        rp_adder_table table = {"first", sum, NULL};
        rp_adder_options options = sequence(6, 4);
        rp_test_item item;
        size_t count = 0;

        options.end = (rp_adder_end)end;
        options.tables = &table;
        options.table_count = 1;
        open_fixture(&f, options);
        for (int i = 0; i < 60; i++) assert_ok_err(step(&f, rp_wait_forever()), &f.t.err);
        assert_ok_err(rp_adder_flush(f.t.adder, rp_wait_forever(), &f.t.err), &f.t.err);
        while (rp_test_adder_take(&f.t, 0, &item)) {
            size_t rows = (size_t)item.columns[0].shape.dims[0];
            rp_adder_items items = {1, rows, NULL, (const void *const *)item.data, 5};
            double expected = 0;
            assert_ok(sum(NULL, &items, &expected, NULL));
            assert_true(item.priority == expected);
            rp_test_item_deinit(&item);
            count++;
        }
        assert_true(count > 20);
        close_fixture(&f);
    }
}

static rp_adder_options scenario_options;

static rp_status run_without_memory(const rp_allocator *alloc)
{
    static const rp_spec extra = {"x", RP_INT16, {0}};
    rp_adder_table table = {"first", sum, NULL};
    rp_adder_options options = scenario_options;
    rp_adder *adder = NULL;
    rp_error err = {0};
    rp_test_adder t;
    rp_status st;

    rp_test_adder_store(&t, NULL);
    options.alloc = alloc;
    options.copies = 2;
    options.observation = (rp_spec){NULL, RP_FLOAT32, {1, {WIDTH}}};
    options.action = (rp_spec){NULL, RP_INT32, {0}};
    options.extras = &extra;
    options.extra_count = 1;
    options.tables = &table;
    options.table_count = 1;
    st = rp_adder_new(t.client, &options, rp_wait_forever(), &adder, &err);
    assert_int_equal(st, err.code);
    rp_adder_free(adder);
    rp_test_adder_close(&t);
    return st;
}

static void an_adder_without_memory_is_a_status(void **state)
{
    (void)state;
    scenario_options = n_step(2);
    rp_test_survives_oom(run_without_memory);
    scenario_options = sequence(3, 2);
    rp_test_survives_oom(run_without_memory);
}

RP_TESTS(adder)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_environment_gives_copies_observation_and_action),
        cmocka_unit_test(signatures_are_those_of_acme),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(steps_without_arrays_are_refused),
        cmocka_unit_test(a_rate_limiter_holds_up_the_adder_and_nothing_is_lost),
        cmocka_unit_test(a_reset_drops_open_episodes),
        cmocka_unit_test(an_episode_that_is_too_long_is_refused),
        cmocka_unit_test(a_failed_adder_works_again_after_a_reset),
        cmocka_unit_test(an_item_that_does_not_fit_its_table_is_an_error),
        cmocka_unit_test(a_table_that_is_closed_ends_the_adder),
        cmocka_unit_test(priorities_of_sequences_are_computed_from_their_rows),
        cmocka_unit_test(an_adder_without_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
