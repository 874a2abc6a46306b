/* SPDX-License-Identifier: Apache-2.0 */
/* Updates a second of learners that share one agent: two over one.
 *
 * A learner is that of DQN whole: a batch drawn by priority from a table of this process, both
 * networks, loss, backward, Adam, priorities back. The table has 20,000 items of CartPole.
 *
 *   pal.learners.W    two learners share the rows of each batch, networks of 2 x W units
 *   pal.async.W       two learners make updates of their own
 *
 * On a machine with fewer than two free cores the ratios say nothing. */
#include "bench.h"
#include "reprise/rl/dqn.h"
#include "reprise/rl/env_loop.h"

enum { ITEMS = 20000, COPIES = 16 };

typedef struct figure {
    int64_t width, batch;
} figure;

static const figure figures[] = {{256, 512}, {64, 64}};

typedef struct world {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_dqn_settings settings;
} world;

static void open_world(world *w, const figure *of)
{
    const rp_table_alteration free_limiter = {.which = RP_ALTER_LIMITER,
                                              .limiter = rp_limiter_min_size(1)};
    const rp_env_options env = {.copies = COPIES};
    rp_agent *agent = NULL;
    rp_env_loop *loop = NULL;
    rp_table *table;
    rp_error err;

    rp_dqn_settings_init(&w->settings, NULL);
    w->settings.copies = COPIES;
    w->settings.hidden = of->width;
    w->settings.batch = of->batch;
    w->settings.capacity = w->settings.start = ITEMS;
    bench_check(rp_store_new(&(rp_store_options){.seed = 1}, &w->store, &err), &err);
    bench_check(rp_client_local(w->store, NULL, &w->client, &err), &err);
    bench_check(rp_env_new(NULL, rp_env_find("cartpole"), &env, &w->env, &err), &err);
    bench_check(rp_dqn_new(NULL,
                           &(rp_dqn_options){&w->settings, rp_env_get_spec(w->env), w->store,
                                             w->client, 1},
                           &agent, &err),
                &err);
    bench_check(rp_env_loop_new(NULL, w->env, agent, &loop, &err), &err);
    bench_check(rp_env_loop_begin(loop, 1, &err), &err);
    for (size_t i = 0; i < ITEMS / COPIES - COPIES; i++)
        bench_check(rp_env_loop_step(loop, &err), &err);
    rp_env_loop_free(loop);
    rp_agent_free(agent);
    table = rp_store_find_table(w->store, (rp_string){"replay", 6});
    bench_check(rp_table_alter(table, &free_limiter, &err), &err);
    rp_table_unref(table);
}

static void close_world(world *w)
{
    rp_env_free(w->env);
    rp_client_free(w->client);
    rp_store_free(w->store);
}

static rp_learner *learner_of(world *w, int64_t learners, bool is_async)
{
    rp_dqn_settings settings = w->settings;
    rp_pcg64 rng;
    const rp_dqn_learner_options options = {.settings = &settings,
                                            .spec = rp_env_get_spec(w->env),
                                            .client = w->client,
                                            .store = w->store,
                                            .rng = &rng};
    rp_learner *learner = NULL;
    rp_error err;

    settings.learners = learners;
    settings.async_learners = is_async;
    rp_pcg64_seed(&rng, 1);
    bench_check(rp_dqn_learner_new(NULL, &options, &learner, &err), &err);
    return learner;
}

static int64_t updates_of(rp_learner *learner)
{
    rp_agent_metrics m;

    learner->type->get_metrics(learner, &m);
    return m.updates;
}

/* Updates for some time. Returns the seconds of one update; other threads' updates count. */
static double seconds_of(rp_learner *learner, double time)
{
    rp_state_part parts[RP_AGENT_MAX_PARTS];
    double started = bench_seconds(), seconds;
    int64_t before = updates_of(learner);
    rp_error err;

    do bench_check(learner->type->update(learner, rp_wait_forever(), &err), &err);
    while (bench_seconds() - started < time);
    seconds = bench_seconds() - started;
    seconds /= (double)(updates_of(learner) - before);
    (void)learner->type->get_state(learner, parts); /* pauses those that go on by themselves */
    return seconds;
}

static void measure(const figure *of, bool quick)
{
    const double time = 0.03;
    world w = {0};
    rp_learner *learners[3];
    bench_best best[3] = {{0}};

    open_world(&w, of);
    learners[0] = learner_of(&w, 1, false);
    learners[1] = learner_of(&w, 2, false);
    learners[2] = learner_of(&w, 2, true);
    for (int round = 0; round < (quick ? 20 : 100); round++)
        for (size_t i = 0; i < 3; i++)
            bench_keep_seconds(&best[i], seconds_of(learners[i], time));
    printf("ratio pal.learners.%lld %.2f (two %.0f vs one %.0f updates/s, batch %lld)\n",
           (long long)of->width, best[0].seconds / best[1].seconds, 1 / best[1].seconds,
           1 / best[0].seconds, (long long)of->batch);
    printf("ratio pal.async.%lld %.2f (two %.0f vs one %.0f updates/s, batch %lld)\n",
           (long long)of->width, best[0].seconds / best[2].seconds, 1 / best[2].seconds,
           1 / best[0].seconds, (long long)of->batch);
    for (size_t i = 0; i < 3; i++) rp_learner_free(learners[i]);
    close_world(&w);
}

int main(int argc, char **argv)
{
    bench_options options = bench_parse(argc, argv, "updates of parallel learners of DQN");

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        measure(&figures[i], options.quick);
    return 0;
}
