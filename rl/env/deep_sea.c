/* SPDX-License-Identifier: Apache-2.0 */
/* Deep Sea, as in bsuite (Osband et al. 2020), with its random numbers.
 *
 * A diver starts at the top left of a board of N x N cells and sinks a row each step, one
 * column to the left or to the right. Which action means right is drawn for each cell once. A
 * step to the right costs move_cost / N; a step to the right in the last column is worth 1.
 * Only the policy that always goes right gets there: the return is then 1 - move_cost. The
 * episode ends below the last row, where the observation is all zeros.
 *
 * With deterministic = 0 a step to the right fails with probability 1 / N, and the two corners
 * of the last row add normal noise to the reward.
 *
 *   D1  the diver is on the board, or in the row below it: then the episode has ended.
 * After the end, a step changes nothing and is worth 0. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "env/env_classes.h"
#include "reprise/rl/random.h"

typedef struct deep_sea {
    int32_t row, column;
    rp_mt19937 rng;
} deep_sea;

enum { SIZE, MAPPING_SEED, RANDOMIZE, DETERMINISTIC, MOVE_COST, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"size", 10, 2, 1000, true, "N: rows and columns of the board"},
    {"mapping_seed", 42, 0, 4294967295.0, true, "seed of the actions that mean right"},
    {"randomize", 1, 0, 1, true, "0: action 1 means right in every cell"},
    {"deterministic", 1, 0, 1, true, "0: steps to the right may fail, rewards are noisy"},
    {"move_cost", 0.01, 0, 1, false, "cost of N steps to the right"},
};

static const float LOW[] = {0}, HIGH[] = {1};
static const char *const NAMES[] = {"row", "column"};

enum { VARIABLE_COUNT = 2 };

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    int64_t size = (int64_t)settings[SIZE];

    (void)err;
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {2, {size, size}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = 1,
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 2,
        .action_size = 1,
        .solved_return = settings[DETERMINISTIC] != 0 ? 0.9 : NAN,
        .max_seed = UINT32_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(deep_sea),
        .shared_bytes = (size_t)(size * size),
    };
    return RP_OK;
}

/* The shared bytes: for each cell, row by row, the action that means right. NumPy's binomial of
 * one trial is a comparison of one double. */
static void prepare(const rp_env_context *ctx, void *shared)
{
    uint8_t *right = shared;
    rp_mt19937 rng;

    rp_mt19937_seed(&rng, (uint32_t)ctx->settings[MAPPING_SEED]);
    for (size_t i = 0; i < ctx->spec->shared_bytes; i++)
        right[i] = ctx->settings[RANDOMIZE] == 0 || rp_mt19937_double(&rng) > 0.5;
}

static void seed(const rp_env_context *ctx, void *state, uint64_t value)
{
    (void)ctx;
    rp_mt19937_seed(&((deep_sea *)state)->rng, (uint32_t)value);
}

static void reset(const rp_env_context *ctx, void *state)
{
    deep_sea *s = state;

    (void)ctx;
    s->row = s->column = 0;
}

/* Returns the reward. The order of the random draws is bsuite's: the noise, then the wind,
 * which is drawn for every step to the right, also where it does not matter. */
static double move(const rp_env_context *ctx, deep_sea *s, int32_t action)
{
    const uint8_t *right = ctx->shared;
    int32_t size = (int32_t)ctx->settings[SIZE], last = size - 1;
    bool deterministic = ctx->settings[DETERMINISTIC] != 0;
    bool to_right;
    double reward = 0;

    assert(s->row >= 0 && s->row < size && s->column >= 0 && s->column < size); /* D1 */
    to_right = action == right[s->row * size + s->column];
    if (s->column == last && to_right) reward += 1.0;
    if (!deterministic && s->row == last && (s->column == 0 || s->column == last))
        reward += rp_mt19937_normal(&s->rng);
    if (to_right) {
        bool calm = rp_mt19937_double(&s->rng) > 1.0 / size;
        if ((calm || deterministic) && s->column < last) s->column++;
        reward -= ctx->settings[MOVE_COST] / size;
    } else if (s->column > 0) {
        s->column--;
    }
    s->row++;
    return reward;
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const int32_t *action = actions;
    int32_t size = (int32_t)ctx->settings[SIZE];
    deep_sea *s = states;

    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        rewards[i] = s->row < size ? move(ctx, s, action[i]) : 0;
        terminated[i] = s->row == size;
    }
    return RP_OK;
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    size_t size = (size_t)ctx->settings[SIZE];
    const deep_sea *s = states;
    float *out = observations;

    memset(out, 0, count * size * size * sizeof *out);
    for (size_t i = 0; i < count; i++, s++, out += size * size)
        if ((size_t)s->row < size) out[(size_t)s->row * size + (size_t)s->column] = 1;
}

static bool check(const rp_env_context *ctx, const void *state)
{
    int32_t size = (int32_t)ctx->settings[SIZE];
    const deep_sea *s = state;

    return s->row >= 0 && s->row <= size && s->column >= 0 && s->column < size &&
           rp_mt19937_check(&s->rng); /* D1 */
}

static void get_variables(const rp_env_context *ctx, const void *state, double *values)
{
    (void)ctx;
    values[0] = ((const deep_sea *)state)->row;
    values[1] = ((const deep_sea *)state)->column;
}

/* Numbers that are no cell become -1, which check() refuses. */
static void set_variables(const rp_env_context *ctx, void *state, const double *values)
{
    deep_sea *s = state;

    (void)ctx;
    s->row = values[0] >= 0 && values[0] <= 1000 ? (int32_t)values[0] : -1;
    s->column = values[1] >= 0 && values[1] <= 1000 ? (int32_t)values[1] : -1;
}

const rp_env_class rp_env_deep_sea = {
    .name = "deep_sea",
    .about = "find the one path through N x N cells that pays: deep exploration",
    .settings = SETTINGS,
    .setting_count = SETTING_COUNT,
    .describe = describe,
    .prepare = prepare,
    .seed = seed,
    .reset = reset,
    .step = step,
    .observe = observe,
    .check = check,
    .get_variables = get_variables,
    .set_variables = set_variables,
};
