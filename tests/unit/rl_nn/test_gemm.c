/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "nn/gemm.h"
#include "reprise/rl/init.h"
#include "support/unit.h"

static const char *const names[] = {"plain", "avx2", "avx512", "cblas"};

/* A product whose matrices are arrays of exactly their size, so that a sanitizer finds any
 * access beyond them. */
typedef struct fixture {
    rp_gemm g;
    float *a, *b, *c, *bias;
} fixture;

static float *random_array(rp_pcg64 *rng, size_t count)
{
    float *x = malloc(count * sizeof *x);

    assert_non_null(x);
    for (size_t i = 0; i < count; i++) x[i] = (float)(rp_pcg64_double(rng) * 2 - 1);
    return x;
}

/* `turns`: 1 transposes a, 2 transposes b. */
static fixture make(size_t m, size_t n, size_t k, int turns, uint64_t seed)
{
    rp_pcg64 rng;
    fixture f;

    rp_pcg64_seed(&rng, seed);
    f.a = random_array(&rng, m * k);
    f.b = random_array(&rng, k * n);
    f.c = random_array(&rng, m * n);
    f.bias = random_array(&rng, n);
    f.g = (rp_gemm){.m = m, .n = n, .k = k, .a = f.a, .b = f.b, .c = f.c, .c_row = n};
    f.g.a_row = turns & 1 ? 1 : k;
    f.g.a_col = turns & 1 ? m : 1;
    f.g.b_row = turns & 2 ? 1 : n;
    f.g.b_col = turns & 2 ? k : 1;
    return f;
}

static void drop(fixture *f)
{
    free(f->a);
    free(f->b);
    free(f->c);
    free(f->bias);
}

static double activate(rp_activation activation, double x)
{
    switch (activation) {
    case RP_RELU: return x < 0 ? 0 : x;
    case RP_TANH: return tanh(x);
    case RP_ELU: return x > 0 ? x : expm1(x);
    case RP_LINEAR: break;
    }
    return x;
}

/* Runs the product and compares it with one in float64. */
static void expect_product(const rp_gemm_ops *ops, const fixture *f)
{
    const rp_gemm *g = &f->g;
    float *before = malloc(g->m * g->n * sizeof *before);

    memcpy(before, f->c, g->m * g->n * sizeof *before);
    ops->run(g);
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            double sum = g->accumulate ? (double)before[i * g->n + j] : 0;

            for (size_t p = 0; p < g->k; p++)
                sum += (double)f->a[i * g->a_row + p * g->a_col] *
                       (double)f->b[p * g->b_row + j * g->b_col];
            if (g->bias != NULL) sum += (double)g->bias[j];
            sum = activate(g->activation, sum);
            if (fabs((double)f->c[i * g->n + j] - sum) > 1e-5 * (1 + sqrt((double)g->k)))
                fail_msg("%s %zu x %zu x %zu at %zu, %zu: %g, expected %g", ops->name, g->m,
                         g->n, g->k, i, j, (double)f->c[i * g->n + j], sum);
        }
    }
    free(before);
}

static void for_each_kernel(void (*run)(const rp_gemm_ops *ops))
{
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const rp_gemm_ops *ops = rp_gemm_find(names[i]);

        if (ops != NULL) run(ops);
    }
}

static void run_shapes(const rp_gemm_ops *ops)
{
    static const size_t sizes[] = {1, 2, 5, 6, 7, 8, 13, 16, 17, 33, 64, 70, 131};
    size_t step = rp_test_length(1, 13);

    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t j = 0; j < COUNT_OF(sizes); j++)
            for (size_t l = (i + j) % step; l < COUNT_OF(sizes); l += step) {
                fixture f =
                    make(sizes[i], sizes[j], sizes[l], (int)((i + j + l) % 4), i + j * 7);

                f.g.accumulate = l % 2 == 1;
                expect_product(ops, &f);
                drop(&f);
            }
}

static void product_equals_sum_in_float64_for_all_shapes(void **state)
{
    (void)state;
    for_each_kernel(run_shapes);
}

