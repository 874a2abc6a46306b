/* SPDX-License-Identifier: Apache-2.0 */
/* Whole agents of DQN with several learners, in their environments. */
#include <string.h>

#include "reprise/rl/dqn.h"
#include "reprise/rl/env_loop.h"
#include "reprise/rl/evaluator.h"
#include "support/unit.h"

typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_agent *agent;
    rp_env_loop *loop;
    rp_dqn_settings settings;
    rp_error err;
} fixture;

/* Makes what the agent works with, from the default allocator. */
static void open_fixture(fixture *f, uint64_t seed)
{
    const rp_env_options options = {.copies = (size_t)f->settings.copies};

    assert_ok(rp_store_new(&(rp_store_options){.seed = seed + 1}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find("catch"), &options, &f->env, &f->err));
}

static rp_status begin(fixture *f, const rp_allocator *alloc, uint64_t seed)
{
    const rp_dqn_options options = {&f->settings, rp_env_get_spec(f->env), f->store, f->client,
                                    seed};
    rp_status st = rp_dqn_new(alloc, &options, &f->agent, &f->err);

    if (st == RP_OK) st = rp_env_loop_new(alloc, f->env, f->agent, &f->loop, &f->err);
    return st == RP_OK ? rp_env_loop_begin(f->loop, seed, &f->err) : st;
}

static void close_fixture(fixture *f)
{
    rp_env_loop_free(f->loop);
    rp_agent_free(f->agent);
    rp_env_free(f->env);
    rp_client_free(f->client);
    rp_store_free(f->store);
}

/* How far threads get depends on the scheduler, so the bound on steps is a wide one. A short
 * run ends before the task is solved. */
static void solve_catch(bool is_async, int64_t learners)
{
    const size_t most = rp_test_length(200, 1);
    fixture f = {0};
    rp_policy *policy = NULL;
    rp_evaluation result = {0};

    rp_dqn_settings_init(&f.settings, "catch");
    f.settings.learners = learners;
    f.settings.async_learners = is_async;
    open_fixture(&f, 1);
    assert_ok_err(begin(&f, NULL, 1), &f.err);
    assert_ok(f.agent->type->new_policy(f.agent, 50, &policy, &f.err));
    for (size_t i = 0; i < most && result.mean_return < 0.95; i++) {
        const rp_evaluation_options options = {
            .env_class = rp_env_find("catch"), .policy = policy, .episodes = 50, .seed = 5};

        for (int step = 0; step < 50; step++)
            assert_ok_err(rp_env_loop_step(f.loop, &f.err), &f.err);
        assert_ok(
            rp_evaluate(NULL, &options, f.agent->type->parameters(f.agent), &result, &f.err));
    }
    assert_true(result.mean_return >= 0.95 || most < 200);
    rp_policy_free(policy);
    close_fixture(&f);
}

static void synchronous_learners_solve_catch(void **state)
{
    (void)state;
    solve_catch(false, 2);
}

static void asynchronous_learners_solve_catch(void **state)
{
    (void)state;
    solve_catch(true, 2);
    solve_catch(true, 3);
}

/* The limiter counts the samples of all learners. */
static void asynchronous_learners_keep_to_the_rate_limiter(void **state)
{
    (void)state;
    fixture f = {0};
    rp_agent_metrics m;
    rp_table_info info;
    rp_table *table;

    rp_dqn_settings_init(&f.settings, "catch");
    f.settings.hidden = 8;
    f.settings.start = 64;
    f.settings.learners = 3;
    f.settings.async_learners = true;
    open_fixture(&f, 1);
    assert_ok_err(begin(&f, NULL, 1), &f.err);
    for (int i = 0; i < 150; i++) assert_ok_err(rp_env_loop_step(f.loop, &f.err), &f.err);
    f.agent->type->get_metrics(f.agent, &m);
    table = rp_store_find_table(f.store, (rp_string){"replay", 6});
    rp_table_get_info(table, &info);
    rp_table_unref(table);
    assert_true(m.updates <= info.samples / f.settings.batch);
    /* one update for 4 items; learners hold at most a batch each that they are at */
    assert_true(m.updates >= (m.inserts - 64) / 4 - 8);
    assert_true(m.updates <= (m.inserts - 64) / 4 + 20);
    close_fixture(&f);
}

/* An agent that makes a step when the others have drawn all samples of the last one. Begins
 * with the first update. */
static void step_after_draws(fixture *f, rp_table *table, rp_agent_metrics *m)
{
    for (bool is_drawn = false; !is_drawn && m->updates > 0;) {
        is_drawn = !rp_table_can_sample(table, 1);
        f->agent->type->get_metrics(f->agent, m);
    }
    assert_ok_err(rp_env_loop_step(f->loop, &f->err), &f->err);
    f->agent->type->get_metrics(f->agent, m);
}

/* Steps that take long leave no batch to the learner that acts. */
static void the_agent_acts_with_the_parameters_of_others(void **state)
{
    (void)state;
    fixture f = {0};
    rp_agent_metrics m = {0};
    rp_policy *policy = NULL;
    rp_table *table;
    rp_real *before;
    size_t bytes;
    int64_t first;

    rp_dqn_settings_init(&f.settings, "catch");
    f.settings.copies = f.settings.n_step = 1; /* a fourth of a batch at a time */
    f.settings.hidden = 8;
    f.settings.start = 64;
    f.settings.learners = 3;
    f.settings.async_learners = true;
    open_fixture(&f, 1);
    assert_ok_err(begin(&f, NULL, 1), &f.err);
    assert_ok(f.agent->type->new_policy(f.agent, 1, &policy, &f.err));
    bytes = policy->parameter_count * sizeof *before;
    rp_policy_free(policy);
    before = malloc(bytes);
    table = rp_store_find_table(f.store, (rp_string){"replay", 6});
    while (m.updates == 0) step_after_draws(&f, table, &m);
    for (int i = 0; i < 8; i++) step_after_draws(&f, table, &m);
    memcpy(before, f.agent->type->parameters(f.agent), bytes);
    for (first = m.updates; m.updates < first + 8;) step_after_draws(&f, table, &m);
    step_after_draws(&f, table, &m);
    assert_memory_not_equal(before, f.agent->type->parameters(f.agent), bytes);
    rp_table_unref(table);
    free(before);
    close_fixture(&f);
}

static rp_status live(const rp_allocator *alloc, bool is_async)
{
    fixture f = {0};
    rp_status st;

    rp_dqn_settings_init(&f.settings, "catch");
    f.settings.hidden = 8;
    f.settings.batch = 8;
    f.settings.start = 16;
    f.settings.learners = 2;
    f.settings.async_learners = is_async;
    open_fixture(&f, 1);
    st = begin(&f, alloc, 1);
    for (int i = 0; st == RP_OK && i < 20; i++) st = rp_env_loop_step(f.loop, &f.err);
    close_fixture(&f);
    return st;
}

static rp_status live_together(const rp_allocator *alloc)
{
    return live(alloc, false);
}

static rp_status live_apart(const rp_allocator *alloc)
{
    return live(alloc, true);
}

static void a_lack_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(live_together);
    rp_test_survives_oom(live_apart);
}

RP_TESTS(dqn_agents)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_learners_solve_catch),
        cmocka_unit_test(asynchronous_learners_solve_catch),
        cmocka_unit_test(asynchronous_learners_keep_to_the_rate_limiter),
        cmocka_unit_test(the_agent_acts_with_the_parameters_of_others),
        cmocka_unit_test(a_lack_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
