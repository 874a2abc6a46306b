/* SPDX-License-Identifier: Apache-2.0 */
/* Rebalancing: see rebalance.h.
 *
 * Invariants:
 *   B1  visits[0] is of `split`; no split is there twice;
 *   B2  two moves are `pause_ns` apart at least;
 *   B3  a split with a visit is not moved to unless its own rate promises the gain. */
#include "reprise/rl/rebalance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"

enum {
    WINDOW_MS = 2000,
    PATIENCE = 4,
    PAUSE_MS = 10000,
    LEAST_COUNT = 8,  /* steps and updates of a window */
    MEAN_WINDOWS = 4, /* of which the latest has the weight of one */
    MOST_PAUSES = 64, /* the longest pause */
    QUIET_PAUSES = 4, /* after which it is the shortest again */
};
#define LEAST_GAIN 0.06
#define DRIFT 1.2
#define FAR_DRIFT 1.6
#define SURE_WORK 0.4    /* share of a role's time from which its rate is known well */
#define LEAST_WORK 0.125 /* share of a role's time below which its rate is not known well */

static rp_status check(const rp_rebalance_options *o, rp_error *err)
{
    if (o->problem.in_turn)
        return rp_rl_fail(err, RP_INVALID, "rebalance: an agent that acts and learns in turn");
    if (o->window_ns < 0 || o->patience < 0 || o->pause_ns < 0 || !(o->least_gain >= 0))
        return rp_rl_fail(err, RP_INVALID, "rebalance: an option is negative");
    return RP_OK;
}

/* The rate of a split that the program has had; 0: it has not. */
static double measured(const void *ctx, int64_t actors, int64_t learners)
{
    const rp_rebalance *r = ctx;

    for (int64_t i = 0; i < r->visit_count; i++)
        if (r->visits[i].actors == actors && r->visits[i].learners == learners)
            return r->visits[i].mean * r->unit;
    return 0;
}

static rp_split_options problem_of(const rp_rebalance *r)
{
    rp_split_options problem = r->options.problem;

    problem.acting = &r->acting_now;
    problem.learning = &r->learning_now;
    problem.measured = measured;
    problem.ctx = r;
    return problem;
}

static void begin_window(rp_rebalance *r, int64_t now_ns, const rp_rebalance_counts *counts)
{
    r->since_ns = now_ns;
    r->since_steps = counts->steps;
    r->since_updates = counts->updates;
    r->actors_waited_ns = r->learner_waited_ns = 0;
}

rp_status rp_rebalance_init(rp_rebalance *r, const rp_rebalance_options *options, rp_error *err)
{
    rp_split first;
    rp_status st = check(options, err);

    if (st == RP_OK) st = rp_split_pick(&options->problem, &first, err);
    if (st != RP_OK) return st;
    *r = (rp_rebalance){.split = first, .options = *options};
    r->acting = r->acting_now = *options->problem.acting;
    r->learning = r->learning_now = *options->problem.learning;
    r->options.problem.acting = r->options.problem.learning = NULL;
    if (r->options.window_ns == 0) r->options.window_ns = WINDOW_MS * INT64_C(1000000);
    if (r->options.patience == 0) r->options.patience = PATIENCE;
    if (r->options.pause_ns == 0) r->options.pause_ns = PAUSE_MS * INT64_C(1000000);
    if (r->options.least_gain == 0) r->options.least_gain = LEAST_GAIN;
    r->pause_ns = r->options.pause_ns;
    r->is_settling = true;
    return RP_OK;
}

bool rp_rebalance_can_move(const rp_rebalance *r)
{
    const rp_split_options problem = problem_of(r);
    int64_t fit = 0;

    for (int64_t a = 1; a <= r->acting.count && fit < 2; a++)
        for (int64_t l = 1; l <= r->learning.count && fit < 2; l++)
            fit += rp_split_fits(&problem, a, l);
    return fit > 1;
}

/* The scale of a curve after a window in which its threads made `rate`, and waited. */
static double scale_of(double scale, double rate, double wait, double curve)
{
    double now = rate / fmax(1 - wait, LEAST_WORK) / curve;

    if (1 - wait < LEAST_WORK && scale > now) return scale; /* the rate is a lower bound */
    return scale > 0 ? sqrt(scale * now) : now;
}

static int64_t threads_of(const rp_rebalance_visit *v, bool is_acting)
{
    return is_acting ? v->actors : v->learners;
}

static double scale_in(const rp_rebalance_visit *v, bool is_acting)
{
    return is_acting ? v->acting_scale : v->learning_scale;
}

