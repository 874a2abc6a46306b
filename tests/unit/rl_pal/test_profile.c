/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/profile.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

/* A small agent and a profile of it. */
typedef struct fixture {
    rp_agent_settings settings;
    rp_profile_options options;
    rp_profile *profile;
    rp_error err;
    int points;
    int stops_after; /* questions; 0: never */
} fixture;

static bool stop(void *ctx)
{
    fixture *f = ctx;

    return f->stops_after > 0 && --f->stops_after == 0;
}

static void count_point(void *ctx, rp_profile_what what, rp_rate_point point)
{
    fixture *f = ctx;

    assert_true(what <= RP_PROFILE_LEARNING && point.threads >= 1 && point.rate > 0);
    f->points++;
}

static void set(fixture *f, const char *name, double value)
{
    const rp_settings_table *table = f->options.kind->settings();

    rp_settings_set(table, &f->settings, rp_settings_find(table, name), value);
}

/* Options for a kind of agent; `algorithm` NULL: it acts and learns in turn. */
static void prepare(fixture *f, const char *kind, const char *env,
                    const rp_apex_algorithm *algorithm)
{
    *f = (fixture){0};
    f->options = (rp_profile_options){.kind = rp_agent_find(kind),
                                      .algorithm = algorithm,
                                      .settings = &f->settings,
                                      .env_class = rp_env_find(env),
                                      .cores = 3,
                                      .seed = 1,
                                      .time_ms = 5,
                                      .should_stop = stop,
                                      .on_point = count_point,
                                      .ctx = f};
    rp_settings_init(f->options.kind->settings(), &f->settings, env);
    set(f, "hidden", 8);
    set(f, "batch", 8);
    set(f, "start", 50);
    set(f, "capacity", 300);
}

static void open_profile(fixture *f)
{
    assert_ok_err(rp_profile_new(NULL, &f->options, &f->profile, &f->err), &f->err);
}

/* Measures the curves and the pick. */
static void assert_measures(fixture *f, int points)
{
    static rp_profile_curves curves;
    rp_split_options problem;
    rp_split split;
    double rate = 0;

    open_profile(f);
    assert_ok_err(rp_profile_measure(f->profile, &curves, &f->err), &f->err);
    assert_int_equal(f->points, points);
    assert_true(rp_rate_curve_check(&curves.acting, curves.points[RP_PROFILE_ACTING],
                                    curves.point_count[RP_PROFILE_ACTING]));
    assert_true(rp_rate_curve_check(&curves.learning, curves.points[RP_PROFILE_LEARNING],
                                    curves.point_count[RP_PROFILE_LEARNING]));
    problem = rp_profile_problem(f->profile, &curves);
    assert_ok_err(rp_split_pick(&problem, &split, &f->err), &f->err);
    assert_ok_err(rp_profile_split(f->profile, split.actors, split.learners, &rate, &f->err),
                  &f->err);
    assert_true(rate > 0 && isfinite(rate));
    rp_profile_free(f->profile);
}

static void dqn_in_turn_has_one_actor_and_some_learners(void **state)
{
    (void)state;
    fixture f;

    prepare(&f, "dqn", "cartpole", NULL);
    assert_measures(&f, 1 + 3); /* 1; 1, 2 and 3 threads */
}

static void actors_and_learners_of_apex_dqn_are_measured(void **state)
{
    (void)state;
    fixture f;

    prepare(&f, "dqn", "catch", rp_apex_dqn());
    assert_measures(&f, 2 + 2); /* 1 and 2 threads */
}

static void agents_of_continuous_actions_are_measured(void **state)
{
    (void)state;
    static const char *const agents[] = {"dpg", "sac"};

    for (size_t i = 0; i < 2; i++) {
        fixture f;

        prepare(&f, agents[i], "pendulum", NULL);
        open_profile(&f);
        int learners = (int)rp_profile_most(f.profile, RP_PROFILE_LEARNING);
        rp_profile_free(f.profile);
        assert_measures(&f, 1 + learners);
    }
}

static void actors_of_apex_dpg_are_measured(void **state)
{
    (void)state;
    fixture f;

    prepare(&f, "dpg", "pendulum", rp_apex_dpg());
    open_profile(&f);
    int learners = (int)rp_profile_most(f.profile, RP_PROFILE_LEARNING);
    rp_profile_free(f.profile);
    assert_measures(&f, 2 + learners);
}

