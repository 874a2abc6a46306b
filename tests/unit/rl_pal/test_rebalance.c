/* SPDX-License-Identifier: Apache-2.0 */
/* Rebalancing on simulated machines (support/split_machine.h): it comes within a tenth of the
 * best split, follows a machine that changes, and then leaves the split as it is. */
#include "reprise/rl/rebalance.h"

#include <stdio.h>
#include <string.h>

#include "support/split_machine.h"
#include "support/unit.h"

enum { LOOK_MS = 500, HOUR_S = 3600 };
static const int64_t MS_NS = 1000000;

/* A program on a machine. */
typedef struct program {
    split_machine machine;
    int64_t cores;
    double noise; /* relative, of rates and waits of each look */
    rp_pcg64 rng;
    int64_t now_ns;
    double steps;
    rp_rebalance rebalance;
    rp_rebalance_move last;
} program;

static void begin(program *p, const split_machine *m, int64_t cores, double noise,
                  uint64_t seed)
{
    static rp_rate_curve acting, learning;
    rp_rebalance_options o = {
        .problem = {
            .acting = &acting, .learning = &learning, .interval = m->interval, .cores = cores}};
    rp_error err;

    *p = (program){.machine = *m, .cores = cores, .noise = noise, .now_ns = 77 * MS_NS};
    rp_pcg64_seed(&p->rng, seed);
    assert_ok_err(split_machine_measure(m, true, cores, noise, &p->rng, &acting, &err), &err);
    assert_ok_err(split_machine_measure(m, false, cores, noise, &p->rng, &learning, &err),
                  &err);
    assert_ok_err(rp_rebalance_init(&p->rebalance, &o, &err), &err);
    memset(&acting, 0, sizeof acting); /* it has a copy */
    memset(&learning, 0, sizeof learning);
}

/* Runs for some seconds. Returns the number of moves. */
static int64_t go_on(program *p, double seconds)
{
    int64_t looks = (int64_t)(seconds * 1000 / LOOK_MS), moves = p->rebalance.moves;
    const rp_split *s = &p->rebalance.split;
    double rate = split_machine_run(&p->machine, s->actors, s->learners);

    for (int64_t i = 0; i < looks; i++) {
        double noise = rp_pcg64_uniform(&p->rng, 1 - p->noise, 1 + p->noise);
        double step = 0, update = 0;
        rp_rebalance_counts counts = {0};

        assert_true(
            split_machine_times(&p->machine, s->actors, s->learners, rate, &step, &update));
        p->now_ns += LOOK_MS * MS_NS;
        p->steps += rate * noise * LOOK_MS / 1000;
        counts.steps = (int64_t)p->steps;
        counts.updates = (int64_t)(p->steps / p->machine.interval);
        counts.actors_wait = 1 - rate * step / (double)s->actors +
                             rp_pcg64_uniform(&p->rng, -p->noise, p->noise);
        counts.learner_waits = 1 - rate / p->machine.interval * update +
                               rp_pcg64_uniform(&p->rng, -p->noise, p->noise);
        if (!rp_rebalance_look(&p->rebalance, p->now_ns, &counts, &p->last)) continue;
        assert_true(s->actors >= 1 && s->learners >= 1 && s->actors + s->learners <= p->cores);
        assert_true(s->actors != p->last.from.actors || s->learners != p->last.from.learners);
        rate = split_machine_run(&p->machine, s->actors, s->learners);
    }
    return p->rebalance.moves - moves;
}

/* The share of the best split that the one in use makes. */
static double share(const program *p)
{
    return split_machine_run(&p->machine, p->rebalance.split.actors,
                             p->rebalance.split.learners) /
           split_machine_best(&p->machine, p->cores).steps_per_second;
}

static void assert_settled(program *p, int64_t most_moves, const char *what)
{
    int64_t moves = go_on(p, 900), later = go_on(p, HOUR_S);

    if (moves > most_moves || later > 0 || share(p) < 0.9)
        print_error("%s, %d cores: %d moves, then %d, %.3f of the best, %d + %d\n", what,
                    (int)p->cores, (int)moves, (int)later, share(p),
                    (int)p->rebalance.split.actors, (int)p->rebalance.split.learners);
    assert_true(moves <= most_moves);
    assert_int_equal(later, 0);
    assert_true(share(p) >= 0.9);
}

