/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "reprise/rl/dqn.h"
#include "reprise/rl/init.h"
#include "reprise/rl/loss.h"
#include "support/unit.h"

enum { COPIES = 3, ROW = 4, MOST = 4096 };

/* An actor in CartPole with a table, and a network to compute its priorities again. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_table *table;
    rp_env *env;
    rp_actor *actor;
    rp_net *net;
    rp_real *params;
    rp_dqn_settings settings;
    rp_pcg64 rng;
    rp_error err;
    float observations[2][COPIES][ROW], last[COPIES][ROW];
    int now;
    int32_t actions[COPIES];
    double rewards[COPIES];
    bool terminated[COPIES], truncated[COPIES];
} fixture;

static void add_table(fixture *f, int64_t steps_per_update)
{
    rp_table_options table;

    f->settings.steps_per_update = steps_per_update;
    assert_ok(rp_dqn_table(&f->settings, rp_env_get_spec(f->env), 0, &table, &f->err));
    assert_ok(rp_store_add_table(f->store, &table, NULL, &f->err));
    rp_signature_unref(table.signature);
    f->table = rp_store_find_table(f->store, (rp_string){"replay", 6});
}

static void open_fixture(fixture *f, int64_t time_limit)
{
    const rp_env_options env = {.copies = COPIES, .time_limit = time_limit};

    *f = (fixture){0};
    rp_dqn_settings_init(&f->settings, "cartpole");
    f->settings.copies = COPIES;
    f->settings.hidden = 8;
    f->settings.n_step = 3;
    f->settings.reward_scale = 0.5;
    f->settings.start = MOST; /* inserts never wait */
    f->settings.batch = 16;
    assert_ok(rp_store_new(&(rp_store_options){.seed = 3}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find("cartpole"), &env, &f->env, &f->err));
    assert_ok(rp_dqn_new_net(NULL, &f->settings, rp_env_get_spec(f->env), &f->net, &f->err));
    f->params = calloc(rp_net_size(f->net), sizeof *f->params);
    rp_pcg64_seed(&f->rng, 1);
    assert_ok(rp_net_init(rp_allocator_default(), f->net, RP_INIT_TORCH, &f->rng, f->params));
}

static void make_actor(fixture *f, int64_t first, int64_t all, size_t in_flight)
{
    const rp_dqn_actor_options options = {.settings = &f->settings,
                                          .spec = rp_env_get_spec(f->env),
                                          .client = f->client,
                                          .first_copy = first,
                                          .all_copies = all,
                                          .max_in_flight = in_flight,
                                          .rng = &f->rng};

    assert_ok_err(rp_dqn_actor_new(NULL, &options, rp_wait_forever(), &f->actor, &f->err),
                  &f->err);
    f->actor->params = f->params;
}

static void begin(fixture *f)
{
    const uint64_t seeds[COPIES] = {1, 2, 3};

    assert_ok(rp_env_reset(f->env, seeds, f->observations[0], &f->err));
    assert_ok(f->actor->type->begin(f->actor, f->observations[0], rp_wait_forever(), &f->err));
}

static rp_status step(fixture *f)
{
    const rp_env_buffers result = {f->observations[1 - f->now], f->last, f->rewards,
                                   f->terminated, f->truncated};
    const rp_agent_step step = {f->observations[f->now], f->actions, &result};
    rp_status st;

    f->actor->type->act(f->actor, f->observations[f->now], f->actions);
    assert_ok(rp_env_step(f->env, f->actions, &result, &f->err));
    st = f->actor->type->observe(f->actor, &step, rp_wait_none(), &f->err);
    f->now = 1 - f->now;
    return st;
}

static void close_fixture(fixture *f)
{
    rp_actor_free(f->actor);
    rp_table_unref(f->table);
    rp_env_free(f->env);
    rp_client_free(f->client);
    rp_store_free(f->store);
    rp_net_free(f->net);
    free(f->params);
}

/* Q of one observation. */
static void rate(const fixture *f, rp_tape *tape, const rp_sample *s, size_t column,
                 rp_real q[2])
{
    rp_decoder *decoder = NULL;
    const rp_trajectory *t = s->trajectory;
    float row[ROW];
    rp_error err;

    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_decoder_stack(decoder, &t, 1, column, row, sizeof row, &err));
    rp_decoder_free(decoder);
    memcpy(q, rp_tape_forward(tape, f->params, row, 1), 2 * sizeof *q);
}

