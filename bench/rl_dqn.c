/* SPDX-License-Identifier: Apache-2.0 */
/* How fast does a DQN agent act, and how fast does it train?
 *
 *     bench_rl_dqn              acting in a group of 32 copies of CartPole against one by one:
 *                               with the replay (policy, environment, adder, table), and without
 *     bench_rl_dqn --train N    trains for N steps, 64-64, batch 64, one update for 4 steps, all
 *                               options on, through the replay; prints its seconds. For
 *                               rl_dqn.py, which runs the same in Stable-Baselines3 */
#include "bench.h"
#include "reprise/rl/dqn.h"
#include "reprise/rl/env_loop.h"

/* An agent in its environments. */
typedef struct run {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_agent *agent;
    rp_env_loop *loop;
} run;

static run make(rp_dqn_settings settings)
{
    const rp_env_options env = {.copies = (size_t)settings.copies};
    rp_error err;
    run r = {0};

    bench_check(rp_store_new(&(rp_store_options){.seed = 1}, &r.store, &err), &err);
    bench_check(rp_client_local(r.store, NULL, &r.client, &err), &err);
    bench_check(rp_env_new(NULL, rp_env_find("cartpole"), &env, &r.env, &err), &err);
    bench_check(
        rp_dqn_new(NULL,
                   &(rp_dqn_options){&settings, rp_env_get_spec(r.env), r.store, r.client, 1},
                   &r.agent, &err),
        &err);
    bench_check(rp_env_loop_new(NULL, r.env, r.agent, &r.loop, &err), &err);
    bench_check(rp_env_loop_begin(r.loop, 1, &err), &err);
    return r;
}

static void drop(run *r)
{
    rp_env_loop_free(r->loop);
    rp_agent_free(r->agent);
    rp_env_free(r->env);
    rp_client_free(r->client);
    rp_store_free(r->store);
}

static void step(run *r, size_t calls)
{
    rp_error err;

    for (size_t i = 0; i < calls; i++) bench_check(rp_env_loop_step(r->loop, &err), &err);
}

/* A policy in its environments, without an agent. */
typedef struct game {
    rp_env *env;
    rp_net *net;
    rp_policy *policy;
    rp_real *params;
    float *observations;
    int32_t *actions;
    double *rewards;
    bool *terminated, *truncated;
} game;

static game make_game(size_t copies)
{
    rp_dqn_settings settings;
    uint64_t *seeds = bench_array(copies, sizeof *seeds);
    rp_error err;
    game g = {0};

    rp_dqn_settings_init(&settings, NULL);
    bench_check(rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = copies},
                           &g.env, &err),
                &err);
    bench_check(rp_dqn_new_net(NULL, &settings, rp_env_get_spec(g.env), &g.net, &err), &err);
    bench_check(rp_dqn_new_policy(NULL, g.net, rp_env_get_spec(g.env), copies, &g.policy, &err),
                &err);
    g.params = bench_array(rp_net_size(g.net), sizeof *g.params);
    g.observations = bench_array(copies * 4, sizeof *g.observations);
    g.actions = bench_array(copies, sizeof *g.actions);
    g.rewards = bench_array(copies, sizeof *g.rewards);
    g.terminated = bench_array(copies, sizeof *g.terminated);
    g.truncated = bench_array(copies, sizeof *g.truncated);
    for (size_t i = 0; i < rp_net_size(g.net); i++) g.params[i] = 0.01F * (rp_real)(i % 7);
    for (size_t i = 0; i < copies; i++) seeds[i] = i;
    bench_check(rp_env_reset(g.env, seeds, g.observations, &err), &err);
    free(seeds);
    return g;
}

static void play(game *g, size_t calls)
{
    const rp_env_buffers out = {g->observations, NULL, g->rewards, g->terminated, g->truncated};
    rp_error err;

    for (size_t i = 0; i < calls; i++) {
        g->policy->act(g->policy, g->params, g->observations, rp_env_copies(g->env),
                       g->actions);
        bench_check(rp_env_step(g->env, g->actions, &out, &err), &err);
    }
}

static void drop_game(game *g)
{
    rp_policy_free(g->policy);
    rp_net_free(g->net);
    rp_env_free(g->env);
    free(g->params);
    free(g->observations);
    free(g->actions);
    free(g->rewards);
    free(g->terminated);
    free(g->truncated);
}

static void act(bool quick)
{
    enum { GROUP = 32, STEPS = 6400 };
    rp_dqn_settings settings;
    bench_best best[4] = {{0}};
    run group, one;
    game large = make_game(GROUP), small = make_game(1);

    rp_dqn_settings_init(&settings, NULL);
    settings.start = settings.capacity; /* no updates: the limiter permits no sample */
    settings.steps_per_update = 1000000;
    settings.copies = GROUP;
    group = make(settings);
    settings.copies = 1;
    one = make(settings);
    for (int round = 0; round < (quick ? 20 : 100); round++) {
        double started = bench_seconds();
        step(&group, STEPS / GROUP);
        bench_keep(&best[0], started);
        started = bench_seconds();
        step(&one, STEPS);
        bench_keep(&best[1], started);
        started = bench_seconds();
        play(&large, STEPS / GROUP);
        bench_keep(&best[2], started);
        started = bench_seconds();
        play(&small, STEPS);
        bench_keep(&best[3], started);
    }
    bench_ratio_time("rl.act.group", best[2], "one by one", best[3], STEPS);
    bench_ratio_time("rl.act.group.replay", best[0], "one by one", best[1], STEPS);
    drop(&group);
    drop(&one);
    drop_game(&large);
    drop_game(&small);
}

static void train(size_t steps)
{
    rp_dqn_settings settings;
    double started;
    run r;

    rp_dqn_settings_init(&settings, NULL);
    settings.batch = 64;
    r = make(settings);
    started = bench_seconds();
    step(&r, steps / (size_t)settings.copies);
    printf("%.6f\n", bench_seconds() - started);
    drop(&r);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--train") == 0) {
        train(strtoul(argv[2], NULL, 10));
        return 0;
    }
    act(bench_parse(argc, argv, "acting of a DQN agent, in groups and one by one").quick);
    return 0;
}
