/* SPDX-License-Identifier: Apache-2.0 */
/* Learners of DPG and SAC that share one agent's parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agents/dpg/dpg_kind.h"
#include "agents/dpg/dpg_update.h"
#include "agents/sac/sac_kind.h"
#include "agents/sac/sac_update.h"
#include "agents/setting_value.h"
#include "reprise/rl/agent_kinds.h"
#include "reprise/rl/env_loop.h"
#include "reprise/rl/init.h"
#include "reprise/rl/loss.h"
#include "support/unit.h"

enum { COPIES = 4, BATCH = 17 /* shares differ */, ROW = 3, TORQUES = 1 };

/* An agent in Pendulum, with a store of its own. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_agent *agent;
    rp_env_loop *loop;
    const rp_agent_kind *kind;
    rp_agent_settings settings;
    size_t parameter_count;
    rp_error err;
} fixture;

static void set(fixture *f, const char *name, double value)
{
    const rp_settings_table *table = f->kind->settings();
    size_t i = rp_settings_find(table, name);

    assert_true(i < table->count);
    rp_settings_set(table, &f->settings, i, value);
}

/* Sets up an agent of `learners`, with settings whose small gradients stay small: Adam divides
 * by more than a rounding error. */
static void open_fixture(fixture *f, const char *agent, int64_t learners)
{
    *f = (fixture){.kind = rp_agent_find(agent)};
    assert_non_null(f->kind);
    rp_settings_init(f->kind->settings(), &f->settings, "pendulum");
    set(f, "copies", COPIES);
    set(f, "hidden", 16);
    set(f, "batch", BATCH);
    set(f, "start", 64);
    set(f, "adam-epsilon", 1e-2);
    set(f, "max-norm", 40);
    set(f, "reward-scale", 0.1);
    set(f, "target-every", 3);
    set(f, "learners", (double)learners);
    assert_ok(rp_store_new(&(rp_store_options){.seed = 2}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find("pendulum"), &(rp_env_options){.copies = COPIES},
                         &f->env, &f->err));
}

static rp_status new_agent(fixture *f, const rp_allocator *alloc, uint64_t seed)
{
    const rp_agent_options options = {&f->settings, rp_env_get_spec(f->env), f->store,
                                      f->client, seed};

    return f->kind->new_agent(alloc, &options, &f->agent, &f->err);
}

static rp_status begin(fixture *f, const rp_allocator *alloc)
{
    rp_status st = new_agent(f, alloc, 1);

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
static void run(fixture *f, const char *agent, int64_t learners, int steps)
{
    rp_policy *policy = NULL;

    open_fixture(f, agent, learners);
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

static const char *const agents[] = {"dpg", "sac"};

/* Few updates: later ones act otherwise, by rounding errors, and see other items. */
static void several_learners_make_the_updates_of_one(void **state)
{
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        const char *agent = agents[k % 2];
        rp_agent_metrics a, b;
        fixture f, g;

        run(&f, agent, 1, 24);
        run(&g, agent, 2 + (int64_t)k / 2, 24);
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
    const int steps = (int)rp_test_length(100, 50);

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        fixture f, g;

        run(&f, agents[k], 3, steps);
        run(&g, agents[k], 3, steps);
        assert_true(distance(&f, &g) == 0);
        assert_true(metrics(&f).updates > steps);
        close_fixture(&f);
        close_fixture(&g);
    }
}

/* Copies the state of `f`, and returns its parts. */
static size_t copy_state(fixture *f, fixture *g, rp_state_part *parts)
{
    rp_state_part b[RP_AGENT_MAX_PARTS];
    size_t count = f->agent->type->get_state(f->agent, parts);

    assert_int_equal(g->agent->type->get_state(g->agent, b), count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(parts[i].name, b[i].name);
        assert_int_equal(parts[i].size, b[i].size);
        memcpy(b[i].bytes, parts[i].bytes, parts[i].size);
    }
    return count;
}

/* A learner of another number goes on with the parameters and moments of this one. */
static void a_state_does_not_depend_on_the_number_of_learners(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        rp_state_part parts[RP_AGENT_MAX_PARTS];
        fixture f, g;

        run(&f, agents[k], 1, 30);
        open_fixture(&g, agents[k], 3);
        assert_ok(new_agent(&g, NULL, 2));
        assert_true(distance(&f, &g) > 0);
        assert_true(copy_state(&f, &g, parts) >= 8);
        assert_ok_err(g.agent->type->restored(g.agent, &g.err), &g.err);
        assert_true(distance(&f, &g) == 0);
        assert_int_equal(metrics(&f).updates, metrics(&g).updates);
        close_fixture(&f);
        close_fixture(&g);
    }
}

