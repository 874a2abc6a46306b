/* SPDX-License-Identifier: Apache-2.0 */
#include "reprise/rl/split.h"

#include <math.h>
#include <string.h>

#include "reprise/rl/random.h"
#include "support/unit.h"

enum { MACHINE = 64, CURVES = 6 };

/* Made-up truths: the rate of x threads. */
static double linear(double x)
{
    return 1000 * x;
}
static double flat(double x)
{
    (void)x;
    return 700;
}
static double amdahl(double x)
{
    return 900 / (0.15 + 0.85 / x);
}
static double contended(double x) /* rises to a peak near 10 threads, then falls */
{
    return 1200 * x / (1 + 0.05 * (x - 1) + 0.008 * x * (x - 1));
}
static double falling(double x)
{
    return 5000 / x;
}
static double full(double x) /* a machine of 12 cores: more threads share them */
{
    return 400 * fmin(x, 12);
}

static double (*const truths[CURVES])(double x) = {linear,    flat,    amdahl,
                                                   contended, falling, full};

static const double intervals[] = {0.01, 0.25, 1, 4, 100};
enum { INTERVALS = sizeof intervals / sizeof intervals[0] };

static rp_split_options problem_of(const rp_rate_curve *acting, const rp_rate_curve *learning,
                                   double interval, int64_t cores, bool in_turn)
{
    return (rp_split_options){.acting = acting,
                              .learning = learning,
                              .interval = interval,
                              .cores = cores,
                              .in_turn = in_turn};
}

static rp_rate_curve whole_curve(double (*truth)(double x), int64_t most)
{
    rp_rate_curve c = {.count = most};

    for (int64_t x = 1; x <= most; x++) c.rates[x - 1] = truth((double)x);
    return c;
}

/* Points 1, 2, 4, ... and `most`, each with a relative error below `noise`. */
static size_t measure(double (*truth)(double x), int64_t most, double noise, rp_pcg64 *rng,
                      rp_rate_point *out)
{
    size_t count = 0;

    for (int64_t x = 1;; x = 2 * x < most ? 2 * x : most) {
        out[count++] =
            (rp_rate_point){x, truth((double)x) * rp_pcg64_uniform(rng, 1 - noise, 1 + noise)};
        if (x == most) return count;
    }
}

/* The formulas of the paper, written again. */
static double rate_of(const rp_split_options *o, int64_t actors, int64_t learners)
{
    double acted = o->acting->rates[actors - 1], learned = o->learning->rates[learners - 1];
    double seconds = 1 / acted + 1 / (learned * o->interval);

    if (o->in_turn || o->cores == 1) return 1 / seconds;
    return acted < learned * o->interval ? acted : learned * o->interval;
}

/* The best rate of all splits, by trying each pair of numbers. */
static double best_of(const rp_split_options *o)
{
    double best = 0;

    for (int64_t a = 1; a <= o->acting->count; a++)
        for (int64_t l = 1; l <= o->learning->count; l++) {
            bool fits = o->in_turn      ? a == 1 && l <= o->cores
                        : o->cores == 1 ? a == 1 && l == 1
                                        : a + l <= o->cores;

            assert_int_equal(rp_split_fits(o, a, l), fits);
            if (fits) best = fmax(best, rate_of(o, a, l));
        }
    return best;
}

/* S5 to S7 by exhaustive search. */
static void assert_is_best(const rp_split_options *o, const rp_split *pick)
{
    double best = best_of(o), enough = best * (1 - RP_SPLIT_TIE);

    assert_true(rp_split_fits(o, pick->actors, pick->learners));
    assert_true(pick->steps_per_second == rate_of(o, pick->actors, pick->learners));
    assert_true(pick->steps_per_second >= enough);
    for (int64_t a = 1; a <= o->acting->count; a++)
        for (int64_t l = 1; l <= o->learning->count; l++) {
            int64_t more = a + l - pick->actors - pick->learners;

            if (!rp_split_fits(o, a, l) || rate_of(o, a, l) < enough) continue;
            assert_true(more > 0 || (more == 0 && l >= pick->learners));
        }
}

