/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "reprise/rl/env.h"
#include "reprise/rl/random.h"
#include "support/unit.h"

enum { SIDE = 84, FRAME = SIDE * SIDE, STACK = 4 };
enum { BALL_X, BALL_Y, PADDLE, LIVES, VARIABLE_COUNT };

typedef struct fixture {
    rp_env *env;
    rp_error err;
    uint8_t observation[STACK][FRAME], last[STACK][FRAME];
    double reward;
    bool terminated, truncated;
} fixture;

static void open_fixture(fixture *f, rp_env_options options, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    options.copies = 1;
    assert_ok_err(rp_env_new(NULL, rp_env_find("bricks"), &options, &f->env, &f->err), &f->err);
    assert_int_equal(rp_env_observation_bytes(f->env), sizeof f->observation);
    assert_ok_err(rp_env_reset(f->env, &seed, f->observation, &f->err), &f->err);
}

static void step(fixture *f, int32_t action)
{
    rp_env_buffers out = {f->observation, f->last, &f->reward, &f->terminated, &f->truncated};

    assert_ok_err(rp_env_step(f->env, &action, &out, &f->err), &f->err);
}

/* The action that brings the paddle below the ball. */
static int32_t follow(const fixture *f)
{
    double v[VARIABLE_COUNT];

    rp_env_get_variables(f->env, 0, v);
    double aim = v[BALL_X] + 1, at = v[PADDLE] + 7;
    return aim > at + 4 ? 2 : aim < at - 4 ? 1 : 0;
}

static void frames_are_stacked_with_the_oldest_first(void **state)
{
    (void)state;
    uint8_t before[STACK][FRAME];
    fixture f;

    open_fixture(&f, (rp_env_options){0}, 1);
    for (size_t i = 1; i < STACK; i++)
        assert_memory_equal(f.observation[0], f.observation[i], FRAME);
    for (int i = 0; i < 40; i++) {
        memcpy(before, f.observation, sizeof before);
        step(&f, follow(&f));
        assert_memory_equal(f.observation[0], before[1], (STACK - 1) * FRAME);
        assert_memory_not_equal(f.observation[STACK - 1], before[STACK - 1], FRAME);
    }
    rp_env_free(f.env);
}

static void frames_show_ball_paddle_lives_and_wall(void **state)
{
    (void)state;
    double v[VARIABLE_COUNT];
    fixture f;

    open_fixture(&f, (rp_env_options){0}, 1);
    step(&f, 2);
    const uint8_t *frame = f.observation[STACK - 1];
    rp_env_get_variables(f.env, 0, v);
    size_t x = (size_t)v[BALL_X], y = (size_t)v[BALL_Y], paddle = (size_t)v[PADDLE];

    assert_int_equal(frame[y * SIDE + x], 255);
    assert_int_equal(frame[(y + 1) * SIDE + x + 1], 255);
    assert_int_equal(frame[78 * SIDE + paddle], 255);
    assert_int_equal(frame[79 * SIDE + paddle + 13], 255);
    assert_int_equal(frame[78 * SIDE + paddle - 1], 0);
    assert_int_equal(paddle, (84 - 14) / 2 + 8);
    assert_int_equal(frame[18 * SIDE], 220);
    assert_int_equal(frame[18 * SIDE + 5], 0);
    assert_int_equal(frame[33 * SIDE + 83 - 1], 120);
    assert_int_equal(frame[2 * SIDE + 2 + 12], 160); /* the third life */
    assert_int_equal(frame[2 * SIDE + 2 + 18], 0);
    rp_env_free(f.env);
}

static void player_that_follows_the_ball_clears_walls(void **state)
{
    (void)state;
    double total = 0;
    fixture f;

    open_fixture(&f, (rp_env_options){0}, 2);
    for (int i = 0; i < 6000; i++) {
        step(&f, follow(&f));
        total += f.reward;
        if (i % 100 == 0) assert_true(rp_env_verify(f.env));
    }

    assert_true(total > 2 * 84);
    rp_env_free(f.env);
}

static void idle_player_loses_three_balls(void **state)
{
    (void)state;
    double total = 0;
    int steps = 0;
    fixture f;

    open_fixture(&f, (rp_env_options){.keep_ended = true}, 3);
    do {
        step(&f, 1);
        total += f.reward;
        steps++;
    } while (!f.terminated && steps < 1000);
    assert_true(f.terminated && steps > 20 && total < 30);
    memcpy(f.last, f.observation, sizeof f.last);
    step(&f, 2);

    assert_true(f.terminated && f.reward == 0);
    assert_memory_equal(f.last, f.observation, sizeof f.last);
    rp_env_free(f.env);
}

/* Written down once: every machine must give the same frames. */
static void frames_of_a_seed_are_the_same_everywhere(void **state)
{
    (void)state;
    rp_env_setting sticky = {"sticky", 0.25};
    uint64_t hash = 0xcbf29ce484222325u;
    rp_pcg64 rng;
    fixture f;

    open_fixture(&f, (rp_env_options){.settings = &sticky, .setting_count = 1}, 7);
    rp_pcg64_seed(&rng, 8);
    for (int i = 0; i < 300; i++) {
        step(&f,
             rp_pcg64_double(&rng) < 0.3 ? (int32_t)rp_pcg64_integers(&rng, 0, 3) : follow(&f));
        for (size_t k = 0; k < FRAME; k++)
            hash = (hash ^ f.observation[STACK - 1][k]) * 0x100000001b3u;
        hash = (hash ^ (uint64_t)f.reward) * 0x100000001b3u;
    }

    assert_int_equal(hash, 0x3a36101e5f39c057u);
    rp_env_free(f.env);
}

static void sticky_actions_need_a_probability(void **state)
{
    (void)state;
    rp_env_setting sticky = {"sticky", 1.5};
    rp_env_options options = {.copies = 1, .settings = &sticky, .setting_count = 1};
    rp_env *env = NULL;
    rp_error err;

    assert_fails(rp_env_new(NULL, rp_env_find("bricks"), &options, &env, &err), RP_INVALID,
                 &err, "setting 'sticky' must be in [0, 0.9], got 1.5");
    sticky = (rp_env_setting){"lives", 2.5};
    assert_fails(rp_env_new(NULL, rp_env_find("bricks"), &options, &env, &err), RP_INVALID,
                 &err, "setting 'lives' must be an integer, got 2.5");
}

RP_TESTS(bricks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_stacked_with_the_oldest_first),
        cmocka_unit_test(frames_show_ball_paddle_lives_and_wall),
        cmocka_unit_test(player_that_follows_the_ball_clears_walls),
        cmocka_unit_test(idle_player_loses_three_balls),
        cmocka_unit_test(frames_of_a_seed_are_the_same_everywhere),
        cmocka_unit_test(sticky_actions_need_a_probability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
