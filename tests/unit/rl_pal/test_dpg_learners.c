/* SPDX-License-Identifier: Apache-2.0 */
/* Learners of DPG that share one agent's parameters. */
#include <math.h>
#include <string.h>

#include "reprise/rl/dpg.h"
#include "reprise/rl/env_loop.h"
#include "support/unit.h"

enum { COPIES = 4, BATCH = 17 }; /* shares differ */

/* An agent in Pendulum, with a store of its own. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_agent *agent;
    rp_env_loop *loop;
    rp_dpg_settings settings;
    size_t parameter_count;
    rp_error err;
} fixture;

/* Settings whose small gradients stay small: Adam divides by more than a rounding error. */
static rp_dpg_settings settings_of(int64_t learners)
{
    rp_dpg_settings set;

    rp_dpg_settings_init(&set, "pendulum");
    set.copies = COPIES;
    set.hidden = 16;
    set.batch = BATCH;
    set.start = 64;
    set.adam_epsilon = 1e-2;
    set.target_every = 3;
    set.learners = learners;
    return set;
}

static void open_fixture(fixture *f, const rp_dpg_settings *settings)
{
    *f = (fixture){.settings = *settings};
    assert_ok(rp_store_new(&(rp_store_options){.seed = 2}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find("pendulum"), &(rp_env_options){.copies = COPIES},
                         &f->env, &f->err));
}

static rp_status begin(fixture *f, const rp_allocator *alloc)
{
    const rp_dpg_options options = {&f->settings, rp_env_get_spec(f->env), f->store, f->client,
                                    1};
    rp_status st = rp_dpg_new(alloc, &options, &f->agent, &f->err);

    if (st == RP_OK) st = rp_env_loop_new(alloc, f->env, f->agent, &f->loop, &f->err);
    return st == RP_OK ? rp_env_loop_begin(f->loop, 1, &f->err) : st;
}

static void close_fixture(fixture *f)
{
    rp_env_loop_free(f->loop);
    rp_agent_free(f->agent);
    rp_env_free(f->env);
    rp_client_free(f->client);
    rp_store_free(f->store);
}

/* An agent of `learners`, after so many steps of its group. */
static void run(fixture *f, int64_t learners, int steps)
{
    const rp_dpg_settings settings = settings_of(learners);
    rp_policy *policy = NULL;

    open_fixture(f, &settings);
    assert_ok_err(begin(f, NULL), &f->err);
    for (int i = 0; i < steps; i++) assert_ok_err(rp_env_loop_step(f->loop, &f->err), &f->err);
    assert_ok(f->agent->type->new_policy(f->agent, 1, &policy, &f->err));
    f->parameter_count = policy->parameter_count;
    rp_policy_free(policy);
}

