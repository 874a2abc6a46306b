/* SPDX-License-Identifier: Apache-2.0 */
/* CartPole-v1 (Barto, Sutton and Anderson 1983), equal to Gymnasium's bit by bit.
 *
 * A cart is pushed left (0) or right (1) so that the pole on it does not fall. Every step is
 * worth 1. The episode terminates when the cart leaves the track or the pole leans by more than
 * 12 degrees. Euler's method with a step of 0.02 s; positions move with the old speeds.
 *
 * The flag of the state is 1 after a step that terminated: another such step is worth
 * nothing. */
#include <assert.h>
#include <math.h>

#include "env/control.h"
#include "env/env_classes.h"

enum { X, SPEED, ANGLE, SPIN, VARIABLE_COUNT };

enum { RESET_LOW, RESET_HIGH, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"reset_low", -0.05, -4, 4, false, "lower bound of the four variables after a reset"},
    {"reset_high", 0.05, -4, 4, false, "upper bound of the four variables after a reset"},
};

static const double PI = 3.14159265358979323846;
static const double POLE_MASS = 0.1, TOTAL_MASS = 0.1 + 1.0, HALF_LENGTH = 0.5;
static const double POLE_MOMENT = 0.1 * 0.5, GRAVITY = 9.8, FORCE = 10.0, SECONDS = 0.02;
static const double X_BOUND = 2.4;

static const float HIGH[] = {4.8f, INFINITY, 0.41887903f, INFINITY};
static const float LOW[] = {-4.8f, -INFINITY, -0.41887903f, -INFINITY};
static const char *const NAMES[] = {"x", "speed", "angle", "spin"};

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {1, {VARIABLE_COUNT}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = VARIABLE_COUNT,
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 2,
        .action_size = 1,
        .time_limit = 500,
        .solved_return = 475,
        .max_seed = UINT64_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(rp_control),
    };
    return rp_control_check_reset_bounds("cartpole", settings[RESET_LOW], settings[RESET_HIGH],
                                         err);
}

static void reset(const rp_env_context *ctx, void *state)
{
    rp_control *s = state;

    for (size_t i = 0; i < VARIABLE_COUNT; i++)
        s->v[i] =
            rp_pcg64_uniform(&s->rng, ctx->settings[RESET_LOW], ctx->settings[RESET_HIGH]);
    s->flag = 0;
}

/* The equations of Florian (2007), without friction. */
static void move(double *v, double force)
{
    double sine = sin(v[ANGLE]), cosine = cos(v[ANGLE]);
    double push = (force + POLE_MOMENT * (v[SPIN] * v[SPIN]) * sine) / TOTAL_MASS;
    double turn = (GRAVITY * sine - cosine * push) /
                  (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS));
    double pull = push - POLE_MOMENT * turn * cosine / TOTAL_MASS;

    v[X] = v[X] + SECONDS * v[SPEED];
    v[SPEED] = v[SPEED] + SECONDS * pull;
    v[ANGLE] = v[ANGLE] + SECONDS * v[SPIN];
    v[SPIN] = v[SPIN] + SECONDS * turn;
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const double angle_bound = 12 * 2 * PI / 360;
    const int32_t *action = actions;
    rp_control *s = states;

    (void)ctx;
    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        assert(action[i] == 0 || action[i] == 1);
        move(s->v, action[i] == 1 ? FORCE : -FORCE);
        terminated[i] = s->v[X] < -X_BOUND || s->v[X] > X_BOUND || s->v[ANGLE] < -angle_bound ||
                        s->v[ANGLE] > angle_bound;
        rewards[i] = terminated[i] && s->flag ? 0.0 : 1.0;
        s->flag |= terminated[i];
    }
    return RP_OK;
}

const rp_env_class rp_env_cartpole = {
    .name = "cartpole",
    .alias = "CartPole-v1",
    .about = "balance a pole on a cart by pushing it left or right",
    .settings = SETTINGS,
    .setting_count = SETTING_COUNT,
    .describe = describe,
    .seed = rp_control_seed,
    .reset = reset,
    .step = step,
    .observe = rp_control_observe,
    .check = rp_control_check,
    .get_variables = rp_control_get_variables,
    .set_variables = rp_control_set_variables,
};