/* A learner on the table of an agent. */
static rp_learner *learner_of(fixture *f, int64_t learners)
{
    const rp_table_alteration free = {.which = RP_ALTER_LIMITER,
                                      .limiter = rp_limiter_min_size(1)};
    rp_table *table = rp_store_find_table(f->store, (rp_string){"replay", 6});
    rp_learner *learner = NULL;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 5);
    assert_ok(rp_table_alter(table, &free, &f->err));
    rp_table_unref(table);
    set(f, "learners", (double)learners);
    if (strcmp(f->kind->name, "dpg") == 0) {
        const rp_dpg_learner_options o = {.settings = &f->settings.dpg,
                                          .spec = rp_env_get_spec(f->env),
                                          .client = f->client,
                                          .store = f->store,
                                          .rng = &rng};

        assert_ok_err(rp_dpg_learner_new(NULL, &o, &learner, &f->err), &f->err);
    } else {
        const rp_sac_learner_options o = {.settings = &f->settings.sac,
                                          .spec = rp_env_get_spec(f->env),
                                          .client = f->client,
                                          .store = f->store,
                                          .rng = &rng};

        assert_ok_err(rp_sac_learner_new(NULL, &o, &learner, &f->err), &f->err);
    }
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
    for (size_t k = 0; k < 2; k++) {
        rp_learner *a, *b;
        fixture f, g;

        run(&f, agents[k], 1, 30);
        run(&g, agents[k], 1, 30);
        a = learner_of(&f, 3);
        b = learner_of(&g, 3);
        update(&f, a, 10);
        update(&g, b, 5);
        assert_ok_err(b->type->set_threads(b, 1, &g.err), &g.err);
        assert_int_equal(b->type->set_threads(b, BATCH + 1, &g.err), RP_INVALID);
        assert_int_equal(b->type->set_threads(b, 0, &g.err), RP_INVALID);
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
}

/* The update of box_learner.c for one learner, written out: a draw from the table, a step of
 * dpg_update.h or sac_update.h, the target, the priorities. (tests/rl compares these steps with
 * PyTorch's.) */
typedef struct plain {
    fixture f;
    rp_table *table;
    const rp_box_learning *how;
    rp_box_nets nets;
    void *update;
    rp_decoder *decoder;
    rp_real *params, *target;
    rp_pcg64 rng; /* of noise */
    rp_real noise[BATCH * TORQUES], next_noise[BATCH * TORQUES];
    int64_t updates;
} plain;

/* 0 if the agent has no such setting, as for the learner. */
static double get(const plain *p, const char *name)
{
    return rp_setting_value(p->f.kind->settings(), &p->f.settings, name);
}

static bool is_dpg(const plain *p)
{
    return strcmp(p->f.kind->name, "dpg") == 0;
}

