/* SPDX-License-Identifier: Apache-2.0 */
/* Acrobot-v1 (Sutton 1996; the equations of Sutton and Barto's book), equal to Gymnasium's bit
 * by bit.
 *
 * Two links hang from a pivot; a torque of -1, 0 or 1 acts on the joint between them. Every
 * step costs 1 until the tip rises one link above the pivot; that step costs nothing. One step
 * of Runge and Kutta's fourth-order method, 0.2 s.
 *
 * Right after a reset NumPy keeps the state as float32, and its sines of float32 are not
 * libm's:
 *   A1  the flag is 1 right after a reset; then the four variables are floats. */
#include <assert.h>
#include <math.h>

#include "env/control.h"
#include "env/env_classes.h"
#include "env/numpy_math.h"

enum { ANGLE_1, ANGLE_2, SPIN_1, SPIN_2, VARIABLE_COUNT };
enum { OBSERVATION_SIZE = 6 };

enum { RESET_LOW, RESET_HIGH, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"reset_low", -0.1, -3, 3, false, "lower bound of the four variables after a reset"},
    {"reset_high", 0.1, -3, 3, false, "upper bound of the four variables after a reset"},
};

static const double PI = 3.14159265358979323846;
static const double TOP_SPIN_1 = 4 * 3.14159265358979323846;
static const double TOP_SPIN_2 = 9 * 3.14159265358979323846;
static const double SECONDS = 0.2, GRAVITY = 9.8;

static const float HIGH[] = {1, 1, 1, 1, 12.566371f, 28.274334f};
static const float LOW[] = {-1, -1, -1, -1, -12.566371f, -28.274334f};
static const char *const NAMES[] = {"angle_1", "angle_2", "spin_1", "spin_2"};

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {1, {OBSERVATION_SIZE}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = OBSERVATION_SIZE,
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 3,
        .action_size = 1,
        .time_limit = 500,
        .solved_return = -100,
        .max_seed = UINT64_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(rp_control),
    };
    return rp_control_check_reset_bounds("acrobot", settings[RESET_LOW], settings[RESET_HIGH],
                                         err);
}

static void reset(const rp_env_context *ctx, void *state)
{
    rp_control *s = state;

    for (size_t i = 0; i < VARIABLE_COUNT; i++)
        s->v[i] = (double)(float)rp_pcg64_uniform(&s->rng, ctx->settings[RESET_LOW],
                                                  ctx->settings[RESET_HIGH]);
    s->flag = 1; /* A1 */
}

/* The derivatives of the variables `v` under a torque. Lengths, masses and moments of inertia
 * are 1, centres of mass lie at 0.5. */
static void derive(const double *v, double torque, double *out)
{
    double sine = sin(v[ANGLE_2]), cosine = cos(v[ANGLE_2]);
    double d1 = 0.25 + (1.25 + cosine) + 1.0 + 1.0;
    double d2 = 0.25 + 0.5 * cosine + 1.0;
    double phi2 = 0.5 * GRAVITY * cos(v[ANGLE_1] + v[ANGLE_2] - PI / 2);
    double phi1 = -0.5 * rp_numpy_power_2(v[SPIN_2]) * sine -
                  1.0 * v[SPIN_2] * v[SPIN_1] * sine +
                  1.5 * GRAVITY * cos(v[ANGLE_1] - PI / 2) + phi2;

    out[ANGLE_1] = v[SPIN_1];
    out[ANGLE_2] = v[SPIN_2];
    out[SPIN_2] = (torque + d2 / d1 * phi1 - 0.5 * rp_numpy_power_2(v[SPIN_1]) * sine - phi2) /
                  (0.25 + 1.0 - rp_numpy_power_2(d2) / d1);
    out[SPIN_1] = -(d2 * out[SPIN_2] + phi1) / d1;
}

