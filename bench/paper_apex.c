/* SPDX-License-Identifier: Apache-2.0 */
/* One run of Ape-X DQN in small, for paper_apex.py: the halves of DQN (dqn.h) on one store, on
 * one thread. Two runs with the same arguments are equal bit by bit.
 *
 *     bench_paper_apex ENV[:NAME=VALUE,...] [NAME=VALUE ...]
 *
 *     bench_paper_apex deep_sea:size=8 seed=3 actors=16 updates=4000 every=200 capacity=5000
 *
 * The names after ENV: are settings of the environment. The other names are
 *
 *     seed        of the run; 1
 *     actors      each with an environment and an epsilon of its own, .4^(1 + 7 i / (N - 1)); 8
 *     steps       environment steps of all actors together for each update; 4
 *     replicate   how often each transition is added to the replay; 1
 *     updates     after which the run ends; 2000
 *     every       updates between two evaluations; 200
 *     episodes    of an evaluation, greedy; 20
 *
 * and the settings of DQN (dqn_settings.h) but copies and steps-per-update, which follow from
 * these. start counts steps of the environments, capacity counts items.
 *
 * Prints "updates,steps,items,score" for each evaluation; the score is the mean return. The
 * actors act with the parameters of the latest update, compute the priorities of new items from
 * their own Q-values, and take turns with the learner, which the rate limiter paces. */
#include "bench.h"

#include <assert.h>
#include <math.h>

#include "reprise/rl/dqn.h"
#include "reprise/rl/env_loop.h"
#include "reprise/rl/evaluator.h"
#include "reprise/store.h"

enum { MOST_REPLICAS = 16, MOST_NAME = 32 };

typedef struct plan {
    const rp_env_class *env_class;
    rp_env_setting env_settings[RP_ENV_MAX_SETTINGS];
    char env_names[RP_ENV_MAX_SETTINGS][MOST_NAME];
    size_t env_setting_count;
    double seed, actors, steps, replicate, updates, every, episodes;
    rp_dqn_settings dqn;
} plan;

/* The actors and the learner, as the agent that the environment loop drives.
 *
 * To add each transition k times there are k halves that act. All have the same random stream
 * and see the same steps, so that they choose the same actions and write the same items; the
 * environments get the actions of the first one. */
typedef struct program {
    rp_agent agent; /* first */
    const plan *p;
    rp_actor *actors[MOST_REPLICAS];
    size_t replicas;
    rp_learner *learner;
    rp_table *table;
    rp_policy *policy;
    rp_evaluation_options evaluation;
    int64_t updates;
    int32_t *others; /* actions of the other replicas */
} program;

static _Noreturn void fail(const char *what, const char *value)
{
    (void)fprintf(stderr, "%s: '%s'; the top of bench/paper_apex.c has the arguments\n", what,
                  value);
    exit(2);
}

static double number(const char *text, double low, double high)
{
    char *end;
    double value = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(value >= low && value <= high))
        fail("no such number", text);
    return value;
}

/* Takes ENV:NAME=VALUE,... */
static void take_env(plan *p, char *text)
{
    char *more = strchr(text, ':');

    if (more != NULL) *more++ = '\0';
    p->env_class = rp_env_find(text);
    if (p->env_class == NULL) fail("no such environment", text);
    for (char *next; more != NULL; more = next) {
        char *value = strchr(more, '='), *name = p->env_names[p->env_setting_count];

        next = strchr(more, ',');
        if (next != NULL) *next++ = '\0';
        if (value == NULL || p->env_setting_count == RP_ENV_MAX_SETTINGS)
            fail("expected NAME=VALUE", more);
        *value++ = '\0';
        (void)snprintf(name, MOST_NAME, "%s", more);
        p->env_settings[p->env_setting_count++] =
            (rp_env_setting){name, number(value, -1e9, 1e9)};
    }
}

