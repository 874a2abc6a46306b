/* SPDX-License-Identifier: Apache-2.0 */
/* LunarLander-v3 with discrete actions and without wind, by the rules of Gymnasium's, over
 * Debian's Box2D. Its random numbers are those of Gymnasium's for the same seed; its physics
 * are not, since Gymnasium has Box2D 2.3.0, so the same actions lead to other positions.
 *
 * A lander falls onto a pad between two flags. The actions are: nothing, left engine, main
 * engine, right engine. A reward is how much closer, slower and more upright the lander is, 10
 * for each leg that touches the ground, less 0.3 for the main engine and 0.03 for a side one.
 * The episode ends with -100 where the body touches the ground or leaves the picture, and with
 * 100 where the lander comes to rest.
 *
 * A state is the history of an episode (lander_world.h), which has at most MOST_STEPS steps. A
 * further step changes nothing and truncates the episode.
 *
 * Invariants:
 *   L1  `key` is the hash of `begun` and the actions;
 *   L2  a world in the pool has had the history of its key. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "env/env_classes.h"
#include "env/lander_world.h"
#include "error/fail.h"
#include "reprise/rl/random.h"

enum { MOST_STEPS = 1000, OBSERVED = 8, ACTIONS = 4, HEIGHTS = 12 };
enum { NOTHING, LEFT, MAIN, RIGHT };

static const double SCALE = 30, HALF_WIDTH = 10, HEIGHT = 400.0 / 30, FRAMES = 50;

typedef struct lander {
    rp_pcg64 rng;
    rp_pcg64 begun; /* the stream before the reset */
    uint64_t key;
    double shaping; /* of the last step */
    float observed[OBSERVED];
    uint32_t steps;
    uint8_t actions[MOST_STEPS];
    uint8_t padding[4];
} lander;

static_assert(sizeof(lander) % 8 == 0, "states lie side by side");

typedef struct lander_shared {
    rp_lander_pool *pool;
} lander_shared;

static const float HIGH[] = {2.5F, 2.5F, 10, 10, 6.2831855F, 10, 1, 1};
static const float LOW[] = {-2.5F, -2.5F, -10, -10, -6.2831855F, -10, 0, 0};

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    (void)settings;
    (void)err;
    *spec = (rp_env_spec){
        .observation_dtype = RP_FLOAT32,
        .observation_shape = {1, {OBSERVED}},
        .observation_low = LOW,
        .observation_high = HIGH,
        .observation_bounds = OBSERVED,
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = ACTIONS,
        .action_size = 1,
        .time_limit = MOST_STEPS,
        .solved_return = 200,
        .max_seed = UINT64_MAX,
        .state_bytes = sizeof(lander),
        .shared_bytes = sizeof(lander_shared),
    };
    return RP_OK;
}

static void prepare(const rp_env_context *ctx, void *shared)
{
    (void)ctx;
    ((lander_shared *)shared)->pool = rp_lander_pool_new();
}

static void release(void *shared)
{
    rp_lander_pool_free(((lander_shared *)shared)->pool);
}

static rp_lander_pool *pool_of(const rp_env_context *ctx)
{
    return ((const lander_shared *)ctx->shared)->pool;
}

/* FNV-1a. */
static uint64_t hash(uint64_t so_far, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < size; i++) so_far = (so_far ^ b[i]) * 0x100000001b3u;
    return so_far;
}

static uint64_t first_key(const rp_pcg64 *begun)
{
    return hash(0xcbf29ce484222325u, begun, sizeof *begun);
}

static rp_lander_start draw_start(rp_pcg64 *rng)
{
    rp_lander_start start;
    double heights[HEIGHTS];

    for (size_t i = 0; i < HEIGHTS; i++) heights[i] = rp_pcg64_uniform(rng, 0, HEIGHT / 2);
    for (size_t i = 3; i <= 7; i++) heights[i] = HEIGHT / 4; /* the pad */
    for (size_t i = 0; i < RP_LANDER_POINTS; i++)
        start.ground[i] =
            0.33 * (heights[i == 0 ? HEIGHTS - 1 : i - 1] + heights[i] + heights[i + 1]);
    start.force_x = rp_pcg64_uniform(rng, -1000, 1000);
    start.force_y = rp_pcg64_uniform(rng, -1000, 1000);
    return start;
}

/* Runs the engines for an action, then lets time pass. The random numbers are drawn for every
 * action. */
static void move(rp_lander_world *world, rp_pcg64 *rng, int action)
{
    double first = rp_pcg64_uniform(rng, -1, 1) / SCALE;
    double second = rp_pcg64_uniform(rng, -1, 1) / SCALE;
    rp_lander_body body;
    double sine, cosine;

    rp_lander_read(world, &body);
    sine = sin(body.angle);
    cosine = cos(body.angle);
    if (action == MAIN) {
        double along = 4 / SCALE + 2 * first;
        double x = sine * along - cosine * second, y = -cosine * along - sine * second;

        rp_lander_push(world, body.x + x, body.y + y, -x * 13, -y * 13);
    } else if (action != NOTHING) {
        double across = 3 * second + (action == LEFT ? -1 : 1) * 12 / SCALE;
        double x = sine * first - cosine * across, y = -cosine * first - sine * across;

        rp_lander_push(world, body.x + x - sine * 17 / SCALE, body.y + y + cosine * 14 / SCALE,
                       -x * 0.6, -y * 0.6);
    }
    rp_lander_pass(world);
}

