/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of a whole update of SAC against finite differences, in float64, and the
 * density of squashed Gaussians against the definition. */
#include <string.h>

#include "agents/box/box_head.h"
#include "agents/sac/sac_update.h"
#include "support/update_gradients.h"

enum { ROWS = 7, NUMBERS = 3, ACTIONS = 2, MOST = 1024 };
static const double TARGET_ENTROPY = -1.5;

typedef struct fixture {
    rp_net *policy, *critic;
    rp_sac_rating *rating;
    rp_sac_layout layout;
    double params[MOST], target_params[MOST];
    double now[ROWS * NUMBERS], next[ROWS * NUMBERS], actions[ROWS * ACTIONS];
    double noise[ROWS * ACTIONS], next_noise[ROWS * ACTIONS];
    double reward[ROWS], discount[ROWS], weights[ROWS];
    rp_box_batch batch;
    size_t critic_at; /* which critic's loss is looked at */
    rp_error err;
} fixture;

/* Moves the output of the second critic, so that either has the smaller value in some rows. */
static void level(fixture *f, double *params)
{
    double one[ROWS], two[ROWS];

    rp_sac_rate(f->rating, params, 0, f->now, f->actions, ROWS, one);
    rp_sac_rate(f->rating, params, 1, f->now, f->actions, ROWS, two);
    for (size_t i = 0; i < ROWS; i++)
        params[f->layout.temperature - 1] += (one[i] - two[i]) / ROWS;
}

static void open_fixture(fixture *f)
{
    rp_pcg64 rng;

    *f = (fixture){0};
    f->policy = rp_test_smooth_net(NUMBERS, 2 * (size_t)ACTIONS, RP_LINEAR);
    f->critic = rp_test_smooth_net(NUMBERS + ACTIONS, 1, RP_LINEAR);
    f->layout = rp_sac_layout_of(f->policy, f->critic);
    assert_true(f->layout.count <= MOST);
    rp_pcg64_seed(&rng, 3);
    rp_test_fill(&rng, f->params, f->layout.count, 0.7);
    rp_test_fill(&rng, f->target_params, f->layout.count, 0.7);
    rp_test_fill(&rng, f->now, ROWS * (size_t)NUMBERS, 1);
    rp_test_fill(&rng, f->next, ROWS * (size_t)NUMBERS, 1);
    rp_test_fill(&rng, f->actions, ROWS * (size_t)ACTIONS, 1);
    rp_test_fill(&rng, f->reward, ROWS, 2);
    for (size_t i = 0; i < ROWS * (size_t)ACTIONS; i++) {
        f->noise[i] = rp_pcg64_normal(&rng);
        f->next_noise[i] = rp_pcg64_normal(&rng);
    }
    for (size_t i = 0; i < ROWS; i++) {
        f->discount[i] = i == 2 ? 0 : 0.9;
        f->weights[i] = 0.2 + 0.1 * (double)i;
    }
    f->batch = (rp_box_batch){f->now,  f->actions, f->reward, f->discount,
                              f->next, f->weights, f->noise,  f->next_noise};
    assert_ok(rp_sac_rating_new(rp_allocator_default(), f->policy, f->critic, ROWS, &f->rating,
                                &f->err));
    level(f, f->params);
    level(f, f->target_params);
}

static void close_fixture(fixture *f)
{
    rp_sac_rating_free(f->rating);
    rp_net_free(f->policy);
    rp_net_free(f->critic);
}

/* An update of some rows of the batch. */
static rp_sac_update *new_update(fixture *f, size_t rows, bool tunes)
{
    rp_sac_update *update = NULL;

    assert_ok(rp_sac_update_new(rp_allocator_default(),
                                &(rp_sac_update_options){.policy = f->policy,
                                                         .critic = f->critic,
                                                         .rows = rows,
                                                         .all_rows = ROWS,
                                                         .is_helper = rows < ROWS,
                                                         .rate = 1e-3,
                                                         .policy_rate = 1e-3,
                                                         .temperature_rate = 1e-2,
                                                         .target_entropy = TARGET_ENTROPY,
                                                         .tunes_temperature = tunes},
                                &update, &f->err));
    return update;
}