/* The scale of x threads, from the splits that the program has had: that of the nearest number
 * of threads, and between two of them on the line through both over log x. */
static double scale_at(const rp_rebalance *r, bool is_acting, int64_t x)
{
    const rp_rebalance_visit *below = NULL, *above = NULL;
    double share;

    for (int64_t i = 0; i < r->visit_count; i++) { /* the latest first */
        const rp_rebalance_visit *v = &r->visits[i];
        int64_t at = threads_of(v, is_acting);

        if (v->windows == 0) continue;
        if (at <= x && (below == NULL || at > threads_of(below, is_acting))) below = v;
        if (at >= x && (above == NULL || at < threads_of(above, is_acting))) above = v;
    }
    assert(below != NULL || above != NULL);
    if (below == NULL) return scale_in(above, is_acting);
    if (above == NULL || threads_of(below, is_acting) == threads_of(above, is_acting))
        return scale_in(below, is_acting);
    share = log((double)x / (double)threads_of(below, is_acting)) /
            log((double)threads_of(above, is_acting) / (double)threads_of(below, is_acting));
    return (1 - share) * scale_in(below, is_acting) + share * scale_in(above, is_acting);
}

static void scale_curve(const rp_rebalance *r, bool is_acting, rp_rate_curve *to)
{
    const rp_rate_curve *from = is_acting ? &r->acting : &r->learning;

    for (int64_t x = 1; x <= from->count; x++)
        to->rates[x - 1] = fmin(
            fmax(from->rates[x - 1] * scale_at(r, is_acting, x), RP_RATE_LEAST), RP_RATE_MOST);
}

/* Infers the curves from a window of the split in use. */
static void infer(rp_rebalance *r, const rp_rebalance_view *view)
{
    rp_rebalance_visit *v = &r->visits[0];

    v->acting_scale = scale_of(v->acting_scale, view->steps_per_second, view->actors_wait,
                               r->acting.rates[r->split.actors - 1]);
    v->learning_scale = scale_of(v->learning_scale, view->updates_per_second,
                                 view->learner_waits, r->learning.rates[r->split.learners - 1]);
}

/* Makes a visit of the split in use, as the first of the list (B1). */
static void visit(rp_rebalance *r)
{
    rp_rebalance_visit now = {.actors = r->split.actors, .learners = r->split.learners};
    int64_t i = 0;

    while (i < r->visit_count &&
           (r->visits[i].actors != now.actors || r->visits[i].learners != now.learners))
        i++;
    if (i == r->visit_count && r->visit_count < RP_REBALANCE_VISITS) r->visit_count++;
    if (i == RP_REBALANCE_VISITS) i--; /* the one of longest ago */
    memmove(&r->visits[1], &r->visits[0], (size_t)i * sizeof r->visits[0]);
    r->visits[0] = now;
}

static bool has_drifted(double now, double first, double bound)
{
    return now > first * bound || first > now * bound;
}

/* Whether a role is faster or slower than at first. That of one that waits most of the time is
 * known less well. */
static bool has_role_drifted(double now, double first, double wait)
{
    return has_drifted(now, first, 1 - wait >= SURE_WORK ? DRIFT : FAR_DRIFT);
}

/* Whether the split in use, or one of its roles, is faster or slower than at first. */
static bool is_drifting(const rp_rebalance *r)
{
    const rp_rebalance_visit *v = &r->visits[0];

    return has_drifted(v->mean, r->first_rate, DRIFT) ||
           has_role_drifted(v->acting_scale, r->first_acting, r->view.actors_wait) ||
           has_role_drifted(v->learning_scale, r->first_learning, r->view.learner_waits);
}

/* Takes the rate of a window of the split in use. Forgets other splits after a drift. */
static void add_rate(rp_rebalance *r, double rate)
{
    rp_rebalance_visit *v = &r->visits[0];

    assert(r->visit_count >= 1 && v->actors == r->split.actors); /* B1 */
    v->windows++;
    v->mean += (rate - v->mean) / fmin((double)v->windows, MEAN_WINDOWS);
    if (v->windows > r->options.patience) {
        r->drifting = is_drifting(r) ? r->drifting + 1 : 0;
        if (r->drifting < r->options.patience) return;
        r->visit_count = 1;
        v->mean = rate; /* some of the windows before were before the drift */
        r->drifting = 0;
        r->before = 0;
    }
    r->first_rate = v->mean;
    r->first_acting = v->acting_scale;
    r->first_learning = v->learning_scale;
}