/* A world at the begin of an episode: Gymnasium's reset takes one step without an engine. */
static rp_lander_world *begin(rp_pcg64 *rng)
{
    rp_lander_start start = draw_start(rng);
    rp_lander_world *world = rp_lander_world_new(&start);

    if (world != NULL) move(world, rng, NOTHING);
    return world;
}

/* The world of a state: from the pool, or made again from the history. NULL if there is no
 * memory. */
static rp_lander_world *take_world(const rp_env_context *ctx, const lander *s)
{
    rp_lander_world *world = rp_lander_pool_take(pool_of(ctx), s->key); /* L2 */
    rp_pcg64 rng = s->begun;

    if (world != NULL) return world;
    world = begin(&rng);
    for (size_t i = 0; i < s->steps && world != NULL; i++) move(world, &rng, s->actions[i]);
    assert(world == NULL || memcmp(&rng, &s->rng, sizeof rng) == 0);
    return world;
}

/* Writes the observation. Returns the shaping of the reward. */
static double observe_body(lander *s, const rp_lander_body *body)
{
    double v[OBSERVED] = {
        (body->x - HALF_WIDTH) / HALF_WIDTH,
        (body->y - (HEIGHT / 4 + 18 / SCALE)) / (HEIGHT / 2),
        body->speed_x * HALF_WIDTH / FRAMES,
        body->speed_y * (HEIGHT / 2) / FRAMES,
        body->angle,
        20 * body->spin / FRAMES,
        body->legs[0],
        body->legs[1],
    };

    for (size_t i = 0; i < OBSERVED; i++) s->observed[i] = (float)v[i];
    return -100 * sqrt(v[0] * v[0] + v[1] * v[1]) - 100 * sqrt(v[2] * v[2] + v[3] * v[3]) -
           100 * fabs(v[4]) + 10 * v[6] + 10 * v[7];
}

static void seed(const rp_env_context *ctx, void *state, uint64_t value)
{
    (void)ctx;
    rp_pcg64_seed(&((lander *)state)->rng, value);
}

static void reset(const rp_env_context *ctx, void *state)
{
    lander *s = state;
    rp_pcg64 rng = s->rng;
    rp_lander_world *world;
    rp_lander_body body;

    if (pool_of(ctx) != NULL) rp_lander_world_free(rp_lander_pool_take(pool_of(ctx), s->key));
    memset(s, 0, sizeof *s);
    s->begun = rng;
    s->key = first_key(&s->begun);
    world = begin(&rng);
    s->rng = rng;
    if (world == NULL || pool_of(ctx) == NULL) { /* step() reports it */
        rp_lander_world_free(world);
        return;
    }
    rp_lander_read(world, &body);
    s->shaping = observe_body(s, &body);
    rp_lander_pool_put(pool_of(ctx), s->key, world);
}

/* Steps one copy. Returns false if there is no memory. */
static bool step_one(const rp_env_context *ctx, lander *s, int action, double *reward,
                     bool *terminated)
{
    rp_lander_world *world = take_world(ctx, s);
    uint8_t byte = (uint8_t)action;
    rp_lander_body body;
    double shaping;

    if (world == NULL) return false;
    move(world, &s->rng, action);
    rp_lander_read(world, &body);
    s->actions[s->steps++] = byte;
    s->key = hash(s->key, &byte, 1); /* L1 */
    shaping = observe_body(s, &body);
    *reward = shaping - s->shaping - (action == MAIN ? 0.3 : action == NOTHING ? 0 : 0.03);
    s->shaping = shaping;
    *terminated = body.crashed || fabs((body.x - HALF_WIDTH) / HALF_WIDTH) >= 1;
    if (*terminated) *reward = -100;
    if (body.asleep) {
        *terminated = true;
        *reward = 100;
    }
    rp_lander_pool_put(pool_of(ctx), s->key, world);
    return true;
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const int32_t *action = actions;
    lander *s = states;

    if (pool_of(ctx) == NULL) return RP_NO_RESOURCE;
    for (size_t i = 0; i < count; i++, s++) {
        assert(action[i] >= 0 && action[i] < ACTIONS);
        rewards[i] = 0;
        terminated[i] = false;
        if (s->steps < MOST_STEPS && !step_one(ctx, s, action[i], &rewards[i], &terminated[i]))
            return RP_NO_RESOURCE;
        truncated[i] = s->steps >= MOST_STEPS;
    }
    return RP_OK;
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    const lander *s = states;
    float *out = observations;

    (void)ctx;
    for (size_t i = 0; i < count; i++, s++, out += OBSERVED)
        memcpy(out, s->observed, sizeof s->observed);
}

static bool check(const rp_env_context *ctx, const void *state)
{
    const lander *s = state;
    uint64_t key;

    (void)ctx;
    if (s->steps > MOST_STEPS || !rp_pcg64_check(&s->rng) || !rp_pcg64_check(&s->begun) ||
        !isfinite(s->shaping))
        return false;
    for (size_t i = 0; i < OBSERVED; i++)
        if (!isfinite(s->observed[i])) return false;
    for (size_t i = 0; i < s->steps; i++)
        if (s->actions[i] >= ACTIONS) return false;
    key = first_key(&s->begun);
    return s->key == hash(key, s->actions, s->steps); /* L1 */
}

const rp_env_class rp_env_lunar_lander = {
    .name = "lunarlander",
    .alias = "LunarLander-v3",
    .about = "land on a pad with three engines",
    .describe = describe,
    .prepare = prepare,
    .release = release,
    .seed = seed,
    .reset = reset,
    .step = step,
    .observe = observe,
    .check = check,
};