static const int64_t machine_cores[] = {2, 8, 64};
enum { MACHINES = sizeof machine_cores / sizeof machine_cores[0], MOST_MOVES = 8 };

static const split_machine usual = {20e-6, 1e-6, 8e-6, 10e-6, 300e-6, 1e-6, 4};

/* Machines whose actors and learners are more or less in balance. */
static split_machine random_machine(rp_pcg64 *rng)
{
    return (split_machine){.step = 1e-6 * pow(10, rp_pcg64_uniform(rng, 1, 3)),
                           .insert = 1e-6 * rp_pcg64_uniform(rng, 0.1, 2),
                           .draw = 1e-6 * rp_pcg64_uniform(rng, 1, 20),
                           .serial = 1e-6 * rp_pcg64_uniform(rng, 5, 50),
                           .gradient = 1e-6 * pow(10, rp_pcg64_uniform(rng, 1.5, 4)),
                           .meeting = 1e-6 * rp_pcg64_uniform(rng, 0.5, 5),
                           .interval = pow(2, rp_pcg64_uniform(rng, -2, 4))};
}

static void a_split_that_is_right_stays(void **state)
{
    (void)state;
    static program p;

    for (size_t i = 0; i < MACHINES; i++) {
        begin(&p, &usual, machine_cores[i], 0.05, i);
        assert_true(rp_rebalance_can_move(&p.rebalance) == (machine_cores[i] > 2));
        assert_settled(&p, machine_cores[i] > 2 ? 2 : 0, "usual");
    }
}

static void steps_in_speed_are_followed(void **state)
{
    (void)state;
    static program p;
    const double speeds[][2] = {{8, 1}, {0.25, 1}, {1, 6}, {1, 0.3}, {3, 3}};

    for (size_t i = 0; i < MACHINES; i++)
        for (size_t k = 0; k < sizeof speeds / sizeof speeds[0]; k++) {
            begin(&p, &usual, machine_cores[i], 0.05, 10 * i + k);
            (void)go_on(&p, 120);
            p.machine.step *= speeds[k][0];
            p.machine.gradient *= speeds[k][1];
            assert_settled(&p, MOST_MOVES, "after a step");
            p.machine = usual;
            assert_settled(&p, MOST_MOVES, "and back");
        }
}

static void random_machines_that_change_are_followed(void **state)
{
    (void)state;
    static program p;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 3);
    for (size_t i = rp_test_length(30, 3); i > 0; i--) {
        split_machine m = random_machine(&rng);
        double change;

        begin(&p, &m, machine_cores[i % MACHINES], rp_pcg64_uniform(&rng, 0, 0.06), i);
        assert_settled(&p, MOST_MOVES, "random");
        change = pow(2, rp_pcg64_uniform(&rng, -1, 1));
        p.machine.step *= pow(10, rp_pcg64_uniform(&rng, -1, 1));
        p.machine.draw *= change;
        p.machine.serial *= change;
        p.machine.gradient *= change;
        p.machine.meeting *= change;
        assert_settled(&p, MOST_MOVES, "random, changed");
    }
}

/* The curves promise what the machine does not keep: its cores are fewer than were said. */
static void a_machine_that_keeps_no_promise_is_left_alone(void **state)
{
    (void)state;
    static program p;

    begin(&p, &usual, 8, 0.05, 4);
    p.machine.insert = 30e-6; /* the lock is all that counts */
    p.machine.draw = 120e-6;
    assert_true(go_on(&p, HOUR_S) <= MOST_MOVES);
    assert_int_equal(go_on(&p, HOUR_S), 0);
}

static void a_slow_drift_is_followed(void **state)
{
    (void)state;
    static program p;

    begin(&p, &usual, 8, 0.03, 5);
    for (int i = 0; i < 60; i++) { /* 30 times as slow after an hour */
        p.machine.step *= 1.0584;
        (void)go_on(&p, 60);
        assert_true(p.rebalance.moves <= 8);
    }
    assert_settled(&p, 2, "drift");
}

