/* SPDX-License-Identifier: Apache-2.0 */
/* Catch, as in bsuite (Osband et al. 2020), with its random numbers.
 *
 * A ball falls one row a step down a board; the paddle on the bottom row moves left, stays or
 * moves right before the ball falls. The episode ends when the ball reaches the bottom row: 1
 * if the paddle is there, else -1. Cells of ball and paddle are 1, the others 0.
 *
 *   B1  the ball and the paddle are on the board.
 * After the end, a step changes nothing and is worth 0. */
#include <assert.h>
#include <string.h>

#include "env/env_classes.h"
#include "reprise/rl/random.h"

typedef struct catch_game {
    int32_t ball_row, ball_column, paddle;
    int32_t rows, columns; /* the settings */
    int32_t unused;
    rp_mt19937 rng;
} catch_game;

enum { ROWS, COLUMNS, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"rows", 10, 2, 1000, true, "rows of the board"},
    {"columns", 5, 1, 1000, true, "columns of the board"},
};

static const float LOW[] = {0}, HIGH[] = {1};
static const char *const NAMES[] = {"ball_row", "ball_column", "paddle"};

enum { VARIABLE_COUNT = 3 };

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    (void)err;
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {2, {(int64_t)settings[ROWS], (int64_t)settings[COLUMNS]}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = 1,
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 3,
        .action_size = 1,
        .solved_return = 0.95,
        .max_seed = UINT32_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(catch_game),
    };
    return RP_OK;
}

static void seed(const rp_env_context *ctx, void *state, uint64_t value)
{
    catch_game *s = state;

    s->rows = (int32_t)ctx->settings[ROWS];
    s->columns = (int32_t)ctx->settings[COLUMNS];
    rp_mt19937_seed(&s->rng, (uint32_t)value);
}

static void reset(const rp_env_context *ctx, void *state)
{
    catch_game *s = state;

    (void)ctx;
    s->ball_row = 0;
    s->ball_column = (int32_t)rp_mt19937_randint(&s->rng, (uint32_t)s->columns);
    s->paddle = s->columns / 2;
}

/* Returns true if the episode ends with this step. */
static bool move(catch_game *s, int32_t action)
{
    s->paddle += action - 1;
    if (s->paddle < 0) s->paddle = 0;
    if (s->paddle >= s->columns) s->paddle = s->columns - 1;
    s->ball_row++;
    assert(s->ball_row < s->rows); /* B1 */
    return s->ball_row == s->rows - 1;
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const int32_t *action = actions;
    catch_game *s = states;

    (void)ctx;
    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        rewards[i] = 0;
        terminated[i] = s->ball_row == s->rows - 1;
        if (terminated[i]) continue;
        terminated[i] = move(s, action[i]);
        if (terminated[i]) rewards[i] = s->paddle == s->ball_column ? 1.0 : -1.0;
    }
    return RP_OK;
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    const catch_game *s = states;
    float *out = observations;

    (void)ctx;
    for (size_t i = 0; i < count; i++, s++) {
        size_t cells = (size_t)s->rows * (size_t)s->columns;
        memset(out, 0, cells * sizeof *out);
        out[s->ball_row * s->columns + s->ball_column] = 1;
        out[(s->rows - 1) * s->columns + s->paddle] = 1;
        out += cells;
    }
}

static bool check(const rp_env_context *ctx, const void *state)
{
    const catch_game *s = state;

    return s->rows == (int32_t)ctx->settings[ROWS] &&
           s->columns == (int32_t)ctx->settings[COLUMNS] && s->ball_row >= 0 &&
           s->ball_row < s->rows && s->ball_column >= 0 && s->ball_column < s->columns &&
           s->paddle >= 0 && s->paddle < s->columns && rp_mt19937_check(&s->rng); /* B1 */
}

static void get_variables(const rp_env_context *ctx, const void *state, double *values)
{
    const catch_game *s = state;

    (void)ctx;
    values[0] = s->ball_row;
    values[1] = s->ball_column;
    values[2] = s->paddle;
}

/* Numbers that are no cell become -1, which check() refuses. */
static int32_t cell_of(double value)
{
    return value >= 0 && value < 1000 ? (int32_t)value : -1;
}

static void set_variables(const rp_env_context *ctx, void *state, const double *values)
{
    catch_game *s = state;

    (void)ctx;
    s->ball_row = cell_of(values[0]);
    s->ball_column = cell_of(values[1]);
    s->paddle = cell_of(values[2]);
}

const rp_env_class rp_env_catch = {
    .name = "catch",
    .about = "catch a falling ball with a paddle, on a board of 10 x 5",
    .settings = SETTINGS,
    .setting_count = SETTING_COUNT,
    .describe = describe,
    .seed = seed,
    .reset = reset,
    .step = step,
    .observe = observe,
    .check = check,
    .get_variables = get_variables,
    .set_variables = set_variables,
};
