/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads should act and how many should learn: the design space exploration of Zhang,
 * Meng and Prasanna (Parallel Actors and Learners, 2021).
 *
 *   f_a(x)   steps a second of x threads that act        a curve, from measured points
 *   f_l(x)   updates a second of x threads that learn    a curve, from measured points
 *
 * An agent that wants one update for every `interval` steps makes
 *
 *   min(f_a(x_a), interval * f_l(x_l))   steps a second
 *
 * if its x_a actors and x_l learners run at the same time on cores of their own, and
 *
 *   1 / (1 / f_a(1) + 1 / (interval * f_l(x_l)))
 *
 * if it acts and learns in turn on one thread, whose updates x_l learners share. An actor and a
 * learner that share a single core act and learn in turn as well.
 *
 *   rp_rate_curve_fill(&acting, points, 3, cores, &err);      measured with 1, 2 and 4 threads
 *   rp_rate_curve_fill(&learning, others, 3, cores, &err);
 *   rp_split_pick(&(rp_split_options){.acting = &acting, .learning = &learning, .interval = 4,
 *                                     .cores = cores}, &split, &err);
 *
 * Pure: no memory, no clock, no thread. profile.h measures the points. */
#ifndef REPRISE_RL_SPLIT_H
#define REPRISE_RL_SPLIT_H

#include "reprise/status.h"

RP_BEGIN_DECLS

enum { RP_SPLIT_MAX_CORES = 1024 };

/* Rates outside of these bounds are mistakes of a measurement. */
#define RP_RATE_LEAST 1e-6
#define RP_RATE_MOST 1e12

/* Splits whose rates differ by less than this share count as equal. */
#define RP_SPLIT_TIE 0.01

/* A measurement: the rate, in calls a second, of a number of threads. */
typedef struct rp_rate_point {
    int64_t threads;
    double rate;
} rp_rate_point;

/* The rates of 1 to `count` threads. A plain value. */
typedef struct rp_rate_curve {
    int64_t count;
    double serial; /* the share of one thread's time that more threads do not shorten (Amdahl
                      1967), fitted to the points; 0 if there is only one point */
    double rates[RP_SPLIT_MAX_CORES]; /* rates[x - 1]: of x threads */
} rp_rate_curve;

/* Makes a curve of 1 to `most` threads from `count` points in any order.
 *
 * Let T(x) = 1 / f(x), the time of one call. Amdahl's law is T(x) = a + b / x. Then
 *   - at a point, the curve has the rate of the point;
 *   - between two points, T is a + b / x through both;
 *   - outside of the points, T is a + b / x with a, b >= 0, least squares of the relative
 *     errors, and scaled to meet the nearest point;
 *   - above the last point the curve is level if an earlier point has a larger rate.
 *
 * RP_INVALID, with nothing written: there is no point; two points have the same number of
 * threads; a number of threads, or `most`, is not from 1 to RP_SPLIT_MAX_CORES; a rate is NaN
 * or out of its bounds. */
RP_API RP_NODISCARD rp_status rp_rate_curve_fill(rp_rate_curve *out,
                                                 const rp_rate_point *points, size_t count,
                                                 int64_t most, rp_error *err);

/* True if a curve from rp_rate_curve_fill() of these points holds its invariants:
 *   S1  it has 1 to RP_SPLIT_MAX_CORES rates, each a number within its bounds;
 *   S2  at a point, it has the rate of the point;
 *   S3  between two points it only rises or only falls, and stays between their rates;
 *   S4  above the last point it does not fall, and x threads have at most x / (x - 1) times the
 *       rate of x - 1 threads.
 * With no points, S1 only. */
RP_API bool rp_rate_curve_check(const rp_rate_curve *curve, const rp_rate_point *points,
                                size_t count);

/* The options of a split. Curves are borrowed for one call. */
typedef struct rp_split_options {
    const rp_rate_curve *acting, *learning; /* their `count` bounds actors and learners */
    double interval;                        /* steps for each update, 1e-6 to 1e9 */
    int64_t cores;                          /* 1 to RP_SPLIT_MAX_CORES */
    bool in_turn;                           /* one thread acts and learns in turn */
    int64_t only_actors, only_learners;     /* accept only these numbers; 0: any number */
    /* Returns the steps a second of a split that was measured as a whole, which replace those
     * of the curves; 0 if it was not measured. May be NULL. */
    double (*measured)(const void *ctx, int64_t actors, int64_t learners);
    const void *ctx;
} rp_split_options;

typedef struct rp_split {
    int64_t actors, learners;
    double steps_per_second; /* by rp_split_rate() */
} rp_split;

/* True if a split fits:
 *   S5  actors and learners are from 1 to the counts of their curves; they are only_actors and
 *       only_learners unless those are 0; and
 *         in turn: actors is 1, learners <= cores;
 *         else, with one core: actors and learners are 1;
 *         else: actors + learners <= cores. */
RP_API bool rp_split_fits(const rp_split_options *options, int64_t actors, int64_t learners);

/* Returns the steps a second of a split, as measured or by the formulas above. `actors` and
 * `learners` are from 1 to the counts of their curves. */
RP_API double rp_split_rate(const rp_split_options *options, int64_t actors, int64_t learners);

/* Picks the best split that fits:
 *   S6  its rate is at least (1 - RP_SPLIT_TIE) times the largest rate of those that fit;
 *   S7  of the splits for which S6 holds it has the fewest threads, and of those with as few
 *       threads the fewest learners.
 * Tries all splits: cores^2 / 2 at most. RP_INVALID: a curve breaks S1, an option is out of its
 * bounds, or no split fits only_actors and only_learners. */
RP_API RP_NODISCARD rp_status rp_split_pick(const rp_split_options *options, rp_split *out,
                                            rp_error *err);

RP_END_DECLS

#endif
