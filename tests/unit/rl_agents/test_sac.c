/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/sac.h"

#include <math.h>
#include <string.h>

#include "agents/replay.h"
#include "reprise/rl/env_loop.h"
#include "support/unit.h"

/* An agent in its environments, with a store of its own. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_agent *agent;
    rp_env_loop *loop;
    rp_sac_settings settings;
    rp_error err;
} fixture;

/* The settings of the tests: small, and learning starts at once. */
static fixture small(void)
{
    fixture f = {0};

    rp_sac_settings_init(&f.settings, NULL);
    f.settings.hidden = 16;
    f.settings.start = 64;
    f.settings.batch = 16;
    f.settings.copies = 4;
    f.settings.steps_per_update = 4;
    return f;
}

static void open_env(fixture *f, const char *env)
{
    const rp_env_options options = {.copies = (size_t)f->settings.copies};

    assert_ok(rp_store_new(&(rp_store_options){.seed = 5}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find(env), &options, &f->env, &f->err));
}

static rp_status new_agent(fixture *f, const rp_allocator *alloc, uint64_t seed)
{
    const rp_sac_options options = {&f->settings, rp_env_get_spec(f->env), f->store, f->client,
                                    seed};

    return rp_sac_new(alloc, &options, &f->agent, &f->err);
}

static void begin(fixture *f, uint64_t seed)
{
    open_env(f, "pendulum");
    assert_ok_err(new_agent(f, NULL, seed), &f->err);
    assert_ok(rp_env_loop_new(NULL, f->env, f->agent, &f->loop, &f->err));
    assert_ok_err(rp_env_loop_begin(f->loop, seed, &f->err), &f->err);
}

static void close_fixture(fixture *f)
{
    rp_env_loop_free(f->loop);
    rp_agent_free(f->agent);
    rp_env_free(f->env);
    rp_client_free(f->client);
    rp_store_free(f->store);
}

static void step(fixture *f, int count)
{
    for (int i = 0; i < count; i++) assert_ok_err(rp_env_loop_step(f->loop, &f->err), &f->err);
}

static rp_agent_metrics metrics(fixture *f)
{
    rp_agent_metrics m;

    f->agent->type->get_metrics(f->agent, &m);
    return m;
}

static rp_state_part part(fixture *f, const char *name)
{
    rp_state_part parts[RP_AGENT_MAX_PARTS];
    size_t count = f->agent->type->get_state(f->agent, parts);

    for (size_t i = 0; i < count; i++)
        if (strcmp(parts[i].name, name) == 0) return parts[i];
    fail_msg("there is no part '%s'", name);
    return parts[0];
}

/* A parameter, counted from the end: 0 is the logarithm of the temperature. */
static rp_real last_parameter(fixture *f, size_t i)
{
    const rp_state_part params = part(f, "params");

    return ((const rp_real *)params.bytes)[params.size / sizeof(rp_real) - 1 - i];
}

static void discrete_actions_are_refused(void **state)
{
    (void)state;
    fixture f = small();

    open_env(&f, "cartpole");
    assert_int_equal(new_agent(&f, NULL, 1), RP_INVALID);
    assert_non_null(strstr(
        f.err.text, "sac: needs continuous actions, and the environment has 2 discrete ones"
                    "; these have: "));
    close_fixture(&f);
}

/* An actor of one copy of Pendulum, with the table. */
typedef struct acting {
    fixture f;
    rp_actor *actor;
    float seen[3];
} acting;

static void open_actor(acting *a)
{
    fixture *f = &a->f;
    const uint64_t seed = 1;
    rp_table_options table;
    rp_pcg64 rng;

    f->settings.copies = 1;
    open_env(f, "pendulum");
    assert_ok(rp_sac_table(&f->settings, rp_env_get_spec(f->env), 0, &table, &f->err));
    assert_ok(rp_store_add_table(f->store, &table, NULL, &f->err));
    rp_signature_unref(table.signature);
    rp_pcg64_seed(&rng, 4);
    assert_ok(rp_sac_actor_new(NULL,
                               &(rp_sac_actor_options){.settings = &f->settings,
                                                       .spec = rp_env_get_spec(f->env),
                                                       .client = f->client,
                                                       .settled = true,
                                                       .rng = &rng},
                               rp_wait_forever(), &a->actor, &f->err));
    assert_ok(rp_env_reset(f->env, &seed, a->seen, &f->err));
    assert_ok(a->actor->type->begin(a->actor, a->seen, rp_wait_forever(), &f->err));
}

enum { DRAWS = 4000 };

/* Draws actions with parameters of zeroes, so that all Gaussians are standard, and undoes the
 * tanh. */
static void draw_actions(double memory, double out[DRAWS])
{
    acting a = {.f = small()};
    rp_real *params;
    float action;

    a.f.settings.noise_memory = memory;
    open_actor(&a);
    params = calloc(a.actor->parameter_count, sizeof *params);
    assert_non_null(params);
    params[a.actor->parameter_count - 1] = (rp_real)log(0.25);
    a.actor->params = params;
    for (size_t i = 0; i < DRAWS; i++) {
        a.actor->type->act(a.actor, a.seen, &action);
        assert_true(action >= -2 && action <= 2);
        out[i] = atanh((double)action / 2);
    }
    assert_true(fabs(a.actor->exploration - 0.25) < 1e-6); /* the temperature */
    rp_actor_free(a.actor);
    free(params);
    close_fixture(&a.f);
}

