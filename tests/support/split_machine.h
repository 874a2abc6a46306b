/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated machine on which actors and learners run, for tests of splits.
 *
 * It has what the model of split.h has not: actors and learners share a lock of the replay, so
 * that each slows the other, and learners meet, which takes longer the more they are. */
#ifndef RP_TEST_SPLIT_MACHINE_H
#define RP_TEST_SPLIT_MACHINE_H

#include <math.h>

#include "reprise/rl/random.h"
#include "reprise/rl/split.h"

/* Seconds. */
typedef struct split_machine {
    double step, insert; /* of an actor: by itself; under the lock */
    double draw;         /* of an update: a batch and its priorities, under the lock */
    double serial;       /* of an update: what one learner does */
    double gradient;     /* of an update: what all learners share */
    double meeting;      /* for each doubling of learners */
    double interval;     /* steps for each update */
} split_machine;

/* Times of a step and of an update at these rates. Waits for the lock are those of a queue with
 * one server: a share 1 / (1 - busy) longer. False: the lock is busy all the time. */
static inline bool split_machine_times(const split_machine *m, int64_t actors, int64_t learners,
                                       double steps, double *step, double *update)
{
    double updates = learners > 0 ? steps / m->interval : 0;
    double busy = (actors > 0 ? steps * m->insert : 0) + updates * m->draw;
    double slower = 1 / (1 - busy);

    if (busy >= 1) return false;
    *step = m->step + m->insert * (actors + learners > 1 ? slower : 1);
    *update = m->draw * (actors > 0 ? slower : 1) + m->serial;
    if (learners > 0)
        *update += m->gradient / (double)learners + m->meeting * log2((double)learners);
    return true;
}

/* The truth: the most steps a second of a split, or of one kind of threads alone; of learners
 * alone, the steps that their updates are for. */
static inline double split_machine_run(const split_machine *m, int64_t actors, int64_t learners)
{
    double low = 0, high = 1e9, step, update;

    for (int i = 0; i < 50; i++) {
        double steps = (low + high) / 2;

        if (split_machine_times(m, actors, learners, steps, &step, &update) &&
            (actors == 0 || steps * step <= (double)actors) &&
            (learners == 0 || steps / m->interval * update <= 1))
            low = steps;
        else
            high = steps;
    }
    return low;
}

/* The best of all splits of these cores. */
static inline rp_split split_machine_best(const split_machine *m, int64_t cores)
{
    rp_split best = {0};

    for (int64_t a = 1; a < cores; a++)
        for (int64_t l = 1; a + l <= cores; l++) {
            double rate = split_machine_run(m, a, l);

            if (rate > best.steps_per_second) best = (rp_split){a, l, rate};
        }
    return best;
}

/* Measures a curve as on a real machine: one role alone, with 1, 2, 4, ... threads, each rate
 * with a relative error of at most `noise`. Returns the status of rp_rate_curve_fill(). */
static inline rp_status split_machine_measure(const split_machine *m, bool is_acting,
                                              int64_t cores, double noise, rp_pcg64 *rng,
                                              rp_rate_curve *out, rp_error *err)
{
    int64_t most = cores > 1 ? cores - 1 : 1;
    rp_rate_point points[16];
    size_t count = 0;

    for (int64_t x = 1;; x = 2 * x < most ? 2 * x : most) {
        double rate =
            is_acting ? split_machine_run(m, x, 0) : split_machine_run(m, 0, x) / m->interval;

        points[count++] =
            (rp_rate_point){x, rate * rp_pcg64_uniform(rng, 1 - noise, 1 + noise)};
        if (x == most) break;
    }
    return rp_rate_curve_fill(out, points, count, most, err);
}

#endif
