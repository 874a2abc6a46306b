/* SPDX-License-Identifier: Apache-2.0 */
/* Bricks: a game of our own with the shape of an Atari game. Frames of 84 x 84 grey pixels,
 * four of them stacked, the oldest first; an action lasts four frames.
 *
 * A ball bounces between the walls, a wall of 6 x 14 bricks and a paddle, which moves left,
 * stays or moves right. A brick that is hit disappears and is worth 1; the wall returns when it
 * is empty. A ball that passes the paddle costs a life; the episode ends with the last one. The
 * ball leaves the paddle at an angle that depends on where it was hit, and gets faster with
 * every eight hits. The start of each ball is random, and so is `sticky`: the probability, in
 * each frame, that the action before is repeated.
 *
 * Everything is an integer, so that every machine gives the same frames. Positions of the ball
 * are in sixteenths of a pixel, of its upper left corner.
 *
 *      y = 0   lives
 *          7   upper wall
 *      18-35   bricks: 6 rows of 14, each 6 x 3 with a gap of one pixel to the right and below
 *      78-79   paddle
 *
 * The state has the scenes of the last four frames, not their pixels:
 *   W1  the ball and the paddle are inside the frame, in each scene;
 *   W2  the ball moves: 1 <= |vy| and |vx|, |vy| <= 2 pixels a frame, less than a brick;
 *   W3  lives <= `lives`; the episode has ended if there are none, and steps change nothing. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "env/env_classes.h"
#include "reprise/rl/random.h"

enum {
    SIDE = 84,
    STACK = 4,
    SKIP = 4,
    UNIT = 16, /* a pixel in the units of the ball */
    BALL = 2,  /* pixels */
    CEILING = 8,
    WALL_TOP = 18,
    WALL_ROWS = 6,
    WALL_COLUMNS = 14,
    BRICK_WIDTH = SIDE / WALL_COLUMNS,
    BRICK_HEIGHT = 3,
    PADDLE_TOP = 78,
    PADDLE_HEIGHT = 2,
    PADDLE_SPEED = 2,
    SLOWEST = UNIT,
    FASTEST = 2 * UNIT,
    HITS_A_SPEED = 8,
};

static_assert(BRICK_WIDTH * WALL_COLUMNS == SIDE, "bricks fill a row");
static_assert(FASTEST < BRICK_HEIGHT * UNIT, "W2: the ball cannot jump over a brick");
static_assert(WALL_ROWS * WALL_COLUMNS <= 2 * 64, "the wall fits two words");

/* What one frame shows. */
typedef struct scene {
    int32_t ball_x, ball_y; /* pixels */
    int32_t paddle;         /* its left end */
    int32_t lives;
    uint64_t wall[2]; /* a bit for each brick, row by row */
} scene;

typedef struct bricks {
    scene scenes[STACK]; /* the oldest first; the last is now */
    int32_t x, y, vx, vy;
    int32_t hits;        /* of the paddle, with this ball */
    int32_t last_action; /* for sticky actions */
    rp_pcg64 rng;
} bricks;

enum { LIVES, PADDLE, STICKY, SETTING_COUNT };

static const rp_env_setting_info SETTINGS[SETTING_COUNT] = {
    {"lives", 3, 1, 9, true, "balls of an episode"},
    {"paddle", 14, 4, 40, true, "width of the paddle in pixels"},
    {"sticky", 0, 0, 0.9, false, "probability that a frame repeats the action before"},
};

static const char *const NAMES[] = {"ball_x", "ball_y", "paddle", "lives"};

enum { VARIABLE_COUNT = 4 };

static rp_status describe(const double *settings, rp_env_spec *spec, rp_error *err)
{
    (void)settings;
    (void)err;
    *spec = (rp_env_spec){
        .observation_dtype = RP_UINT8,
        .observation_shape = {3, {STACK, SIDE, SIDE}},
        .action_kind = RP_ACTION_DISCRETE,
        .action_count = 3,
        .action_size = 1,
        .time_limit = 27000,
        .solved_return = WALL_ROWS * WALL_COLUMNS,
        .max_seed = UINT64_MAX,
        .variable_names = NAMES,
        .variable_count = VARIABLE_COUNT,
        .state_bytes = sizeof(bricks),
    };
    return RP_OK;
}

static scene *now(bricks *s)
{
    return &s->scenes[STACK - 1];
}

static void build_wall(scene *here)
{
    here->wall[0] = UINT64_MAX;
    here->wall[1] = ((uint64_t)1 << (WALL_ROWS * WALL_COLUMNS - 64)) - 1;
}

/* Starts a ball below the wall, downwards. */
static void launch(bricks *s)
{
    static const int32_t SIDEWAYS[] = {-12, -4, 4, 12};

    s->x = (int32_t)rp_pcg64_integers(&s->rng, 8, SIDE - 8 - BALL) * UNIT;
    s->y = 44 * UNIT;
    s->vx = SIDEWAYS[rp_pcg64_integers(&s->rng, 0, 4)];
    s->vy = SLOWEST;
    s->hits = 0;
}

