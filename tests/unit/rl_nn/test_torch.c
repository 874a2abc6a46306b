/* SPDX-License-Identifier: Apache-2.0 */
/* Updates against PyTorch's on the same weights: the files of tests/rl/golden were made by
 * tests/rl/make_nn_golden.py, which has the same networks. */
#include <math.h>
#include <stdio.h>

#include "reprise/rl/loss.h"
#include "reprise/rl/optimizer.h"
#include "support/unit.h"

enum { MOST = 4096, STEPS = 100 };

/* Reads the next array of a file, which has the expected name. Returns its length. */
static size_t read_array(FILE *file, const char *expected, float *numbers)
{
    char name[32];
    size_t count;

    assert_int_equal(fscanf(file, "%31s %zu", name, &count), 2);
    assert_string_equal(name, expected);
    assert_true(count <= MOST);
    for (size_t i = 0; i < count; i++) assert_int_equal(fscanf(file, "%f", &numbers[i]), 1);
    return count;
}

typedef struct run {
    const char *name;
    rp_net_shape in;
    rp_net_layer layers[4];
    size_t count, rows, steps;
    rp_optimizer_options optimizer;
} run;

static void expect_near(const run *r, int step, const float *got, const float *expected,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= 1e-4))
            fail_msg("%s, step %d, number %zu: %.9g, PyTorch has %.9g", r->name, step, i,
                     (double)got[i], (double)expected[i]);
}

/* One update, as a learner does it. Returns the loss. */
static double update(rp_tape *tape, rp_optimizer *optimizer, float *params, const float *x,
                     const rp_loss_rows *rows, const float *target, size_t steps)
{
    static float grad_q[MOST], errors[MOST], grads[MOST];
    rp_tape_sequence sequence = {.steps = steps};
    const float *q = rp_tape_forward_sequence(tape, params, x, rows->rows, &sequence);
    double loss = rp_td_loss(rows, 1, q, target, grad_q, errors);

    rp_tape_backward(tape, params, grad_q, grads, NULL);
    rp_optimizer_step(optimizer, params, grads);
    return loss;
}

static void train(const run *r, FILE *file, rp_net *net, rp_tape *tape, rp_optimizer *optimizer)
{
    static float params[MOST], x[MOST], numbers[MOST], target[MOST], weights[MOST];
    int32_t taken[64];
    rp_loss_rows rows = {r->rows, rp_net_out_size(net), taken, weights};

    assert_int_equal(read_array(file, "params", params), rp_net_size(net));
    assert_int_equal(read_array(file, "input", x), r->rows * rp_net_in_size(net));
    read_array(file, "taken", numbers);
    for (size_t i = 0; i < r->rows; i++) taken[i] = (int32_t)numbers[i];
    read_array(file, "target", target);
    read_array(file, "weights", weights);
    for (int step = 1; step <= STEPS; step++) {
        double loss = update(tape, optimizer, params, x, &rows, target, r->steps);
        float got = (float)loss;
        char name[32];

        if (step != 1 && step != 2 && step != 10 && step != 100) continue;
        (void)snprintf(name, sizeof name, "loss%d", step);
        read_array(file, name, numbers);
        expect_near(r, step, &got, numbers, 1);
        (void)snprintf(name, sizeof name, "after%d", step);
        expect_near(r, step, params, numbers, read_array(file, name, numbers));
    }
}

static void expect_equal_updates(const run *r, const char *kernel)
{
    rp_net *net = NULL;
    rp_tape *tape = NULL;
    rp_optimizer *optimizer = NULL;
    const rp_allocator *heap = rp_allocator_default();
    char path[512];
    FILE *file;

    assert_ok(rp_net_new(heap, r->in, r->layers, r->count, &net, NULL));
    if (rp_net_use_kernel(net, kernel) == RP_OK) {
        (void)snprintf(path, sizeof path, "%s/nn_%s.txt", RP_TEST_RL, r->name);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_ok(rp_tape_new(heap, net, (rp_tape_options){r->rows, true}, &tape, NULL));
        assert_ok(rp_optimizer_new(heap, rp_net_size(net), &r->optimizer, &optimizer, NULL));
        train(r, file, net, tape, optimizer);
        (void)fclose(file);
    }
    rp_optimizer_free(optimizer);
    rp_tape_free(tape);
    rp_net_free(net);
}

#define MLP(a)                                                                                 \
    {                                                                                          \
        {.kind = RP_NET_DENSE, .out = 12, .activation = (a)},                                  \
            {.kind = RP_NET_DENSE, .out = 10, .activation = (a)},                              \
            {.kind = RP_NET_DENSE, .out = 3},                                                  \
    }
#define ADAM                                                                                   \
    {                                                                                          \
        .kind = RP_ADAM, .rate = 1e-3                                                          \
    }

static const run runs[] = {
    {"relu_adam", {1, 1, 4}, MLP(RP_RELU), 3, 8, 1, ADAM},
    {"tanh_sgd",
     {1, 1, 4},
     MLP(RP_TANH),
     3,
     8,
     1,
     {.kind = RP_SGD, .rate = 0.02, .momentum = 0.9}},
    {"elu_rmsprop",
     {1, 1, 4},
     MLP(RP_ELU),
     3,
     8,
     1,
     {.kind = RP_RMSPROP,
      .rate = 1e-3,
      .beta2 = 0.95,
      .epsilon = 1e-2,
      .centred = true,
      .max_norm = 0.1}},
    {"norm_dueling",
     {1, 1, 4},
     {{.kind = RP_NET_DENSE, .out = 12},
      {.kind = RP_NET_NORM, .activation = RP_RELU},
      {.kind = RP_NET_DUELING, .out = 3}},
     3,
     8,
     1,
     ADAM},
    {"conv",
     {9, 9, 2},
     {{.kind = RP_NET_CONV, .out = 4, .kernel = 3, .stride = 2, .activation = RP_RELU},
      {.kind = RP_NET_CONV, .out = 3, .kernel = 2, .activation = RP_RELU},
      {.kind = RP_NET_DENSE, .out = 3}},
     3,
     4,
     1,
     ADAM},
    {"lstm",
     {1, 1, 4},
     {{.kind = RP_NET_DENSE, .out = 6, .activation = RP_TANH},
      {.kind = RP_NET_LSTM, .out = 5},
      {.kind = RP_NET_DENSE, .out = 3}},
     3,
     8,
     4,
     ADAM},
};

static void updates_equal_those_of_pytorch_with_each_kernel(void **state)
{
    static const char *const kernels[] = {"plain", "avx2", "avx512", "cblas"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(runs); i++)
        for (size_t k = 0; k < COUNT_OF(kernels); k++)
            expect_equal_updates(&runs[i], kernels[k]);
}

RP_TESTS(torch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_equal_those_of_pytorch_with_each_kernel),
    };

    return cmocka_run_group_tests_name("torch", tests, NULL, NULL);
}
