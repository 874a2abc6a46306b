/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/dpg.h"

#include <math.h>
#include <string.h>

#include "agents/dpg/dpg_kind.h"
#include "agents/dpg/dpg_rating.h"
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
    rp_dpg_settings settings;
    rp_error err;
} fixture;

/* The settings of the tests: small, and learning starts at once. */
static fixture small(void)
{
    fixture f = {0};

    rp_dpg_settings_init(&f.settings, NULL);
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

static void begin(fixture *f, const char *env, uint64_t seed)
{
    open_env(f, env);
    assert_ok_err(rp_dpg_new(NULL,
                             &(rp_dpg_options){&f->settings, rp_env_get_spec(f->env), f->store,
                                               f->client, seed},
                             &f->agent, &f->err),
                  &f->err);
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

static void environments_that_it_cannot_learn_are_refused(void **state)
{
    (void)state;
    fixture f = small();
    const float low[] = {-1, -INFINITY}, high[] = {1, 1};
    rp_env_spec spec;
    rp_net *net = NULL;

    open_env(&f, "cartpole");
    assert_int_equal(
        rp_dpg_new(NULL,
                   &(rp_dpg_options){&f.settings, rp_env_get_spec(f.env), f.store, f.client, 1},
                   &f.agent, &f.err),
        RP_INVALID);
    assert_non_null(strstr(
        f.err.text, "dpg: needs continuous actions, and the environment has 2 discrete ones"
                    "; these have: "));
    spec = *rp_env_get_spec(f.env);
    spec.action_kind = RP_ACTION_BOX;
    spec.action_size = 2;
    spec.action_low = low;
    spec.action_high = high;
    assert_int_equal(rp_dpg_new_net(NULL, &f.settings, &spec, &net, &f.err), RP_INVALID);
    assert_string_equal(f.err.text,
                        "dpg: needs finite bounds of actions, and number 1 is from -inf to 1");
    spec.action_size = 1;
    spec.observation_dtype = RP_UINT8;
    assert_int_equal(rp_dpg_new_critic(NULL, &f.settings, &spec, &net, &f.err), RP_INVALID);
    assert_string_equal(f.err.text,
                        "dpg: needs observations of float32, and the environment has uint8");
    close_fixture(&f);
}

/* Boxes map both ways, with and without bounds. */
static void boxes_map_to_unit_and_back(void **state)
{
    (void)state;
    const float low[] = {-1.2F, -0.07F}, high[] = {0.6F, 0.07F}, none[] = {-INFINITY};
    const float in[] = {-1.2F, 0.07F, 0.6F, 0}, most[] = {INFINITY};
    rp_box *box = NULL;
    float unit[4], back[4];

    assert_ok(rp_box_new(rp_allocator_default(), 2, low, high, 2, &box, NULL));
    rp_box_to_unit(box, in, 2, unit, 2);
    assert_float_equal(unit[0], -1, 1e-6);
    assert_float_equal(unit[1], 1, 1e-6);
    assert_float_equal(unit[2], 1, 1e-6);
    assert_float_equal(unit[3], 0, 1e-6);
    rp_box_from_unit(box, (float[]){-1, 1, 7, -7}, 2, back);
    assert_memory_equal(back, ((float[]){-1.2F, 0.07F, 0.6F, -0.07F}), sizeof back);
    rp_box_free(box);
    assert_ok(rp_box_new(rp_allocator_default(), 4, none, most, 1, &box, NULL));
    rp_box_to_unit(box, in, 1, unit, 4);
    assert_memory_equal(unit, in, sizeof in); /* as they are */
    rp_box_free(box);
    rp_box_free(NULL);
}

/* An actor alone, with parameters of zeroes. */
typedef struct acting {
    fixture f;
    rp_actor *actor;
    rp_real *params;
    float observations[4][3];
} acting;

static void open_actor(acting *a, const char *env)
{
    fixture *f = &a->f;
    const uint64_t seeds[4] = {1, 2, 3, 4};
    rp_table_options table;
    rp_pcg64 rng;

    open_env(f, env);
    rp_pcg64_seed(&rng, 4);
    assert_ok(rp_dpg_table(&f->settings, rp_env_get_spec(f->env), 0, &table, &f->err));
    table.limiter = rp_limiter_min_size(1);
    assert_ok(rp_store_add_table(f->store, &table, NULL, &f->err));
    rp_signature_unref(table.signature);
    assert_ok(rp_dpg_actor_new(NULL,
                               &(rp_dpg_actor_options){.settings = &f->settings,
                                                       .spec = rp_env_get_spec(f->env),
                                                       .client = f->client,
                                                       .rng = &rng},
                               rp_wait_forever(), &a->actor, &f->err));
    a->params = calloc(a->actor->parameter_count, sizeof(rp_real));
    a->actor->params = a->params;
    assert_ok(rp_env_reset(f->env, seeds, a->observations, &f->err));
    assert_ok(a->actor->type->begin(a->actor, a->observations, rp_wait_forever(), &f->err));
}

static void close_actor(acting *a)
{
    rp_actor_free(a->actor);
    free(a->params);
    close_fixture(&a->f);
}

static void step_actor(acting *a, int count)
{
    float before[4][3], last[4][3], actions[4];
    double rewards[4];
    bool terminated[4], truncated[4];
    const rp_env_buffers result = {a->observations, last, rewards, terminated, truncated};
    const rp_agent_step step = {before, actions, &result};

    for (int i = 0; i < count; i++) {
        memcpy(before, a->observations, sizeof before);
        a->actor->type->act(a->actor, before, actions);
        assert_ok(rp_env_step(a->f.env, actions, &result, &a->f.err));
        assert_ok_err(a->actor->type->observe(a->actor, &step, rp_wait_forever(), &a->f.err),
                      &a->f.err);
    }
    assert_ok(a->actor->type->flush(a->actor, rp_wait_forever(), &a->f.err));
}

enum { DRAWS = 4000 };

/* Draws actions of one copy of Pendulum by a policy of zeroes: noise alone, times 2. */
static void draw_actions(double noise, double memory, double out[DRAWS])
{
    acting a = {.f = small()};
    float action;

    a.f.settings.copies = 1;
    a.f.settings.noise = noise;
    a.f.settings.noise_memory = memory;
    open_actor(&a, "pendulum");
    assert_true(a.actor->exploration == noise);
    for (size_t i = 0; i < DRAWS; i++) {
        a.actor->type->act(a.actor, a.observations, &action);
        out[i] = (double)action / 2;
    }
    close_actor(&a);
}

static double mean_product(const double *x, size_t lag)
{
    double sum = 0;

    for (size_t i = lag; i < DRAWS; i++) sum += x[i] * x[i - lag];
    return sum / (double)(DRAWS - lag);
}

static void noise_has_its_deviation_and_its_memory(void **state)
{
    (void)state;
    static double x[DRAWS];

    draw_actions(0.2, 0, x);
    assert_true(fabs(sqrt(mean_product(x, 0)) - 0.2) < 0.01);
    assert_true(fabs(mean_product(x, 1) / mean_product(x, 0)) < 0.06);
    draw_actions(0.2, 0.9, x);
    assert_true(fabs(sqrt(mean_product(x, 0)) - 0.2) < 0.03); /* the same deviation */
    assert_true(fabs(mean_product(x, 1) / mean_product(x, 0) - 0.9) < 0.03);
    draw_actions(0, 0.9, x);
    assert_true(mean_product(x, 0) == 0);
}

static void actions_are_clipped_to_their_bounds(void **state)
{
    (void)state;
    static double x[DRAWS];
    size_t at_bounds = 0;

    draw_actions(3, 0, x);
    for (size_t i = 0; i < DRAWS; i++) {
        assert_true(x[i] >= -1 && x[i] <= 1);
        at_bounds += x[i] == -1 || x[i] == 1;
    }
    assert_true(at_bounds > DRAWS / 2 && at_bounds < DRAWS);
}

static void the_table_samples_and_evicts_by_priority(void **state)
{
    (void)state;
    fixture f = small();
    rp_table_options table;

    open_env(&f, "pendulum");
    assert_ok(rp_dpg_table(&f.settings, rp_env_get_spec(f.env), 0, &table, &f.err));
    rp_signature_unref(table.signature);
    assert_int_equal(table.sampler.kind, RP_PRIORITIZED);
    assert_true(table.sampler.exponent == 0.6);
    assert_int_equal(table.remover.kind, RP_PRIORITIZED);
    assert_true(table.remover.exponent == -0.4);
    f.settings.evict_exponent = 0;
    f.settings.prioritized = false;
    assert_ok(rp_dpg_table(&f.settings, rp_env_get_spec(f.env), 0, &table, &f.err));
    rp_signature_unref(table.signature);
    assert_int_equal(table.sampler.kind, RP_UNIFORM);
    assert_int_equal(table.remover.kind, RP_FIFO);
    close_fixture(&f);
}

/* A full replay stays at its capacity, and keeps items that are not the latest. */
static void a_full_replay_evicts(void **state)
{
    (void)state;
    fixture f = small();

    f.settings.capacity = 200;
    begin(&f, "pendulum", 1);
    step(&f, 150);
    assert_int_equal(metrics(&f).item_size, 200);
    assert_true(metrics(&f).inserts > 500);
    close_fixture(&f);
}

static void decode(rp_decoder *decoder, const rp_sample *sample, size_t column, void *out,
                   size_t size)
{
    const rp_trajectory *trajectory = sample->trajectory;
    rp_error err;

    assert_ok_err(rp_decoder_stack(decoder, &trajectory, 1, column, out, size, &err), &err);
}

/* The priority of an item by its definition. */
static double priority_of(const rp_sample *sample, const rp_box_nets *nets,
                          rp_dpg_rating *rating, rp_decoder *decoder, const rp_real *params)
{
    float now[3], next[3], unit[3], later_unit[3], action, reward, discount, q, later;

    decode(decoder, sample, 0, now, sizeof now);
    decode(decoder, sample, 1, &action, sizeof action);
    decode(decoder, sample, 2, &reward, sizeof reward);
    decode(decoder, sample, 3, &discount, sizeof discount);
    decode(decoder, sample, 4, next, sizeof next);
    rp_box_to_unit(nets->observations, now, 1, unit, 3);
    rp_box_to_unit(nets->observations, next, 1, later_unit, 3);
    action /= 2; /* the bounds of Pendulum's actions */
    rp_dpg_rate(rating, params, unit, &action, 1, &q);
    rp_dpg_rate(rating, params, later_unit, NULL, 1, &later);
    return fabs((double)reward + 0.99 * (double)discount * (double)later - (double)q) +
           RP_PRIORITY_FLOOR;
}

/* New items have the priority of their TD error by the actor's own networks. */
static void new_items_have_the_priority_of_their_error(void **state)
{
    (void)state;
    acting a = {.f = small()};
    rp_box_nets nets;
    rp_box_making making;
    rp_dpg_rating *rating = NULL;
    rp_decoder *decoder = NULL;
    rp_table *table;
    rp_sample samples[64];
    rp_pcg64 rng;
    size_t count = 0;

    a.f.settings.prioritized = false; /* any item is drawn: of the latest 16 */
    a.f.settings.evict_exponent = 0;
    a.f.settings.capacity = 16;
    a.f.settings.start = 1;
    open_actor(&a, "pendulum");
    rp_pcg64_seed(&rng, 1);
    for (size_t i = 0; i < a.actor->parameter_count; i++)
        a.params[i] = (rp_real)rp_pcg64_uniform(&rng, -0.5, 0.5);
    step_actor(&a, 200); /* to the end of the episodes, where a call makes 12 items */
    table = rp_store_find_table(a.f.store, (rp_string){"replay", 6});
    making = rp_box_making_of(NULL, &rp_dpg_shape, &a.f.settings, rp_env_get_spec(a.f.env));
    assert_ok(rp_box_nets_init(&making, &nets, &a.f.err));
    assert_ok(rp_dpg_rating_new(rp_allocator_default(), nets.policy, nets.critic, 1, &rating,
                                &a.f.err));
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_table_sample(table, &(rp_sample_options){.count = 64}, samples, &count,
                              rp_wait_forever(), &a.f.err));
    assert_int_equal(count, 64);
    for (size_t i = 0; i < count; i++)
        assert_true(fabs(samples[i].priority -
                         priority_of(&samples[i], &nets, rating, decoder, a.params)) < 1e-5);
    rp_samples_release(samples, count);
    rp_decoder_free(decoder);
    rp_dpg_rating_free(rating);
    rp_box_nets_deinit(&nets);
    rp_table_unref(table);
    close_actor(&a);
}

static void the_rate_limiter_paces_updates(void **state)
{
    (void)state;
    fixture f = small();
    rp_agent_metrics m;

    begin(&f, "pendulum", 1);
    step(&f, 15);
    assert_int_equal(metrics(&f).updates, 0);
    step(&f, 285);
    m = metrics(&f);
    assert_true(m.updates >= (m.inserts - 64) / 4 - 1);
    assert_true(m.updates <= (m.inserts - 64) / 4 + 20);
    assert_int_equal(m.samples, m.updates * 16);
    assert_true(isfinite(m.loss) && isfinite(m.value) && m.norm > 0 && m.error > 0);
    assert_true(m.epsilon == 0.3 && m.rate == 1e-3);
    close_fixture(&f);
}

static void targets_are_copied_or_move_by_a_share(void **state)
{
    (void)state;
    for (int moves = 0; moves < 2; moves++) {
        fixture f = small();
        rp_state_part params, target;

        f.settings.target_every = moves ? 1 : 10;
        f.settings.target_rate = moves ? 0.01 : 1;
        begin(&f, "pendulum", 1);
        while (metrics(&f).updates == 0) step(&f, 1);
        params = part(&f, "params");
        target = part(&f, "target");
        assert_memory_not_equal(params.bytes, target.bytes, params.size);
        while (metrics(&f).updates % 10 != 0) step(&f, 1); /* one update a step */
        if (!moves) assert_memory_equal(params.bytes, target.bytes, params.size);
        step(&f, 1);
        assert_memory_not_equal(params.bytes, target.bytes, params.size);
        close_fixture(&f);
    }
}

/* Runs some updates and returns the first parameter of the critic. */
static rp_real result_of(const rp_dpg_settings *settings, uint64_t seed)
{
    fixture f = small();
    rp_state_part params;
    rp_real last;

    f.settings = *settings;
    begin(&f, "pendulum", seed);
    step(&f, 60);
    assert_true(metrics(&f).updates > 20);
    params = part(&f, "params");
    last = ((rp_real *)params.bytes)[params.size / sizeof last - 1]; /* a bias of the critic */
    close_fixture(&f);
    return last;
}

/* Each setting that only learning reads changes what is learned; the same ones do not. */
static void every_setting_of_learning_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double value;
    } changes[] = {
        {"weight-exponent", 0}, {"discount", 0.9},     {"max-slope", 1e-3},
        {"max-norm", 1e-3},     {"huber", 1e-3},       {"rate", 1e-4},
        {"policy-rate", 1e-5},  {"target-every", 1},   {"reward-scale", 1},
        {"n-step", 1},          {"normalize", 0},      {"priority-exponent", 0},
        {"noise", 0.5},         {"noise-memory", 0.5}, {"prioritized", 0},
    };
    const rp_settings_table *table = rp_dpg_settings_table();
    rp_dpg_settings settings = small().settings;
    rp_real plain = result_of(&settings, 1);

    assert_true(result_of(&settings, 1) == plain);
    assert_true(result_of(&settings, 2) != plain);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        settings = small().settings;
        rp_settings_set(table, &settings, rp_settings_find(table, changes[i].name),
                        changes[i].value);
        if (result_of(&settings, 1) == plain) fail_msg("%s changes nothing", changes[i].name);
    }
}

