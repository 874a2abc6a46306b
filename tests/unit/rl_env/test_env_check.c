/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance test passes on all our environments and fails on broken ones, each of which
 * differs from a sound counter in one function. */
#include "reprise/rl/env_check.h"

#include <math.h>
#include <string.h>

#include "reprise/rl/random.h"
#include "support/unit.h"

/* The sound one: counts to a random number; action 1 counts, action 0 does not. */
typedef struct counter {
    int64_t count, goal;
    rp_pcg64 rng;
} counter;

static const float LOW[] = {0}, HIGH[] = {20};
static const char *const NAMES[] = {"count"};

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    (void)settings;
    (void)err;
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {1, {2}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = 1,
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 2,
        .action_size = 1,
        .time_limit = 30,
        .solved_return = NAN,
        .max_seed = UINT64_MAX,
        .variable_names = NAMES,
        .variable_count = 1,
        .state_bytes = sizeof(counter),
    };
    return RP_OK;
}

static void seed(const rp_env_context *ctx, void *state, uint64_t value)
{
    (void)ctx;
    rp_pcg64_seed(&((counter *)state)->rng, value);
}

static void reset(const rp_env_context *ctx, void *state)
{
    counter *s = state;

    (void)ctx;
    s->count = 0;
    s->goal = rp_pcg64_integers(&s->rng, 5, 15);
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    counter *s = states;

    (void)ctx;
    (void)truncated;
    for (size_t i = 0; i < count; i++) {
        if (s[i].count < s[i].goal) s[i].count += ((const int32_t *)actions)[i];
        terminated[i] = s[i].count == s[i].goal;
        rewards[i] = terminated[i];
    }
    return RP_OK;
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    const counter *s = states;
    float *out = observations;

    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        *out++ = (float)s[i].count;
        *out++ = (float)s[i].goal;
    }
}

static bool check(const rp_env_context *ctx, const void *state)
{
    const counter *s = state;

    (void)ctx;
    return s->goal >= 5 && s->goal < 15 && s->count >= 0 && s->count <= s->goal &&
           rp_pcg64_check(&s->rng);
}

static void get_variables(const rp_env_context *ctx, const void *state, double *values)
{
    (void)ctx;
    values[0] = (double)((const counter *)state)->count;
}

static void set_variables(const rp_env_context *ctx, void *state, const double *values)
{
    (void)ctx;
    ((counter *)state)->count = (int64_t)values[0];
}

static const rp_env_class SOUND = {
    .name = "counter",
    .about = "counts to a random number",
    .describe = describe,
    .seed = seed,
    .reset = reset,
    .step = step,
    .observe = observe,
    .check = check,
    .get_variables = get_variables,
    .set_variables = set_variables,
};

static void reset_from_a_common_stream(const rp_env_context *ctx, void *state)
{
    static rp_pcg64 common = {.increment_low = 1};

    (void)ctx;
    ((counter *)state)->count = 0;
    ((counter *)state)->goal = rp_pcg64_integers(&common, 5, 15);
}

static rp_status step_all_with_the_first_action(const rp_env_context *ctx, void *states,
                                                size_t count, const void *actions,
                                                double *rewards, bool *terminated,
                                                bool *truncated)
{
    int32_t first[64];

    for (size_t i = 0; i < count; i++) first[i] = *(const int32_t *)actions;
    return step(ctx, states, count, first, rewards, terminated, truncated);
}

static rp_status step_with_bad_rewards(const rp_env_context *ctx, void *states, size_t count,
                                       const void *actions, double *rewards, bool *terminated,
                                       bool *truncated)
{
    rp_status st = step(ctx, states, count, actions, rewards, terminated, truncated);

    for (size_t i = 0; i < count; i++)
        if (terminated[i]) rewards[i] = log(-1.0);
    return st;
}

static void observe_out_of_bounds(const rp_env_context *ctx, const void *states, size_t count,
                                  void *observations)
{
    observe(ctx, states, count, observations);
    for (size_t i = 0; i < count; i++) ((float *)observations)[2 * i + 1] += 10;
}

static void observe_one_element_too_many(const rp_env_context *ctx, const void *states,
                                         size_t count, void *observations)
{
    observe(ctx, states, count, observations);
    ((float *)observations)[2 * count] = 1;
}

static void observe_and_draw(const rp_env_context *ctx, const void *states, size_t count,
                             void *observations)
{
    counter *s = (counter *)(uintptr_t)states;

    observe(ctx, states, count, observations);
    for (size_t i = 0; i < count; i++) (void)rp_pcg64_next(&s[i].rng);
}

/* Uninitialised memory reaches the observation: here, a counter outside the state. */
static void observe_calls(const rp_env_context *ctx, const void *states, size_t count,
                          void *observations)
{
    static unsigned calls;

    observe(ctx, states, count, observations);
    ((float *)observations)[1] = (float)(calls++ % 7);
}

static bool check_that_forgets_the_goal(const rp_env_context *ctx, const void *state)
{
    return check(ctx, state) &&
           ((const counter *)state)->count < ((const counter *)state)->goal - 1;
}