static void threads_have_bounds(void **state)
{
    (void)state;
    fixture f;
    double rate;

    prepare(&f, "dqn", "catch", rp_apex_dqn());
    set(&f, "batch", 2);
    f.options.cores = 9;
    open_profile(&f);
    assert_int_equal(rp_profile_most(f.profile, RP_PROFILE_ACTING), 8);
    assert_int_equal(rp_profile_most(f.profile, RP_PROFILE_LEARNING), 2); /* rows of a batch */
    assert_int_equal(rp_profile_rate(f.profile, RP_PROFILE_ACTING, 0, &rate, &f.err),
                     RP_INVALID);
    assert_int_equal(rp_profile_rate(f.profile, RP_PROFILE_ACTING, 9, &rate, &f.err),
                     RP_INVALID);
    assert_non_null(strstr(f.err.text, "expected 1 to 8 actors, got 9"));
    assert_int_equal(rp_profile_split(f.profile, 1, 3, &rate, &f.err), RP_INVALID);
    assert_non_null(strstr(f.err.text, "expected 1 to 2 learners, got 3"));
    rp_profile_free(f.profile);
    f.options.cores = 1;
    open_profile(&f);
    assert_int_equal(rp_profile_most(f.profile, RP_PROFILE_ACTING), 1);
    assert_int_equal(rp_profile_most(f.profile, RP_PROFILE_LEARNING), 1);
    rp_profile_free(f.profile);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    fixture f;

    prepare(&f, "dqn", "catch", NULL);
    f.options.cores = 0;
    assert_int_equal(rp_profile_new(NULL, &f.options, &f.profile, &f.err), RP_INVALID);
    assert_non_null(strstr(f.err.text, "cores must be 1 to 1024, got 0"));
    f.options.cores = 2;
    f.options.time_ms = -1;
    assert_int_equal(rp_profile_new(NULL, &f.options, &f.profile, &f.err), RP_INVALID);
    prepare(&f, "dqn", "pendulum", NULL); /* whose actions are not discrete */
    assert_int_equal(rp_profile_new(NULL, &f.options, &f.profile, &f.err), RP_INVALID);
    set(&f, "batch", 0);
    assert_int_equal(rp_profile_new(NULL, &f.options, &f.profile, &f.err), RP_INVALID);
    assert_null(f.profile);
}

static void a_measurement_can_be_stopped(void **state)
{
    (void)state;
    const rp_apex_algorithm *const algorithms[] = {NULL, rp_apex_dqn()};
    fixture f;
    double rate = 0;

    for (size_t i = 0; i < 2; i++) {
        prepare(&f, "dqn", "catch", algorithms[i]);
        f.options.time_ms = 3600000;
        open_profile(&f);
        f.stops_after = 2;
        assert_int_equal(rp_profile_rate(f.profile, RP_PROFILE_ACTING, 1, &rate, &f.err),
                         RP_CANCELLED);
        f.stops_after = 2;
        assert_int_equal(rp_profile_split(f.profile, 1, 1, &rate, &f.err), RP_CANCELLED);
        f.stops_after = 2;
        assert_int_equal(rp_profile_rate(f.profile, RP_PROFILE_LEARNING, 1, &rate, &f.err),
                         RP_CANCELLED);
        rp_profile_free(f.profile);
    }
    assert_true(rate == 0);
}

static rp_status make_profile(const rp_allocator *alloc)
{
    fixture f;
    rp_status st;

    prepare(&f, "dqn", "catch", NULL);
    st = rp_profile_new(alloc, &f.options, &f.profile, &f.err);
    rp_profile_free(f.profile);
    return st;
}

static void a_profile_survives_a_lack_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(make_profile);
}

RP_TESTS(profile)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dqn_in_turn_has_one_actor_and_some_learners),
        cmocka_unit_test(actors_and_learners_of_apex_dqn_are_measured),
        cmocka_unit_test(agents_of_continuous_actions_are_measured),
        cmocka_unit_test(actors_of_apex_dpg_are_measured),
        cmocka_unit_test(threads_have_bounds),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_measurement_can_be_stopped),
        cmocka_unit_test(a_profile_survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
