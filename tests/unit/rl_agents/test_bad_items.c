/* SPDX-License-Identifier: Apache-2.0 */
/* Items that a learner cannot learn from, by others who may write to its table. */
#include <math.h>
#include <string.h>

#include "agents/dpg/dpg_kind.h"
#include "agents/replay_plan.h"
#include "agents/sac/sac_kind.h"
#include "reprise/rl/agent_kinds.h"
#include "reprise/rl/dqn.h"
#include "reprise/trajectory_writer.h"
#include "support/unit.h"

enum { BATCH = 16, GOOD = 64, MOST_COLUMNS = 5 };

/* An item of CartPole; of Pendulum, if `torque` is set. */
typedef struct item {
    float observation[4], next[4], torque[1], reward, discount;
    int32_t action;
    bool is_short; /* the observation has 3 numbers */
} item;

static const item good = {.observation = {.1F, .2F, .3F, .4F},
                          .next = {.2F, .3F, .4F, .5F},
                          .torque = {.5F},
                          .reward = 1,
                          .discount = .9F,
                          .action = 1};

typedef enum agent { DQN, DPG, SAC } agent;

/* A learner with a table that has its signature, and a writer that does not care. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_env *env;
    rp_trajectory_writer *writer;
    rp_learner *learner;
    agent agent;
    int64_t learners;
    rp_error err;
} fixture;

/* A writer keeps to the shapes of its first item. */
static void open_writer(fixture *f)
{
    rp_trajectory_writer_free(f->writer);
    f->writer = NULL;
    assert_ok(rp_trajectory_writer_new(
        f->client,
        &(rp_trajectory_writer_options){.column = {.history = 1, .chunk_length = 1},
                                        .unchecked = true},
        rp_wait_forever(), &f->writer, &f->err));
}

static void insert(fixture *f, const item *it, double priority)
{
    int64_t numbers = rp_env_get_spec(f->env)->observation_shape.dims[0];
    int64_t row = it->is_short ? numbers - 1 : numbers;
    const rp_value values[MOST_COLUMNS] = {
        {0, "observation", {RP_FLOAT32, {1, {row}}, it->observation}},
        {1, "action", {RP_INT32, {0}, &it->action}},
        {2, "reward", {RP_FLOAT32, {0}, &it->reward}},
        {3, "discount", {RP_FLOAT32, {0}, &it->discount}},
        {4, "next", {RP_FLOAT32, {1, {row}}, it->next}},
    };
    rp_value copy[MOST_COLUMNS];
    rp_ref refs[MOST_COLUMNS];
    rp_item_column columns[MOST_COLUMNS];

    if (it->is_short) open_writer(f);
    memcpy(copy, values, sizeof copy);
    if (f->agent != DQN) copy[1] = (rp_value){1, "action", {RP_FLOAT32, {1, {1}}, it->torque}};
    for (size_t i = 0; i < MOST_COLUMNS; i++)
        columns[i] = (rp_item_column){&refs[i], 1, true, copy[i].name};
    assert_ok_err(rp_trajectory_writer_append(f->writer, copy, MOST_COLUMNS, 0, refs, &f->err),
                  &f->err);
    assert_ok_err(rp_trajectory_writer_create_item(
                      f->writer, &(rp_new_item){"replay", priority, columns, MOST_COLUMNS},
                      rp_wait_forever(), NULL, &f->err),
                  &f->err);
    assert_ok(rp_trajectory_writer_end_episode(f->writer, true, rp_wait_forever(), &f->err));
}

