/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/dqn.h"

#include <math.h>
#include <string.h>

#include "reprise/rl/env_loop.h"
#include "reprise/rl/evaluator.h"
#include "support/unit.h"

/* An agent in its environments, with a store of its own. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_agent *agent;
    rp_env_loop *loop;
    rp_dqn_settings settings;
    rp_error err;
} fixture;

static void open_fixture(fixture *f, const char *env, uint64_t seed)
{
    rp_env_options options = {.copies = (size_t)f->settings.copies};

    assert_ok(rp_store_new(&(rp_store_options){.seed = seed + 1}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find(env), &options, &f->env, &f->err));
    assert_ok_err(rp_dqn_new(NULL,
                             &(rp_dqn_options){&f->settings, rp_env_get_spec(f->env), f->store,
                                               f->client, seed},
                             &f->agent, &f->err),
                  &f->err);
    assert_ok(rp_env_loop_new(NULL, f->env, f->agent, &f->loop, &f->err));
}

static void begin(fixture *f, const char *env, uint64_t seed)
{
    open_fixture(f, env, seed);
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

/* The settings of the tests: as the defaults, but learning starts at once. */
static fixture small(void)
{
    fixture f = {0};

    rp_dqn_settings_init(&f.settings, NULL);
    f.settings.hidden = 16;
    f.settings.start = 64;
    f.settings.batch = 16;
    f.settings.n_step = 3;
    f.settings.copies = 4;
    return f;
}

static void environments_have_settings_of_their_own(void **state)
{
    (void)state;
    rp_dqn_settings settings, same;

    rp_dqn_settings_init(&same, "cartpole");
    rp_dqn_settings_init(&settings, "mountain_car");
    assert_int_equal(same.copies, 8);
    assert_int_equal(settings.copies, 16);
}

static void bad_settings_are_named(void **state)
{
    (void)state;
    rp_dqn_settings settings;
    rp_error err;

    rp_dqn_settings_init(&settings, NULL);
    assert_ok(rp_dqn_settings_check(&settings, &err));
    settings.discount = (double)NAN;
    assert_int_equal(rp_dqn_settings_check(&settings, &err), RP_INVALID);
    assert_string_equal(err.text, "dqn: discount must be from 0 to 1, got nan");
    settings.discount = 1;
    settings.capacity = 10;
    assert_int_equal(rp_dqn_settings_check(&settings, &err), RP_INVALID);
    assert_string_equal(err.text, "dqn: start must be <= capacity, 10, got 1000");
}

static void an_environment_with_continuous_actions_is_refused(void **state)
{
    (void)state;
    fixture f = small();
    rp_env_options options = {.copies = 4};

    assert_ok(rp_store_new(NULL, &f.store, &f.err));
    assert_ok(rp_client_local(f.store, NULL, &f.client, &f.err));
    assert_ok(rp_env_new(NULL, rp_env_find("pendulum"), &options, &f.env, &f.err));

    rp_dqn_options o = {&f.settings, rp_env_get_spec(f.env), f.store, f.client, 1};
    assert_int_equal(rp_dqn_new(NULL, &o, &f.agent, &f.err), RP_INVALID);
    assert_non_null(strstr(f.err.text,
                           "dqn: needs discrete actions, and the environment has a box of 1"
                           "; these have: "));
    rp_env_free(f.env);
    rp_client_free(f.client);
    rp_store_free(f.store);
}

static void the_rate_limiter_paces_updates(void **state)
{
    (void)state;
    fixture f = small();
    rp_agent_metrics m;

    begin(&f, "cartpole", 1);
    step(&f, 12); /* 48 steps, and the items of a few ends */
    assert_int_equal(metrics(&f).updates, 0);
    step(&f, 488);
    m = metrics(&f);
    assert_true(m.inserts >= 2000 && m.inserts < 2000 * 5 / 4);
    /* one update for 4 items, beyond the first 64; the limiter's buffer is a few more */
    assert_true(m.updates >= (m.inserts - 64) / 4 - 1);
    assert_true(m.updates <= (m.inserts - 64) / 4 + 20);
    assert_int_equal(m.samples, m.updates * 16);
    assert_true(isfinite(m.loss) && isfinite(m.value) && isfinite(m.norm));
    assert_true(isnan(metrics(&f).loss)); /* none since */
    close_fixture(&f);
}