/* Writes start + seconds * slope. */
static void along(const double *start, double seconds, const double *slope, double *out)
{
    for (size_t i = 0; i < VARIABLE_COUNT; i++) out[i] = start[i] + seconds * slope[i];
}

static double wrap(double angle)
{
    while (angle > PI) angle = angle - 2 * PI;
    while (angle < -PI) angle = angle + 2 * PI;
    return angle;
}

static double bound(double value, double most)
{
    if (value < -most) return -most;
    return value > most ? most : value;
}

static void move(double *v, double torque)
{
    double k1[VARIABLE_COUNT], k2[VARIABLE_COUNT], k3[VARIABLE_COUNT], k4[VARIABLE_COUNT];
    double at[VARIABLE_COUNT];

    derive(v, torque, k1);
    along(v, SECONDS / 2, k1, at);
    derive(at, torque, k2);
    along(v, SECONDS / 2, k2, at);
    derive(at, torque, k3);
    along(v, SECONDS, k3, at);
    derive(at, torque, k4);
    for (size_t i = 0; i < VARIABLE_COUNT; i++)
        v[i] = v[i] + SECONDS / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    v[ANGLE_1] = wrap(v[ANGLE_1]);
    v[ANGLE_2] = wrap(v[ANGLE_2]);
    v[SPIN_1] = bound(v[SPIN_1], TOP_SPIN_1);
    v[SPIN_2] = bound(v[SPIN_2], TOP_SPIN_2);
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const int32_t *action = actions;
    rp_control *s = states;

    (void)ctx;
    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        assert(action[i] >= 0 && action[i] <= 2);
        move(s->v, action[i] - 1);
        s->flag = 0;
        terminated[i] = -cos(s->v[ANGLE_1]) - cos(s->v[ANGLE_2] + s->v[ANGLE_1]) > 1.0;
        rewards[i] = terminated[i] ? 0.0 : -1.0;
    }
    return RP_OK;
}

static void observe_fresh(const rp_control *s, float *out)
{
    for (size_t k = 0; k < 2; k++) {
        out[2 * k] = rp_numpy_cosf((float)s->v[k]);
        out[2 * k + 1] = rp_numpy_sinf((float)s->v[k]);
    }
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    const rp_control *s = states;
    float *out = observations;

    (void)ctx;
    for (size_t i = 0; i < count; i++, s++, out += OBSERVATION_SIZE) {
        if (s->flag) {
            observe_fresh(s, out);
        } else {
            for (size_t k = 0; k < 2; k++) {
                out[2 * k] = (float)cos(s->v[k]);
                out[2 * k + 1] = (float)sin(s->v[k]);
            }
        }
        out[4] = (float)s->v[SPIN_1];
        out[5] = (float)s->v[SPIN_2];
    }
}

/* Angles stay near a turn, so that wrap() ends. */
static bool check(const rp_env_context *ctx, const void *state)
{
    const rp_control *s = state;

    if (!rp_control_check(ctx, state)) return false;
    if (fabs(s->v[ANGLE_1]) > 4 || fabs(s->v[ANGLE_2]) > 4 || fabs(s->v[SPIN_1]) > TOP_SPIN_1 ||
        fabs(s->v[SPIN_2]) > TOP_SPIN_2)
        return false;
    for (size_t i = 0; i < VARIABLE_COUNT && s->flag == 1; i++)
        if (s->v[i] != (double)(float)s->v[i]) return false; /* A1 */
    return true;
}

const rp_env_class rp_env_acrobot = {
    .name = "acrobot",
    .alias = "Acrobot-v1",
    .about = "swing a hanging arm of two links up by its joint",
    .settings = SETTINGS,
    .setting_count = SETTING_COUNT,
    .describe = describe,
    .seed = rp_control_seed,
    .reset = reset,
    .step = step,
    .observe = observe,
    .check = check,
    .get_variables = rp_control_get_variables,
    .set_variables = rp_control_set_variables,
};
