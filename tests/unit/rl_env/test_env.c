/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/env.h"

#include <math.h>
#include <string.h>

#include "reprise/rl/random.h"
#include "support/unit.h"

enum { COPIES = 5, OBSERVATION = 4 };

/* Five copies of CartPole with their buffers. */
typedef struct fixture {
    rp_env *env;
    rp_error err;
    uint64_t seeds[COPIES];
    int32_t actions[COPIES];
    float observations[COPIES][OBSERVATION], last[COPIES][OBSERVATION];
    double rewards[COPIES];
    bool terminated[COPIES], truncated[COPIES];
    rp_env_buffers out;
} fixture;

static void open_fixture(fixture *f, rp_env_options options)
{
    memset(f, 0, sizeof *f);
    options.copies = COPIES;
    for (size_t i = 0; i < COPIES; i++) f->seeds[i] = 10 + i;
    f->out =
        (rp_env_buffers){f->observations, f->last, f->rewards, f->terminated, f->truncated};
    assert_ok_err(rp_env_new(NULL, rp_env_find("cartpole"), &options, &f->env, &f->err),
                  &f->err);
    assert_ok(rp_env_reset(f->env, f->seeds, f->observations, &f->err));
}

static void step(fixture *f)
{
    assert_ok_err(rp_env_step(f->env, f->actions, &f->out, &f->err), &f->err);
}

static void our_environments_are_found_by_both_names(void **state)
{
    (void)state;
    size_t count = 0;

    for (; rp_env_class_at(count) != NULL; count++) {
        const rp_env_class *class = rp_env_class_at(count);
        assert_ptr_equal(rp_env_find(class->name), class);
        if (class->alias != NULL) assert_ptr_equal(rp_env_find(class->alias), class);
        assert_true(strlen(class->about) > 10);
    }
    assert_true(count >= 5);
    assert_null(rp_env_find("cartpole2"));
    assert_ptr_equal(rp_env_find("CartPole-v1"), rp_env_find("cartpole"));
}

static void a_copy_does_not_depend_on_the_copies_beside_it(void **state)
{
    (void)state;
    fixture f;
    rp_env *alone = NULL;
    float observation[OBSERVATION];
    bool terminated, truncated;
    double reward;
    rp_env_buffers out = {observation, NULL, &reward, &terminated, &truncated};

    open_fixture(&f, (rp_env_options){0});
    assert_ok(rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = 1}, &alone,
                         NULL));
    assert_ok(rp_env_reset(alone, &f.seeds[3], observation, NULL));
    for (int32_t i = 0; i < 200; i++) {
        for (int32_t k = 0; k < COPIES; k++) f.actions[k] = (i * 7 + k) % 3 == 0;
        step(&f);
        assert_ok(rp_env_step(alone, &f.actions[3], &out, NULL));
        assert_memory_equal(f.observations[3], observation, sizeof observation);
        assert_int_equal(f.terminated[3], terminated);
    }
    rp_env_free(alone);
    rp_env_free(f.env);
}

static void an_ended_copy_is_reset_and_keeps_its_last_observation(void **state)
{
    (void)state;
    fixture f, kept;
    size_t ends = 0;

    open_fixture(&f, (rp_env_options){0});
    open_fixture(&kept, (rp_env_options){.keep_ended = true});
    memset(f.last, 0x55, sizeof f.last);
    for (int i = 0; i < 50; i++) {
        step(&f); /* always to the left: the pole falls */
        step(&kept);
        for (size_t k = 0; k < COPIES; k++) {
            float untouched[OBSERVATION];
            memset(untouched, 0x55, sizeof untouched);
            if (f.terminated[k]) {
                assert_memory_equal(f.last[k], kept.observations[k], sizeof f.last[k]);
                assert_ok(rp_env_reset_copy(kept.env, k, NULL, kept.observations[k], NULL));
                assert_int_equal(rp_env_steps(f.env, k), 0);
                ends++;
            } else {
                assert_memory_equal(f.last[k], untouched, sizeof untouched);
            }
            assert_memory_equal(f.observations[k], kept.observations[k], sizeof f.last[k]);
            memset(f.last[k], 0x55, sizeof f.last[k]);
        }
    }

    assert_true(ends >= 20);
    rp_env_free(f.env);
    rp_env_free(kept.env);
}

static void time_limit_truncates_and_both_flags_may_be_true(void **state)
{
    (void)state;
    fixture f;
    int64_t length = 0;

    open_fixture(&f, (rp_env_options){0});
    do {
        step(&f);
        length++;
    } while (!f.terminated[0]);
    assert_false(f.truncated[0]);
    rp_env_free(f.env);

    open_fixture(&f, (rp_env_options){.time_limit = length});
    for (int64_t i = 0; i < length; i++) {
        assert_false(f.terminated[0] || f.truncated[0]);
        step(&f);
    }
    assert_true(f.terminated[0] && f.truncated[0]);
    rp_env_free(f.env);

    open_fixture(&f, (rp_env_options){.time_limit = length - 1});
    for (int64_t i = 0; i < length - 1; i++) step(&f);
    assert_true(!f.terminated[0] && f.truncated[0]);
    rp_env_free(f.env);
}