static double distance(const fixture *f, const fixture *g)
{
    const rp_real *a = f->agent->type->parameters(f->agent);
    const rp_real *b = g->agent->type->parameters(g->agent);
    double most = 0;

    for (size_t i = 0; i < f->parameter_count; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static rp_agent_metrics metrics(fixture *f)
{
    rp_agent_metrics m;

    f->agent->type->get_metrics(f->agent, &m);
    return m;
}

/* Few updates: later ones act otherwise, by rounding errors, and see other items. */
static void several_learners_make_the_updates_of_one(void **state)
{
    (void)state;
    for (int64_t learners = 2; learners <= 3; learners++) {
        rp_agent_metrics a, b;
        fixture f, g;

        run(&f, 1, 24);
        run(&g, learners, 24);
        a = metrics(&f);
        b = metrics(&g);
        assert_true(a.updates >= 10 && a.updates == b.updates);
        assert_true(distance(&f, &g) < 1e-5);
        assert_true(fabs(a.loss - b.loss) < 1e-4 * a.loss);
        assert_true(fabs(a.norm - b.norm) < 1e-4 * a.norm);
        assert_true(fabs(a.value - b.value) < 1e-4 && fabs(a.error - b.error) < 1e-4);
        close_fixture(&f);
        close_fixture(&g);
    }
}

static void several_learners_are_reproducible(void **state)
{
    (void)state;
    fixture f, g;

    run(&f, 3, 100);
    run(&g, 3, 100);
    assert_true(distance(&f, &g) == 0);
    assert_true(metrics(&f).updates > 100);
    close_fixture(&f);
    close_fixture(&g);
}

/* A learner of another number goes on with the parameters and moments of this one. */
static void a_state_does_not_depend_on_the_number_of_learners(void **state)
{
    (void)state;
    const rp_dpg_settings several = settings_of(3);
    rp_state_part a[RP_AGENT_MAX_PARTS], b[RP_AGENT_MAX_PARTS];
    fixture f, g;
    size_t count;

    run(&f, 1, 30);
    open_fixture(&g, &several);
    assert_ok(rp_dpg_new(
        NULL, &(rp_dpg_options){&g.settings, rp_env_get_spec(g.env), g.store, g.client, 2},
        &g.agent, &g.err));
    assert_true(distance(&f, &g) > 0);
    count = f.agent->type->get_state(f.agent, a);
    assert_int_equal(g.agent->type->get_state(g.agent, b), count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_int_equal(a[i].size, b[i].size);
        memcpy(b[i].bytes, a[i].bytes, a[i].size);
    }
    assert_ok_err(g.agent->type->restored(g.agent, &g.err), &g.err);
    assert_true(distance(&f, &g) == 0);
    assert_int_equal(metrics(&f).updates, metrics(&g).updates);
    close_fixture(&f);
    close_fixture(&g);
}

/* A learner of three threads on the table of an agent. */
static rp_learner *learner_of(fixture *f)
{
    const rp_dpg_settings set = settings_of(3);
    const rp_table_alteration free = {.which = RP_ALTER_LIMITER,
                                      .limiter = rp_limiter_min_size(1)};
    rp_table *table = rp_store_find_table(f->store, (rp_string){"replay", 6});
    rp_learner *learner = NULL;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 5);
    assert_ok(rp_table_alter(table, &free, &f->err));
    rp_table_unref(table);
    assert_ok_err(rp_dpg_learner_new(NULL,
                                     &(rp_dpg_learner_options){.settings = &set,
                                                               .spec = rp_env_get_spec(f->env),
                                                               .client = f->client,
                                                               .store = f->store,
                                                               .rng = &rng},
                                     &learner, &f->err),
                  &f->err);
    return learner;
}

static void update(fixture *f, rp_learner *learner, int count)
{
    for (int i = 0; i < count; i++)
        assert_ok_err(learner->type->update(learner, rp_wait_ms(60000), &f->err), &f->err);
}

/* The number of threads changes nothing but the order of additions. */
static void threads_come_and_go_between_updates(void **state)
{
    (void)state;
    rp_learner *a, *b;
    fixture f, g;

    run(&f, 1, 30);
    run(&g, 1, 30);
    a = learner_of(&f);
    b = learner_of(&g);
    update(&f, a, 10);
    update(&g, b, 5);
    assert_ok_err(b->type->set_threads(b, 1, &g.err), &g.err);
    assert_int_equal(b->type->set_threads(b, BATCH + 1, &g.err), RP_INVALID);
    assert_ok_err(b->type->set_threads(b, BATCH, &g.err), &g.err);
    assert_ok_err(b->type->set_threads(b, 3, &g.err), &g.err);
    update(&g, b, 5);
    assert_memory_equal(a->type->parameters(a), b->type->parameters(b),
                        a->parameter_count * sizeof(rp_real));
    rp_learner_free(a);
    rp_learner_free(b);
    close_fixture(&f);
    close_fixture(&g);
}

static void a_rate_of_1e9_is_said_to_diverge(void **state)
{
    (void)state;
    rp_dpg_settings set = settings_of(2);
    fixture f;
    rp_status st;

    set.rate = set.policy_rate = 1e9;
    open_fixture(&f, &set);
    st = begin(&f, NULL);
    for (int i = 0; i < 1000 && st == RP_OK; i++) st = rp_env_loop_step(f.loop, &f.err);
    assert_int_equal(st, RP_PRECONDITION);
    assert_non_null(strstr(f.err.text, "dpg: the run has diverged"));
    close_fixture(&f);
}

static void more_learners_than_rows_are_refused(void **state)
{
    (void)state;
    rp_dpg_settings set = settings_of(18);
    rp_error err;

    assert_int_equal(rp_dpg_settings_check(&set, &err), RP_INVALID);
    assert_string_equal(err.text, "dpg: learners must be <= batch, 17, got 18");
}

static rp_status live(const rp_allocator *alloc)
{
    rp_dpg_settings set = settings_of(2);
    fixture f;
    rp_status st;

    set.batch = 8;
    set.start = 16;
    open_fixture(&f, &set);
    st = begin(&f, alloc);
    for (int i = 0; st == RP_OK && i < 10; i++) st = rp_env_loop_step(f.loop, &f.err);
    close_fixture(&f);
    return st;
}

static void a_lack_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(live);
}

RP_TESTS(dpg_learners)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_learners_make_the_updates_of_one),
        cmocka_unit_test(several_learners_are_reproducible),
        cmocka_unit_test(a_state_does_not_depend_on_the_number_of_learners),
        cmocka_unit_test(threads_come_and_go_between_updates),
        cmocka_unit_test(a_rate_of_1e9_is_said_to_diverge),
        cmocka_unit_test(more_learners_than_rows_are_refused),
        cmocka_unit_test(a_lack_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