static double mean_product(const double *x, size_t lag)
{
    double sum = 0;

    for (size_t i = lag; i < DRAWS; i++) sum += x[i] * x[i - lag];
    return sum / (double)(DRAWS - lag);
}

static void actions_are_drawn_with_and_without_memory(void **state)
{
    (void)state;
    static double x[DRAWS];

    draw_actions(0, x);
    assert_true(fabs(mean_product(x, 0) - 1) < 0.05);
    assert_true(fabs(mean_product(x, 1)) < 0.06);
    draw_actions(0.9, x);
    assert_true(fabs(mean_product(x, 0) - 1) < 0.25); /* the same Gaussian */
    assert_true(fabs(mean_product(x, 1) / mean_product(x, 0) - 0.9) < 0.03);
}

/* The policy without exploration takes the tanh of the mean. */
static void a_policy_takes_the_mode(void **state)
{
    (void)state;
    fixture f = small();
    const float seen[2][3] = {{1, 0, 0.5F}, {-0.6F, 0.8F, -2}};
    float actions[2], unit[3];
    rp_policy *policy = NULL;
    rp_net *net = NULL;
    rp_tape *tape = NULL;

    begin(&f, 3);
    step(&f, 60);
    assert_ok(f.agent->type->new_policy(f.agent, 2, &policy, &f.err));
    policy->act(policy, f.agent->type->parameters(f.agent), seen, 2, actions);
    assert_ok(rp_sac_new_net(NULL, &f.settings, rp_env_get_spec(f.env), &net, &f.err));
    assert_ok(
        rp_tape_new(rp_allocator_default(), net, (rp_tape_options){.rows = 1}, &tape, &f.err));
    for (size_t i = 0; i < 2; i++) {
        const rp_real *out;

        memcpy(unit, seen[i], sizeof unit);
        unit[2] /= 8; /* the bounds of the speed */
        out = rp_tape_forward(tape, f.agent->type->parameters(f.agent), unit, 1);
        assert_true(fabs((double)actions[i] - 2 * tanh((double)out[0])) < 1e-6);
    }
    rp_tape_free(tape);
    rp_net_free(net);
    rp_policy_free(policy);
    close_fixture(&f);
}

static void the_temperature_follows_the_entropy(void **state)
{
    (void)state;
    for (int seeks = -1; seeks <= 1; seeks += 2) {
        fixture f = small();

        f.settings.temperature = 0.3;
        f.settings.temperature_rate = 1e-2;
        f.settings.target_entropy = 10 * seeks;
        begin(&f, 1);
        assert_true(fabs((double)last_parameter(&f, 0) - log(0.3)) < 1e-6);
        step(&f, 120);
        assert_true(seeks * ((double)last_parameter(&f, 0) - log(0.3)) > 0.1);
        assert_true(fabs(log(metrics(&f).epsilon / 0.3)) > 0.1);
        close_fixture(&f);
    }
}

static void the_table_is_uniform_unless_prioritized(void **state)
{
    (void)state;
    fixture f = small();
    rp_table_options table;

    open_env(&f, "pendulum");
    for (int prioritized = 0; prioritized < 2; prioritized++) {
        f.settings.prioritized = prioritized;
        assert_ok(rp_sac_table(&f.settings, rp_env_get_spec(f.env), 0, &table, &f.err));
        rp_signature_unref(table.signature);
        assert_int_equal(table.sampler.kind, prioritized ? RP_PRIORITIZED : RP_UNIFORM);
        assert_int_equal(table.remover.kind, RP_FIFO);
    }
    close_fixture(&f);
}

/* Runs some updates and returns a parameter: the bias of the second critic's output. */
static rp_real result_of(const rp_sac_settings *settings, uint64_t seed)
{
    fixture f = small();
    rp_real last;

    f.settings = *settings;
    begin(&f, seed);
    step(&f, (int)rp_test_length(60, 40));
    assert_true(metrics(&f).updates > 20);
    last = last_parameter(&f, 1);
    close_fixture(&f);
    return last;
}

/* Each setting that learning reads changes what is learned; the same ones do not. */
static void every_setting_of_learning_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double value;
    } changes[] = {
        {"weight-exponent", 0},  {"discount", 0.9},      {"max-norm", 1e-3},
        {"huber", 1e-3},         {"rate", 1e-4},         {"policy-rate", 1e-5},
        {"target-every", 3},     {"target-rate", 0.1},   {"reward-scale", 0.1},
        {"n-step", 2},           {"normalize", 0},       {"priority-exponent", 0},
        {"noise-memory", 0.5},   {"prioritized", 0},     {"temperature", 0.1},
        {"tune-temperature", 0}, {"target-entropy", 10}, {"temperature-rate", 0.1},
    };
    const rp_settings_table *table = rp_sac_settings_table();
    rp_sac_settings settings = small().settings;
    rp_real plain;

    settings.prioritized = true;
    plain = result_of(&settings, 1);
    assert_true(result_of(&settings, 1) == plain);
    assert_true(result_of(&settings, 2) != plain);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        settings = small().settings;
        settings.prioritized = true;
        rp_settings_set(table, &settings, rp_settings_find(table, changes[i].name),
                        changes[i].value);
        if (result_of(&settings, 1) == plain) fail_msg("%s changes nothing", changes[i].name);
    }
}