static void make_learner(fixture *f, bool by_sampler, bool prioritized)
{
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 3);
    if (f->agent != DQN) {
        const rp_box_learning *how = f->agent == DPG ? &rp_dpg_learning : &rp_sac_learning;
        const rp_settings_table *table = how->shape->table();
        const struct {
            const char *name;
            double value;
        } values[] = {{"hidden", 8},
                      {"batch", BATCH},
                      {"prioritized", prioritized},
                      {"learners", (double)f->learners}};
        rp_agent_settings set;

        rp_settings_init(table, &set, "pendulum");
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
            rp_settings_set(table, &set, rp_settings_find(table, values[i].name),
                            values[i].value);
        assert_ok_err(
            rp_box_learner_new(NULL,
                               &(rp_box_learner_options){.how = how,
                                                         .settings = &set,
                                                         .spec = rp_env_get_spec(f->env),
                                                         .client = f->client,
                                                         .store = by_sampler ? NULL : f->store,
                                                         .rng = &rng},
                               &f->learner, &f->err),
            &f->err);
    } else {
        rp_dqn_settings set;

        rp_dqn_settings_init(&set, "cartpole");
        set.hidden = 8;
        set.batch = BATCH;
        set.prioritized = prioritized;
        set.learners = f->learners;
        assert_ok_err(
            rp_dqn_learner_new(NULL,
                               &(rp_dqn_learner_options){.settings = &set,
                                                         .spec = rp_env_get_spec(f->env),
                                                         .client = f->client,
                                                         .store = by_sampler ? NULL : f->store,
                                                         .rng = &rng},
                               &f->learner, &f->err),
            &f->err);
    }
}

static rp_signature *signature_of(const rp_env *env)
{
    const rp_replay_plan plan = {.spec = *rp_env_get_spec(env), .copies = 1, .n_step = 1};
    const rp_adder_options adder = rp_replay_adder(&plan);
    rp_signature *signature = NULL;

    assert_ok(rp_adder_signature(&adder, &signature, NULL));
    return signature;
}

static void open_fixture(fixture *f, agent kind, bool has_signature)
{
    rp_table_options table = {.name = "replay",
                              .sampler = {RP_PRIORITIZED, 1},
                              .remover = {.kind = RP_FIFO},
                              .limiter = rp_limiter_min_size(BATCH),
                              .max_size = 100000};

    *f = (fixture){.agent = kind, .learners = 1};
    assert_ok(rp_store_new(&(rp_store_options){.seed = 3}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find(kind != DQN ? "pendulum" : "cartpole"),
                         &(rp_env_options){.copies = 1}, &f->env, &f->err));
    if (has_signature) table.signature = signature_of(f->env);
    assert_ok(rp_store_add_table(f->store, &table, NULL, &f->err));
    rp_signature_unref(table.signature);
    open_writer(f);
}

static void close_fixture(fixture *f)
{
    rp_learner_free(f->learner);
    rp_trajectory_writer_free(f->writer);
    rp_env_free(f->env);
    rp_client_free(f->client);
    rp_store_free(f->store);
}

static int64_t items(fixture *f)
{
    rp_table *table = rp_store_find_table(f->store, (rp_string){"replay", 6});
    rp_table_info info;

    rp_table_get_info(table, &info);
    rp_table_unref(table);
    return info.size;
}

static rp_agent_metrics metrics(fixture *f)
{
    rp_agent_metrics m;

    f->learner->type->get_metrics(f->learner, &m);
    return m;
}

static void update(fixture *f)
{
    assert_ok_err(f->learner->type->update(f->learner, rp_wait_forever(), &f->err), &f->err);
}

typedef struct survival {
    agent agent;
    bool by_sampler, prioritized;
    int64_t learners;
} survival;

/* One bad item among good ones is drawn, left out and deleted; training goes on. */
static void survive(const survival *s, const item *bad, const char *why)
{
    fixture f;
    rp_agent_metrics m;
    const rp_real *params;

    open_fixture(&f, s->agent, true);
    f.learners = s->learners;
    for (int i = 0; i < GOOD; i++) insert(&f, &good, 1);
    insert(&f, bad, 1000);
    make_learner(&f, s->by_sampler, s->prioritized);
    for (int i = 0; i < 12; i++) update(&f);
    m = metrics(&f);
    assert_true(m.updates == 12 && m.bad_items >= 1);
    assert_true(isfinite(m.loss) && isfinite(m.norm));
    assert_non_null(strstr(m.bad_item, why));
    assert_int_equal(items(&f), GOOD);
    params = f.learner->type->parameters(f.learner);
    for (size_t i = 0; i < f.learner->parameter_count; i++) assert_true(isfinite(params[i]));
    close_fixture(&f);
}