/* Parameters as learner_of() begins with. */
static void init_params(plain *p)
{
    const rp_allocator *heap = rp_allocator_default();
    rp_real *at = p->params;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 5);
    assert_ok(rp_net_init(heap, p->nets.policy, RP_INIT_TORCH, &rng, at));
    at += rp_net_size(p->nets.policy);
    for (size_t i = 0; i < p->how->shape->critics; i++) {
        assert_ok(rp_net_init(heap, p->nets.critic, RP_INIT_TORCH, &rng, at));
        at += rp_net_size(p->nets.critic);
    }
    if (!is_dpg(p)) *at = (rp_real)log(get(p, "temperature"));
    rp_pcg64_seed(&p->rng, rp_pcg64_next(&rng));
    memcpy(p->target, p->params, p->nets.parameter_count * sizeof(rp_real));
}

static void open_plain(plain *p, const char *agent)
{
    const rp_table_alteration free = {.which = RP_ALTER_LIMITER,
                                      .limiter = rp_limiter_min_size(1)};
    rp_box_update_options o = {
        .alloc = rp_allocator_default(), .rows = BATCH, .all_rows = BATCH};
    rp_box_making making;

    *p = (plain){0};
    run(&p->f, agent, 1, 30);
    p->table = rp_store_find_table(p->f.store, (rp_string){"replay", 6});
    assert_ok(rp_table_alter(p->table, &free, &p->f.err));
    p->how = is_dpg(p) ? &rp_dpg_learning : &rp_sac_learning;
    making = rp_box_making_of(NULL, p->how->shape, &p->f.settings, rp_env_get_spec(p->f.env));
    assert_ok(rp_box_nets_init(&making, &p->nets, &p->f.err));
    o.nets = &p->nets;
    o.settings = &p->f.settings;
    assert_ok(p->how->new_update(&o, &p->update, &p->f.err));
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &p->decoder));
    p->params = calloc(p->nets.parameter_count, sizeof *p->params);
    p->target = calloc(p->nets.parameter_count, sizeof *p->target);
    init_params(p);
}

static void close_plain(plain *p)
{
    rp_decoder_free(p->decoder);
    p->how->free_update(p->update);
    rp_box_nets_deinit(&p->nets);
    rp_table_unref(p->table);
    free(p->params);
    free(p->target);
    close_fixture(&p->f);
}

/* Makes the step of a batch. Returns the errors. */
static const rp_real *step_plain(plain *p, rp_box_batch *b)
{
    rp_dpg_found dpg;
    rp_sac_found sac;

    if (is_dpg(p)) {
        rp_dpg_step(p->update, p->params, p->target, b, &dpg);
        return dpg.errors;
    }
    for (size_t i = 0; i < BATCH * TORQUES; i++)
        p->noise[i] = (rp_real)rp_pcg64_normal(&p->rng);
    for (size_t i = 0; i < BATCH * TORQUES; i++)
        p->next_noise[i] = (rp_real)rp_pcg64_normal(&p->rng);
    b->noise = p->noise;
    b->next_noise = p->next_noise;
    rp_sac_step(p->update, p->params, p->target, b, &sac);
    return sac.errors;
}

