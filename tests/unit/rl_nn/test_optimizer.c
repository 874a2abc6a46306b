/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "nn/loops.h"
#include "reprise/rl/init.h"
#include "reprise/rl/optimizer.h"
#include "support/unit.h"

enum { SIZE = 1003 };

static void fill(rp_pcg64 *rng, float *x)
{
    for (size_t i = 0; i < SIZE; i++) x[i] = (float)rp_pcg64_normal(rng);
}

static rp_optimizer *make(rp_optimizer_options options)
{
    rp_optimizer *optimizer = NULL;
    rp_error err;

    assert_ok_err(rp_optimizer_new(rp_allocator_default(), SIZE, &options, &optimizer, &err),
                  &err);
    return optimizer;
}

static void wrong_options_are_named(void **state)
{
    static const struct {
        rp_optimizer_options options;
        const char *text;
    } cases[] = {
        {{.rate = 1}, "no kind has the number 0"},
        {{.kind = RP_ADAM, .rate = 0}, "rate must be > 0 and finite, got 0"},
        {{.kind = RP_ADAM, .rate = NAN}, "rate"},
        {{.kind = RP_ADAM, .rate = INFINITY}, "rate"},
        {{.kind = RP_ADAM, .rate = 1, .beta1 = 1}, "beta1 must be in [0, 1), got 1"},
        {{.kind = RP_ADAM, .rate = 1, .beta2 = -1}, "beta2"},
        {{.kind = RP_ADAM, .rate = 1, .momentum = 0.5}, "momentum of Adam is beta1"},
        {{.kind = RP_SGD, .rate = 1, .momentum = 1}, "momentum must be in [0, 1)"},
        {{.kind = RP_SGD, .rate = 1, .centred = true}, "only RMSProp can be centred"},
        {{.kind = RP_SGD, .rate = 1, .epsilon = -1}, "epsilon must be >= 0"},
        {{.kind = RP_SGD, .rate = 1, .max_norm = NAN}, "max_norm must be >= 0"},
    };
    rp_optimizer *optimizer = NULL;
    rp_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_fails(
            rp_optimizer_new(rp_allocator_default(), SIZE, &cases[i].options, &optimizer, &err),
            RP_INVALID, &err, cases[i].text);
    assert_null(optimizer);
    rp_optimizer_free(NULL);
}

static void gradients_are_clipped_by_their_global_norm(void **state)
{
    rp_optimizer *optimizer =
        make((rp_optimizer_options){.kind = RP_SGD, .rate = 1, .max_norm = 2});
    float params[SIZE] = {0}, grads[SIZE];
    rp_pcg64 rng;
    double norm;

    (void)state;
    rp_pcg64_seed(&rng, 1);
    fill(&rng, grads);
    norm = rp_global_norm(grads, SIZE);
    assert_true(norm > 10);
    assert_true(rp_optimizer_step(optimizer, params, grads) == norm);
    assert_true(fabs(rp_global_norm(params, SIZE) - 2) < 1e-4);
    rp_optimizer_free(optimizer);
}

static void a_norm_that_is_not_finite_changes_nothing(void **state)
{
    rp_optimizer *optimizer =
        make((rp_optimizer_options){.kind = RP_ADAM, .rate = 1, .max_norm = 2});
    float params[SIZE] = {0}, grads[SIZE] = {0};

    (void)state;
    grads[SIZE - 1] = NAN;
    assert_true(isnan(rp_optimizer_step(optimizer, params, grads)));
    grads[SIZE - 1] = INFINITY;
    assert_true(isinf(rp_optimizer_step(optimizer, params, grads)));
    for (size_t i = 0; i < SIZE; i++) assert_true(params[i] == 0.0F);
    assert_int_equal(rp_optimizer_get_state(optimizer).steps, 0);
    rp_optimizer_free(optimizer);
}