/* The halves alone: an actor, and a learner that draws by a sampler. */
static void a_learner_draws_by_a_sampler(void **state)
{
    (void)state;
    acting a = {.f = small()};
    rp_learner *learner = NULL;
    rp_agent_metrics m;
    rp_pcg64 rng;

    open_actor(&a, "pendulum");
    rp_pcg64_seed(&rng, 1);
    assert_ok(rp_dpg_learner_new(NULL,
                                 &(rp_dpg_learner_options){.settings = &a.f.settings,
                                                           .spec = rp_env_get_spec(a.f.env),
                                                           .client = a.f.client,
                                                           .mutate_for = 2,
                                                           .rng = &rng},
                                 &learner, &a.f.err));
    assert_int_equal(a.actor->parameter_count, learner->parameter_count);
    a.actor->params = learner->type->parameters(learner);
    step_actor(&a, 50);
    assert_int_equal(a.actor->type->created(a.actor), 200);
    for (int i = 0; i < 8; i++)
        assert_ok_err(learner->type->update(learner, rp_wait_forever(), &a.f.err), &a.f.err);
    learner->type->get_metrics(learner, &m);
    assert_int_equal(m.updates, 8);
    assert_int_equal(m.samples, 8 * 16);
    assert_true(isfinite(m.loss) && m.error > 0);
    rp_learner_free(learner);
    close_actor(&a);
}

