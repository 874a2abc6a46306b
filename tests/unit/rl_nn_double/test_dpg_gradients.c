/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of a whole update of DPG against finite differences, in float64. */
#include <math.h>
#include <string.h>

#include "agents/dpg/dpg_rating.h"
#include "agents/dpg/dpg_update.h"
#include "support/update_gradients.h"

enum { ROWS = 6, NUMBERS = 3, ACTIONS = 2, MOST = 512 };

typedef struct fixture {
    rp_net *policy, *critic;
    rp_dpg_rating *rating;
    rp_dpg_update *update;
    size_t policy_size, size;
    double params[MOST], target_params[MOST];
    double now[ROWS * NUMBERS], next[ROWS * NUMBERS], actions[ROWS * ACTIONS];
    double reward[ROWS], discount[ROWS], weights[ROWS];
    rp_box_batch batch;
    rp_dpg_found found;
    rp_error err;
} fixture;

static void open_fixture(fixture *f, double max_slope, double huber)
{
    rp_pcg64 rng;

    *f = (fixture){0};
    f->policy = rp_test_smooth_net(NUMBERS, ACTIONS, RP_TANH);
    f->critic = rp_test_smooth_net(NUMBERS + ACTIONS, 1, RP_LINEAR);
    f->policy_size = rp_net_size(f->policy);
    f->size = f->policy_size + rp_net_size(f->critic);
    assert_true(f->size <= MOST);
    rp_pcg64_seed(&rng, 3);
    rp_test_fill(&rng, f->params, f->size, 0.7);
    rp_test_fill(&rng, f->target_params, f->size, 0.7);
    rp_test_fill(&rng, f->now, ROWS * (size_t)NUMBERS, 1);
    rp_test_fill(&rng, f->next, ROWS * (size_t)NUMBERS, 1);
    rp_test_fill(&rng, f->actions, ROWS * (size_t)ACTIONS, 1);
    rp_test_fill(&rng, f->reward, ROWS, 2);
    for (size_t i = 0; i < ROWS; i++) {
        f->discount[i] = i == 2 ? 0 : 0.9;
        f->weights[i] = 0.2 + 0.1 * (double)i;
    }
    f->batch = (rp_box_batch){f->now,  f->actions, f->reward, f->discount,
                              f->next, f->weights, NULL,      NULL};
    assert_ok(rp_dpg_rating_new(rp_allocator_default(), f->policy, f->critic, ROWS, &f->rating,
                                &f->err));
    assert_ok(rp_dpg_update_new(rp_allocator_default(),
                                &(rp_dpg_update_options){.policy = f->policy,
                                                         .critic = f->critic,
                                                         .rows = ROWS,
                                                         .rate = 1e-3,
                                                         .policy_rate = 1e-3,
                                                         .max_slope = max_slope,
                                                         .huber = huber},
                                &f->update, &f->err));
}

static void close_fixture(fixture *f)
{
    rp_dpg_update_free(f->update);
    rp_dpg_rating_free(f->rating);
    rp_net_free(f->policy);
    rp_net_free(f->critic);
}

/* The critic's loss, by its definition. */
static double critic_loss(void *ctx)
{
    fixture *f = ctx;
    double later[ROWS], q[ROWS], sum = 0;

    rp_dpg_rate(f->rating, f->target_params, f->next, NULL, ROWS, later);
    rp_dpg_rate(f->rating, f->params, f->now, f->actions, ROWS, q);
    for (size_t i = 0; i < ROWS; i++) {
        double error = f->reward[i] + f->discount[i] * later[i] - q[i];
        sum += f->weights[i] * error * error / 2 / ROWS;
    }
    return sum;
}

/* What the policy minimises. */
static double policy_loss(void *ctx)
{
    fixture *f = ctx;
    double q[ROWS], sum = 0;

    rp_dpg_rate(f->rating, f->params, f->now, NULL, ROWS, q);
    for (size_t i = 0; i < ROWS; i++) sum -= q[i] / ROWS;
    return sum;
}

static double slopes[ROWS * ACTIONS];

/* What the policy minimises while the slopes are constant. */
static double surrogate(void *ctx)
{
    fixture *f = ctx;
    const double *u = rp_dpg_choose(f->rating, f->params, f->now, ROWS);
    double sum = 0;

    for (size_t i = 0; i < ROWS * (size_t)ACTIONS; i++) sum -= slopes[i] * u[i] / ROWS;
    return sum;
}

static void expect(fixture *f, rp_test_loss *loss, size_t from, size_t to)
{
    const double *grads =
        rp_dpg_gradients(f->update, f->params, f->target_params, &f->batch, &f->found);

    rp_test_expect_gradients(loss, f, f->params + from, grads + from, to - from);
}

static void gradients_are_those_of_the_losses(void **state)
{
    (void)state;
    fixture f;

    open_fixture(&f, 0, 0);
    expect(&f, policy_loss, 0, f.policy_size);
    expect(&f, critic_loss, f.policy_size, f.size);
    assert_true(fabs(f.found.loss - critic_loss(&f)) < 1e-12);
    close_fixture(&f);
}

/* The slopes of the critic by differences: some are clipped, some are not. */
static void slopes_are_clipped_one_by_one(void **state)
{
    (void)state;
    fixture f;
    const double most = 0.1;
    double u[ROWS * ACTIONS];
    size_t clipped = 0;

    open_fixture(&f, most, 0);
    for (size_t i = 0; i < ROWS * (size_t)ACTIONS; i++)
        u[i] = rp_dpg_choose(f.rating, f.params, f.now, ROWS)[i];
    for (size_t i = 0; i < ROWS * (size_t)ACTIONS; i++) {
        double before = u[i], low[ROWS], high[ROWS];

        u[i] = before + 1e-6;
        rp_dpg_rate(f.rating, f.params, f.now, u, ROWS, high);
        u[i] = before - 1e-6;
        rp_dpg_rate(f.rating, f.params, f.now, u, ROWS, low);
        u[i] = before;
        slopes[i] = (high[i / ACTIONS] - low[i / ACTIONS]) / 2e-6;
        clipped += fabs(slopes[i]) > most;
        slopes[i] = fmax(-most, fmin(most, slopes[i]));
    }
    assert_true(clipped > 0 && clipped < ROWS * (size_t)ACTIONS);
    expect(&f, surrogate, 0, f.policy_size);
    expect(&f, critic_loss, f.policy_size, f.size); /* which has no such bound */
    close_fixture(&f);
}

/* A step moves the policy up its critic, and the critic to its targets. */
static void steps_descend_both_losses(void **state)
{
    (void)state;
    fixture f;
    double critic, policy, before[MOST];

    open_fixture(&f, 1, 0);
    memcpy(before, f.params, sizeof before);
    critic = critic_loss(&f);
    policy = policy_loss(&f);
    rp_dpg_step(f.update, f.params, f.target_params, &f.batch, &f.found);
    assert_true(critic_loss(&f) < critic);
    memcpy(f.params + f.policy_size, before + f.policy_size,
           (f.size - f.policy_size) * sizeof before[0]); /* the critic of before */
    assert_true(policy_loss(&f) < policy);
    close_fixture(&f);
}

RP_TESTS(dpg_gradients)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_losses),
        cmocka_unit_test(slopes_are_clipped_one_by_one),
        cmocka_unit_test(steps_descend_both_losses),
    };

    return cmocka_run_group_tests_name("dpg_gradients", tests, NULL, NULL);
}