static void picks_are_the_best_of_all_splits(void **state)
{
    (void)state;
    static const int64_t machines[] = {1, 2, 3, 7, MACHINE};
    static rp_rate_curve acting, learning;
    rp_split pick;
    rp_error err;

    for (size_t a = 0; a < CURVES; a++)
        for (size_t l = 0; l < CURVES; l++)
            for (size_t m = 0; m < sizeof machines / sizeof machines[0]; m++) {
                acting = whole_curve(truths[a], machines[m]);
                learning = whole_curve(truths[l], machines[m]);
                for (size_t i = 0; i < 2 * INTERVALS; i++) {
                    const rp_split_options o = problem_of(&acting, &learning, intervals[i / 2],
                                                          machines[m], i % 2 == 1);

                    assert_ok_err(rp_split_pick(&o, &pick, &err), &err);
                    assert_is_best(&o, &pick);
                }
            }
}

static void picks_from_random_curves_are_the_best(void **state)
{
    (void)state;
    static rp_rate_curve acting, learning;
    rp_pcg64 rng;
    rp_split pick;
    rp_error err;

    rp_pcg64_seed(&rng, 25);
    for (size_t round = rp_test_length(500, 50); round > 0; round--) {
        rp_split_options o =
            problem_of(&acting, &learning, pow(10, rp_pcg64_uniform(&rng, -3, 3)), 0, false);

        acting.count = 1 + (int64_t)rp_pcg64_uniform(&rng, 0, 20);
        learning.count = 1 + (int64_t)rp_pcg64_uniform(&rng, 0, 20);
        for (int64_t x = 0; x < acting.count; x++)
            acting.rates[x] = pow(10, rp_pcg64_uniform(&rng, 1, 3));
        for (int64_t x = 0; x < learning.count; x++)
            learning.rates[x] = pow(10, rp_pcg64_uniform(&rng, 1, 3));
        o.cores = 1 + (int64_t)rp_pcg64_uniform(&rng, 0, 30);
        o.in_turn = round % 4 == 0;

        assert_ok_err(rp_split_pick(&o, &pick, &err), &err);
        assert_is_best(&o, &pick);
    }
}

/* Amdahl's law is found again from few points: exactly between and beyond them. */
static void filled_curves_follow_amdahls_law(void **state)
{
    (void)state;
    static rp_rate_curve curve;
    const rp_rate_point points[] = {{8, amdahl(8)}, {2, amdahl(2)}, {3, amdahl(3)}};
    rp_error err;

    assert_ok_err(rp_rate_curve_fill(&curve, points, 3, MACHINE, &err), &err);

    assert_true(fabs(curve.serial - 0.15) < 1e-9);
    for (int64_t x = 1; x <= MACHINE; x++)
        assert_true(fabs(curve.rates[x - 1] / amdahl((double)x) - 1) < 1e-9);
}

static void filled_curves_hold_their_invariants(void **state)
{
    (void)state;
    static rp_rate_curve curve;
    rp_rate_point points[16];
    rp_pcg64 rng;
    rp_error err;

    rp_pcg64_seed(&rng, 1);
    for (size_t round = rp_test_length(2000, 200); round > 0; round--) {
        size_t count = 0, want = 1 + (size_t)rp_pcg64_uniform(&rng, 0, 8);
        double spread = round % 3 == 0 ? 9 : round % 3 == 1 ? 0.5 : 1e-15;
        int64_t most = 1 + (int64_t)rp_pcg64_uniform(&rng, 0, 100);

        for (int64_t x = 1; count < want; x += 1 + (int64_t)rp_pcg64_uniform(&rng, 0, 12))
            points[count++] =
                (rp_rate_point){x, pow(10, rp_pcg64_uniform(&rng, 3 - spread, 3 + spread))};
        for (size_t i = 0; i < count; i++) { /* in any order */
            size_t other = (size_t)rp_pcg64_uniform(&rng, 0, (double)count);
            rp_rate_point swapped = points[i];

            points[i] = points[other];
            points[other] = swapped;
        }
        assert_ok_err(rp_rate_curve_fill(&curve, points, count, most, &err), &err);
        assert_int_equal(curve.count, most);
        assert_true(curve.serial >= 0 && curve.serial <= 1);
        assert_true(rp_rate_curve_check(&curve, points, count));
    }
}