static double number(const rp_sample *s, size_t column)
{
    rp_decoder *decoder = NULL;
    const rp_trajectory *t = s->trajectory;
    union {
        float number;
        int32_t whole;
    } value;
    rp_error err;

    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_decoder_stack(decoder, &t, 1, column, &value, sizeof value, &err));
    rp_decoder_free(decoder);
    return column == 1 ? (double)value.whole : (double)value.number;
}

/* Episodes that terminate, and episodes that are truncated after `time_limit` steps. */
static void check_priorities(int64_t time_limit, int steps)
{
    fixture f;
    rp_tape *tape = NULL;
    rp_table_alteration all = {.which = RP_ALTER_LIMITER, .limiter = rp_limiter_min_size(1)};
    size_t ends = 0, count = 200;

    open_fixture(&f, time_limit);
    add_table(&f, 4);
    make_actor(&f, 0, COPIES, 0);
    begin(&f);
    for (int i = 0; i < steps; i++) assert_ok_err(step(&f), &f.err);
    assert_ok(f.actor->type->flush(f.actor, rp_wait_forever(), &f.err));
    assert_ok(rp_table_alter(f.table, &all, &f.err));
    assert_ok(rp_tape_new(rp_allocator_default(), f.net, (rp_tape_options){.rows = 1}, &tape,
                          &f.err));
    for (size_t i = 0; i < count; i++) {
        const rp_sample_options one = {.count = 1};
        rp_sample s;
        rp_real now[2], next[2];
        size_t drawn = 0;
        double target;

        assert_ok(rp_table_sample(f.table, &one, &s, &drawn, rp_wait_none(), &f.err));
        rate(&f, tape, &s, 0, now);
        rate(&f, tape, &s, 4, next);
        ends += number(&s, 3) == 0;
        target = number(&s, 2) + f.settings.discount * number(&s, 3) *
                                     (double)(next[0] > next[1] ? next[0] : next[1]);
        target = fabs(target - (double)now[(int)number(&s, 1)]) + 1e-3;
        assert_true(fabs(s.priority - target) < 1e-5);
        rp_samples_release(&s, 1);
    }
    assert_true(time_limit == 0 ? ends > 0 : ends == 0);
    rp_tape_free(tape);
    close_fixture(&f);
}

static void priorities_are_the_td_errors_of_the_actors_own_values(void **state)
{
    (void)state;
    check_priorities(0, 150);
    check_priorities(5, 50); /* CartPole does not end that early */
}

/* The limiter lets in `start` items and no more without samples. */
static void a_step_that_had_to_wait_can_be_repeated(void **state)
{
    (void)state;
    fixture f;
    rp_status st = RP_OK;
    rp_table_alteration free_limiter = {.which = RP_ALTER_LIMITER,
                                        .limiter = rp_limiter_min_size(1)};
    int64_t created;

    open_fixture(&f, 0);
    f.settings.start = 20;
    add_table(&f, 4);
    make_actor(&f, 0, COPIES, 2);
    begin(&f);
    for (int i = 0; st == RP_OK && i < 200; i++) st = step(&f);
    assert_int_equal(st, RP_DEADLINE);
    created = f.actor->type->created(f.actor);
    f.now = 1 - f.now; /* the step was not taken: the same observations again */

    assert_ok(rp_table_alter(f.table, &free_limiter, &f.err));
    assert_ok(f.actor->type->flush(f.actor, rp_wait_forever(), &f.err));
    const rp_env_buffers result = {f.observations[1 - f.now], f.last, f.rewards, f.terminated,
                                   f.truncated};
    const rp_agent_step again = {f.observations[f.now], f.actions, &result};
    assert_ok(f.actor->type->observe(f.actor, &again, rp_wait_forever(), &f.err));
    assert_true(f.actor->type->created(f.actor) >= created + COPIES);
    close_fixture(&f);
}