/* The loss of one critic, by its definition. */
static double critic_loss(void *ctx)
{
    fixture *f = ctx;
    double drawn[ROWS * ACTIONS], one[ROWS], two[ROWS], q[ROWS], sum = 0;
    double temperature = exp(f->params[f->layout.temperature]);
    const double *density =
        rp_sac_draw(f->rating, f->params, f->next, f->next_noise, ROWS, drawn);

    rp_sac_rate(f->rating, f->target_params, 0, f->next, drawn, ROWS, one);
    rp_sac_rate(f->rating, f->target_params, 1, f->next, drawn, ROWS, two);
    rp_sac_rate(f->rating, f->params, f->critic_at, f->now, f->actions, ROWS, q);
    for (size_t i = 0; i < ROWS; i++) {
        double later = fmin(one[i], two[i]) - temperature * density[i];
        double error = f->reward[i] + f->discount[i] * later - q[i];

        sum += f->weights[i] * error * error / 2 / ROWS;
    }
    return sum;
}

/* What the policy minimises, with the noise fixed. Says which critics have the smaller value.
 */
static double policy_loss_of(fixture *f, size_t *first)
{
    double drawn[ROWS * ACTIONS], one[ROWS], two[ROWS], sum = 0;
    double temperature = exp(f->params[f->layout.temperature]);
    const double *density = rp_sac_draw(f->rating, f->params, f->now, f->noise, ROWS, drawn);

    *first = 0;
    rp_sac_rate(f->rating, f->params, 0, f->now, drawn, ROWS, one);
    rp_sac_rate(f->rating, f->params, 1, f->now, drawn, ROWS, two);
    for (size_t i = 0; i < ROWS; i++) {
        sum += (temperature * density[i] - fmin(one[i], two[i])) / ROWS;
        *first += one[i] < two[i];
    }
    return sum;
}

static double policy_loss(void *ctx)
{
    size_t first;

    return policy_loss_of(ctx, &first);
}

/* What the temperature minimises: the densities do not depend on it. */
static double temperature_loss(void *ctx)
{
    fixture *f = ctx;
    double drawn[ROWS * ACTIONS], sum = 0;
    const double *density = rp_sac_draw(f->rating, f->params, f->now, f->noise, ROWS, drawn);

    for (size_t i = 0; i < ROWS; i++)
        sum -= f->params[f->layout.temperature] * (density[i] + TARGET_ENTROPY) / ROWS;
    return sum;
}

static void gradients_are_those_of_the_losses(void **state)
{
    (void)state;
    fixture f;
    rp_sac_found found;
    rp_sac_update *update;
    const double *grads;
    double losses = 0;
    size_t first;

    open_fixture(&f);
    (void)policy_loss_of(&f, &first);
    assert_true(first > 0 && first < ROWS); /* both critics have slopes */
    update = new_update(&f, ROWS, true);
    grads = rp_sac_gradients(update, f.params, f.target_params, &f.batch, &found);
    rp_test_expect_gradients(policy_loss, &f, f.params, grads, f.layout.policy_size);
    for (size_t k = 0; k < RP_SAC_CRITICS; k++) {
        size_t at = f.layout.critics[k];

        f.critic_at = k;
        rp_test_expect_gradients(critic_loss, &f, f.params + at, grads + at,
                                 f.layout.critic_size);
        losses += critic_loss(&f) / RP_SAC_CRITICS;
    }
    rp_test_expect_gradients(temperature_loss, &f, f.params + f.layout.temperature,
                             grads + f.layout.temperature, 1);
    assert_true(fabs(grads[f.layout.temperature]) > 0.01);
    assert_true(fabs(found.loss - losses) < 1e-12);
    rp_sac_update_free(update);
    close_fixture(&f);
}

/* What learners find of their shares adds up to what one finds of all. */
static void shares_add_up_to_the_batch(void **state)
{
    (void)state;
    fixture f;
    rp_sac_found whole, part, sum = {0};
    double grads[MOST] = {0};

    open_fixture(&f);
    for (size_t first = 0, rows = 3; first < ROWS; first += rows, rows = ROWS - rows) {
        const rp_box_batch share = {f.now + first * NUMBERS,   f.actions + first * ACTIONS,
                                    f.reward + first,          f.discount + first,
                                    f.next + first * NUMBERS,  f.weights + first,
                                    f.noise + first * ACTIONS, f.next_noise + first * ACTIONS};
        rp_sac_update *update = new_update(&f, rows, true);

        (void)rp_sac_gradients(update, f.params, f.target_params, &share, &part);
        for (size_t i = 0; i < f.layout.count; i++) grads[i] += rp_sac_grads(update)[i];
        sum.loss += part.loss;
        sum.value += part.value;
        sum.entropy += part.entropy;
        rp_sac_update_free(update);
    }
    {
        rp_sac_update *update = new_update(&f, ROWS, true);

        (void)rp_sac_gradients(update, f.params, f.target_params, &f.batch, &whole);
        for (size_t i = 0; i < f.layout.count; i++)
            assert_true(fabs(grads[i] - rp_sac_grads(update)[i]) < 1e-12);
        rp_sac_update_free(update);
    }
    assert_true(fabs(sum.loss - whole.loss) < 1e-12);
    assert_true(fabs(sum.value - whole.value) < 1e-12);
    assert_true(fabs(sum.entropy - whole.entropy) < 1e-12);
    close_fixture(&f);
}