static void curves_beyond_falling_points_are_level(void **state)
{
    (void)state;
    static rp_rate_curve curve;
    const rp_rate_point points[] = {{1, 100}, {2, 150}, {4, 120}};
    rp_error err;

    assert_ok_err(rp_rate_curve_fill(&curve, points, 3, 8, &err), &err);

    assert_true(curve.rates[2] < 150 && curve.rates[2] > 120);
    for (int x = 5; x <= 8; x++) assert_true(curve.rates[x - 1] == 120);
}

static void one_point_grows_with_the_threads(void **state)
{
    (void)state;
    static rp_rate_curve curve;
    const rp_rate_point point = {2, 10};
    rp_error err;

    assert_ok_err(rp_rate_curve_fill(&curve, &point, 1, 4, &err), &err);

    assert_true(fabs(curve.rates[0] - 5) < 1e-9 && fabs(curve.rates[3] - 20) < 1e-9);
}

/* Squares of such rates leave no digit to the fit. */
static void rates_of_all_sizes_have_a_curve(void **state)
{
    (void)state;
    const rp_rate_point points[] = {{301, 1.899235802274611e-06}, {558, 25642357313.880264}};
    static rp_rate_curve curve;
    rp_error err;

    assert_ok_err(rp_rate_curve_fill(&curve, points, 2, 600, &err), &err);
    assert_true(rp_rate_curve_check(&curve, points, 2));
    assert_true(isfinite(curve.serial) && curve.rates[599] >= points[1].rate);
}

static void the_checker_finds_broken_curves(void **state)
{
    (void)state;
    static rp_rate_curve good, bad;
    const rp_rate_point points[] = {{1, 100}, {4, 300}};
    const struct {
        int64_t x;
        double rate;
    } wrong[] = {{1, 101}, {2, (double)NAN}, {2, 0},   {2, 1e13}, {2, 99},
                 {3, 301}, {4, 299},         {5, 299}, {6, 1000}};
    rp_error err;

    assert_ok_err(rp_rate_curve_fill(&good, points, 2, 8, &err), &err);
    assert_true(rp_rate_curve_check(&good, points, 2));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bad = good;
        bad.rates[wrong[i].x - 1] = wrong[i].rate;
        assert_false(rp_rate_curve_check(&bad, points, 2));
    }
    bad.count = 0;
    assert_false(rp_rate_curve_check(&bad, NULL, 0));
    bad.count = RP_SPLIT_MAX_CORES + 1;
    assert_false(rp_rate_curve_check(&bad, NULL, 0));
}

/* With points that are off by `noise` at most, the pick of a curve that Amdahl's law describes
 * is off by twice that, and by a tie: the errors of two splits that are compared. */
static void noise_costs_no_more_than_its_size(void **state)
{
    (void)state;
    static double (*const laws[])(double x) = {linear, flat, amdahl};
    static rp_rate_curve acting, learning, true_acting, true_learning;
    const double noise = 0.04;
    rp_rate_point points[16];
    rp_pcg64 rng;
    rp_split pick;
    rp_error err;

    rp_pcg64_seed(&rng, 3);
    for (size_t round = rp_test_length(400, 40); round > 0; round--) {
        double (*a)(double x) = laws[round % 3], (*l)(double x) = laws[round / 3 % 3];
        double interval = pow(10, rp_pcg64_uniform(&rng, -2, 2));
        const rp_split_options truth =
            problem_of(&true_acting, &true_learning, interval, MACHINE, false);
        const rp_split_options model = problem_of(&acting, &learning, interval, MACHINE, false);
        size_t count = measure(a, MACHINE, noise, &rng, points);

        assert_ok(rp_rate_curve_fill(&acting, points, count, MACHINE, &err));
        count = measure(l, MACHINE, noise, &rng, points);
        assert_ok(rp_rate_curve_fill(&learning, points, count, MACHINE, &err));
        true_acting = whole_curve(a, MACHINE);
        true_learning = whole_curve(l, MACHINE);
        assert_ok(rp_split_pick(&model, &pick, &err));
        assert_true(rate_of(&truth, pick.actors, pick.learners) >=
                    best_of(&truth) * (1 - RP_SPLIT_TIE) * (1 - noise) / (1 + noise));
    }
}

