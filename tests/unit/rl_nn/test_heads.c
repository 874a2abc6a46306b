/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "reprise/rl/loss.h"
#include "support/unit.h"

static void near(float got, double expected)
{
    if (fabs((double)got - expected) > 1e-5) fail_msg("%g, expected %g", (double)got, expected);
}

static void argmax_takes_the_first_of_equals(void **state)
{
    const float x[] = {1, 3, NAN, 3};

    (void)state;
    assert_int_equal(rp_argmax(x, 4), 1);
    assert_int_equal(rp_argmax(x, 1), 0);
}

static void double_target_takes_the_value_of_the_other_network(void **state)
{
    const float reward[] = {1, 2}, discount[] = {0.5F, 0};
    const float online[] = {0, 1, 5, 4}, target[] = {7, 2, 3, 9};
    float out[2];

    (void)state;
    rp_td_target(2, 2, reward, discount, online, target, out);
    near(out[0], 1 + 0.5 * 2);
    near(out[1], 2);
    rp_td_target(2, 2, reward, discount, NULL, target, out);
    near(out[0], 1 + 0.5 * 7);
}

static void td_loss_is_quadratic_then_linear_and_weighted(void **state)
{
    const int32_t taken[] = {1, 0};
    const float weights[] = {1, 0.5F}, q[] = {9, 2, 4, 9}, target[] = {2.5F, 1};
    rp_loss_rows rows = {2, 2, taken, weights};
    float grad[4], errors[2];

    (void)state;
    near((float)rp_td_loss(&rows, 1, q, target, grad, errors), 0.5 * 0.125 + 0.5 * 0.5 * 2.5);
    near(errors[0], 0.5);
    near(errors[1], -3);
    near(grad[0], 0);
    near(grad[1], -0.25);
    near(grad[2], 0.25);
    near(grad[3], 0);
    near((float)rp_td_loss(&rows, 0, q, target, grad, errors), 0.5 * 0.125 + 0.25 * 4.5);
    near(grad[2], 0.75);
}

static void td_loss_of_nan_is_nan(void **state)
{
    const int32_t taken[] = {0};
    const float q[] = {NAN}, target[] = {1};
    rp_loss_rows rows = {1, 1, taken, NULL};
    float grad[1], errors[1];

    (void)state;
    assert_true(isnan(rp_td_loss(&rows, 1, q, target, grad, errors)));
}

static void projection_keeps_probability_and_expectation(void **state)
{
    enum { ATOMS = 11 };
    rp_categorical head = {ATOMS, -2, 3};
    const float reward[] = {0.3F, 0.1F, 99, NAN}, discount[] = {0.5F, 0, 0.9F, 1};
    float logits[4 * ATOMS], target[4 * ATOMS], value, next;

    (void)state;
    for (size_t i = 0; i < 4 * (size_t)ATOMS; i++) logits[i] = (float)((i * 7) % 5) * 0.3F;
    rp_categorical_project(&head, logits, reward, discount, 4, target);
    for (size_t i = 0; i < 4; i++) {
        double sum = 0, expected = 0;

        for (size_t k = 0; k < ATOMS; k++) {
            sum += (double)target[i * ATOMS + k];
            expected += (double)target[i * ATOMS + k] * (-2 + 0.5 * (double)k);
        }
        if (i == 3) continue; /* a NaN must only stay within the array */
        near((float)sum, 1);
        rp_categorical_values(&head, logits + i * ATOMS, 1, &next);
        value = i == 2 ? 3 : reward[i] + discount[i] * next;
        near((float)expected, (double)value);
    }
}

static void quantile_values_are_means(void **state)
{
    const float out[] = {1, 2, 6, 4, 4, 4};
    rp_quantile head = {3, 1, 1};
    float values[2];

    (void)state;
    rp_quantile_values(&head, out, 2, values);
    near(values[0], 3);
    near(values[1], 4);
}

static void density_of_a_squashed_action_stays_finite(void **state)
{
    rp_gaussian head = {1, -5, 2, true};
    const float out[] = {40, 0, 0, 9}, noise[] = {0.5F, 1};
    float action[2], log_density[2];

    (void)state;
    rp_gaussian_sample(&head, out, noise, 2, action, log_density);
    near(action[0], 1);
    assert_true(isfinite(log_density[0]));
    near(action[1], tanh(exp(2))); /* the deviation is clamped */
    assert_true(isfinite(log_density[1]));
    head.squash = false;
    rp_gaussian_sample(&head, out, noise, 1, action, log_density);
    near(action[0], 40.5);
    near(log_density[0], -0.125 - 0.91893853);
}

RP_TESTS(heads)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(argmax_takes_the_first_of_equals),
        cmocka_unit_test(double_target_takes_the_value_of_the_other_network),
        cmocka_unit_test(td_loss_is_quadratic_then_linear_and_weighted),
        cmocka_unit_test(td_loss_of_nan_is_nan),
        cmocka_unit_test(projection_keeps_probability_and_expectation),
        cmocka_unit_test(quantile_values_are_means),
        cmocka_unit_test(density_of_a_squashed_action_stays_finite),
    };

    return cmocka_run_group_tests_name("heads", tests, NULL, NULL);
}