static void saved_moments_continue_the_run(void **state)
{
    static const rp_optimizer_options kinds[] = {
        {.kind = RP_SGD, .rate = 0.01, .momentum = 0.9},
        {.kind = RP_ADAM, .rate = 0.01},
        {.kind = RP_RMSPROP, .rate = 0.01, .centred = true, .momentum = 0.5},
    };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        rp_optimizer *first = make(kinds[k]), *second = make(kinds[k]);
        rp_optimizer_state from, to;
        float a[SIZE], b[SIZE], grads[SIZE];
        rp_pcg64 rng;

        rp_pcg64_seed(&rng, 1);
        fill(&rng, a);
        for (int i = 0; i < 3; i++) {
            fill(&rng, grads);
            rp_optimizer_step(first, a, grads);
        }
        memcpy(b, a, sizeof b);
        from = rp_optimizer_get_state(first);
        to = rp_optimizer_get_state(second);
        assert_int_equal(from.moment_count, k + 1);
        memcpy(to.moments, from.moments, SIZE * from.moment_count * sizeof *to.moments);
        rp_optimizer_set_steps(second, from.steps);
        fill(&rng, grads);
        rp_optimizer_step(first, a, grads);
        rp_optimizer_step(second, b, grads);
        assert_memory_equal(a, b, sizeof a);
        rp_optimizer_free(first);
        rp_optimizer_free(second);
    }
}

/* The mean square of equal gradients is the square of their mean, and rounding makes either the
 * larger one. */
static void centred_rmsprop_keeps_finite_with_equal_gradients(void **state)
{
    rp_optimizer *optimizer =
        make((rp_optimizer_options){.kind = RP_RMSPROP, .rate = 1e-6, .centred = true});
    float params[SIZE] = {0}, grads[SIZE];

    (void)state;
    for (size_t i = 0; i < SIZE; i++) grads[i] = 0.1F + 0.37F * (float)i;
    for (int step = 0; step < 5000; step++) rp_optimizer_step(optimizer, params, grads);

    for (size_t i = 0; i < SIZE; i++) assert_true(isfinite(params[i]));
    rp_optimizer_free(optimizer);
}

/* Runs every loop of an implementation over the same numbers. */
static void run_loops(const rp_loops *loops, float out[8][SIZE])
{
    float grads[SIZE];
    rp_step step = {
        .count = SIZE, .grads = grads, .by = {0.01F, 0.1F, 0.001F, 0.999F, 0.3F, 1e-8F, 0.9F}};
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 2);
    fill(&rng, grads);
    for (size_t i = 0; i < 8; i++) fill(&rng, out[i]);
    for (size_t i = 0; i < SIZE; i++) out[2][i] = fabsf(out[2][i]) + 30;
    step.params = out[0];
    step.mean = out[1];
    step.square = out[2];
    loops->adam(&step);
    step.velocity = out[3];
    loops->rmsprop(&step);
    loops->sgd(&step);
    loops->relu_backward(grads, out[4], SIZE);
    loops->add(out[5], grads, SIZE);
    loops->blend(out[6], grads, SIZE, 0.01F);
    out[7][0] = (float)loops->square_sum(out[0], SIZE);
    loops->scale(out[7], SIZE, 0.1F);
}

static void loops_of_all_instruction_sets_give_the_same_bits(void **state)
{
    static float plain[8][SIZE], best[8][SIZE];

    (void)state;
    run_loops(&rp_loops_plain, plain);
    run_loops(rp_loops_best(), best);
    assert_memory_equal(plain, best, sizeof plain);
#if defined(RP_LOOPS_X86)
    if (__builtin_cpu_supports("avx2")) {
        run_loops(&rp_loops_avx2, best);
        assert_memory_equal(plain, best, sizeof plain);
    }
#endif
}

static void polyak_moves_the_target_by_the_rate(void **state)
{
    float target[3] = {0, 1, 2}, online[3] = {1, 1, 0};

    (void)state;
    rp_polyak(target, online, 3, 0.25);
    assert_true(target[0] == 0.25F && target[1] == 1.0F && target[2] == 1.5F);
    rp_polyak(target, online, 3, 1);
    assert_memory_equal(target, online, sizeof target);
}

static rp_status allocate_all(const rp_allocator *alloc)
{
    rp_optimizer_options options = {.kind = RP_ADAM, .rate = 1};
    rp_optimizer *optimizer = NULL;
    rp_status st = rp_optimizer_new(alloc, SIZE, &options, &optimizer, NULL);

    rp_optimizer_free(optimizer);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(allocate_all);
}

RP_TESTS(optimizer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(gradients_are_clipped_by_their_global_norm),
        cmocka_unit_test(a_norm_that_is_not_finite_changes_nothing),
        cmocka_unit_test(saved_moments_continue_the_run),
        cmocka_unit_test(centred_rmsprop_keeps_finite_with_equal_gradients),
        cmocka_unit_test(loops_of_all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(polyak_moves_the_target_by_the_rate),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
