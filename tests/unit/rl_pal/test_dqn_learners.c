/* SPDX-License-Identifier: Apache-2.0 */
/* Learners of DQN that share one agent's parameters. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "reprise/rl/dqn.h"
#include "reprise/rl/env_loop.h"
#include "reprise/rl/evaluator.h"
#include "reprise/rl/init.h"
#include "reprise/rl/loss.h"
#include "reprise/rl/optimizer.h"
#include "reprise/trajectory_writer.h"
#include "support/unit.h"

enum { ROW = 4, ACTIONS = 2, COLUMNS = 5, ITEMS = 256 };

/* An item of CartPole. */
typedef struct item {
    float observation[ROW], next[ROW], reward, discount;
    int32_t action;
} item;

/* A learner with a table of random items. */
typedef struct fixture {
    rp_store *store;
    rp_client *client;
    rp_table *table;
    rp_env *env;
    rp_learner *learner;
    rp_trajectory_writer *writer;
    rp_dqn_settings settings;
    rp_pcg64 rng;
    rp_error err;
} fixture;

static void insert(fixture *f, const item *it, double priority)
{
    const rp_value values[COLUMNS] = {
        {0, "observation", {RP_FLOAT32, {1, {ROW}}, it->observation}},
        {1, "action", {RP_INT32, {0}, &it->action}},
        {2, "reward", {RP_FLOAT32, {0}, &it->reward}},
        {3, "discount", {RP_FLOAT32, {0}, &it->discount}},
        {4, "next", {RP_FLOAT32, {1, {ROW}}, it->next}},
    };
    rp_ref refs[COLUMNS];
    rp_item_column columns[COLUMNS];

    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = (rp_item_column){&refs[i], 1, true, values[i].name};
    assert_ok_err(rp_trajectory_writer_append(f->writer, values, COLUMNS, 0, refs, &f->err),
                  &f->err);
    assert_ok_err(rp_trajectory_writer_create_item(
                      f->writer, &(rp_new_item){"replay", priority, columns, COLUMNS},
                      rp_wait_forever(), NULL, &f->err),
                  &f->err);
    assert_ok(rp_trajectory_writer_end_episode(f->writer, true, rp_wait_forever(), &f->err));
}

static item random_item(rp_pcg64 *rng)
{
    item it = {.reward = (float)rp_pcg64_double(rng),
               .discount = rp_pcg64_double(rng) < 0.2 ? 0 : 0.9F,
               .action = rp_pcg64_double(rng) < 0.5};

    for (size_t i = 0; i < ROW; i++) {
        it.observation[i] = (float)rp_pcg64_normal(rng);
        it.next[i] = (float)rp_pcg64_normal(rng);
    }
    return it;
}

/* Settings whose small gradients stay small: Adam divides by more than a rounding error. */
static rp_dqn_settings settings_of(int64_t learners)
{
    rp_dqn_settings set;

    rp_dqn_settings_init(&set, "cartpole");
    set.hidden = 16;
    set.batch = 17; /* shares differ */
    set.adam_epsilon = 1e-2;
    set.target_every = 7;
    set.learners = learners;
    return set;
}

/* Adds the table, and a writer that knows it. */
static void open_table(fixture *f, rp_limiter_options limiter)
{
    const rp_table_options table = {.name = "replay",
                                    .sampler = {RP_PRIORITIZED, 0.6},
                                    .remover = {.kind = RP_FIFO},
                                    .limiter = limiter,
                                    .max_size = 10000};

    assert_ok(rp_store_add_table(f->store, &table, NULL, &f->err));
    f->table = rp_store_find_table(f->store, (rp_string){"replay", 6});
    assert_ok(rp_trajectory_writer_new(
        f->client, &(rp_trajectory_writer_options){.column = {.history = 1, .chunk_length = 1}},
        rp_wait_forever(), &f->writer, &f->err));
}