/* Wide and deep enough to be cut into blocks, strips and panels that are copied. */
static void run_large(const rp_gemm_ops *ops)
{
    static const size_t shapes[][3] = {{101, 530, 17}, {13, 530, 140}, {770, 20, 30},
                                       {1, 300, 9},    {13, 300, 140}, {9, 3, 1500},
                                       {30, 4, 1030}};

    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        for (int turns = 0; turns < 4; turns++) {
            if (!rp_test_chosen(i + (size_t)turns, 4)) continue;
            fixture f = make(shapes[i][0], shapes[i][1], shapes[i][2], turns, i);

            f.g.accumulate = turns == 1;
            if (turns != 1) f.g.bias = f.bias;
            expect_product(ops, &f);
            drop(&f);
        }
}

static void product_equals_sum_in_float64_for_large_shapes(void **state)
{
    (void)state;
    for_each_kernel(run_large);
}

static void run_bias(const rp_gemm_ops *ops)
{
    for (int activation = RP_LINEAR; activation <= RP_ELU; activation++)
        for (size_t n = 1; n < 80; n += rp_test_length(11, 26))
            for (size_t m = 1; m < 40; m += rp_test_length(12, 36)) {
                fixture f = make(m, n, 140, 0, n);

                f.g.bias = f.bias;
                f.g.activation = (rp_activation)activation;
                expect_product(ops, &f);
                drop(&f);
            }
}

static void bias_and_activation_are_applied_once(void **state)
{
    (void)state;
    for_each_kernel(run_bias);
}

static void run_rows(const rp_gemm_ops *ops)
{
    if (strcmp(ops->name, "cblas") == 0) return; /* makes no such promise */
    for (size_t n = 1; n < 150; n += n < 9 ? 1 : rp_test_length(9, 37)) {
        fixture f = make(67, n, 150, 0, n);

        f.g.bias = f.bias;
        f.g.activation = RP_RELU;
        ops->run(&f.g);
        for (size_t i = 0; i < 67; i += 5) {
            float alone[150];
            rp_gemm one = f.g;

            one.m = 1;
            one.a += i * one.a_row;
            one.c = alone;
            ops->run(&one);
            assert_memory_equal(alone, f.c + i * n, n * sizeof *alone);
        }
        drop(&f);
    }
}

static void a_row_alone_gives_the_bits_of_the_batch(void **state)
{
    (void)state;
    for_each_kernel(run_rows);
}

static void run_gaps(const rp_gemm_ops *ops)
{
    enum { ROWS = 20, WIDE = 100 };
    float c[ROWS * WIDE];

    for (size_t n = 1; n < WIDE; n += 7) {
        fixture f = make(ROWS, n, 9, 0, n);

        for (size_t i = 0; i < COUNT_OF(c); i++) c[i] = 12345;
        f.g.c = c;
        f.g.c_row = WIDE;
        ops->run(&f.g);
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = n; j < WIDE; j++) assert_true(c[i * WIDE + j] == 12345.0F);
        drop(&f);
    }
}

static void numbers_beyond_a_row_of_c_stay(void **state)
{
    (void)state;
    for_each_kernel(run_gaps);
}

static void run_nan(const rp_gemm_ops *ops)
{
    for (size_t n = 1; n <= 33; n += 16) {
        fixture f = make(17, n, 3, 0, n);

        f.a[0] = NAN;
        f.g.activation = RP_RELU;
        ops->run(&f.g);
        assert_true(f.c[0] != f.c[0]);
        assert_true(f.c[n] == f.c[n]);
        drop(&f);
    }
}

static void a_nan_passes_relu(void **state)
{
    (void)state;
    for_each_kernel(run_nan);
}

static void an_unknown_kernel_is_not_found(void **state)
{
    (void)state;
    assert_null(rp_gemm_find("mkl"));
    assert_non_null(rp_gemm_find("plain"));
    assert_non_null(rp_gemm_best());
}

RP_TESTS(gemm)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_equals_sum_in_float64_for_all_shapes),
        cmocka_unit_test(product_equals_sum_in_float64_for_large_shapes),
        cmocka_unit_test(bias_and_activation_are_applied_once),
        cmocka_unit_test(a_row_alone_gives_the_bits_of_the_batch),
        cmocka_unit_test(numbers_beyond_a_row_of_c_stay),
        cmocka_unit_test(a_nan_passes_relu),
        cmocka_unit_test(an_unknown_kernel_is_not_found),
    };

    return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