/* A learner finds the TD error that the actor found, before the first update: with one item in
 * the table, and targets that equal the networks. */
static void a_learner_and_an_actor_find_the_same_error(void **state)
{
    (void)state;
    acting a = {.f = small()};
    rp_learner *learner = NULL;
    rp_agent_metrics m;
    rp_table *table;
    rp_sample sample;
    rp_pcg64 rng;
    size_t count = 0;

    a.f.settings.copies = a.f.settings.batch = a.f.settings.start = 1;
    a.f.settings.discount = 0.5;
    open_actor(&a, "pendulum");
    rp_pcg64_seed(&rng, 3);
    assert_ok(rp_dpg_learner_new(NULL,
                                 &(rp_dpg_learner_options){.settings = &a.f.settings,
                                                           .spec = rp_env_get_spec(a.f.env),
                                                           .client = a.f.client,
                                                           .store = a.f.store,
                                                           .rng = &rng},
                                 &learner, &a.f.err));
    a.actor->params = learner->type->parameters(learner);
    step_actor(&a, 1);
    table = rp_store_find_table(a.f.store, (rp_string){"replay", 6});
    assert_ok(rp_table_sample(table, &(rp_sample_options){.count = 1}, &sample, &count,
                              rp_wait_forever(), &a.f.err));
    assert_ok_err(learner->type->update(learner, rp_wait_forever(), &a.f.err), &a.f.err);
    learner->type->get_metrics(learner, &m);
    assert_true(m.error > 0.01);
    assert_true(fabs(m.error + RP_PRIORITY_FLOOR - sample.priority) < 1e-6);
    rp_samples_release(&sample, 1);
    rp_table_unref(table);
    rp_learner_free(learner);
    close_actor(&a);
}