static void drop_table(fixture *f)
{
    rp_trajectory_writer_free(f->writer);
    rp_table_unref(f->table);
    f->writer = NULL;
    f->table = NULL;
    assert_ok(rp_store_drop_table(f->store, (rp_string){"replay", 6}, &f->err));
}

static void open_fixture(fixture *f, const rp_dqn_settings *settings,
                         rp_limiter_options limiter)
{
    *f = (fixture){.settings = *settings};
    assert_ok(rp_store_new(&(rp_store_options){.seed = 3}, &f->store, &f->err));
    assert_ok(rp_client_local(f->store, NULL, &f->client, &f->err));
    assert_ok(rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = 1}, &f->env,
                         &f->err));
    open_table(f, limiter);
    rp_pcg64_seed(&f->rng, 3);
}

static void fill(fixture *f)
{
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 11);
    for (int i = 0; i < ITEMS; i++) {
        const item it = random_item(&rng);

        insert(f, &it, 0.1 + rp_pcg64_double(&rng));
    }
}

static void make_learner(fixture *f, bool by_sampler)
{
    const rp_dqn_learner_options options = {.settings = &f->settings,
                                            .spec = rp_env_get_spec(f->env),
                                            .client = f->client,
                                            .store = by_sampler ? NULL : f->store,
                                            .rng = &f->rng};

    assert_ok_err(rp_dqn_learner_new(NULL, &options, &f->learner, &f->err), &f->err);
}

/* A learner of these settings with its items. */
static void begin(fixture *f, const rp_dqn_settings *settings)
{
    open_fixture(f, settings, rp_limiter_min_size(1));
    fill(f);
    make_learner(f, false);
}

static void close_fixture(fixture *f)
{
    rp_learner_free(f->learner);
    rp_trajectory_writer_free(f->writer);
    rp_table_unref(f->table);
    rp_env_free(f->env);
    rp_client_free(f->client);
    rp_store_free(f->store);
}

static void update(fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        assert_ok_err(f->learner->type->update(f->learner, rp_wait_ms(60000), &f->err),
                      &f->err);
}

static const rp_real *params_of(const fixture *f)
{
    return f->learner->type->parameters(f->learner);
}

static rp_agent_metrics metrics(fixture *f)
{
    rp_agent_metrics m;

    f->learner->type->get_metrics(f->learner, &m);
    return m;
}

