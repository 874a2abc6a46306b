/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses how many threads should act (actors) and how many should learn (learners). These two
 * numbers are called a split. The method is the design space exploration of Zhang, Meng and
 * Prasanna (Parallel Actors and Learners, 2021). It needs two curves, which
 * rp_rate_curve_fill() computes from measured points:
 *
 *   f_a(x)   steps per second of x actors
 *   f_l(x)   updates per second of x learners
 *
 * Let an agent make one update for every `interval` steps. If x_a actors and x_l learners run
 * at the same time on cores of their own, the agent makes
 *
 *   min(f_a(x_a), interval * f_l(x_l))   steps per second.
 *
 * If one thread acts and learns in turn, the agent has one actor. For an update, this thread
 * and x_l - 1 other threads work together as x_l learners. Such an agent makes
 *
 *   1 / (1 / f_a(1) + 1 / (interval * f_l(x_l)))   steps per second.
 *
 * The second formula also holds for one actor thread and one learner thread on a single core.
 *
 *   rp_rate_curve_fill(&acting, points, 3, cores, &err);      measured with 1, 2 and 4 threads
 *   rp_rate_curve_fill(&learning, others, 3, cores, &err);
 *   rp_split_pick(&(rp_split_options){.acting = &acting, .learning = &learning, .interval = 4,
 *                                     .cores = cores}, &split, &err);
 *
 * The functions depend only on their arguments: they allocate nothing, read no clock and start
 * no thread. profile.h measures the points. */
#ifndef REPRISE_RL_SPLIT_H
#define REPRISE_RL_SPLIT_H

#include "reprise/status.h"

RP_BEGIN_DECLS

enum { RP_SPLIT_MAX_CORES = 1024 };

/* Bounds of a rate. A rate out of these bounds is treated as a measurement error. */
#define RP_RATE_LEAST 1e-6
#define RP_RATE_MOST 1e12

/* Splits whose rates differ by less than this fraction are treated as equally fast. */
#define RP_SPLIT_TIE 0.01

/* A measured point of a curve: the rate of `threads` threads, in steps or updates per
 * second. */
typedef struct rp_rate_point {
    int64_t threads;
    double rate;
} rp_rate_point;

/* A curve: the rates of 1 to `count` threads. */
typedef struct rp_rate_curve {
    int64_t count;
    double serial; /* serial fraction (Amdahl 1967): the fraction of one thread's time that
                      further threads do not shorten. rp_rate_curve_fill() fits it to the
                      points; 0 if there is one point */
    double rates[RP_SPLIT_MAX_CORES]; /* rates[x - 1] is the rate of x threads */
} rp_rate_curve;

/* Makes a curve of 1 to `most` threads from `count` points in any order.
 *
 * Let T(x) = 1 / f(x) be the time of one step or update. Amdahl's law is T(x) = a + b / x.
 *   - At a point, the curve has the rate of the point.
 *   - Between two points, T(x) = a + b / x goes through both.
 *   - Outside of the points, T(x) = a + b / x with a, b >= 0 is fitted to all points, by least
 *     squares of the relative errors. The fitted curve is then scaled to go through the
 *     nearest point.
 *   - Above the last point the curve is constant if an earlier point has a larger rate.
 *
 * Returns RP_INVALID, and writes nothing, in these cases: there is no point; two points have
 * the same number of threads; a number of threads, or `most`, is not from 1 to
 * RP_SPLIT_MAX_CORES; a rate is NaN or out of its bounds. */
RP_API RP_NODISCARD rp_status rp_rate_curve_fill(rp_rate_curve *out,
                                                 const rp_rate_point *points, size_t count,
                                                 int64_t most, rp_error *err);

/* Returns true if these invariants of a curve that rp_rate_curve_fill() made from `points`
 * hold:
 *   S1  it has 1 to RP_SPLIT_MAX_CORES rates, each from RP_RATE_LEAST to RP_RATE_MOST;
 *   S2  at a point, it has the rate of the point;
 *   S3  between two points it is monotonic, and its rates are between those of the points;
 *   S4  above the last point the curve does not fall, and the rate of x threads is at most
 *       x / (x - 1) times the rate of x - 1 threads.
 * If `count` is 0, checks only the invariant S1. */
RP_API bool rp_rate_curve_check(const rp_rate_curve *curve, const rp_rate_point *points,
                                size_t count);

/* The options for picking a split. Curves are borrowed for one call. */
typedef struct rp_split_options {
    const rp_rate_curve *acting, *learning; /* f_a and f_l. acting->count is the largest number
                                               of actors, learning->count the largest number of
                                               learners */
    double interval;                        /* steps per update, 1e-6 to 1e9 */
    int64_t cores;                          /* 1 to RP_SPLIT_MAX_CORES */
    bool in_turn;                           /* one thread acts and learns in turn */
    int64_t only_actors, only_learners;     /* accept only splits with these numbers; 0: any
                                               number */
    /* Returns the measured steps per second of a split, or 0 if the split was not measured. A
     * measured rate is used in place of the rate that follows from the curves. May be NULL. */
    double (*measured)(const void *ctx, int64_t actors, int64_t learners);
    const void *ctx;
} rp_split_options;

typedef struct rp_split {
    int64_t actors, learners;
    double steps_per_second; /* the result of rp_split_rate() */
} rp_split;

/* Returns true if a split fits the options:
 *   S5  actors and learners are from 1 to the counts of their curves. If only_actors is not 0,
 *       actors equals it. If only_learners is not 0, learners equals it. Further,
 *         if in_turn is true: actors is 1, and learners <= cores;
 *         else, with one core: actors and learners are 1;
 *         else: actors + learners <= cores. */
RP_API bool rp_split_fits(const rp_split_options *options, int64_t actors, int64_t learners);

/* Returns the steps per second of a split: the result of measured() if it is not 0, else the
 * result of the formulas above. `actors` and `learners` must be from 1 to the counts of their
 * curves. */
RP_API double rp_split_rate(const rp_split_options *options, int64_t actors, int64_t learners);

/* Picks the best split that fits:
 *   S6  its rate is at least (1 - RP_SPLIT_TIE) times the largest rate of all splits that fit;
 *   S7  of the splits for which S6 holds, it has the fewest threads; of several such splits, it
 *       has the fewest learners.
 * Tries all splits, at most cores^2 / 2. Errors: RP_INVALID (a curve violates the invariant S1,
 * an option is out of bounds, or no split fits only_actors and only_learners). */
RP_API RP_NODISCARD rp_status rp_split_pick(const rp_split_options *options, rp_split *out,
                                            rp_error *err);

RP_END_DECLS

#endif