static void update_plain(plain *p)
{
    enum { COLUMNS = 5 };
    const bool prioritized = get(p, "prioritized") != 0;
    const rp_sample_options options = {.count = BATCH,
                                       .beta = prioritized ? get(p, "weight-exponent") : 0};
    const rp_trajectory *items[BATCH];
    rp_real now[BATCH * ROW], next[BATCH * ROW], taken[BATCH * TORQUES];
    rp_real reward[BATCH], discount[BATCH], weights[BATCH];
    void *const places[COLUMNS] = {now, taken, reward, discount, next};
    const size_t sizes[COLUMNS] = {sizeof now, sizeof taken, sizeof reward, sizeof discount,
                                   sizeof next};
    rp_box_batch b = {now, taken, reward, discount, next, prioritized ? weights : NULL, 0, 0};
    rp_sample samples[BATCH];
    rp_update changes[BATCH];
    const rp_real *errors;
    size_t drawn = 0;

    assert_ok(rp_table_sample(p->table, &options, samples, &drawn, rp_wait_none(), &p->f.err));
    assert_int_equal(drawn, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        items[i] = samples[i].trajectory;
        weights[i] = (rp_real)samples[i].weight;
    }
    for (size_t i = 0; i < COLUMNS; i++)
        assert_ok(
            rp_decoder_stack(p->decoder, items, BATCH, i, places[i], sizes[i], &p->f.err));
    for (size_t i = 0; i < BATCH; i++) discount[i] *= (float)get(p, "discount");
    rp_box_to_unit(p->nets.observations, now, BATCH, now, ROW);
    rp_box_to_unit(p->nets.observations, next, BATCH, next, ROW);
    rp_box_to_unit(p->nets.actions, taken, BATCH, taken, TORQUES);
    errors = step_plain(p, &b);
    if (++p->updates % (int64_t)get(p, "target-every") == 0)
        rp_polyak(p->target, p->params, p->nets.parameter_count, get(p, "target-rate"));
    for (size_t i = 0; i < BATCH; i++)
        changes[i] = (rp_update){samples[i].key, fabs((double)errors[i]) + 1e-3};
    if (prioritized || get(p, "evict-exponent") != 0)
        assert_ok(rp_table_update(p->table, changes, BATCH, NULL, &p->f.err));
    rp_samples_release(samples, BATCH);
}

static void one_learner_has_the_bits_of_the_update_written_out(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        rp_learner *learner;
        fixture f;
        plain p;

        open_plain(&p, agents[k]);
        run(&f, agents[k], 1, 30);
        learner = learner_of(&f, 1);
        assert_int_equal(learner->parameter_count, p.nets.parameter_count);
        for (int i = 0; i < 30; i++) {
            update_plain(&p);
            update(&f, learner, 1);
            assert_memory_equal(learner->type->parameters(learner), p.params,
                                p.nets.parameter_count * sizeof(rp_real));
        }
        rp_learner_free(learner);
        close_fixture(&f);
        close_plain(&p);
    }
}

static void a_rate_of_1e9_is_said_to_diverge(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        fixture f;
        rp_status st;
        char text[64];

        open_fixture(&f, agents[k], 2);
        set(&f, "rate", 1e9);
        set(&f, "policy-rate", 1e9);
        st = begin(&f, NULL);
        for (int i = 0; i < 1000 && st == RP_OK; i++) st = rp_env_loop_step(f.loop, &f.err);
        assert_int_equal(st, RP_PRECONDITION);
        (void)snprintf(text, sizeof text, "%s: the run has diverged", agents[k]);
        assert_non_null(strstr(f.err.text, text));
        close_fixture(&f);
    }
}

static void more_learners_than_rows_are_refused(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        fixture f;
        char text[64];

        open_fixture(&f, agents[k], 18);
        assert_int_equal(new_agent(&f, NULL, 1), RP_INVALID);
        (void)snprintf(text, sizeof text, "%s: learners must be <= batch, 17, got 18",
                       agents[k]);
        assert_string_equal(f.err.text, text);
        close_fixture(&f);
    }
}

static rp_status live(const char *agent, const rp_allocator *alloc)
{
    fixture f;
    rp_status st;

    open_fixture(&f, agent, 2);
    set(&f, "batch", 8);
    set(&f, "start", 16);
    st = begin(&f, alloc);
    for (int i = 0; st == RP_OK && i < 10; i++) st = rp_env_loop_step(f.loop, &f.err);
    close_fixture(&f);
    return st;
}

static rp_status live_of_dpg(const rp_allocator *alloc)
{
    return live("dpg", alloc);
}

static rp_status live_of_sac(const rp_allocator *alloc)
{
    return live("sac", alloc);
}

static void a_lack_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(live_of_dpg);
    rp_test_survives_oom(live_of_sac);
}

RP_TESTS(box_learners)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_learner_has_the_bits_of_the_update_written_out),
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