static void bad_actions_are_named_and_change_nothing(void **state)
{
    (void)state;
    fixture f;
    char before[512], after[512];

    open_fixture(&f, (rp_env_options){0});
    assert_true(rp_env_snapshot_bytes(f.env) <= sizeof before);
    rp_env_save(f.env, 0, before);
    f.actions[2] = 2;
    assert_fails(rp_env_step(f.env, f.actions, &f.out, &f.err), RP_INVALID, &f.err,
                 "environment 'cartpole', copy 2: the action must be in [0, 1], got 2");
    f.actions[2] = -1;
    assert_fails(rp_env_step(f.env, f.actions, &f.out, &f.err), RP_INVALID, &f.err, "got -1");
    rp_env_save(f.env, 0, after);

    assert_memory_equal(before, after, rp_env_snapshot_bytes(f.env));
    rp_env_free(f.env);
}

static void bad_box_actions_are_named(void **state)
{
    (void)state;
    rp_env *env = NULL;
    rp_error err;
    uint64_t seeds[2] = {1, 2};
    float observations[2][3], actions[2] = {0, NAN};
    double rewards[2];
    bool terminated[2], truncated[2];
    rp_env_buffers out = {observations, NULL, rewards, terminated, truncated};
    rp_env_options options = {.copies = 2};

    assert_ok(rp_env_new(NULL, rp_env_find("pendulum"), &options, &env, &err));
    assert_ok(rp_env_reset(env, seeds, observations, &err));
    assert_fails(rp_env_step(env, actions, &out, &err), RP_INVALID, &err,
                 "environment 'pendulum', copy 1: element 0 of the action is nan");
    actions[1] = 2.5f;
    assert_fails(rp_env_step(env, actions, &out, &err), RP_INVALID, &err,
                 "must be in [-2, 2], got 2.5");
    rp_env_free(env);

    options.clip_actions = true;
    assert_ok(rp_env_new(NULL, rp_env_find("pendulum"), &options, &env, &err));
    assert_ok(rp_env_reset(env, seeds, observations, &err));
    assert_ok_err(rp_env_step(env, actions, &out, &err), &err);
    actions[1] = -INFINITY;
    assert_fails(rp_env_step(env, actions, &out, &err), RP_INVALID, &err, "is -inf");
    rp_env_free(env);
}

static void bad_options_are_named(void **state)
{
    (void)state;
    const rp_env_class *class = rp_env_find("cartpole");
    rp_env_setting setting = {"reset_low", 5};
    rp_env_options options = {.copies = 0, .settings = &setting, .setting_count = 1};
    rp_env *env = NULL;
    rp_error err;

    assert_fails(rp_env_new(NULL, class, &options, &env, &err), RP_INVALID, &err,
                 "copies must be in [1, 1048576], got 0");
    options.copies = 1;
    assert_fails(rp_env_new(NULL, class, &options, &env, &err), RP_INVALID, &err,
                 "environment 'cartpole': setting 'reset_low' must be in [-4, 4], got 5");
    setting.value = NAN;
    assert_fails(rp_env_new(NULL, class, &options, &env, &err), RP_INVALID, &err, "got nan");
    setting.value = 1;
    assert_fails(rp_env_new(NULL, class, &options, &env, &err), RP_INVALID, &err,
                 "reset_low must be at most reset_high, got 1 and 0.05");
    setting.name = "gravity";
    assert_fails(rp_env_new(NULL, class, &options, &env, &err), RP_INVALID, &err,
                 "environment 'cartpole' has no setting 'gravity'");
    options.setting_count = 0;
    options.time_limit = -2;
    assert_fails(rp_env_new(NULL, class, &options, &env, &err), RP_INVALID, &err,
                 "time_limit is negative");
    assert_fails(rp_env_new(NULL, NULL, &options, &env, &err), RP_INVALID, &err, "NULL");
    assert_null(env);
}

static void steps_and_resets_out_of_order_are_named(void **state)
{
    (void)state;
    rp_env *env = NULL;
    rp_error err;
    float observations[2][OBSERVATION];
    int32_t actions[2] = {0, 0};
    uint64_t seed = 1;
    double rewards[2];
    bool terminated[2], truncated[2];
    rp_env_buffers out = {observations, NULL, rewards, terminated, truncated};

    assert_ok(
        rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = 2}, &env, &err));
    assert_fails(rp_env_reset(env, NULL, observations, &err), RP_PRECONDITION, &err,
                 "copy 0: the first reset needs a seed");
    assert_ok(rp_env_reset_copy(env, 0, &seed, observations, &err));
    assert_fails(rp_env_step(env, actions, &out, &err), RP_PRECONDITION, &err,
                 "1 of 2 copies need a reset before a step");
    assert_fails(rp_env_set_variables(env, 1, rewards, &err), RP_PRECONDITION, &err,
                 "copy 1 was never reset");
    assert_true(rp_env_verify(env));
    rp_env_free(env);
}