static void every_option_learns(void **state)
{
    (void)state;
    static const char *const options[] = {"dueling", "double-q", "prioritized", "ladder"};

    for (size_t at = 0; at < sizeof options / sizeof options[0]; at++) {
        fixture f = small();
        const rp_settings_table *table = rp_dqn_settings_table();
        rp_settings_set(table, &f.settings, rp_settings_find(table, options[at]), 0);
        f.settings.n_step = (int64_t)at + 1;
        f.settings.target_rate = at % 2 == 0 ? 1 : 0.01;
        f.settings.huber = at % 2 == 0 ? 0 : 1;
        f.settings.copies = at == 3 ? 1 : 4;
        begin(&f, "catch", at);
        step(&f, f.settings.copies == 1 ? 800 : 200);
        assert_true(metrics(&f).updates > 100);
        close_fixture(&f);
    }
}

static void images_go_through_convolutions(void **state)
{
    (void)state;
    fixture f = small();

    f.settings.copies = 2;
    f.settings.batch = 4;
    f.settings.start = 8;
    begin(&f, "bricks", 1);
    step(&f, 6);
    assert_true(metrics(&f).updates >= 1);
    close_fixture(&f);
}

static void two_runs_of_one_seed_are_equal(void **state)
{
    (void)state;
    fixture a = small(), b = small();
    rp_net *net = NULL;
    size_t bytes;

    begin(&a, "cartpole", 3);
    begin(&b, "cartpole", 3);
    step(&a, 300);
    step(&b, 300);
    assert_ok(rp_dqn_new_net(NULL, &a.settings, rp_env_get_spec(a.env), &net, &a.err));
    bytes = rp_net_size(net) * sizeof(rp_real);
    assert_memory_equal(a.agent->type->parameters(a.agent), b.agent->type->parameters(b.agent),
                        bytes);
    rp_net_free(net);
    close_fixture(&a);
    close_fixture(&b);
}

/* An owner whose environments failed in the middle of their episodes begins others. */
static void episodes_may_begin_anew(void **state)
{
    (void)state;
    fixture f = small();
    float rows[4][4] = {{0}};
    rp_agent_metrics before, after;

    begin(&f, "cartpole", 1);
    step(&f, 50);
    before = metrics(&f);
    assert_ok_err(f.agent->type->begin(f.agent, rows, &f.err), &f.err);
    assert_ok_err(f.agent->type->begin(f.agent, rows, &f.err), &f.err);
    after = metrics(&f);
    assert_int_equal(after.inserts, before.inserts); /* what had not ended is dropped */
    assert_int_equal(after.updates, before.updates);
    step(&f, 50);
    assert_true(metrics(&f).inserts > after.inserts);
    close_fixture(&f);
}

static void catch_is_solved(void **state)
{
    (void)state;
    fixture f = {0};
    rp_policy *policy = NULL;
    rp_evaluation result = {0};

    rp_dqn_settings_init(&f.settings, "catch");
    begin(&f, "catch", 1);
    assert_ok(f.agent->type->new_policy(f.agent, 50, &policy, &f.err));
    for (int i = 0; i < 40 && result.mean_return < 0.95; i++) {
        step(&f, 50);
        assert_ok(rp_evaluate(
            NULL,
            &(rp_evaluation_options){
                .env_class = rp_env_find("catch"), .policy = policy, .episodes = 50, .seed = 5},
            f.agent->type->parameters(f.agent), &result, &f.err));
    }
    assert_true(result.mean_return >= 0.95);
    rp_policy_free(policy);
    close_fixture(&f);
}