/* Was the last move, to a split that was new, worth it? */
static void judge(rp_rebalance *r)
{
    double promised = r->split.steps_per_second - r->before;

    if (r->before == 0 || r->visits[0].windows < r->options.patience) return;
    if (r->visits[0].mean - r->before >= promised / 2)
        r->pause_ns = r->options.pause_ns;
    else if (r->pause_ns < MOST_PAUSES * r->options.pause_ns)
        r->pause_ns *= 2;
    r->before = 0;
}

/* Ends the window. */
static rp_rebalance_view end_window(const rp_rebalance *r, int64_t now_ns,
                                    const rp_rebalance_counts *counts)
{
    double passed = (double)(now_ns - r->since_ns);

    assert(passed > 0);
    return (rp_rebalance_view){
        .steps_per_second = (double)(counts->steps - r->since_steps) * 1e9 / passed,
        .updates_per_second = (double)(counts->updates - r->since_updates) * 1e9 / passed,
        .actors_wait = fmin(r->actors_waited_ns / passed, 1),
        .learner_waits = fmin(r->learner_waited_ns / passed, 1),
        .predicted = r->split.steps_per_second};
}

/* Whether another split is better by the gain, in enough windows in a row. */
static bool wants_move(rp_rebalance *r, rp_split *to)
{
    rp_split_options problem;
    double now;

    scale_curve(r, true, &r->acting_now);
    scale_curve(r, false, &r->learning_now);
    problem = problem_of(r);

    /* In the unit of the curves, the split in use has the rate that they predict. */
    problem.measured = NULL;
    now = rp_split_rate(&problem, r->split.actors, r->split.learners);
    problem.measured = measured;
    r->unit = now / r->visits[0].mean;
    if (rp_split_pick(&problem, to, NULL) != RP_OK) return false;
    if (to->steps_per_second < now * (1 + r->options.least_gain)) { /* B3 */
        r->asking = 0;
        return false;
    }
    assert(to->actors != r->split.actors || to->learners != r->split.learners);
    to->steps_per_second /= r->unit;
    return ++r->asking >= r->options.patience;
}

static void move_to(rp_rebalance *r, int64_t now_ns, const rp_split *to)
{
    if (now_ns - r->moved_ns > QUIET_PAUSES * r->pause_ns) r->pause_ns = r->options.pause_ns;
    /* A split that the program has had promises what it made. */
    r->before = measured(r, to->actors, to->learners) > 0 ? 0 : r->visits[0].mean;
    r->split = *to;
    r->moves++;
    r->moved_ns = now_ns;
    r->asking = r->drifting = 0;
    r->is_settling = true;
    visit(r);
}

bool rp_rebalance_look(rp_rebalance *r, int64_t now_ns, const rp_rebalance_counts *counts,
                       rp_rebalance_move *move)
{
    double passed = (double)(now_ns - r->last_ns);
    rp_split to;

    if (!r->has_looked) {
        r->has_looked = true;
        r->last_ns = r->moved_ns = now_ns;
        visit(r);
        begin_window(r, now_ns, counts);
        return false;
    }
    assert(passed >= 0 && counts->steps >= r->since_steps);
    r->last_ns = now_ns;
    r->actors_waited_ns += fmin(fmax(counts->actors_wait, 0), 1) * passed;
    r->learner_waited_ns += fmin(fmax(counts->learner_waits, 0), 1) * passed;
    if (now_ns - r->since_ns < r->options.window_ns ||
        counts->steps - r->since_steps < LEAST_COUNT ||
        counts->updates - r->since_updates < LEAST_COUNT)
        return false;
    r->view = end_window(r, now_ns, counts);
    begin_window(r, now_ns, counts);
    if (r->is_settling) {
        r->is_settling = false;
        return false;
    }
    infer(r, &r->view);
    add_rate(r, r->view.steps_per_second);
    judge(r);
    if (!wants_move(r, &to) || r->drifting > 0 || now_ns - r->moved_ns < r->pause_ns)
        return false; /* B2; or it is soon known whether other splits are forgotten */
    *move = (rp_rebalance_move){.from = r->split, .to = to, .view = r->view};
    move->from.steps_per_second = r->visits[0].mean;
    move_to(r, now_ns, &to);
    return true;
}

void rp_rebalance_stay(rp_rebalance *r, const rp_rebalance_move *move)
{
    r->split = move->from;
    r->options.problem.only_actors = move->from.actors;
    r->options.problem.only_learners = move->from.learners;
    visit(r);
}