static void a_snapshot_continues_the_run(void **state)
{
    (void)state;
    fixture f;
    char bytes[COPIES][512];
    float first[100][COPIES][OBSERVATION], observation[OBSERVATION];

    open_fixture(&f, (rp_env_options){0});
    for (int i = 0; i < 7; i++) step(&f);
    size_t size = rp_env_snapshot_bytes(f.env);
    for (size_t k = 0; k < COPIES; k++) rp_env_save(f.env, k, bytes[k]);
    for (int i = 0; i < 100; i++) {
        step(&f);
        memcpy(first[i], f.observations, sizeof f.observations);
    }
    rp_env_free(f.env);

    open_fixture(&f, (rp_env_options){0});
    for (size_t k = 0; k < COPIES; k++)
        assert_ok(rp_env_load(f.env, k, bytes[k], size, observation, &f.err));
    assert_int_equal(rp_env_steps(f.env, 0), 7);
    for (int i = 0; i < 100; i++) {
        step(&f); /* through resets: the random streams go on as well */
        assert_memory_equal(first[i], f.observations, sizeof f.observations);
    }
    rp_env_free(f.env);
}

static void damaged_snapshots_are_refused(void **state)
{
    (void)state;
    fixture f;
    char bytes[512], before[512], after[512];
    rp_env *other = NULL;

    open_fixture(&f, (rp_env_options){0});
    size_t size = rp_env_snapshot_bytes(f.env);
    rp_env_save(f.env, 0, bytes);
    rp_env_save(f.env, 1, before);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 4;
        rp_status st = rp_env_load(f.env, 1, bytes, size, NULL, &f.err);
        assert_true(st == RP_CORRUPT || st == RP_INVALID);
        bytes[i] ^= 4;
        if (i > 0) assert_int_equal(rp_env_load(f.env, 1, bytes, i, NULL, &f.err), RP_CORRUPT);
    }
    rp_env_save(f.env, 1, after);
    assert_memory_equal(before, after, size);

    assert_ok(
        rp_env_new(NULL, rp_env_find("acrobot"), &(rp_env_options){.copies = 1}, &other, NULL));
    assert_fails(rp_env_load(other, 0, bytes, size, NULL, &f.err), RP_INVALID, &f.err,
                 "the snapshot is of another class or of other settings");
    rp_env_free(other);
    rp_env_free(f.env);
}

static void variables_that_cannot_be_are_refused(void **state)
{
    (void)state;
    fixture f;
    double before[OBSERVATION], after[OBSERVATION];

    open_fixture(&f, (rp_env_options){0});
    rp_env_get_variables(f.env, 1, before);
    assert_fails(rp_env_set_variables(f.env, 1, (double[]){0, NAN, 0, 0}, &f.err), RP_INVALID,
                 &f.err, "copy 1 cannot be in such a state");
    rp_env_get_variables(f.env, 1, after);

    assert_memory_equal(before, after, sizeof before);
    rp_env_free(f.env);
}

static rp_status a_life(const rp_allocator *alloc)
{
    rp_env *env = NULL;
    rp_env_options options = {.copies = 3};
    uint64_t seeds[3] = {0};
    float observations[3][OBSERVATION];
    char bytes[512];
    rp_status st = rp_env_new(alloc, rp_env_find("cartpole"), &options, &env, NULL);

    if (st != RP_OK) return st;
    st = rp_env_reset(env, seeds, observations, NULL);
    rp_env_save(env, 0, bytes);
    if (st == RP_OK)
        st = rp_env_load(env, 1, bytes, rp_env_snapshot_bytes(env), observations, NULL);
    if (st == RP_OK) st = rp_env_set_variables(env, 0, (double[]){0, 0, 0, 0}, NULL);
    rp_env_free(env);
    return st;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(a_life);
    rp_env_free(NULL);
}

RP_TESTS(env)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_environments_are_found_by_both_names),
        cmocka_unit_test(a_copy_does_not_depend_on_the_copies_beside_it),
        cmocka_unit_test(an_ended_copy_is_reset_and_keeps_its_last_observation),
        cmocka_unit_test(time_limit_truncates_and_both_flags_may_be_true),
        cmocka_unit_test(bad_actions_are_named_and_change_nothing),
        cmocka_unit_test(bad_box_actions_are_named),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(steps_and_resets_out_of_order_are_named),
        cmocka_unit_test(a_snapshot_continues_the_run),
        cmocka_unit_test(damaged_snapshots_are_refused),
        cmocka_unit_test(variables_that_cannot_be_are_refused),
        cmocka_unit_test(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
