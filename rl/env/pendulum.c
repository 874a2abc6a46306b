/* SPDX-License-Identifier: Apache-2.0 */
/* Pendulum-v1, equal to Gymnasium's bit by bit.
 *
 * A pendulum is to be held upright by a torque in [-2, 2]. A step costs the square of the angle
 * from upright, a tenth of the square of the spin and a thousandth of the square of the torque,
 * all before the step. There is no termination. The angle is never wrapped.
 *
 * The torque is a float32, and so are its square and three times it; they are added to
 * doubles. */
#include <assert.h>
#include <math.h>

#include "env/control.h"
#include "env/env_classes.h"
#include "env/numpy_math.h"

enum { ANGLE, SPIN, VARIABLE_COUNT };
enum { OBSERVATION_SIZE = 3 };

static const double PI = 3.14159265358979323846;
static const double TOP_SPIN = 8, GRAVITY = 10, SECONDS = 0.05;

enum { ANGLE_BOUND, SPIN_BOUND, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"reset_angle", 3.14159265358979323846, 0, 100, false, "the largest angle after a reset"},
    {"reset_spin", 1, 0, 100, false, "the largest spin after a reset"},
};

static const float HIGH[] = {1, 1, 8};
static const float LOW[] = {-1, -1, -8};
static const float ACTION_LOW[] = {-2}, ACTION_HIGH[] = {2};
static const char *const NAMES[] = {"angle", "spin"};

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    (void)settings;
    (void)err;
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {1, {OBSERVATION_SIZE}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = OBSERVATION_SIZE,
        .action_kind = RP_ACTION_BOX,
        .action_size = 1,
        .action_low = ACTION_LOW,
        .action_high = ACTION_HIGH,
        .time_limit = 200,
        .solved_return = -200, /* Gymnasium names none; good policies reach -150 */
        .max_seed = UINT64_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(rp_control),
    };
    return RP_OK;
}

static void reset(const rp_env_context *ctx, void *state)
{
    rp_control *s = state;

    for (size_t i = 0; i < VARIABLE_COUNT; i++)
        s->v[i] = rp_pcg64_uniform(&s->rng, -ctx->settings[i], ctx->settings[i]);
}

static float clip_torque(float torque)
{
    if (torque < -2.0f) return -2.0f;
    return torque > 2.0f ? 2.0f : torque;
}

static double cost_of(const double *v, float torque)
{
    double lean = rp_numpy_modulo(v[ANGLE] + PI, 2 * PI) - PI;

    return rp_numpy_power_2(lean) + 0.1 * rp_numpy_power_2(v[SPIN]) +
           (double)(0.001f * rp_numpy_power_2f(torque));
}

static void move(double *v, float torque)
{
    double push = 3 * GRAVITY / 2 * sin(v[ANGLE]) + (double)(3.0f * torque);
    double spin = v[SPIN] + push * SECONDS;

    if (spin < -TOP_SPIN) spin = -TOP_SPIN;
    if (spin > TOP_SPIN) spin = TOP_SPIN;
    v[ANGLE] = v[ANGLE] + spin * SECONDS;
    v[SPIN] = spin;
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const float *action = actions;
    rp_control *s = states;

    (void)ctx;
    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        float torque = clip_torque(action[i]);
        assert(isfinite(torque));
        rewards[i] = -cost_of(s->v, torque);
        move(s->v, torque);
        terminated[i] = false;
    }
    return RP_OK;
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    const rp_control *s = states;
    float *out = observations;

    (void)ctx;
    for (size_t i = 0; i < count; i++, s++, out += OBSERVATION_SIZE) {
        out[0] = (float)cos(s->v[ANGLE]);
        out[1] = (float)sin(s->v[ANGLE]);
        out[2] = (float)s->v[SPIN];
    }
}

const rp_env_class rp_env_pendulum = {
    .name = "pendulum",
    .alias = "Pendulum-v1",
    .about = "hold a pendulum upright by a torque",
    .settings = SETTINGS,
    .setting_count = SETTING_COUNT,
    .describe = describe,
    .seed = rp_control_seed,
    .reset = reset,
    .step = step,
    .observe = observe,
    .check = rp_control_check,
    .get_variables = rp_control_get_variables,
    .set_variables = rp_control_set_variables,
};
