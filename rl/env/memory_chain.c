/* SPDX-License-Identifier: Apache-2.0 */
/* A memory task: bsuite's MemoryChain (Osband et al. 2020), with its random numbers. With one
 * bit it is the experiment memory_len, with a length of 1 or 2 memory_size.
 *
 * The first observations show a row of bits, as -1 or 1. After `length` steps the observation
 * asks for one of them, by its index, and the next action has to repeat it: 1 if it does, else
 * -1. All other actions have no effect. An observation is [the time left, the index asked for,
 * the bits]; the index and the bits are 0 where they are not shown.
 *
 *   M1  0 <= steps <= length + 1; the episode has ended if it is length + 1.
 * bsuite shows the first observation twice, after the reset and after the first step. After the
 * end, a step changes nothing and is worth 0. */
#include <assert.h>
#include <string.h>

#include "env/env_classes.h"
#include "reprise/rl/random.h"

typedef struct memory_chain {
    int64_t steps;
    uint64_t bits;
    uint64_t query; /* the index of the bit that is asked for */
    rp_mt19937 rng;
} memory_chain;

enum { LENGTH, BITS, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"length", 10, 1, 100000, true, "steps from the bits to the question"},
    {"bits", 1, 1, 63, true, "bits to remember"},
};

static const char *const NAMES[] = {"steps", "query"};

enum { VARIABLE_COUNT = 2 };

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    (void)err;
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {2, {1, (int64_t)settings[BITS] + 2}},
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 2,
        .action_size = 1,
        .solved_return = 0.95,
        .max_seed = UINT32_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(memory_chain),
    };
    return RP_OK;
}

/* Draws the bits and the question. NumPy's binomial of one trial is a comparison of one
 * double. */
static void draw(const rp_env_context *ctx, memory_chain *s)
{
    uint32_t count = (uint32_t)ctx->settings[BITS];

    s->bits = 0;
    for (uint32_t i = 0; i < count; i++)
        s->bits |= (uint64_t)(rp_mt19937_double(&s->rng) > 0.5) << i;
    s->query = rp_mt19937_randint(&s->rng, count);
}

/* bsuite draws once when it makes the environment, before the first reset. */
static void seed(const rp_env_context *ctx, void *state, uint64_t value)
{
    memory_chain *s = state;

    rp_mt19937_seed(&s->rng, (uint32_t)value);
    draw(ctx, s);
}

static void reset(const rp_env_context *ctx, void *state)
{
    memory_chain *s = state;

    s->steps = 0;
    draw(ctx, s);
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const int32_t *action = actions;
    int64_t length = (int64_t)ctx->settings[LENGTH];
    memory_chain *s = states;

    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        assert(s->steps >= 0 && s->steps <= length + 1); /* M1 */
        rewards[i] = 0;
        if (s->steps == length)
            rewards[i] = (uint64_t)action[i] == (s->bits >> s->query & 1) ? 1.0 : -1.0;
        if (s->steps <= length) s->steps++;
        terminated[i] = s->steps == length + 1;
    }
    return RP_OK;
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    int64_t length = (int64_t)ctx->settings[LENGTH];
    size_t bits = (size_t)ctx->settings[BITS];
    const memory_chain *s = states;
    float *out = observations;

    memset(out, 0, count * (bits + 2) * sizeof *out);
    for (size_t i = 0; i < count; i++, s++, out += bits + 2) {
        int64_t shown = s->steps > 0 ? s->steps - 1 : 0;
        out[0] = (float)(1 - (double)shown / (double)length);
        if (shown == length - 1) out[1] = (float)s->query;
        for (size_t k = 0; k < bits && shown == 0; k++)
            out[2 + k] = (s->bits >> k & 1) != 0 ? 1 : -1;
    }
}

static bool check(const rp_env_context *ctx, const void *state)
{
    const memory_chain *s = state;
    uint64_t bits = (uint64_t)ctx->settings[BITS];

    return s->steps >= 0 && s->steps <= (int64_t)ctx->settings[LENGTH] + 1 && s->query < bits &&
           s->bits >> bits == 0 && rp_mt19937_check(&s->rng); /* M1 */
}

static void get_variables(const rp_env_context *ctx, const void *state, double *values)
{
    (void)ctx;
    values[0] = (double)((const memory_chain *)state)->steps;
    values[1] = (double)((const memory_chain *)state)->query;
}

/* Numbers that are too large become -1 or 63, which check() refuses. */
static void set_variables(const rp_env_context *ctx, void *state, const double *values)
{
    memory_chain *s = state;

    (void)ctx;
    s->steps = values[0] >= 0 && values[0] <= 100001 ? (int64_t)values[0] : -1;
    s->query = values[1] >= 0 && values[1] < 63 ? (uint64_t)values[1] : 63;
}

const rp_env_class rp_env_memory_chain = {
    .name = "memory_chain",
    .about = "remember bits for a number of steps, then repeat one",
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