/* A learner finds the TD error that the actor found, before the first update: the larger one of
 * both critics. With one item, and a discount of 0, so that the noise does not matter. */
static void a_learner_and_an_actor_find_the_same_error(void **state)
{
    (void)state;
    acting a = {.f = small()};
    fixture *f = &a.f;
    float action, last[3];
    double reward;
    bool terminated, truncated;
    const rp_env_buffers result = {a.seen, last, &reward, &terminated, &truncated};
    float before[3];
    const rp_agent_step step = {before, &action, &result};
    rp_learner *learner = NULL;
    rp_agent_metrics m;
    rp_table *table;
    rp_sample sample;
    rp_pcg64 rng;
    size_t count = 0;

    f->settings.batch = f->settings.start = f->settings.steps_per_update = 1;
    f->settings.discount = 0;
    open_actor(&a);
    rp_pcg64_seed(&rng, 3);
    assert_ok(rp_sac_learner_new(NULL,
                                 &(rp_sac_learner_options){.settings = &f->settings,
                                                           .spec = rp_env_get_spec(f->env),
                                                           .client = f->client,
                                                           .store = f->store,
                                                           .rng = &rng},
                                 &learner, &f->err));
    a.actor->params = learner->type->parameters(learner);
    memcpy(before, a.seen, sizeof before);
    a.actor->type->act(a.actor, before, &action);
    assert_ok(rp_env_step(f->env, &action, &result, &f->err));
    assert_ok(a.actor->type->observe(a.actor, &step, rp_wait_forever(), &f->err));
    table = rp_store_find_table(f->store, (rp_string){"replay", 6});
    assert_ok(rp_table_sample(table, &(rp_sample_options){.count = 1}, &sample, &count,
                              rp_wait_forever(), &f->err));
    assert_ok_err(learner->type->update(learner, rp_wait_forever(), &f->err), &f->err);
    learner->type->get_metrics(learner, &m);
    assert_true(m.error > 0.01);
    assert_true(fabs(m.error + RP_PRIORITY_FLOOR - sample.priority) < 1e-5);
    assert_true(m.loss < m.error * m.error / 2); /* that of the other critic is smaller */
    rp_samples_release(&sample, 1);
    rp_table_unref(table);
    rp_learner_free(learner);
    rp_actor_free(a.actor);
    close_fixture(f);
}

/* An agent from its first allocation to its last; the store has an allocator of its own. */
static rp_status a_life(const rp_allocator *alloc)
{
    fixture f = small();
    rp_policy *policy = NULL;
    rp_status st;

    f.settings.start = 16;
    open_env(&f, "pendulum");
    st = new_agent(&f, alloc, 1);
    if (st == RP_OK) st = rp_env_loop_new(alloc, f.env, f.agent, &f.loop, &f.err);
    if (st == RP_OK) st = rp_env_loop_begin(f.loop, 1, &f.err);
    for (int i = 0; st == RP_OK && i < 10; i++) st = rp_env_loop_step(f.loop, &f.err);
    if (st == RP_OK) st = f.agent->type->new_policy(f.agent, 3, &policy, &f.err);
    rp_policy_free(policy);
    close_fixture(&f);
    return st;
}

static void an_agent_survives_a_lack_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(a_life);
}

/* Numbers of a snapshot that cannot be those of a run. */
static void impossible_states_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"learner_rng", "noise", "params",
                                        "temperature_moments"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fixture f = small();
        rp_state_part bad;

        begin(&f, 1);
        step(&f, 30);
        bad = part(&f, names[i]);
        memset(bad.bytes, 0xff, bad.size); /* NaN, or a stream that is even */
        if (i == 0) memset(bad.bytes, 0, bad.size);
        assert_int_equal(f.agent->type->restored(f.agent, &f.err), RP_CORRUPT);
        assert_string_equal(f.err.text, "sac: a number of the snapshot is impossible");
        close_fixture(&f);
    }
}

RP_TESTS(sac)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(discrete_actions_are_refused),
        cmocka_unit_test(actions_are_drawn_with_and_without_memory),
        cmocka_unit_test(a_policy_takes_the_mode),
        cmocka_unit_test(the_temperature_follows_the_entropy),
        cmocka_unit_test(the_table_is_uniform_unless_prioritized),
        cmocka_unit_test(every_setting_of_learning_counts),
        cmocka_unit_test(a_learner_and_an_actor_find_the_same_error),
        cmocka_unit_test(an_agent_survives_a_lack_of_memory),
        cmocka_unit_test(impossible_states_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