static void show_ball(bricks *s)
{
    now(s)->ball_x = s->x / UNIT;
    now(s)->ball_y = s->y / UNIT;
}

static void seed(const rp_env_context *ctx, void *state, uint64_t value)
{
    (void)ctx;
    rp_pcg64_seed(&((bricks *)state)->rng, value);
}

static void reset(const rp_env_context *ctx, void *state)
{
    bricks *s = state;
    scene *here = now(s);

    here->paddle = (SIDE - (int32_t)ctx->settings[PADDLE]) / 2;
    here->lives = (int32_t)ctx->settings[LIVES];
    s->last_action = 0;
    build_wall(here);
    launch(s);
    show_ball(s);
    for (size_t i = 0; i + 1 < STACK; i++) s->scenes[i] = *here;
}

/* Reflects the ball at the sides and the ceiling. */
static void bounce_off_walls(bricks *s)
{
    const int32_t right = (SIDE - BALL) * UNIT, top = CEILING * UNIT;

    if (s->x < 0) {
        s->x = -s->x;
        s->vx = -s->vx;
    } else if (s->x > right) {
        s->x = 2 * right - s->x;
        s->vx = -s->vx;
    }
    if (s->y < top) {
        s->y = 2 * top - s->y;
        s->vy = abs(s->vy);
    }
}

/* Removes the brick that the ball is in, if any. Returns the reward. */
static double break_brick(bricks *s)
{
    scene *here = now(s);
    int32_t row = (s->y / UNIT + BALL / 2 - WALL_TOP) / BRICK_HEIGHT;
    int32_t column = (s->x / UNIT + BALL / 2) / BRICK_WIDTH;
    int32_t brick = row * WALL_COLUMNS + column;
    uint64_t bit;

    if (s->y / UNIT + BALL / 2 < WALL_TOP || row >= WALL_ROWS) return 0;
    assert(column >= 0 && column < WALL_COLUMNS); /* W1 */
    bit = (uint64_t)1 << brick % 64;
    if ((here->wall[brick / 64] & bit) == 0) return 0;
    here->wall[brick / 64] &= ~bit;
    if ((here->wall[0] | here->wall[1]) == 0) build_wall(here);
    s->vy = -s->vy;
    return 1;
}

/* Sends a ball that has reached the paddle up again, at an angle by the place it was hit. */
static void bounce_off_paddle(bricks *s, int32_t width)
{
    static const int32_t SIDEWAYS[] = {-24, -14, -5, 5, 14, 24};
    const int32_t zones = sizeof SIDEWAYS / sizeof SIDEWAYS[0];
    int32_t left = now(s)->paddle, bottom = s->y / UNIT + BALL;
    int32_t reach = s->x / UNIT + BALL - left; /* 1 if it only touches the left end */
    int32_t speed;

    if (s->vy < 0 || bottom < PADDLE_TOP || bottom > PADDLE_TOP + PADDLE_HEIGHT + 1) return;
    if (reach < 1 || reach > width + BALL - 1) return;
    s->hits++;
    speed = SLOWEST + s->hits / HITS_A_SPEED * 4;
    s->vx = SIDEWAYS[(reach - 1) * zones / (width + BALL - 1)];
    s->vy = speed < FASTEST ? -speed : -FASTEST;
}

static void move_paddle(bricks *s, int32_t action, int32_t width)
{
    scene *here = now(s);

    here->paddle += (action == 2 ? PADDLE_SPEED : 0) - (action == 1 ? PADDLE_SPEED : 0);
    if (here->paddle < 0) here->paddle = 0;
    if (here->paddle > SIDE - width) here->paddle = SIDE - width;
}

/* Plays one frame. Returns its reward. */
static double play_frame(bricks *s, int32_t action, int32_t width)
{
    double reward;

    move_paddle(s, action, width);
    s->x += s->vx;
    s->y += s->vy;
    bounce_off_walls(s);
    reward = break_brick(s);
    bounce_off_paddle(s, width);
    if (s->y > (SIDE - BALL) * UNIT) {
        now(s)->lives--;
        launch(s);
    }
    assert(abs(s->vy) >= SLOWEST && abs(s->vy) <= FASTEST); /* W2 */
    return reward;
}

/* Plays an action: four frames, of which the last is kept. */
static double play(const rp_env_context *ctx, bricks *s, int32_t action)
{
    int32_t width = (int32_t)ctx->settings[PADDLE];
    double sticky = ctx->settings[STICKY], reward = 0;

    memmove(&s->scenes[0], &s->scenes[1], (STACK - 1) * sizeof s->scenes[0]);
    for (int i = 0; i < SKIP && now(s)->lives > 0; i++) {
        if (sticky == 0 || rp_pcg64_double(&s->rng) >= sticky) s->last_action = action;
        reward += play_frame(s, s->last_action, width);
    }
    show_ball(s);
    return reward;
}

