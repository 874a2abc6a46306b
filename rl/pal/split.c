/* SPDX-License-Identifier: Apache-2.0 */
/* Splits of cores: see split.h, which has the invariants S1 to S7.
 *
 * All curves are lines in (1 / x, T): a + b / x. A segment between two points stays between
 * them since a line does (S3). A fit with a, b >= 0 neither falls nor grows faster than the
 * threads (S4). */
#include "reprise/rl/split.h"

#include <assert.h>
#include <math.h>

#include "error/fail.h"

/* The time of one call with x threads: serial + parallel / x. */
typedef struct amdahl {
    double serial, parallel;
} amdahl;

static double time_of(amdahl law, int64_t threads)
{
    return law.serial + law.parallel / (double)threads;
}

static bool is_rate(double rate)
{
    return rate >= RP_RATE_LEAST && rate <= RP_RATE_MOST; /* false for NaN */
}

static bool is_count(int64_t threads)
{
    return threads >= 1 && threads <= RP_SPLIT_MAX_CORES;
}

static rp_status check_points(const rp_rate_point *points, size_t count, rp_error *err)
{
    if (count < 1 || count > RP_SPLIT_MAX_CORES)
        return rp_rl_fail(err, RP_INVALID, "split: a curve needs 1 to %d points, got %zu",
                          RP_SPLIT_MAX_CORES, count);
    for (size_t i = 0; i < count; i++) {
        if (!is_count(points[i].threads))
            return rp_rl_fail(err, RP_INVALID, "split: threads must be 1 to %d, got %lld",
                              RP_SPLIT_MAX_CORES, (long long)points[i].threads);
        if (!is_rate(points[i].rate))
            return rp_rl_fail(err, RP_INVALID,
                              "split: the rate of %lld threads must be %g to %g a second, got "
                              "%g; measure for longer",
                              (long long)points[i].threads, RP_RATE_LEAST, RP_RATE_MOST,
                              points[i].rate);
        for (size_t k = 0; k < i; k++)
            if (points[k].threads == points[i].threads)
                return rp_rl_fail(err, RP_INVALID, "split: %lld threads were measured twice",
                                  (long long)points[i].threads);
    }
    return RP_OK;
}

/* Least squares of relative errors, rate * T(x) = 1, with both shares >= 0. */
static amdahl fit(const rp_rate_point *points, size_t count)
{
    double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0, unit = points[0].rate, det;
    amdahl law;

    for (size_t i = 0; i < count; i++) {
        double u = points[i].rate / unit, v = u / (double)points[i].threads;

        uu += u * u;
        uv += u * v;
        vv += v * v;
        u1 += u;
        v1 += v;
    }
    det = uu * vv - uv * uv;
    law = (amdahl){(vv * u1 - uv * v1) / det, (uu * v1 - uv * u1) / det};
    if (count == 1 || !(det > 0) || !(law.serial > 0)) law = (amdahl){0, v1 / vv};
    if (!(law.parallel >= 0)) law = (amdahl){u1 / uu, 0};
    assert(isfinite(law.serial) && isfinite(law.parallel));
    assert(law.serial >= 0 && law.parallel >= 0 && time_of(law, 1) > 0);
    return (amdahl){law.serial / unit, law.parallel / unit};
}

/* The rate between two points: T on the line through both. A weighted mean, so that nothing
 * cancels. */
static double between(const rp_rate_point *p, const rp_rate_point *q, int64_t x)
{
    double per_p = 1 / (double)p->threads, per_q = 1 / (double)q->threads;
    double weight = (per_p - 1 / (double)x) / (per_p - per_q);

    assert(p->threads < x && x < q->threads && weight > 0 && weight < 1);
    return 1 / ((1 - weight) / p->rate + weight / q->rate);
}

/* The points next to x threads: the last at or below, and the first at or above. */
typedef struct neighbours {
    const rp_rate_point *below, *above; /* NULL: none */
} neighbours;

static neighbours around(const rp_rate_point *points, size_t count, int64_t x)
{
    neighbours n = {NULL, NULL};

    for (size_t i = 0; i < count; i++) {
        const rp_rate_point *p = &points[i];

        if (p->threads <= x && (n.below == NULL || p->threads > n.below->threads)) n.below = p;
        if (p->threads >= x && (n.above == NULL || p->threads < n.above->threads)) n.above = p;
    }
    assert(n.below != NULL || n.above != NULL);
    return n;
}

static double largest_of(const rp_rate_point *points, size_t count)
{
    double largest = 0;

    for (size_t i = 0; i < count; i++) largest = fmax(largest, points[i].rate);
    return largest;
}

static double within(double rate, double one, double other)
{
    return fmin(fmax(rate, fmin(one, other)), fmax(one, other));
}

/* The rate of x threads. `law` is the fit of all points, `largest` their largest rate. */
static double rate_at(neighbours n, amdahl law, double largest, int64_t x)
{
    double rate;

    if (n.below == n.above) return n.below->rate; /* S2 */
    if (n.below == NULL)
        rate = n.above->rate * time_of(law, n.above->threads) / time_of(law, x);
    else if (n.above != NULL) /* S3; rounding may leave the interval */
        return within(between(n.below, n.above, x), n.below->rate, n.above->rate);
    else if (n.below->rate < largest)
        return n.below->rate; /* S4 */
    else
        rate = n.below->rate * time_of(law, n.below->threads) / time_of(law, x);
    return within(rate, RP_RATE_LEAST, RP_RATE_MOST);
}