/* Entropy over its target lowers the temperature; each network's step descends its loss while
 * the others are those of before. */
static void steps_descend_the_losses(void **state)
{
    (void)state;
    fixture f;
    rp_sac_found found;
    rp_sac_update *update;
    double policy, critics[RP_SAC_CRITICS], before[MOST], after[MOST];
    size_t from, policy_bytes;

    open_fixture(&f);
    from = f.layout.critics[0];
    policy_bytes = f.layout.policy_size * sizeof before[0];
    update = new_update(&f, ROWS, true);
    memcpy(before, f.params, sizeof before);
    policy = policy_loss(&f);
    for (f.critic_at = 0; f.critic_at < RP_SAC_CRITICS; f.critic_at++)
        critics[f.critic_at] = critic_loss(&f);
    rp_sac_step(update, f.params, f.target_params, &f.batch, &found);
    memcpy(after, f.params, sizeof after);
    assert_true(found.entropy > TARGET_ENTROPY);
    assert_true(fabs(after[f.layout.temperature] - before[f.layout.temperature] + 1e-2) < 1e-6);

    memcpy(f.params, before, sizeof before);
    memcpy(f.params, after, policy_bytes);
    assert_true(policy_loss(&f) < policy);
    memcpy(f.params, before, policy_bytes);
    memcpy(f.params + from, after + from, (f.layout.temperature - from) * sizeof after[0]);
    for (f.critic_at = 0; f.critic_at < RP_SAC_CRITICS; f.critic_at++)
        assert_true(critic_loss(&f) < critics[f.critic_at]);
    rp_sac_update_free(update);
    close_fixture(&f);
}

static void a_temperature_that_is_not_tuned_stays(void **state)
{
    (void)state;
    fixture f;
    rp_sac_found found;
    rp_sac_update *update;
    double before;

    open_fixture(&f);
    update = new_update(&f, ROWS, false);
    before = f.params[f.layout.temperature];
    for (int i = 0; i < 5; i++)
        rp_sac_step(update, f.params, f.target_params, &f.batch, &found);
    assert_true(f.params[f.layout.temperature] == before);
    rp_sac_update_free(update);
    close_fixture(&f);
}

/* The density of tanh(mean + deviation e), by its definition, for |u| up to 5. */
static double density_of(double mean, double deviation, double u)
{
    double z = (u - mean) / deviation, a = tanh(u);

    return exp(-z * z / 2) / (deviation * sqrt(2 * acos(-1))) / (1 - a * a);
}

static void densities_are_exact_near_the_bounds(void **state)
{
    (void)state;
    const rp_gaussian head = rp_box_head(1);
    const double means[] = {-0.5, 0, 4, 60, -300};

    for (size_t m = 0; m < 5; m++) {
        const double out[] = {means[m], log(0.5)};

        for (double e = -3; e <= 3; e += 0.5) {
            double action, density, by_out[2], u = means[m] + 0.5 * e;
            const double none = 0, one = 1;

            rp_gaussian_sample(&head, out, &e, 1, &action, &density);
            assert_true(fabs(action) <= 1 && isfinite(density));
            if (fabs(u) < 5)
                assert_true(fabs(density - log(density_of(means[m], 0.5, u))) < 1e-9);
            else /* 1 - tanh(u)^2 is 4 e^(-2u) there, and its logarithm is linear */
                assert_true(fabs(density - (-e * e / 2 - log(0.5) - log(8 * acos(-1)) / 2 -
                                            log(2) + 2 * fabs(u))) < 2e-4);
            rp_gaussian_backward(&head, out, &e, 1, &none, &one, by_out);
            assert_true(fabs(by_out[0] - 2 * tanh(u)) < 1e-12);
        }
    }
}

RP_TESTS(sac_gradients)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_losses),
        cmocka_unit_test(shares_add_up_to_the_batch),
        cmocka_unit_test(steps_descend_the_losses),
        cmocka_unit_test(a_temperature_that_is_not_tuned_stays),
        cmocka_unit_test(densities_are_exact_near_the_bounds),
    };

    return cmocka_run_group_tests_name("sac_gradients", tests, NULL, NULL);
}
