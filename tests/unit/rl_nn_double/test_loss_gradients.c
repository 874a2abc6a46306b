/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of losses and heads against finite differences, in float64. */
#include <math.h>

#include "reprise/rl/init.h"
#include "reprise/rl/loss.h"
#include "support/unit.h"

enum { ROWS = 5, ACTIONS = 3, WIDE = 7, COUNT = ROWS * ACTIONS * WIDE };

static const int32_t taken[ROWS] = {0, 2, 1, 1, 0};
static double weights[ROWS], out[COUNT], target[COUNT], grad[COUNT], scratch[COUNT];
static double errors[ROWS], noise[COUNT], by_action[COUNT], by_density[ROWS];
static const rp_loss_rows rows = {ROWS, ACTIONS, taken, weights};

static int set_up(void **state)
{
    rp_pcg64 rng;

    (void)state;
    rp_pcg64_seed(&rng, 5);
    for (size_t i = 0; i < COUNT; i++) {
        out[i] = rp_pcg64_normal(&rng);
        target[i] = rp_pcg64_normal(&rng) * 2;
        noise[i] = rp_pcg64_normal(&rng);
        by_action[i] = rp_pcg64_normal(&rng);
    }
    for (size_t i = 0; i < ROWS; i++) {
        weights[i] = rp_pcg64_double(&rng);
        by_density[i] = rp_pcg64_normal(&rng);
    }
    return 0;
}

typedef double loss_fn(double *to);

static void expect_gradients(loss_fn *loss, size_t count)
{
    const double step = 1e-6;

    for (size_t i = 0; i < count; i++) {
        double before = out[i], high, low, expected;

        out[i] = before + step;
        high = loss(scratch);
        out[i] = before - step;
        low = loss(scratch);
        out[i] = before;
        expected = (high - low) / (2 * step);
        if (fabs(grad[i] - expected) > 1e-7 * (1 + fabs(expected)))
            fail_msg("%zu of %zu: %.9g, by differences %.9g", i, count, grad[i], expected);
    }
}

static double huber_loss(double *to)
{
    return rp_td_loss(&rows, 1, out, target, to, errors);
}

static double square_loss(double *to)
{
    return rp_td_loss(&rows, 0, out, target, to, errors);
}

static void td_errors(void **state)
{
    (void)state;
    huber_loss(grad);
    expect_gradients(huber_loss, ROWS * (size_t)ACTIONS);
    square_loss(grad);
    expect_gradients(square_loss, ROWS * (size_t)ACTIONS);
}

static double categorical_loss(double *to)
{
    rp_categorical head = {WIDE, -1, 1};

    return rp_categorical_loss(&rows, &head, out, target, to, errors);
}

static void categorical(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) { /* probabilities */
        double sum = 0;

        for (size_t k = 0; k < WIDE; k++) sum += fabs(target[i * WIDE + k]);
        for (size_t k = 0; k < WIDE; k++)
            target[i * WIDE + k] = fabs(target[i * WIDE + k]) / sum;
    }
    categorical_loss(grad);
    expect_gradients(categorical_loss, COUNT);
}

static double quantile_loss(double *to)
{
    rp_quantile head = {WIDE, 4, 1};

    return rp_quantile_loss(&rows, &head, out, target, to, errors);
}

static void quantile(void **state)
{
    (void)state;
    quantile_loss(grad);
    expect_gradients(quantile_loss, COUNT);
}

static rp_gaussian head = {.actions = 3, .log_low = -1.5, .log_high = 1.5};

/* A combination of actions and densities. */
static double gaussian_loss(double *to)
{
    double density[ROWS], sum = 0;

    rp_gaussian_sample(&head, out, noise, ROWS, to, density);
    for (size_t i = 0; i < ROWS * (size_t)3; i++) sum += to[i] * by_action[i];
    for (size_t i = 0; i < ROWS; i++) sum += density[i] * by_density[i];
    return sum;
}

static void gaussian(void **state)
{
    (void)state;
    out[3] = 2; /* clamped above */
    out[4] = -2;
    for (int i = 0; i < 2; i++) {
        head.squash = i == 1;
        rp_gaussian_backward(&head, out, noise, ROWS, by_action, by_density, grad);
        expect_gradients(gaussian_loss, ROWS * (size_t)6);
    }
}

RP_TESTS(loss_gradients)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(td_errors, set_up),
        cmocka_unit_test_setup(categorical, set_up),
        cmocka_unit_test_setup(quantile, set_up),
        cmocka_unit_test_setup(gaussian, set_up),
    };

    return cmocka_run_group_tests_name("loss_gradients", tests, NULL, NULL);
}