rp_status rp_rate_curve_fill(rp_rate_curve *out, const rp_rate_point *points, size_t count,
                             int64_t most, rp_error *err)
{
    rp_status st = check_points(points, count, err);
    double largest;
    amdahl law;

    if (st != RP_OK) return st;
    if (!is_count(most))
        return rp_rl_fail(err, RP_INVALID, "split: a curve has 1 to %d threads, got %lld",
                          RP_SPLIT_MAX_CORES, (long long)most);
    law = fit(points, count);
    largest = largest_of(points, count);
    out->count = most;
    out->serial = law.serial / time_of(law, 1);
    for (int64_t x = 1; x <= most; x++)
        out->rates[x - 1] = rate_at(around(points, count, x), law, largest, x);
    assert(rp_rate_curve_check(out, points, count));
    return RP_OK;
}

/* S2 to S4 at x threads, which are not the first. */
static bool check_at(const rp_rate_curve *c, neighbours n, int64_t x)
{
    const double more = 1 + 1e-9; /* for rounding */
    double rate = c->rates[x - 1], before = c->rates[x - 2];

    if (n.below == n.above) return rate == n.below->rate;
    if (n.below == NULL) return true;
    if (n.above != NULL)
        return n.below->rate <= n.above->rate ? rate * more >= before && rate <= n.above->rate
                                              : rate <= before * more && rate >= n.above->rate;
    return rate * more >= before && rate <= before * (double)x / (double)(x - 1) * more;
}

bool rp_rate_curve_check(const rp_rate_curve *c, const rp_rate_point *points, size_t count)
{
    if (!is_count(c->count)) return false;
    for (int64_t x = 1; x <= c->count; x++)
        if (!is_rate(c->rates[x - 1])) return false;
    for (int64_t x = 2; count > 0 && x <= c->count; x++)
        if (!check_at(c, around(points, count, x), x)) return false;
    for (size_t i = 0; i < count; i++)
        if (points[i].threads == 1 && c->rates[0] != points[i].rate) return false;
    return true;
}

static rp_status check_options(const rp_split_options *o, rp_error *err)
{
    if (!is_count(o->cores))
        return rp_rl_fail(err, RP_INVALID, "split: cores must be 1 to %d, got %lld",
                          RP_SPLIT_MAX_CORES, (long long)o->cores);
    if (!(o->interval >= 1e-6 && o->interval <= 1e9))
        return rp_rl_fail(err, RP_INVALID,
                          "split: steps for each update must be 1e-6 to 1e9, got %g",
                          o->interval);
    if (!rp_rate_curve_check(o->acting, NULL, 0) || !rp_rate_curve_check(o->learning, NULL, 0))
        return rp_rl_fail(err, RP_INVALID,
                          "split: a curve of %s has a rate that is not %g to %g a second",
                          rp_rate_curve_check(o->acting, NULL, 0) ? "learners" : "actors",
                          RP_RATE_LEAST, RP_RATE_MOST);
    return RP_OK;
}

bool rp_split_fits(const rp_split_options *o, int64_t actors, int64_t learners)
{
    if (actors < 1 || actors > o->acting->count) return false;
    if (learners < 1 || learners > o->learning->count) return false;
    if (o->only_actors > 0 && actors != o->only_actors) return false;
    if (o->only_learners > 0 && learners != o->only_learners) return false;
    if (o->in_turn) return actors == 1 && learners <= o->cores;
    if (o->cores == 1) return actors == 1 && learners == 1;
    return actors + learners <= o->cores; /* S5 */
}

double rp_split_rate(const rp_split_options *o, int64_t actors, int64_t learners)
{
    double acted, learned, measured = 0;

    assert(actors >= 1 && actors <= o->acting->count);
    assert(learners >= 1 && learners <= o->learning->count);
    if (o->measured != NULL) measured = o->measured(o->ctx, actors, learners);
    assert(measured >= 0);
    if (measured > 0) return measured;
    acted = o->acting->rates[actors - 1];
    learned = o->interval * o->learning->rates[learners - 1];
    return o->in_turn || o->cores == 1 ? 1 / (1 / acted + 1 / learned) : fmin(acted, learned);
}

/* True if a split of (actors, learners) has fewer threads than the other, or fewer learners. */
static bool is_smaller(int64_t actors, int64_t learners, const rp_split *other)
{
    int64_t threads = actors + learners, others = other->actors + other->learners;

    return threads < others || (threads == others && learners < other->learners);
}

/* Looks at all splits that fit. Writes the smallest with at least `least` steps a second, and
 * returns the largest rate of all. */
static double look(const rp_split_options *o, double least, rp_split *out)
{
    double best = 0;

    *out = (rp_split){0};
    for (int64_t a = 1; a <= o->acting->count && a <= o->cores; a++)
        for (int64_t l = 1; l <= o->learning->count && a + l <= o->cores + 1; l++) {
            double rate;

            if (!rp_split_fits(o, a, l)) continue;
            rate = rp_split_rate(o, a, l);
            best = fmax(best, rate);
            if (rate >= least && (out->actors == 0 || is_smaller(a, l, out)))
                *out = (rp_split){a, l, rate}; /* S7 */
        }
    return best;
}

rp_status rp_split_pick(const rp_split_options *o, rp_split *out, rp_error *err)
{
    rp_status st = check_options(o, err);
    rp_split pick;
    double best;

    if (st != RP_OK) return st;
    best = look(o, 0, &pick);
    if (pick.actors == 0)
        return rp_rl_fail(err, RP_INVALID,
                          "split: no split of %lld cores has %lld actors and %lld learners "
                          "(0: any number)",
                          (long long)o->cores, (long long)o->only_actors,
                          (long long)o->only_learners);
    (void)look(o, best * (1 - RP_SPLIT_TIE), &pick);      /* S6 */
    assert(rp_split_fits(o, pick.actors, pick.learners)); /* S5 */
    *out = pick;
    return RP_OK;
}