static rp_status step(const rp_env_context *ctx, void *states, size_t count,
                      const void *actions, double *rewards, bool *terminated, bool *truncated)
{
    const int32_t *action = actions;
    bricks *s = states;

    (void)truncated;
    for (size_t i = 0; i < count; i++, s++) {
        rewards[i] = now(s)->lives > 0 ? play(ctx, s, action[i]) : 0;
        terminated[i] = now(s)->lives == 0; /* W3 */
    }
    return RP_OK;
}

static void draw_box(uint8_t *frame, int32_t x, int32_t y, int32_t width, int32_t height,
                     int grey)
{
    for (int32_t i = 0; i < height; i++)
        memset(frame + (y + i) * SIDE + x, grey, (size_t)width);
}

static void draw_wall(uint8_t *frame, const uint64_t *wall)
{
    for (int32_t row = 0; row < WALL_ROWS; row++) {
        uint8_t *line = frame + (WALL_TOP + row * BRICK_HEIGHT) * SIDE;
        for (int32_t column = 0; column < WALL_COLUMNS; column++) {
            int32_t brick = row * WALL_COLUMNS + column;
            if ((wall[brick / 64] >> brick % 64 & 1) != 0)
                memset(line + column * BRICK_WIDTH, 220 - 20 * row, BRICK_WIDTH - 1);
        }
        memcpy(line + SIDE, line, SIDE);
    }
}

static void draw_scene(const scene *here, int32_t width, uint8_t *frame)
{
    memset(frame, 0, SIDE * SIDE);
    draw_box(frame, 0, CEILING - 1, SIDE, 1, 90);
    for (int32_t i = 0; i < here->lives; i++) draw_box(frame, 2 + 6 * i, 2, 3, 3, 160);
    draw_wall(frame, here->wall);
    draw_box(frame, here->paddle, PADDLE_TOP, width, PADDLE_HEIGHT, 255);
    draw_box(frame, here->ball_x, here->ball_y, BALL, BALL, 255);
}

static void observe(const rp_env_context *ctx, const void *states, size_t count,
                    void *observations)
{
    int32_t width = (int32_t)ctx->settings[PADDLE];
    const bricks *s = states;
    uint8_t *out = observations;

    for (size_t i = 0; i < count; i++, s++)
        for (size_t k = 0; k < STACK; k++, out += SIDE * SIDE)
            draw_scene(&s->scenes[k], width, out);
}

static bool scene_fits(const rp_env_context *ctx, const scene *here)
{
    return here->ball_x >= 0 && here->ball_x <= SIDE - BALL && here->ball_y >= CEILING &&
           here->ball_y <= SIDE - BALL && here->paddle >= 0 &&
           here->paddle <= SIDE - (int32_t)ctx->settings[PADDLE] && here->lives >= 0 &&
           here->lives <= (int32_t)ctx->settings[LIVES] &&
           here->wall[1] >> (WALL_ROWS * WALL_COLUMNS - 64) == 0; /* W1, W3 */
}

static bool check(const rp_env_context *ctx, const void *state)
{
    const bricks *s = state;

    for (size_t i = 0; i < STACK; i++)
        if (!scene_fits(ctx, &s->scenes[i])) return false;
    return s->x >= 0 && s->x <= (SIDE - BALL) * UNIT && s->y >= CEILING * UNIT &&
           s->y <= (SIDE - BALL) * UNIT && abs(s->vx) <= FASTEST && abs(s->vy) >= SLOWEST &&
           abs(s->vy) <= FASTEST && s->hits >= 0 && s->hits < INT32_MAX / 8 &&
           s->last_action >= 0 && s->last_action <= 2 && rp_pcg64_check(&s->rng); /* W2 */
}

static void get_variables(const rp_env_context *ctx, const void *state, double *values)
{
    const scene *here = &((const bricks *)state)->scenes[STACK - 1];

    (void)ctx;
    values[0] = here->ball_x;
    values[1] = here->ball_y;
    values[2] = here->paddle;
    values[3] = here->lives;
}

/* Numbers that are no pixel become -1, which check() refuses. */
static int32_t pixel_of(double value)
{
    return value >= 0 && value < SIDE ? (int32_t)value : -1;
}

static void set_variables(const rp_env_context *ctx, void *state, const double *values)
{
    bricks *s = state;

    (void)ctx;
    s->x = pixel_of(values[0]) * UNIT;
    s->y = pixel_of(values[1]) * UNIT;
    now(s)->ball_x = pixel_of(values[0]);
    now(s)->ball_y = pixel_of(values[1]);
    now(s)->paddle = pixel_of(values[2]);
    now(s)->lives = pixel_of(values[3]);
}

const rp_env_class rp_env_bricks = {
    .name = "bricks",
    .about = "break bricks with a ball and a paddle: four frames of 84 x 84 pixels",
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
