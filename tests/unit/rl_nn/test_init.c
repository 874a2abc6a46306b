/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "reprise/rl/init.h"
#include "support/unit.h"

static const rp_net_layer layers[] = {
    {.kind = RP_NET_DENSE, .out = 40, .activation = RP_RELU},
    {.kind = RP_NET_NORM},
    {.kind = RP_NET_LSTM, .out = 16},
    {.kind = RP_NET_DENSE, .out = 5},
};

static rp_net *net;
static float *params;

static int set_up(void **state)
{
    (void)state;
    assert_ok(rp_net_new(rp_allocator_default(), (rp_net_shape){1, 1, 25}, layers,
                         COUNT_OF(layers), &net, NULL));
    params = malloc(rp_net_size(net) * sizeof *params);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(params);
    rp_net_free(net);
    return 0;
}

static void init(rp_init_kind kind, uint64_t seed)
{
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, seed);
    assert_ok(rp_net_init(rp_allocator_default(), net, kind, &rng, params));
}

/* Checks that the numbers of a parameter fill [-bound, bound]. */
static void expect_uniform(size_t i, double bound)
{
    const rp_net_parameter *p = rp_net_parameter_at(net, i);
    double most = 0;

    for (size_t j = 0; j < p->size; j++) most = fmax(most, fabs((double)params[p->offset + j]));
    assert_true(most <= bound && most > bound * 0.8);
}

static void torch_kind_is_uniform_by_fan_in(void **state)
{
    const rp_net_parameter *gain = rp_net_parameter_at(net, 2);

    (void)state;
    init(RP_INIT_TORCH, 7);
    expect_uniform(0, 1 / sqrt(25));
    expect_uniform(1, 1 / sqrt(25));
    expect_uniform(4, 1 / sqrt(16)); /* LSTM: by units */
    expect_uniform(5, 1 / sqrt(16));
    expect_uniform(6, 1 / sqrt(16));
    expect_uniform(7, 1 / sqrt(16));
    for (size_t j = 0; j < gain->size; j++) {
        assert_true(params[gain->offset + j] == 1.0F);
        assert_true(params[gain->offset + gain->size + j] == 0.0F); /* its bias */
    }
}

/* Checks that the shorter of rows and columns are orthogonal with length `gain`. */
static void expect_orthogonal(size_t i, double gain)
{
    const rp_net_parameter *p = rp_net_parameter_at(net, i);
    size_t rows = p->dims[0], columns = p->dims[1];
    bool by_row = rows < columns;
    size_t count = by_row ? rows : columns, length = by_row ? columns : rows;

    for (size_t u = 0; u < count; u++)
        for (size_t v = 0; v <= u; v++) {
            double dot = 0;

            for (size_t k = 0; k < length; k++)
                dot +=
                    (double)params[p->offset + (by_row ? u * columns + k : k * columns + u)] *
                    (double)params[p->offset + (by_row ? v * columns + k : k * columns + v)];
            assert_true(fabs(dot - (u == v ? gain * gain : 0)) < 1e-5);
        }
}

static void orthogonal_kind_is_orthogonal(void **state)
{
    const rp_net_parameter *bias = rp_net_parameter_at(net, 1);

    (void)state;
    init(RP_INIT_ORTHOGONAL, 7);
    expect_orthogonal(0, sqrt(2));
    expect_orthogonal(7, 1);
    for (size_t j = 0; j < bias->size; j++) assert_true(params[bias->offset + j] == 0.0F);
}

static void same_seed_gives_the_same_parameters(void **state)
{
    size_t bytes = rp_net_size(net) * sizeof *params;
    float *first = malloc(bytes);

    (void)state;
    init(RP_INIT_TORCH, 7);
    memcpy(first, params, bytes);
    init(RP_INIT_TORCH, 7);
    assert_memory_equal(first, params, bytes);
    init(RP_INIT_TORCH, 8);
    assert_memory_not_equal(first, params, bytes);
    free(first);
}

static void normal_numbers_have_mean_0_and_variance_1(void **state)
{
    enum { COUNT = 20000 };
    double sum = 0, squares = 0;
    rp_pcg64 rng;

    (void)state;
    rp_pcg64_seed(&rng, 1);
    for (size_t i = 0; i < COUNT; i++) {
        double x = rp_pcg64_normal(&rng);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / COUNT) < 5 / sqrt(COUNT));
    assert_true(fabs(squares / COUNT - 1) < 5 * sqrt(2.0 / COUNT));
}

RP_TESTS(init)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_kind_is_uniform_by_fan_in),
        cmocka_unit_test(orthogonal_kind_is_orthogonal),
        cmocka_unit_test(same_seed_gives_the_same_parameters),
        cmocka_unit_test(normal_numbers_have_mean_0_and_variance_1),
    };

    return cmocka_run_group_tests_name("init", tests, set_up, tear_down);
}