static void bad_items_are_left_out_and_deleted(void **state)
{
    (void)state;
    struct {
        item item;
        const char *why;
    } cases[] = {
        {good, "has action 5 of 2"},
        {good, "has action -1 of 2"},
        {good, "has action -2147483648 of 2"},
        {good, "has an observation that is not finite, or out of bounds"},
        {good, "has a next observation that is not finite"},
        {good, "has a reward that is not finite"},
        {good, "has a discount that is not finite, or out of bounds"},
        {good, "has a discount"},
        {good, "has an error of"},
        {good, "has an error of"},
    };

    cases[0].item.action = 5;
    cases[1].item.action = -1;
    cases[2].item.action = INT32_MIN;
    cases[3].item.observation[2] = NAN;
    cases[4].item.next[0] = -3e38F;
    cases[5].item.reward = INFINITY;
    cases[6].item.discount = 1e30F;
    cases[7].item.discount = -.1F;
    cases[8].item.reward = 1e17F;
    cases[9].item.observation[0] = 1e17F;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 4; k++)
            survive(&(survival){DQN, k % 2, i % 2 == 0, 1 + k / 2}, &cases[i].item,
                    cases[i].why);
}

static void bad_items_of_continuous_actions_are_left_out_and_deleted(void **state)
{
    (void)state;
    item bad[2] = {good, good};

    bad[0].torque[0] = NAN;
    bad[1].reward = 1e17F;
    for (int k = 0; k < 8; k++) {
        survival s = {k < 4 ? DPG : SAC, k % 2, true, 1 + k % 4 / 2};

        survive(&s, &bad[0], "has an action that is not finite");
        s.prioritized = false;
        survive(&s, &bad[1], "has an error of");
    }
}

static void a_table_of_bad_items_ends_the_learner(void **state)
{
    (void)state;
    fixture f;
    item bad = good;
    rp_status st = RP_OK;
    int64_t rounds = 0;

    bad.action = 2;
    open_fixture(&f, DQN, true);
    make_learner(&f, false, true);
    while (st == RP_OK || st == RP_DEADLINE) {
        for (int i = 0; i < BATCH; i++) insert(&f, &bad, 1);
        assert_ok(rp_trajectory_writer_flush(f.writer, 0, rp_wait_forever(), &f.err));
        st = f.learner->type->update(f.learner, rp_wait_none(), &f.err);
        assert_true(++rounds <= 1000);
    }
    assert_int_equal(st, RP_CORRUPT);
    assert_non_null(strstr(f.err.text,
                           "table 'replay': nearly all items of the last 1000 batches are bad, "
                           "the latest: item "));
    assert_non_null(strstr(f.err.text, "has action 2 of 2. Find out who else writes"));
    close_fixture(&f);
}

/* Such a table may be another program's. */
static void items_stay_in_a_table_without_the_signature(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        fixture f;
        item bad = good;

        bad.action = 5;
        open_fixture(&f, DQN, false);
        f.learners = 1 + k / 2;
        for (int i = 0; i < GOOD; i++) insert(&f, &good, 1);
        insert(&f, &bad, 1000);
        make_learner(&f, k % 2, true);
        for (int i = 0; i < 12; i++) update(&f);
        assert_true(metrics(&f).bad_items >= 12);
        assert_int_equal(items(&f), GOOD + 1);
        close_fixture(&f);
    }
}

static void items_of_another_program_end_the_learner_and_stay(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        fixture f;
        item bad = good;
        rp_status st;

        bad.is_short = true;
        open_fixture(&f, DQN, false);
        f.learners = 1 + k / 2;
        for (int i = 0; i < BATCH; i++) insert(&f, &bad, 1);
        make_learner(&f, k % 2, true);
        st = f.learner->type->update(f.learner, rp_wait_forever(), &f.err);
        assert_int_equal(st, RP_PRECONDITION);
        assert_string_equal(
            f.err.text, "table 'replay' of local has items that are not of this agent: "
                        "column 0 is float32 [3], expected float32 [4]; name another server");
        assert_int_equal(items(&f), BATCH);
        close_fixture(&f);
    }
}

RP_TESTS(bad_items)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_items_are_left_out_and_deleted),
        cmocka_unit_test(bad_items_of_continuous_actions_are_left_out_and_deleted),
        cmocka_unit_test(a_table_of_bad_items_ends_the_learner),
        cmocka_unit_test(items_stay_in_a_table_without_the_signature),
        cmocka_unit_test(items_of_another_program_end_the_learner_and_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