static void hostile_points_are_refused(void **state)
{
    (void)state;
    static rp_rate_curve curve;
    static rp_rate_point many[RP_SPLIT_MAX_CORES + 1];
    const struct {
        rp_rate_point points[2];
        size_t count;
        int64_t most;
        const char *text;
    } bad[] = {
        {{{1, (double)NAN}}, 1, 4, "split: the rate of 1 threads must be"},
        {{{1, 0}}, 1, 4, "got 0; measure for longer"},
        {{{1, -5}}, 1, 4, "got -5"},
        {{{1, (double)INFINITY}}, 1, 4, "got inf"},
        {{{1, 1e300}}, 1, 4, "got 1e+300"},
        {{{1, 1e-300}}, 1, 4, "got 1e-300"},
        {{{0, 5}}, 1, 4, "threads must be 1 to 1024, got 0"},
        {{{-1, 5}}, 1, 4, "got -1"},
        {{{INT64_MAX, 5}}, 1, 4, "got 9223372036854775807"},
        {{{3, 5}, {3, 6}}, 2, 4, "3 threads were measured twice"},
        {{{1, 5}}, 0, 4, "needs 1 to 1024 points, got 0"},
        {{{1, 5}}, 1, 0, "has 1 to 1024 threads, got 0"},
        {{{1, 5}}, 1, INT64_MIN, "got -9223372036854775808"},
        {{{1, 5}}, 1, 1025, "got 1025"},
    };
    rp_error err;

    curve.count = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(
            rp_rate_curve_fill(&curve, bad[i].points, bad[i].count, bad[i].most, &err),
            RP_INVALID);
        assert_non_null(strstr(err.text, bad[i].text));
    }
    assert_int_equal(rp_rate_curve_fill(&curve, many, RP_SPLIT_MAX_CORES + 1, 1, &err),
                     RP_INVALID);
    assert_int_equal(curve.count, 77);
}

static void hostile_options_are_refused(void **state)
{
    (void)state;
    static rp_rate_curve good, bad;
    const double intervals_out[] = {0, -1, 1e-7, 1e10, (double)NAN, (double)INFINITY};
    const int64_t cores_out[] = {0, -1, RP_SPLIT_MAX_CORES + 1, INT64_MAX, INT64_MIN};
    rp_split pick = {.actors = 77};
    rp_split_options o;
    rp_error err;

    good = bad = whole_curve(amdahl, 4);
    bad.rates[2] = (double)NAN;
    for (size_t i = 0; i < sizeof intervals_out / sizeof intervals_out[0]; i++) {
        o = problem_of(&good, &good, intervals_out[i], 4, false);
        assert_int_equal(rp_split_pick(&o, &pick, &err), RP_INVALID);
        assert_non_null(strstr(err.text, "steps for each update must be"));
    }
    for (size_t i = 0; i < sizeof cores_out / sizeof cores_out[0]; i++) {
        o = problem_of(&good, &good, 1, cores_out[i], false);
        assert_int_equal(rp_split_pick(&o, &pick, &err), RP_INVALID);
        assert_non_null(strstr(err.text, "cores must be 1 to 1024"));
    }
    o = problem_of(&bad, &good, 1, 4, false);
    assert_int_equal(rp_split_pick(&o, &pick, &err), RP_INVALID);
    assert_non_null(strstr(err.text, "a curve of actors"));
    o = problem_of(&good, &bad, 1, 4, false);
    assert_int_equal(rp_split_pick(&o, &pick, &err), RP_INVALID);
    assert_non_null(strstr(err.text, "a curve of learners"));
    assert_int_equal(pick.actors, 77);
}

RP_TESTS(split)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_are_the_best_of_all_splits),
        cmocka_unit_test(picks_from_random_curves_are_the_best),
        cmocka_unit_test(filled_curves_follow_amdahls_law),
        cmocka_unit_test(filled_curves_hold_their_invariants),
        cmocka_unit_test(curves_beyond_falling_points_are_level),
        cmocka_unit_test(one_point_grows_with_the_threads),
        cmocka_unit_test(rates_of_all_sizes_have_a_curve),
        cmocka_unit_test(the_checker_finds_broken_curves),
        cmocka_unit_test(noise_costs_no_more_than_its_size),
        cmocka_unit_test(hostile_points_are_refused),
        cmocka_unit_test(hostile_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
