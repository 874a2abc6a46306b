/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated machine of 64 cores, on which picks are compared with the best of all splits.
 *
 * The machine has what the model of split.h has not: actors and learners share a lock of the
 * replay, so that each slows the other, and learners meet, which takes longer the more they
 * are. The curves are measured on it as on a real one, with noise: actors alone and learners
 * alone, at 1, 2, 4, ... threads. All times are made up: they have the size of real ones, but
 * none was measured. */
#include <math.h>
#include <stdio.h>

#include "reprise/rl/random.h"
#include "reprise/rl/split.h"
#include "support/unit.h"

enum { CORES = 64, POINTS = 16, HALVINGS = 50 };

/* Seconds. */
typedef struct machine {
    double step, insert; /* of an actor: by itself; under the lock */
    double draw;         /* of an update: a batch and its priorities, under the lock */
    double serial;       /* of an update: what one learner does */
    double gradient;     /* of an update: what all learners share */
    double meeting;      /* for each doubling of learners */
    double interval;     /* steps for each update */
} machine;

/* Whether actors make `steps` and learners `updates` a second, with waits for the lock as of a
 * queue with one server: a share 1 / (1 - busy) longer. No learners: 0. */
static bool can_make(const machine *m, int64_t actors, int64_t learners, double steps,
                     double updates)
{
    double busy = steps * m->insert + updates * m->draw, slower, step, update;

    if (busy >= 1) return false;
    slower = 1 / (1 - busy);
    step = m->step + m->insert * (actors + learners > 1 ? slower : 1);
    update =
        m->draw * (actors > 0 ? slower : 1) + m->serial +
        (learners > 0 ? m->gradient / (double)learners + m->meeting * log2((double)learners)
                      : 0);
    return steps * step <= (double)actors && updates * update <= (learners > 0 ? 1 : 0);
}

/* The truth: the most steps a second of a split, or of one kind of threads alone. */
static double run(const machine *m, int64_t actors, int64_t learners)
{
    double low = 0, high = 1e9;

    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        double steps = actors > 0 ? middle : 0, updates = learners > 0 ? middle : 0;

        if (actors > 0) updates /= m->interval;
        if (actors > 0 && learners == 0) updates = 0;
        if (can_make(m, actors, learners, steps, updates))
            low = middle;
        else
            high = middle;
    }
    return low;
}

static rp_rate_curve measure(const machine *m, bool is_acting, double noise, rp_pcg64 *rng)
{
    rp_rate_point points[POINTS];
    static rp_rate_curve curve;
    size_t count = 0;
    rp_error err;

    for (int64_t x = 1;; x = 2 * x < CORES - 1 ? 2 * x : CORES - 1) {
        double rate = is_acting ? run(m, x, 0) : run(m, 0, x);

        points[count++] =
            (rp_rate_point){x, rate * rp_pcg64_uniform(rng, 1 - noise, 1 + noise)};
        if (x == CORES - 1) break;
    }
    assert_ok_err(rp_rate_curve_fill(&curve, points, count, CORES - 1, &err), &err);
    return curve;
}

/* The share of the best split that the pick makes, on the machine. */
static double share_of_best(const machine *m, double noise, rp_pcg64 *rng)
{
    static rp_rate_curve acting, learning;
    rp_split_options o = {.acting = &acting,
                          .learning = &learning,
                          .interval = m->interval,
                          .cores = CORES};
    double best = 0;
    rp_split pick;
    rp_error err;

    acting = measure(m, true, noise, rng);
    learning = measure(m, false, noise, rng);
    assert_ok_err(rp_split_pick(&o, &pick, &err), &err);
    for (int64_t a = 1; a < CORES; a++)
        for (int64_t l = 1; a + l <= CORES; l++) best = fmax(best, run(m, a, l));
    return run(m, pick.actors, pick.learners) / best;
}

/* Made up, each with the balance of acting and learning that its comment names. */
static const machine machines[] = {
    {16e-6, 1e-6, 8e-6, 10e-6, 80e-6, 1e-6, 4},    /* small networks */
    {16e-6, 1e-6, 60e-6, 40e-6, 3e-3, 4e-6, 4},    /* large networks */
    {8e-6, 1e-6, 8e-6, 10e-6, 80e-6, 1e-6, 1},     /* fast steps, an update for each */
    {20e-6, 1e-6, 16e-6, 20e-6, 250e-6, 1e-6, 1},  /* two networks */
    {33e-6, 1e-6, 12e-6, 10e-6, 120e-6, 1e-6, 1},  /* physics */
    {150e-6, 2e-6, 40e-6, 40e-6, 20e-3, 10e-6, 4}, /* images */
    {2e-3, 2e-6, 8e-6, 10e-6, 80e-6, 1e-6, 0.25},  /* a slow simulator, four updates a step */
};
enum { MACHINES = sizeof machines / sizeof machines[0] };

static void picks_on_64_cores_are_within_a_tenth_of_the_best(void **state)
{
    (void)state;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 64);
    for (size_t i = 0; i < MACHINES; i++)
        for (int noise = 0; noise <= 2; noise++) {
            double share = share_of_best(&machines[i], noise * 0.015, &rng);

            if (share < 0.9) print_error("machine %zu, noise %d: %.3f\n", i, noise, share);
            assert_true(share >= 0.9 && share <= 1);
        }
}

static void picks_on_random_machines_are_within_a_tenth_of_the_best(void **state)
{
    (void)state;
    double least = 1;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 65);
    for (size_t i = rp_test_length(40, 4); i > 0; i--) {
        const machine m = {.step = 1e-6 * pow(10, rp_pcg64_uniform(&rng, 1, 3)),
                           .insert = 1e-6 * rp_pcg64_uniform(&rng, 0.1, 2),
                           .draw = 1e-6 * rp_pcg64_uniform(&rng, 1, 20),
                           .serial = 1e-6 * rp_pcg64_uniform(&rng, 5, 50),
                           .gradient = 1e-6 * pow(10, rp_pcg64_uniform(&rng, 1.5, 4)),
                           .meeting = 1e-6 * rp_pcg64_uniform(&rng, 0.5, 5),
                           .interval = pow(2, rp_pcg64_uniform(&rng, -2, 4))};

        least = fmin(least, share_of_best(&m, 0.02, &rng));
    }
    if (least < 0.9) print_error("%.3f of the best\n", least);
    assert_true(least >= 0.9);
}

RP_TESTS(split_machine)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_on_64_cores_are_within_a_tenth_of_the_best),
        cmocka_unit_test(picks_on_random_machines_are_within_a_tenth_of_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
