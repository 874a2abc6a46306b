/* SPDX-License-Identifier: Apache-2.0 */
/* LunarLander. Without Box2D the class is missing, and there is nothing to test. */
#include "reprise/rl/env.h"
#include "support/unit.h"

enum { OBSERVED = 8, MOST_STEPS = 1000 };
enum { NOTHING, LEFT, MAIN, RIGHT };

typedef struct fixture {
    rp_env *env;
    float seen[OBSERVED];
    double reward;
    bool terminated, truncated;
    rp_error err;
} fixture;

/* False if there is no Box2D. */
static bool open_fixture(fixture *f, int64_t time_limit, uint64_t seed)
{
    const rp_env_class *class = rp_env_find("lunarlander");
    rp_env_options options = {.copies = 1, .keep_ended = true, .time_limit = time_limit};

    if (class == NULL) return false;
    assert_int_equal(rp_env_new(NULL, class, &options, &f->env, &f->err), RP_OK);
    assert_int_equal(rp_env_reset(f->env, &seed, f->seen, &f->err), RP_OK);
    return true;
}

static void step(fixture *f, int32_t action)
{
    rp_env_buffers out = {f->seen, NULL, &f->reward, &f->terminated, &f->truncated};

    assert_int_equal(rp_env_step(f->env, &action, &out, &f->err), RP_OK);
}

static void a_fall_without_engines_ends_with_a_crash(void **state)
{
    fixture f;
    int steps = 0;

    (void)state;
    if (!open_fixture(&f, 0, 1)) return;
    do {
        step(&f, NOTHING);
        steps++;
    } while (!f.terminated);
    assert_true(f.reward == -100.0);
    assert_in_range(steps, 40, 200);
    rp_env_free(f.env);
}

static void the_main_engine_lifts_and_costs(void **state)
{
    fixture idle, lifted;

    (void)state;
    if (!open_fixture(&idle, 0, 2)) return;
    assert_true(open_fixture(&lifted, 0, 2));
    assert_memory_equal(idle.seen, lifted.seen, sizeof idle.seen);
    for (int i = 0; i < 10; i++) {
        step(&idle, NOTHING);
        step(&lifted, MAIN);
    }
    assert_true(lifted.seen[3] > idle.seen[3]);
    rp_env_free(idle.env);
    rp_env_free(lifted.env);
}

static void a_snapshot_replays_its_episode_bit_by_bit(void **state)
{
    char bytes[4096];
    fixture f, g;

    (void)state;
    if (!open_fixture(&f, 0, 3)) return;
    assert_true(open_fixture(&g, 0, 4));
    for (int i = 0; i < 50; i++) step(&f, i % 3 == 0 ? MAIN : LEFT);
    assert_true(rp_env_snapshot_bytes(f.env) <= sizeof bytes);
    rp_env_save(f.env, 0, bytes);
    assert_int_equal(rp_env_load(g.env, 0, bytes, rp_env_snapshot_bytes(f.env), g.seen, &g.err),
                     RP_OK);
    assert_memory_equal(f.seen, g.seen, sizeof f.seen);
    for (int i = 0; i < 50; i++) {
        step(&f, RIGHT);
        step(&g, RIGHT);
        assert_memory_equal(f.seen, g.seen, sizeof f.seen);
        assert_true(f.reward == g.reward);
    }
    rp_env_free(f.env);
    rp_env_free(g.env);
}

static void an_episode_has_a_bound_without_a_time_limit(void **state)
{
    float before[OBSERVED];
    fixture f;

    (void)state;
    if (!open_fixture(&f, -1, 5)) return;
    for (int i = 1; i <= MOST_STEPS; i++) {
        step(&f, NOTHING);
        assert_int_equal(f.truncated, i == MOST_STEPS);
    }
    memcpy(before, f.seen, sizeof before);
    step(&f, MAIN);
    assert_true(f.truncated && f.reward == 0.0);
    assert_memory_equal(before, f.seen, sizeof before);
    rp_env_free(f.env);
}

RP_TESTS(lander)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fall_without_engines_ends_with_a_crash),
        cmocka_unit_test(the_main_engine_lifts_and_costs),
        cmocka_unit_test(a_snapshot_replays_its_episode_bit_by_bit),
        cmocka_unit_test(an_episode_has_a_bound_without_a_time_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