static rp_status step_past_the_end(const rp_env_context *ctx, void *states, size_t count,
                                   const void *actions, double *rewards, bool *terminated,
                                   bool *truncated)
{
    counter *s = states;

    (void)ctx;
    (void)truncated;
    for (size_t i = 0; i < count; i++) {
        s[i].count += ((const int32_t *)actions)[i];
        terminated[i] = s[i].count >= s[i].goal;
        rewards[i] = terminated[i];
    }
    return RP_OK;
}

static void set_another_variable(const rp_env_context *ctx, void *state, const double *values)
{
    (void)ctx;
    ((counter *)state)->count = values[0] > 2 ? 2 : (int64_t)values[0];
}

static rp_status describe_bounds_of_three(const double *settings, rp_env_spec *spec,
                                          rp_error *err)
{
    rp_status st = describe(settings, spec, err);

    spec->observation_bounds = 3;
    return st;
}

/* The class with one function replaced, and the check that has to find it. */
typedef struct broken {
    rp_env_class class;
    const char *found_by;
} broken;

static void make_broken(broken *b, size_t index)
{
    b->class = SOUND;
    switch (index) {
    case 0: b->class.reset = reset_from_a_common_stream, b->found_by = "repeat"; break;
    case 1: b->class.step = step_all_with_the_first_action, b->found_by = "alone"; break;
    case 2: b->class.step = step_with_bad_rewards, b->found_by = "bounds"; break;
    case 3: b->class.observe = observe_out_of_bounds, b->found_by = "bounds"; break;
    case 4: b->class.observe = observe_one_element_too_many, b->found_by = "rows"; break;
    case 5: b->class.observe = observe_and_draw, b->found_by = "observe"; break;
    case 6: b->class.observe = observe_calls, b->found_by = "reseed"; break;
    case 7: b->class.check = check_that_forgets_the_goal, b->found_by = "state"; break;
    case 8: b->class.step = step_past_the_end, b->found_by = "after_end"; break;
    case 9: b->class.set_variables = set_another_variable, b->found_by = "variables"; break;
    case 10: b->class.describe = describe_bounds_of_three, b->found_by = "spec"; break;
    default: b->found_by = NULL;
    }
}

static bool report_names(const rp_env_report *report, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < report->failure_count && i < RP_ENV_MAX_FAILURES; i++)
        if (strncmp(report->failures[i], name, length) == 0 &&
            report->failures[i][length] == ':')
            return true;
    return false;
}

static void our_environments_conform(void **state)
{
    (void)state;

    for (size_t i = 0; rp_env_class_at(i) != NULL; i++) {
        const rp_env_class *class = rp_env_class_at(i);
        rp_env_report report;
        rp_status st = rp_env_check(class, NULL, &report);
        for (size_t k = 0; k < report.failure_count && k < RP_ENV_MAX_FAILURES; k++)
            print_error("%s: %s\n", class->name, report.failures[k]);
        assert_int_equal(st, RP_OK);
        assert_int_equal(report.check_count, 12);
    }
}

static void sound_environment_conforms_with_any_options(void **state)
{
    (void)state;
    rp_env_check_options options = {.copies = 1, .steps = 1000, .seed = 77};
    rp_env_report report;

    assert_ok(rp_env_check(&SOUND, NULL, &report));
    assert_ok(rp_env_check(&SOUND, &options, &report));
    options.copies = 64;
    assert_ok(rp_env_check(&SOUND, &options, &report));
    assert_int_equal(report.failure_count, 0);
}

static void broken_environments_are_found(void **state)
{
    (void)state;
    size_t index = 0;
    broken b;

    for (make_broken(&b, 0); b.found_by != NULL; make_broken(&b, ++index)) {
        rp_env_report report;
        assert_int_equal(rp_env_check(&b.class, NULL, &report), RP_INVALID);
        assert_true(report.failure_count > 0);
        if (!report_names(&report, b.found_by))
            fail_msg("case %zu: expected a failure of '%s', got '%s'", index, b.found_by,
                     report.failures[0]);
    }

    assert_int_equal(index, 11);
}

static void settings_reach_the_environment(void **state)
{
    (void)state;
    rp_env_setting settings[] = {{"sticky", 0.25}, {"lives", 1}};
    rp_env_check_options options = {.settings = settings, .setting_count = 2};
    rp_env_report report;

    assert_ok(rp_env_check(rp_env_find("bricks"), &options, &report));
    settings[0].value = 2;
    assert_int_equal(rp_env_check(rp_env_find("bricks"), &options, &report), RP_INVALID);
    assert_non_null(strstr(report.failures[0], "spec: environment 'bricks': setting 'sticky'"));
}

static rp_status check_sound(const rp_allocator *alloc)
{
    rp_env_report report;

    return rp_env_check(&SOUND, &(rp_env_check_options){.alloc = alloc, .steps = 20}, &report);
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(check_sound);
}

RP_TESTS(env_check)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_environments_conform),
        cmocka_unit_test(sound_environment_conforms_with_any_options),
        cmocka_unit_test(broken_environments_are_found),
        cmocka_unit_test(settings_reach_the_environment),
        cmocka_unit_test(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