static void a_rate_of_1e9_is_said_to_diverge(void **state)
{
    (void)state;
    fixture f = small();
    rp_status st = RP_OK;

    f.settings.rate = 1e9;
    begin(&f, "pendulum", 1);
    for (int i = 0; i < 1000 && st == RP_OK; i++) st = rp_env_loop_step(f.loop, &f.err);
    assert_int_equal(st, RP_PRECONDITION);
    assert_non_null(strstr(f.err.text, "dpg: the run has diverged: at update "));
    assert_int_equal(f.agent->type->learn(f.agent, &f.err), RP_PRECONDITION);
    close_fixture(&f);
}

/* An agent from its first allocation to its last; the store has an allocator of its own. */
static rp_status a_life(const rp_allocator *alloc)
{
    fixture f = small();
    rp_policy *policy = NULL;
    rp_status st;

    f.settings.start = 16;
    open_env(&f, "pendulum");
    st = rp_dpg_new(
        alloc, &(rp_dpg_options){&f.settings, rp_env_get_spec(f.env), f.store, f.client, 1},
        &f.agent, &f.err);
    if (st == RP_OK) st = rp_env_loop_new(alloc, f.env, f.agent, &f.loop, &f.err);
    if (st == RP_OK) st = rp_env_loop_begin(f.loop, 1, &f.err);
    for (int i = 0; st == RP_OK && i < 10; i++) st = rp_env_loop_step(f.loop, &f.err);
    if (st == RP_OK) st = f.agent->type->new_policy(f.agent, 3, &policy, &f.err);
    rp_policy_free(policy);
    close_fixture(&f);
    return st;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(a_life);
}

RP_TESTS(dpg)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environments_that_it_cannot_learn_are_refused),
        cmocka_unit_test(boxes_map_to_unit_and_back),
        cmocka_unit_test(noise_has_its_deviation_and_its_memory),
        cmocka_unit_test(actions_are_clipped_to_their_bounds),
        cmocka_unit_test(the_table_samples_and_evicts_by_priority),
        cmocka_unit_test(a_full_replay_evicts),
        cmocka_unit_test(new_items_have_the_priority_of_their_error),
        cmocka_unit_test(the_rate_limiter_paces_updates),
        cmocka_unit_test(targets_are_copied_or_move_by_a_share),
        cmocka_unit_test(every_setting_of_learning_counts),
        cmocka_unit_test(a_learner_draws_by_a_sampler),
        cmocka_unit_test(a_learner_and_an_actor_find_the_same_error),
        cmocka_unit_test(a_rate_of_1e9_is_said_to_diverge),
        cmocka_unit_test(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