/* Takes NAME=VALUE of a run or of DQN. */
static void take(plan *p, char *text)
{
    const struct {
        const char *name;
        double *at, low, high;
    } own[] = {
        {"seed", &p->seed, 0, 1e9},         {"actors", &p->actors, 1, 4096},
        {"steps", &p->steps, 1, 1000},      {"replicate", &p->replicate, 1, MOST_REPLICAS},
        {"updates", &p->updates, 1, 1e9},   {"every", &p->every, 1, 1e9},
        {"episodes", &p->episodes, 1, 1e6},
    };
    const rp_settings_table *table = rp_dqn_settings_table();
    char *value = strchr(text, '=');
    size_t i;

    if (value == NULL) fail("expected NAME=VALUE", text);
    *value++ = '\0';
    for (i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (strcmp(own[i].name, text) != 0) continue;
        *own[i].at = number(value, own[i].low, own[i].high);
        return;
    }
    i = rp_settings_find(table, text);
    if (i == table->count || strcmp(text, "copies") == 0 ||
        strcmp(text, "steps-per-update") == 0)
        fail("no such setting", text);
    rp_settings_set(table, &p->dqn, i, number(value, -1e12, 1e12));
}

/* The settings that follow from others. */
static void settle(plan *p)
{
    rp_error err;

    p->dqn.copies = (int64_t)p->actors;
    p->dqn.steps_per_update = (int64_t)(p->steps * p->replicate);
    p->dqn.start *= (int64_t)p->replicate;
    bench_check(rp_dqn_settings_check(&p->dqn, &err), &err);
}

static rp_env_options env_options(const plan *p)
{
    return (rp_env_options){.copies = (size_t)p->actors,
                            .settings = p->env_settings,
                            .setting_count = p->env_setting_count};
}

static uint64_t seed_of(const plan *p, uint32_t part)
{
    const uint32_t words[] = {(uint32_t)p->seed, part};
    uint32_t out[2];

    rp_seed_sequence(words, 2, out, 2);
    return (uint64_t)out[0] << 32 | out[1];
}

enum { SEED_STORE, SEED_PARAMETERS, SEED_ACTORS, SEED_ENVS, SEED_EVALUATION };

static void act(rp_agent *agent, const void *observations, void *actions)
{
    program *g = (program *)agent;
    size_t bytes = (size_t)g->p->actors * sizeof(int32_t);

    for (size_t i = 0; i < g->replicas; i++) {
        g->actors[i]->params = g->learner->type->parameters(g->learner);
        g->actors[i]->type->act(g->actors[i], observations, i == 0 ? actions : g->others);
        if (i > 0 && memcmp(actions, g->others, bytes) != 0)
            fail("replicas must act alike", "a bug");
    }
}

static rp_status begin(rp_agent *agent, const void *observations, rp_error *err)
{
    program *g = (program *)agent;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < g->replicas; i++)
        st = g->actors[i]->type->begin(g->actors[i], observations, rp_wait_forever(), err);
    return st;
}

static rp_status observe(rp_agent *agent, const rp_agent_step *step, rp_error *err)
{
    program *g = (program *)agent;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < g->replicas; i++)
        st = g->actors[i]->type->observe(g->actors[i], step, rp_wait_forever(), err);
    return st;
}

static void evaluate(program *g)
{
    rp_table_info info;
    rp_evaluation result;
    rp_error err;

    g->evaluation.seed = seed_of(g->p, SEED_EVALUATION + (uint32_t)g->updates);
    bench_check(rp_evaluate(NULL, &g->evaluation, g->learner->type->parameters(g->learner),
                            &result, &err),
                &err);
    rp_table_get_info(g->table, &info);
    (void)printf("%lld,%.0f,%lld,%.6g\n", (long long)g->updates,
                 (double)info.inserts / (double)g->replicas, (long long)info.inserts,
                 result.mean_return);
}

/* As many updates as the rate limiter allows. */
static rp_status learn(rp_agent *agent, rp_error *err)
{
    program *g = (program *)agent;
    rp_status st = RP_OK;

    while (st == RP_OK && g->updates < (int64_t)g->p->updates &&
           rp_table_can_sample(g->table, g->p->dqn.batch)) {
        st = g->learner->type->update(g->learner, rp_wait_forever(), err);
        if (st == RP_OK && ++g->updates % (int64_t)g->p->every == 0) evaluate(g);
    }
    return st;
}

static const rp_agent_class program_class = {
    .name = "apex", .act = act, .begin = begin, .observe = observe, .learn = learn};

