/* SPDX-License-Identifier: Apache-2.0 */
/* MountainCar-v0 (Moore 1990), equal to Gymnasium's bit by bit.
 *
 * A car in a valley has too weak an engine for the hill: it must swing. Actions: left, none,
 * right. Every step costs 1, until the car passes 0.5 to the right. */
#include <assert.h>
#include <math.h>

#include "env/control.h"
#include "env/env_classes.h"

enum { POSITION, SPEED, VARIABLE_COUNT };

enum { RESET_LOW, RESET_HIGH, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"reset_low", -0.6, -1.2, 0.6, false, "lower bound of the position after a reset"},
    {"reset_high", -0.4, -1.2, 0.6, false, "upper bound of the position after a reset"},
};

static const double LEFT_WALL = -1.2, RIGHT_WALL = 0.6, TOP_SPEED = 0.07, GOAL = 0.5;
static const double ENGINE = 0.001, GRAVITY = 0.0025;

static const float LOW[] = {-1.2f, -0.07f};
static const float HIGH[] = {0.6f, 0.07f};
static const char *const NAMES[] = {"position", "speed"};

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {1, {VARIABLE_COUNT}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = VARIABLE_COUNT,
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 3,
        .action_size = 1,
        .time_limit = 200,
        .solved_return = -110,
        .max_seed = UINT64_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(rp_control),
    };
    return rp_control_check_reset_bounds("mountain_car", settings[RESET_LOW],
                                         settings[RESET_HIGH], err);
}

static void reset(const rp_env_context *ctx, void *state)
{
    rp_control *s = state;

    s->v[POSITION] =
        rp_pcg64_uniform(&s->rng, ctx->settings[RESET_LOW], ctx->settings[RESET_HIGH]);
    s->v[SPEED] = 0;
}

static double clip(double value, double low, double high)
{
    if (value < low) return low;
    return value > high ? high : value;
}

static void move(double *v, int32_t action)
{
    double speed = v[SPEED] + ((action - 1) * ENGINE + cos(3 * v[POSITION]) * -GRAVITY);

    speed = clip(speed, -TOP_SPEED, TOP_SPEED);
    v[POSITION] = clip(v[POSITION] + speed, LEFT_WALL, RIGHT_WALL);
    v[SPEED] = v[POSITION] == LEFT_WALL && speed < 0 ? 0.0 : speed;
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
        move(s->v, action[i]);
        terminated[i] = s->v[POSITION] >= GOAL && s->v[SPEED] >= 0;
        rewards[i] = -1.0;
    }
    return RP_OK;
}

const rp_env_class rp_env_mountain_car = {
    .name = "mountain_car",
    .alias = "MountainCar-v0",
    .about = "swing a weak car out of a valley",
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