static void a_rate_of_1e9_is_said_to_diverge(void **state)
{
    (void)state;
    fixture f = small();
    rp_status st = RP_OK;

    f.settings.rate = 1e9;
    begin(&f, "cartpole", 1);
    for (int i = 0; i < 1000 && st == RP_OK; i++) st = rp_env_loop_step(f.loop, &f.err);
    assert_int_equal(st, RP_PRECONDITION);
    assert_non_null(strstr(f.err.text, "dqn: the run has diverged: at update "));
    assert_non_null(strstr(f.err.text, "a rate of 1e+09"));
    assert_int_equal(f.agent->type->learn(f.agent, &f.err), RP_PRECONDITION);
    close_fixture(&f);
}

/* An agent from its first allocation to its last; the store has an allocator of its own. */
static rp_status a_life(const rp_allocator *alloc)
{
    fixture f = small();
    const rp_env_options options = {.copies = 4};
    rp_policy *policy = NULL;
    rp_evaluation result;
    rp_status st;

    f.settings.start = 16;
    assert_ok(rp_store_new(NULL, &f.store, &f.err));
    assert_ok(rp_client_local(f.store, NULL, &f.client, &f.err));
    assert_ok(rp_env_new(NULL, rp_env_find("catch"), &options, &f.env, &f.err));
    rp_dqn_options dqn = {&f.settings, rp_env_get_spec(f.env), f.store, f.client, 1};
    st = rp_dqn_new(alloc, &dqn, &f.agent, &f.err);
    if (st == RP_OK) st = rp_env_loop_new(alloc, f.env, f.agent, &f.loop, &f.err);
    if (st == RP_OK) st = rp_env_loop_begin(f.loop, 1, &f.err);
    for (int i = 0; st == RP_OK && i < 20; i++) st = rp_env_loop_step(f.loop, &f.err);
    if (st == RP_OK) st = f.agent->type->new_policy(f.agent, 3, &policy, &f.err);
    if (st == RP_OK)
        st =
            rp_evaluate(alloc,
                        &(rp_evaluation_options){
                            .env_class = rp_env_find("catch"), .policy = policy, .episodes = 7},
                        f.agent->type->parameters(f.agent), &result, &f.err);
    rp_policy_free(policy);
    close_fixture(&f);
    return st;
}

static void running_out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(a_life);
    rp_agent_free(NULL);
    rp_policy_free(NULL);
}

static void an_evaluation_does_not_depend_on_the_rows_of_its_policy(void **state)
{
    (void)state;
    fixture f = small();
    rp_evaluation results[2];

    begin(&f, "cartpole", 1);
    for (size_t i = 0; i < 2; i++) {
        rp_policy *policy = NULL;
        assert_ok(f.agent->type->new_policy(f.agent, i == 0 ? 3 : 50, &policy, &f.err));
        assert_ok(rp_evaluate(NULL,
                              &(rp_evaluation_options){.env_class = rp_env_find("cartpole"),
                                                       .policy = policy,
                                                       .episodes = 20,
                                                       .seed = 9},
                              f.agent->type->parameters(f.agent), &results[i], &f.err));
        rp_policy_free(policy);
    }
    assert_memory_equal(&results[0], &results[1], sizeof results[0]);
    assert_int_equal(results[0].episodes, 20);
    assert_true(results[0].lowest <= results[0].mean_return);
    assert_true(results[0].mean_length == results[0].mean_return); /* 1 a step */
    close_fixture(&f);
}

RP_TESTS(dqn)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environments_have_settings_of_their_own),
        cmocka_unit_test(bad_settings_are_named),
        cmocka_unit_test(an_environment_with_continuous_actions_is_refused),
        cmocka_unit_test(the_rate_limiter_paces_updates),
        cmocka_unit_test(every_option_learns),
        cmocka_unit_test(images_go_through_convolutions),
        cmocka_unit_test(two_runs_of_one_seed_are_equal),
        cmocka_unit_test(episodes_may_begin_anew),
        cmocka_unit_test(catch_is_solved),
        cmocka_unit_test(a_rate_of_1e9_is_said_to_diverge),
        cmocka_unit_test(an_evaluation_does_not_depend_on_the_rows_of_its_policy),
        cmocka_unit_test(running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
