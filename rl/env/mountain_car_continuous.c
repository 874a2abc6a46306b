/* SPDX-License-Identifier: Apache-2.0 */
/* MountainCarContinuous-v0, equal to Gymnasium's bit by bit.
 *
 * The car of mountain_car.c with an engine of any power in [-1, 1]. The goal, at 0.45, is worth
 * 100; a step costs a tenth of the square of the action, also of the part that is clipped.
 *
 * NumPy keeps the state as float64 until the first step after a reset and as float32 from then
 * on, and so does this file:
 *   C1  the flag is 1 from the first step on; then both variables are floats.
 * The action is a float32. Its product with the power is a float32 as well, unless the action
 * was clipped: then NumPy sees a Python float, and the product is a double. A Python float that
 * meets a float32 is rounded to float32 first. */
#include <assert.h>
#include <math.h>

#include "env/control.h"
#include "env/env_classes.h"
#include "env/numpy_math.h"

enum { POSITION, SPEED, VARIABLE_COUNT };

enum { RESET_LOW, RESET_HIGH, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"reset_low", -0.6, -1.2, 0.6, false, "lower bound of the position after a reset"},
    {"reset_high", -0.4, -1.2, 0.6, false, "upper bound of the position after a reset"},
};

static const double LEFT_WALL = -1.2, RIGHT_WALL = 0.6, TOP_SPEED = 0.07, GOAL = 0.45;
static const double POWER = 0.0015, GRAVITY = 0.0025;

static const float LOW[] = {-1.2f, -0.07f};
static const float HIGH[] = {0.6f, 0.07f};
static const float ACTION_LOW[] = {-1.0f}, ACTION_HIGH[] = {1.0f};
static const char *const NAMES[] = {"position", "speed"};

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {1, {VARIABLE_COUNT}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = VARIABLE_COUNT,
        .action_kind = RP_ACTION_BOX,
        .action_size = 1,
        .action_low = ACTION_LOW,
        .action_high = ACTION_HIGH,
        .time_limit = 999,
        .solved_return = 90,
        .max_seed = UINT64_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(rp_control),
    };
    return rp_control_check_reset_bounds("mountain_car_continuous", settings[RESET_LOW],
                                         settings[RESET_HIGH], err);
}

static void reset(const rp_env_context *ctx, void *state)
{
    rp_control *s = state;

    s->v[POSITION] =
        rp_pcg64_uniform(&s->rng, ctx->settings[RESET_LOW], ctx->settings[RESET_HIGH]);
    s->v[SPEED] = 0;
    s->flag = 0;
}

/* Gravity's part of the change of speed; `angle` is three times the position. */
static double slope(double angle)
{
    return GRAVITY * cos(angle);
}

/* The change of speed, before it is rounded to the type of the state. */
static double push_of(float action, double angle)
{
    if (action < -1.0f) return -1.0 * POWER - slope(angle);
    if (action > 1.0f) return 1.0 * POWER - slope(angle);
    return (double)(action * (float)POWER - (float)slope(angle));
}

static void move_wide(double *v, float action)
{
    double speed = v[SPEED] + push_of(action, 3 * v[POSITION]);
    double position;

    if (speed > TOP_SPEED) speed = TOP_SPEED;
    if (speed < -TOP_SPEED) speed = -TOP_SPEED;
    position = v[POSITION] + speed;
    if (position > RIGHT_WALL) position = RIGHT_WALL;
    if (position < LEFT_WALL) position = LEFT_WALL;
    if (position == LEFT_WALL && speed < 0) speed = 0;
    v[POSITION] = position;
    v[SPEED] = speed;
}

static void move_narrow(double *v, float action)
{
    const float top = (float)TOP_SPEED, left = (float)LEFT_WALL, right = (float)RIGHT_WALL;
    float position = (float)v[POSITION];
    float speed = (float)v[SPEED] + (float)push_of(action, (double)(3.0f * position));

    if (speed > top) speed = top;
    if (speed < -top) speed = -top;
    position += speed;
    if (position > right) position = right;
    if (position < left) position = left;
    if (position == left && speed < 0) speed = 0;
    v[POSITION] = (double)position;
    v[SPEED] = (double)speed;
}

/* Steps one copy; returns true if it is at the goal. */
static bool move(rp_control *s, float action)
{
    double goal = s->flag ? (double)(float)GOAL : GOAL;
    bool there;

    if (s->flag)
        move_narrow(s->v, action);
    else
        move_wide(s->v, action);
    there = s->v[POSITION] >= goal && s->v[SPEED] >= 0;
    s->v[POSITION] = (double)(float)s->v[POSITION];
    s->v[SPEED] = (double)(float)s->v[SPEED];
    s->flag = 1; /* C1 */
    return there;
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const float *action = actions;
    rp_control *s = states;

    (void)ctx;
    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        assert(isfinite(action[i]));
        terminated[i] = move(s, action[i]);
        rewards[i] = (terminated[i] ? 100.0 : 0.0) - rp_numpy_power_2((double)action[i]) * 0.1;
    }
    return RP_OK;
}

static bool check(const rp_env_context *ctx, const void *state)
{
    const rp_control *s = state;

    if (!rp_control_check(ctx, state)) return false;
    return s->flag == 0 || (s->v[POSITION] == (double)(float)s->v[POSITION] &&
                            s->v[SPEED] == (double)(float)s->v[SPEED]); /* C1 */
}

/* Variables that floats can hold are those of an episode that goes on; others are those of a
 * reset. */
static void set_variables(const rp_env_context *ctx, void *state, const double *values)
{
    rp_control *s = state;

    rp_control_set_variables(ctx, state, values);
    if (!rp_control_values_fit(values, VARIABLE_COUNT)) return;
    s->flag = values[POSITION] == (double)(float)values[POSITION] &&
              values[SPEED] == (double)(float)values[SPEED];
}

const rp_env_class rp_env_mountain_car_continuous = {
    .name = "mountain_car_continuous",
    .alias = "MountainCarContinuous-v0",
    .about = "swing a weak car out of a valley, with an engine of any power",
    .settings = SETTINGS,
    .setting_count = SETTING_COUNT,
    .describe = describe,
    .seed = rp_control_seed,
    .reset = reset,
    .step = step,
    .observe = rp_control_observe,
    .check = check,
    .get_variables = rp_control_get_variables,
    .set_variables = set_variables,
};