/* The largest difference of two arrays of parameters. */
static double distance(const rp_real *a, const rp_real *b, size_t count)
{
    double most = 0;

    for (size_t i = 0; i < count; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* The update of dqn_learner.c, written out with public functions, on a table of its own. */
typedef struct plain {
    fixture f;
    rp_net *net;
    rp_tape *rating, *training;
    rp_optimizer *adam;
    rp_decoder *decoder;
    rp_real *params, *target, *grads;
    int64_t updates;
} plain;

static void open_plain(plain *p, const rp_dqn_settings *set)
{
    const rp_optimizer_options adam = {.kind = RP_ADAM,
                                       .rate = set->rate,
                                       .epsilon = set->adam_epsilon,
                                       .max_norm = set->max_norm};
    const rp_allocator *heap = rp_allocator_default();
    const rp_tape_options rows = {.rows = (size_t)set->batch};
    const rp_tape_options train = {.rows = (size_t)set->batch, .train = true};
    rp_error *err = &p->f.err;
    size_t size;

    *p = (plain){0};
    open_fixture(&p->f, set, rp_limiter_min_size(1));
    fill(&p->f);
    assert_ok(rp_dqn_new_net(NULL, set, rp_env_get_spec(p->f.env), &p->net, err));
    size = rp_net_size(p->net);
    p->params = calloc(size, sizeof *p->params);
    p->target = calloc(size, sizeof *p->target);
    p->grads = calloc(size, sizeof *p->grads);
    assert_ok(rp_net_init(heap, p->net, RP_INIT_TORCH, &p->f.rng, p->params));
    memcpy(p->target, p->params, size * sizeof *p->params);
    assert_ok(rp_tape_new(heap, p->net, rows, &p->rating, err));
    assert_ok(rp_tape_new(heap, p->net, train, &p->training, err));
    assert_ok(rp_optimizer_new(heap, size, &adam, &p->adam, err));
    assert_ok(rp_decoder_new(heap, 0, &p->decoder));
}

static void close_plain(plain *p)
{
    rp_decoder_free(p->decoder);
    rp_optimizer_free(p->adam);
    rp_tape_free(p->rating);
    rp_tape_free(p->training);
    rp_net_free(p->net);
    free(p->params);
    free(p->target);
    free(p->grads);
    close_fixture(&p->f);
}

static void update_plain(plain *p)
{
    enum { B = 17 };
    const rp_dqn_settings *set = &p->f.settings;
    const rp_sample_options options = {.count = B, .beta = set->weight_exponent};
    const rp_trajectory *items[B];
    float now[B][ROW], next[B][ROW], reward[B], discount[B];
    int32_t taken[B];
    void *const places[COLUMNS] = {now, taken, reward, discount, next};
    const size_t sizes[COLUMNS] = {sizeof now, sizeof taken, sizeof reward, sizeof discount,
                                   sizeof next};
    rp_real weights[B], online[B * ACTIONS], target[B], grad_q[B * ACTIONS], errors[B];
    const rp_loss_rows rows = {B, ACTIONS, taken, weights};
    rp_sample samples[B];
    rp_update changes[B];
    size_t drawn = 0;

    assert_ok(
        rp_table_sample(p->f.table, &options, samples, &drawn, rp_wait_none(), &p->f.err));
    assert_int_equal(drawn, B);
    for (size_t i = 0; i < B; i++) {
        items[i] = samples[i].trajectory;
        weights[i] = (rp_real)samples[i].weight;
    }
    for (size_t i = 0; i < COLUMNS; i++)
        assert_ok(rp_decoder_stack(p->decoder, items, B, i, places[i], sizes[i], &p->f.err));
    for (size_t i = 0; i < B; i++) discount[i] *= (float)set->discount;
    memcpy(online, rp_tape_forward(p->rating, p->params, next[0], B), sizeof online);
    rp_td_target(B, ACTIONS, reward, discount, online,
                 rp_tape_forward(p->rating, p->target, next[0], B), target);
    (void)rp_td_loss(&rows, set->huber, rp_tape_forward(p->training, p->params, now[0], B),
                     target, grad_q, errors);
    rp_tape_backward(p->training, p->params, grad_q, p->grads, NULL);
    (void)rp_optimizer_step(p->adam, p->params, p->grads);
    if (++p->updates % set->target_every == 0)
        rp_polyak(p->target, p->params, rp_net_size(p->net), set->target_rate);
    for (size_t i = 0; i < B; i++)
        changes[i] = (rp_update){samples[i].key, fabs((double)errors[i]) + 1e-3};
    assert_ok(rp_table_update(p->f.table, changes, B, NULL, &p->f.err));
    rp_samples_release(samples, B);
}

static void one_learner_has_the_bits_of_the_update_written_out(void **state)
{
    (void)state;
    const rp_dqn_settings set = settings_of(1);
    fixture f;
    plain p;

    open_plain(&p, &set);
    begin(&f, &set);
    for (int i = 0; i < 30; i++) {
        update_plain(&p);
        update(&f, 1);
        assert_memory_equal(params_of(&f), p.params, rp_net_size(p.net) * sizeof(rp_real));
    }
    close_fixture(&f);
    close_plain(&p);
}

/* Learners with the same batches as one: of equal likelihood; or by priorities, if the updates
 * are so few that no rounding error changes a draw. */
static void compare(int64_t learners, bool prioritized, int updates, double bound)
{
    rp_dqn_settings one = settings_of(1), several = settings_of(learners);
    rp_agent_metrics a, b;
    fixture f, g;

    one.prioritized = several.prioritized = prioritized;
    begin(&f, &one);
    begin(&g, &several);
    update(&f, updates);
    update(&g, updates);
    a = metrics(&f);
    b = metrics(&g);
    assert_true(distance(params_of(&f), params_of(&g), f.learner->parameter_count) < bound);
    assert_int_equal(a.updates, b.updates);
    assert_true(fabs(a.loss - b.loss) < 1e-4 * a.loss);
    assert_true(fabs(a.norm - b.norm) < 1e-4 * a.norm);
    assert_true(fabs(a.value - b.value) < 1e-4 && fabs(a.error - b.error) < 1e-4);
    close_fixture(&f);
    close_fixture(&g);
}

static void several_learners_make_the_updates_of_one(void **state)
{
    (void)state;
    for (int64_t learners = 2; learners <= 3; learners++) {
        compare(learners, true, 3, 1e-6);
        compare(learners, false, 100, 1e-4);
    }
    compare(17, false, 3, 1e-5); /* a row each */
}

static void several_learners_are_reproducible(void **state)
{
    (void)state;
    const rp_dqn_settings set = settings_of(3);
    fixture f, g;

    begin(&f, &set);
    begin(&g, &set);
    update(&f, 50);
    update(&g, 50);
    assert_memory_equal(params_of(&f), params_of(&g),
                        f.learner->parameter_count * sizeof(rp_real));
    close_fixture(&f);
    close_fixture(&g);
}

/* Copies the state of a learner to another one. */
static void copy_state(fixture *to, fixture *from)
{
    rp_state_part a[RP_AGENT_MAX_PARTS], b[RP_AGENT_MAX_PARTS];
    size_t count = from->learner->type->get_state(from->learner, a);

    assert_int_equal(to->learner->type->get_state(to->learner, b), count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_int_equal(a[i].size, b[i].size);
        memcpy(b[i].bytes, a[i].bytes, a[i].size);
    }
    assert_ok_err(to->learner->type->restored(to->learner, &to->err), &to->err);
}

/* From one learner to two, to asynchronous ones, and back. */
static void a_state_does_not_depend_on_the_number_of_learners(void **state)
{
    (void)state;
    rp_dqn_settings sets[] = {settings_of(1), settings_of(2), settings_of(2), settings_of(1)};
    fixture f[4];

    sets[2].async_learners = true;
    for (size_t i = 0; i < 4; i++) {
        begin(&f[i], &sets[i]);
        if (i > 0) copy_state(&f[i], &f[i - 1]);
        if (i > 0)
            assert_memory_equal(params_of(&f[i]), params_of(&f[i - 1]),
                                f[i].learner->parameter_count * sizeof(rp_real));
        if (i != 2) update(&f[i], 5);
    }
    assert_int_equal(metrics(&f[3]).updates, 15);
    for (size_t i = 0; i < 4; i++) close_fixture(&f[i]);
}

/* The number of threads changes nothing but the order of additions. */
static void threads_come_and_go_between_updates(void **state)
{
    (void)state;
    const rp_dqn_settings set = settings_of(3);
    fixture f, g;

    begin(&f, &set);
    begin(&g, &set);
    update(&f, 10);
    update(&g, 5);
    assert_ok_err(g.learner->type->set_threads(g.learner, 1, &g.err), &g.err);
    assert_int_equal(g.learner->type->set_threads(g.learner, 18, &g.err), RP_INVALID);
    assert_int_equal(g.learner->type->set_threads(g.learner, 0, &g.err), RP_INVALID);
    assert_ok_err(g.learner->type->set_threads(g.learner, 17, &g.err), &g.err);
    assert_ok_err(g.learner->type->set_threads(g.learner, 3, &g.err), &g.err);
    update(&g, 5);
    assert_memory_equal(params_of(&f), params_of(&g),
                        f.learner->parameter_count * sizeof(rp_real));
    assert_ok_err(g.learner->type->set_threads(g.learner, 2, &g.err), &g.err);
    update(&f, 2);
    update(&g, 2);
    assert_true(distance(params_of(&f), params_of(&g), f.learner->parameter_count) < 1e-5);
    assert_int_equal(metrics(&g).updates, 12);
    close_fixture(&f);
    close_fixture(&g);
}

static void a_state_is_read_while_asynchronous_learners_rest(void **state)
{
    (void)state;
    rp_dqn_settings set = settings_of(3);
    fixture f;

    set.async_learners = true;
    begin(&f, &set);
    for (int round = 0; round < 10; round++) {
        rp_state_part parts[RP_AGENT_MAX_PARTS];
        size_t count, bytes = f.learner->parameter_count * sizeof(rp_real);
        rp_real *copy = malloc(bytes);

        update(&f, 5);
        count = f.learner->type->get_state(f.learner, parts);
        assert_true(count > 2 && strcmp(parts[2].name, "params") == 0);
        memcpy(copy, parts[2].bytes, bytes);
        for (size_t i = 0; i < f.learner->parameter_count; i++) assert_true(isfinite(copy[i]));
        /* time for many updates of learners that do not rest */
        for (int64_t until_ns = rp_now_ns() + 5000000; rp_now_ns() < until_ns;) {}
        assert_memory_equal(copy, parts[2].bytes, bytes);
        free(copy);
    }
    assert_true(metrics(&f).updates >= 50);
    close_fixture(&f);
}

/* Parameters alone are loaded, from a file or from the replay: no restored() follows. */
static void asynchronous_learners_take_parameters_that_are_written(void **state)
{
    (void)state;
    rp_dqn_settings set = settings_of(2), single = settings_of(1);
    fixture f, other;

    set.async_learners = true;
    begin(&f, &set);
    begin(&other, &single);
    update(&other, 5);
    for (int round = 0; round < 3; round++) {
        rp_state_part parts[RP_AGENT_MAX_PARTS];
        size_t bytes = f.learner->parameter_count * sizeof(rp_real);

        assert_true(f.learner->type->get_state(f.learner, parts) > 2);
        assert_string_equal(parts[2].name, "params");
        assert_memory_not_equal(params_of(&f), params_of(&other), bytes);
        assert_true(f.learner->type->get_state(f.learner, parts) > 2);
        memcpy(parts[2].bytes, params_of(&other), bytes);
        assert_memory_equal(params_of(&f), params_of(&other), bytes);
        update(&f, 1);
        assert_memory_not_equal(params_of(&f), params_of(&other), bytes);
    }
    close_fixture(&f);
    close_fixture(&other);
}

/* An item whose loss is over the bound is left out, by the learner that has it or by all. */
static void a_bad_item_does_not_end_learners(void **state)
{
    (void)state;
    rp_pcg64 rng;
    item bad;

    rp_pcg64_seed(&rng, 1);
    bad = random_item(&rng);
    bad.reward = 1e30F;
    for (int is_async = 0; is_async < 2; is_async++) {
        rp_dqn_settings set = settings_of(2);
        fixture f;

        set.async_learners = is_async != 0;
        begin(&f, &set);
        insert(&f, &bad, 1000);
        update(&f, 30);
        assert_true(metrics(&f).bad_items >= 1);
        for (size_t i = 0; i < f.learner->parameter_count; i++)
            assert_true(isfinite(params_of(&f)[i]));
        close_fixture(&f);
    }
}

static void a_rate_of_1e9_is_said_to_diverge(void **state)
{
    (void)state;
    for (int is_async = 0; is_async < 2; is_async++) {
        rp_dqn_settings set = settings_of(2);
        fixture f;
        rp_status st = RP_OK;

        set.async_learners = is_async != 0;
        set.rate = 1e9;
        begin(&f, &set);
        for (int i = 0; i < 1000 && st == RP_OK; i++)
            st = f.learner->type->update(f.learner, rp_wait_ms(60000), &f.err);
        assert_int_equal(st, RP_PRECONDITION);
        assert_non_null(strstr(f.err.text, "diverged"));
        assert_int_equal(f.learner->type->update(f.learner, rp_wait_ms(60000), &f.err),
                         RP_PRECONDITION);
        close_fixture(&f);
    }
}

static void rest(void)
{
    const struct timespec pause = {0, 100000000}; /* longer than a turn of the crew */

    (void)nanosleep(&pause, NULL);
}

/* The replay is away while learner 0 makes no update: the crew fails, and nothing of that is
 * left when the replay is back. */
static void a_failure_of_the_crew_is_reported_once(void **state)
{
    (void)state;
    rp_dqn_settings set = settings_of(3);
    int64_t before;
    rp_status st;
    fixture f;

    set.async_learners = true;
    open_fixture(&f, &set, rp_limiter_min_size(1));
    fill(&f);
    make_learner(&f, true);
    for (int round = 0; round < 3; round++) {
        update(&f, 5);
        drop_table(&f);
        do {
            before = metrics(&f).updates;
            rest();
        } while (metrics(&f).updates > before);
        st = f.learner->type->update(f.learner, rp_wait_ms(1000), &f.err);
        assert_true(st != RP_OK && st != RP_DEADLINE);
        rest();
        open_table(&f, rp_limiter_min_size(1));
        fill(&f);
        update(&f, 1);
    }
    close_fixture(&f);
}

/* The table has items, but its limiter lets no learner draw: learners wait, and end. */
static void learners_end_while_they_wait(void **state)
{
    (void)state;
    for (int is_async = 0; is_async < 2; is_async++) {
        rp_dqn_settings set = settings_of(3);
        rp_cancel *cancel = NULL;
        fixture f;

        set.async_learners = is_async != 0;
        open_fixture(&f, &set, rp_limiter_min_size(10000));
        fill(&f);
        make_learner(&f, false);
        assert_int_equal(f.learner->type->update(f.learner, rp_wait_ms(1), &f.err),
                         RP_DEADLINE);
        assert_ok(rp_cancel_new(&cancel));
        rp_cancel_fire(cancel);
        assert_int_equal(
            f.learner->type->update(f.learner, (rp_wait){RP_FOREVER, cancel}, &f.err),
            RP_CANCELLED);
        assert_int_equal(metrics(&f).updates, 0);
        close_fixture(&f);
        rp_cancel_free(cancel);
    }
}

static void more_learners_than_rows_are_refused(void **state)
{
    (void)state;
    rp_dqn_settings set = settings_of(18);
    rp_error err;

    assert_int_equal(rp_dqn_settings_check(&set, &err), RP_INVALID);
    assert_string_equal(err.text, "dqn: learners must be <= batch, 17, got 18");
}

RP_TESTS(dqn_learners)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_learner_has_the_bits_of_the_update_written_out),
        cmocka_unit_test(several_learners_make_the_updates_of_one),
        cmocka_unit_test(several_learners_are_reproducible),
        cmocka_unit_test(a_state_does_not_depend_on_the_number_of_learners),
        cmocka_unit_test(threads_come_and_go_between_updates),
        cmocka_unit_test(a_state_is_read_while_asynchronous_learners_rest),
        cmocka_unit_test(asynchronous_learners_take_parameters_that_are_written),
        cmocka_unit_test(a_bad_item_does_not_end_learners),
        cmocka_unit_test(a_rate_of_1e9_is_said_to_diverge),
        cmocka_unit_test(a_failure_of_the_crew_is_reported_once),
        cmocka_unit_test(learners_end_while_they_wait),
        cmocka_unit_test(more_learners_than_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