static void rungs_are_those_of_all_actors(void **state)
{
    (void)state;
    fixture f;

    open_fixture(&f, 0);
    add_table(&f, 4);
    make_actor(&f, 0, 2 * COPIES, 0);
    begin(&f);
    assert_ok(step(&f));
    assert_true(fabs(f.actor->exploration - 0.4) < 1e-12);
    rp_actor_free(f.actor);
    make_actor(&f, COPIES, 2 * COPIES, 0);
    begin(&f);
    assert_ok(step(&f));
    assert_true(fabs(f.actor->exploration - pow(0.4, 1 + 7.0 * COPIES / (2 * COPIES - 1))) <
                1e-12);

    const rp_dqn_actor_options wrong = {.settings = &f.settings,
                                        .spec = rp_env_get_spec(f.env),
                                        .client = f.client,
                                        .first_copy = COPIES + 1,
                                        .all_copies = 2 * COPIES,
                                        .rng = &f.rng};
    rp_actor *none = NULL;
    assert_int_equal(rp_dqn_actor_new(NULL, &wrong, rp_wait_forever(), &none, &f.err),
                     RP_INVALID);
    assert_string_equal(f.err.text, "dqn: copies 4 to 6 of 6");
    close_fixture(&f);
}

/* A learner that prefetches gets its batches from the same table as one that does not. */
static void a_learner_draws_through_a_sampler(void **state)
{
    (void)state;
    fixture f;
    rp_learner *learner = NULL;
    rp_agent_metrics m;

    open_fixture(&f, 0);
    f.settings.start = 64;
    f.settings.rmsprop = true;
    add_table(&f, 1);
    const rp_dqn_learner_options options = {.settings = &f.settings,
                                            .spec = rp_env_get_spec(f.env),
                                            .client = f.client,
                                            .mutate_for = 2,
                                            .rng = &f.rng};
    assert_ok(rp_dqn_learner_new(NULL, &options, &learner, &f.err));
    assert_int_equal(learner->type->update(learner, rp_wait_ms(1), &f.err), RP_DEADLINE);
    make_actor(&f, 0, COPIES, 0);
    begin(&f);
    while (f.actor->type->created(f.actor) < 64) assert_ok(step(&f));
    assert_ok(f.actor->type->flush(f.actor, rp_wait_forever(), &f.err));

    rp_table_info info;
    for (int i = 0; i < 2; i++) { /* the priorities of both batches are sent in one call */
        assert_ok_err(learner->type->update(learner, rp_wait_forever(), &f.err), &f.err);
        rp_table_get_info(f.table, &info);
        assert_int_equal(info.updates, i == 0 ? 0 : 2 * 16);
    }
    learner->type->get_metrics(learner, &m);
    assert_int_equal(m.updates, 2);
    assert_true(isfinite(m.loss));
    rp_learner_free(learner);
    rp_learner_free(NULL);
    rp_actor_free(NULL);
    close_fixture(&f);
}

/* A lost table ends the sampler; the next update makes another one. */
static void a_learner_outlives_its_table(void **state)
{
    (void)state;
    fixture f;
    rp_learner *learner = NULL;

    open_fixture(&f, 0);
    f.settings.start = 64;
    add_table(&f, 1);
    const rp_dqn_learner_options options = {.settings = &f.settings,
                                            .spec = rp_env_get_spec(f.env),
                                            .client = f.client,
                                            .rng = &f.rng};
    assert_ok(rp_dqn_learner_new(NULL, &options, &learner, &f.err));
    assert_int_equal(learner->type->update(learner, rp_wait_ms(1), &f.err), RP_DEADLINE);
    rp_table_unref(f.table);
    assert_ok(rp_store_drop_table(f.store, (rp_string){"replay", 6}, &f.err));
    rp_status st = RP_DEADLINE;
    while (st == RP_DEADLINE) st = learner->type->update(learner, rp_wait_ms(50), &f.err);
    assert_true(st == RP_NOT_FOUND || st == RP_CANCELLED);

    add_table(&f, 1);
    make_actor(&f, 0, COPIES, 0);
    begin(&f);
    while (f.actor->type->created(f.actor) < 64) assert_ok(step(&f));
    assert_ok(f.actor->type->flush(f.actor, rp_wait_forever(), &f.err));
    assert_ok_err(learner->type->update(learner, rp_wait_forever(), &f.err), &f.err);
    rp_learner_free(learner);
    close_fixture(&f);
}

RP_TESTS(dqn_halves)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(priorities_are_the_td_errors_of_the_actors_own_values),
        cmocka_unit_test(a_step_that_had_to_wait_can_be_repeated),
        cmocka_unit_test(rungs_are_those_of_all_actors),
        cmocka_unit_test(a_learner_draws_through_a_sampler),
        cmocka_unit_test(a_learner_outlives_its_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