static void a_move_says_why(void **state)
{
    (void)state;
    static program p;

    begin(&p, &usual, 8, 0, 6);
    (void)go_on(&p, 20);
    assert_true(p.rebalance.view.steps_per_second > 0);
    p.machine.step *= 20;
    assert_int_equal(go_on(&p, 22), 1);
    assert_true(p.last.to.actors > p.last.from.actors);
    assert_true(p.last.view.learner_waits > 0.3 && p.last.view.actors_wait < 0.05);
    assert_true(p.last.to.steps_per_second > 1.06 * p.last.from.steps_per_second);
    assert_true(p.last.view.steps_per_second > 0.99 * p.last.from.steps_per_second);
}

static void given_numbers_stay(void **state)
{
    (void)state;
    static program p;
    static rp_rate_curve acting, learning;
    rp_rebalance_options o = {.problem = {.acting = &acting,
                                          .learning = &learning,
                                          .interval = usual.interval,
                                          .cores = 8,
                                          .only_learners = 2}};
    rp_error err;

    begin(&p, &usual, 8, 0, 7);
    acting = p.rebalance.acting;
    learning = p.rebalance.learning;
    assert_ok_err(rp_rebalance_init(&p.rebalance, &o, &err), &err);
    assert_int_equal(p.rebalance.split.learners, 2);
    p.machine.step *= 20;
    (void)go_on(&p, 600);
    assert_int_equal(p.rebalance.split.learners, 2);
    assert_int_equal(p.rebalance.split.actors, 6);
    o.problem.only_actors = 7;
    assert_int_equal(rp_rebalance_init(&p.rebalance, &o, &err), RP_INVALID);
    assert_non_null(strstr(err.text, "no split of 8 cores has 7 actors and 2 learners"));
}

static void a_move_that_could_not_be_made_is_the_last(void **state)
{
    (void)state;
    static program p;
    rp_split before;

    begin(&p, &usual, 8, 0, 8);
    (void)go_on(&p, 20);
    before = p.rebalance.split;
    p.machine.step *= 20;
    assert_int_equal(go_on(&p, 22), 1);
    rp_rebalance_stay(&p.rebalance, &p.last);
    assert_int_equal(p.rebalance.split.actors, before.actors);
    assert_int_equal(go_on(&p, HOUR_S), 0);
}

static void few_counts_make_a_longer_window(void **state)
{
    (void)state;
    static program p;
    rp_rebalance_counts counts = {0};
    rp_rebalance_move move;

    begin(&p, &usual, 8, 0, 9);
    for (int i = 0; i < 100; i++) { /* an update in ten seconds, at last 10 */
        counts.updates = i / 10;
        counts.steps = 4 * i;
        assert_false(rp_rebalance_look(&p.rebalance, i * 1000 * MS_NS, &counts, &move));
        assert_true((p.rebalance.view.steps_per_second > 0) == (i >= 80));
    }
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    static program p;
    rp_rebalance_options o;
    rp_error err;

    begin(&p, &usual, 8, 0, 1);
    o = p.rebalance.options;
    o.problem.acting = &p.rebalance.acting;
    o.problem.learning = &p.rebalance.learning;
    o.window_ns = -1;
    assert_int_equal(rp_rebalance_init(&p.rebalance, &o, &err), RP_INVALID);
    o.window_ns = 0;
    o.problem.in_turn = true;
    assert_int_equal(rp_rebalance_init(&p.rebalance, &o, &err), RP_INVALID);
}

RP_TESTS(rebalance)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_that_is_right_stays),
        cmocka_unit_test(steps_in_speed_are_followed),
        cmocka_unit_test(random_machines_that_change_are_followed),
        cmocka_unit_test(a_machine_that_keeps_no_promise_is_left_alone),
        cmocka_unit_test(a_slow_drift_is_followed),
        cmocka_unit_test(a_move_says_why),
        cmocka_unit_test(given_numbers_stay),
        cmocka_unit_test(a_move_that_could_not_be_made_is_the_last),
        cmocka_unit_test(few_counts_make_a_longer_window),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
