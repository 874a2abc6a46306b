/* SPDX-License-Identifier: Apache-2.0 */
/* Every gradient of every kind of layer against finite differences, in float64: the loss is a
 * fixed random combination of the outputs. Central differences with a step of 1e-6 are exact to
 * about 1e-9 here. */
#include <math.h>

#include "reprise/rl/init.h"
#include "reprise/rl/nn.h"
#include "support/unit.h"

typedef struct fixture {
    rp_net *net;
    rp_tape *tape;
    size_t rows, size, in_size, out_size;
    double *params, *grads, *x, *grad_x, *weights, *state, *keep;
    rp_tape_sequence sequence;
} fixture;

static double *numbers(rp_pcg64 *rng, size_t count)
{
    double *x = malloc((count + 1) * sizeof *x);

    for (size_t i = 0; i < count; i++) x[i] = rp_pcg64_normal(rng);
    return x;
}

static fixture make(rp_net_shape in, const rp_net_layer *layers, size_t count, size_t rows,
                    size_t steps)
{
    rp_pcg64 rng;
    rp_error err;
    fixture f = {.rows = rows};

    rp_pcg64_seed(&rng, 11);
    assert_ok_err(rp_net_new(rp_allocator_default(), in, layers, count, &f.net, &err), &err);
    assert_ok_err(rp_tape_new(rp_allocator_default(), f.net,
                              (rp_tape_options){.rows = rows, .train = true}, &f.tape, &err),
                  &err);
    f.size = rp_net_size(f.net);
    f.in_size = rows * rp_net_in_size(f.net);
    f.out_size = rows * rp_net_out_size(f.net);
    f.params = numbers(&rng, f.size);
    for (size_t i = 0; i < f.size; i++) f.params[i] *= 0.5;
    f.grads = numbers(&rng, f.size);
    f.x = numbers(&rng, f.in_size);
    f.grad_x = numbers(&rng, f.in_size);
    f.weights = numbers(&rng, f.out_size);
    f.state = numbers(&rng, rows / steps * rp_net_state_size(f.net));
    f.keep = numbers(&rng, rows);
    for (size_t i = 0; i < rows; i++) f.keep[i] = i % 4 == 2 ? 0 : 1;
    f.sequence = (rp_tape_sequence){steps, f.state, f.keep, NULL};
    return f;
}

static void drop(fixture *f)
{
    rp_tape_free(f->tape);
    rp_net_free(f->net);
    free(f->params);
    free(f->grads);
    free(f->x);
    free(f->grad_x);
    free(f->weights);
    free(f->state);
    free(f->keep);
}

static double loss(fixture *f)
{
    const double *out =
        rp_tape_forward_sequence(f->tape, f->params, f->x, f->rows, &f->sequence);
    double sum = 0;

    for (size_t i = 0; i < f->out_size; i++) sum += out[i] * f->weights[i];
    return sum;
}

/* Compares each gradient with the difference of the loss by its number. */
static void expect_gradients(fixture *f, double *at, const double *grads, size_t count,
                             const char *what)
{
    for (size_t i = 0; i < count; i++) {
        const double step = 1e-6;
        double before = at[i], high, low, expected;

        at[i] = before + step;
        high = loss(f);
        at[i] = before - step;
        low = loss(f);
        at[i] = before;
        expected = (high - low) / (2 * step);
        if (fabs(grads[i] - expected) > 1e-6 * (1 + fabs(expected)))
            fail_msg("%s %zu of %zu: %.9g, by differences %.9g", what, i, count, grads[i],
                     expected);
    }
}

static void check(rp_net_shape in, const rp_net_layer *layers, size_t count, size_t rows,
                  size_t steps)
{
    fixture f = make(in, layers, count, rows, steps);

    loss(&f);
    rp_tape_backward(f.tape, f.params, f.weights, f.grads, f.grad_x);
    expect_gradients(&f, f.params, f.grads, f.size, "parameter");
    expect_gradients(&f, f.x, f.grad_x, f.in_size, "input");
    drop(&f);
}

static const rp_net_shape vector = {1, 1, 6};

static void dense_with_each_activation(void **state)
{
    (void)state;
    for (int a = RP_LINEAR; a <= RP_ELU; a++) {
        const rp_net_layer layers[] = {
            {.kind = RP_NET_DENSE, .out = 5, .activation = (rp_activation)a},
            {.kind = RP_NET_DENSE, .out = 7, .activation = (rp_activation)a},
            {.kind = RP_NET_DENSE, .out = 3},
        };

        check(vector, layers, COUNT_OF(layers), 4, 1);
    }
}

static void a_product_wider_and_longer_than_a_block(void **state)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = 67, .activation = RP_TANH},
        {.kind = RP_NET_DENSE, .out = 66, .activation = RP_TANH},
    };

    (void)state;
    rp_test_skip_if_emulated();
    check(vector, layers, COUNT_OF(layers), 3, 1);
}

static void norm_with_each_activation(void **state)
{
    (void)state;
    for (int a = RP_LINEAR; a <= RP_ELU; a++) {
        const rp_net_layer layers[] = {
            {.kind = RP_NET_DENSE, .out = 8},
            {.kind = RP_NET_NORM, .activation = (rp_activation)a},
            {.kind = RP_NET_DENSE, .out = 2},
        };

        check(vector, layers, COUNT_OF(layers), 5, 1);
    }
}

static void dueling_split_shared_and_with_atoms(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const rp_net_layer layers[] = {
            {.kind = RP_NET_DENSE, .out = 8, .activation = RP_TANH},
            {.kind = RP_NET_DUELING, .out = 3, .shared = i % 2 == 1, .atoms = i / 2 * 4},
        };

        check(vector, layers, COUNT_OF(layers), 4, 1);
    }
}

static void convolutions_with_strides(void **state)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_CONV, .out = 3, .kernel = 3, .stride = 2, .activation = RP_TANH},
        {.kind = RP_NET_CONV, .out = 4, .kernel = 2, .activation = RP_ELU},
        {.kind = RP_NET_NORM},
        {.kind = RP_NET_DENSE, .out = 2},
    };

    (void)state;
    check((rp_net_shape){8, 9, 2}, layers, COUNT_OF(layers), 3, 1);
}

static void lstm_over_steps_with_resets(void **state)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = 4, .activation = RP_TANH},
        {.kind = RP_NET_LSTM, .out = 3},
        {.kind = RP_NET_LSTM, .out = 5},
        {.kind = RP_NET_DENSE, .out = 2},
    };

    (void)state;
    check(vector, layers, COUNT_OF(layers), 10, 5);
    check(vector, layers, COUNT_OF(layers), 4, 1);
}

RP_TESTS(gradients)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_with_each_activation),
        cmocka_unit_test(a_product_wider_and_longer_than_a_block),
        cmocka_unit_test(norm_with_each_activation),
        cmocka_unit_test(dueling_split_shared_and_with_atoms),
        cmocka_unit_test(convolutions_with_strides),
        cmocka_unit_test(lstm_over_steps_with_resets),
    };

    return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}