/* The items of one step of all replicas must fit, even if all episodes end in it: the one
 * thread acts and learns in turns, so no update can make room meanwhile. */
static void add_table(const plan *p, const rp_env_spec *spec, rp_store *store)
{
    double per_insert = (double)p->dqn.batch / (double)p->dqn.steps_per_update;
    double slack = (p->replicate - 1) * per_insert * p->actors * (double)p->dqn.n_step;
    rp_table_options table;
    rp_error err;

    bench_check(rp_dqn_table(&p->dqn, spec, slack, &table, &err), &err);
    bench_check(rp_store_add_table(store, &table, NULL, &err), &err);
    rp_signature_unref(table.signature);
}

static void make(program *g, const rp_env_spec *spec, rp_store *store, rp_client *client)
{
    rp_pcg64 parameters, exploration;
    const rp_dqn_learner_options learner = {.settings = &g->p->dqn,
                                            .spec = spec,
                                            .client = client,
                                            .store = store,
                                            .rng = &parameters};
    const rp_dqn_actor_options actor = {.settings = &g->p->dqn,
                                        .spec = spec,
                                        .client = client,
                                        .settled = true,
                                        .rng = &exploration};
    rp_error err;

    rp_pcg64_seed(&parameters, seed_of(g->p, SEED_PARAMETERS));
    rp_pcg64_seed(&exploration, seed_of(g->p, SEED_ACTORS));
    bench_check(rp_dqn_learner_new(NULL, &learner, &g->learner, &err), &err);
    for (; g->replicas < (size_t)g->p->replicate; g->replicas++)
        bench_check(
            rp_dqn_actor_new(NULL, &actor, rp_wait_forever(), &g->actors[g->replicas], &err),
            &err);
    g->table = rp_store_find_table(store, (rp_string){"replay", 6});
    assert(g->table != NULL);
    bench_check(g->learner->type->new_policy(g->learner, 20, &g->policy, &err), &err);
    g->evaluation = (rp_evaluation_options){.env_class = g->p->env_class,
                                            .env = env_options(g->p),
                                            .policy = g->policy,
                                            .episodes = (int64_t)g->p->episodes};
    g->others = bench_array((size_t)g->p->actors, sizeof *g->others);
}

static void drop(program *g)
{
    free(g->others);
    rp_policy_free(g->policy);
    rp_table_unref(g->table);
    for (size_t i = 0; i < g->replicas; i++) rp_actor_free(g->actors[i]);
    rp_learner_free(g->learner);
}

static void run(const plan *p)
{
    const rp_store_options options = {.seed = seed_of(p, SEED_STORE) | 1};
    const rp_env_options env_making = env_options(p);
    program g = {.agent = {&program_class}, .p = p};
    rp_store *store = NULL;
    rp_client *client = NULL;
    rp_env *env = NULL;
    rp_env_loop *loop = NULL;
    rp_error err;

    bench_check(rp_store_new(&options, &store, &err), &err);
    bench_check(rp_client_local(store, NULL, &client, &err), &err);
    bench_check(rp_env_new(NULL, p->env_class, &env_making, &env, &err), &err);
    add_table(p, rp_env_get_spec(env), store);
    make(&g, rp_env_get_spec(env), store, client);
    bench_check(rp_env_loop_new(NULL, env, &g.agent, &loop, &err), &err);
    bench_check(rp_env_loop_begin(loop, seed_of(p, SEED_ENVS), &err), &err);
    while (g.updates < (int64_t)p->updates) bench_check(rp_env_loop_step(loop, &err), &err);
    rp_env_loop_free(loop);
    drop(&g);
    rp_env_free(env);
    rp_client_free(client);
    rp_store_free(store);
}

int main(int argc, char **argv)
{
    plan p = {.seed = 1,
              .actors = 8,
              .steps = 4,
              .replicate = 1,
              .updates = 2000,
              .every = 200,
              .episodes = 20};

    if (argc < 2) fail("usage: bench_paper_apex", "ENV NAME=VALUE ...");
    take_env(&p, argv[1]);
    rp_dqn_settings_init(&p.dqn, p.env_class->name);
    for (int i = 2; i < argc; i++) take(&p, argv[i]);
    settle(&p);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)printf("updates,steps,items,score\n");
    run(&p);
    return 0;
}
