/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limiting.
 *
 * When can a limiter block both inserts and samples? Let d = I * spi - S. With at least
 * min_size items, an insert waits if d + spi > max_diff and a sample if d - 1 < min_diff: both
 * wait if
 *
 *     max_diff - spi < d < min_diff + 1.
 *
 * Inserts move d by spi and samples by 1, so d takes only multiples of g, the largest number of
 * which 1 and spi both are multiples. A limiter is refused if a multiple of g lies in that open
 * interval. For an integer spi, g is 1, so a queue of one (interval (0, 1)) is accepted. If
 * there is no g above some bound, d may reach any number in the interval.
 *
 * If g is not a power of two, I * spi is rounded, and a multiple of g at or near the edge of
 * the interval may be computed as inside: then the check uses a slightly wider interval.
 *
 * The options come from peers and files: rp_limiter_check() takes a fixed number of steps, and
 * bounds them so that d is finite and, up to RP_MAX_DIFF, exact. */
#include "table/rate_limiter.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "util/error.h"

rp_limiter_options rp_limiter_min_size(int64_t min_size)
{
    return (rp_limiter_options){1.0, min_size, -DBL_MAX, DBL_MAX};
}

rp_limiter_options rp_limiter_ratio(double samples_per_insert, int64_t min_size,
                                    double error_buffer)
{
    double middle = samples_per_insert * (double)min_size;
    return (rp_limiter_options){samples_per_insert, min_size, middle - error_buffer,
                                middle + error_buffer};
}

rp_limiter_options rp_limiter_queue(int64_t size)
{
    return (rp_limiter_options){1.0, 1, 0.0, (double)size};
}

rp_limiter_options rp_limiter_stack(int64_t size)
{
    return rp_limiter_queue(size);
}

/* The g defined above, or 0 if there is none down to 1/1024; and a bound on the effect of
 * rounding. */
static double lattice(double spi, double *rounding)
{
    *rounding = 0;
    for (int q = 1; q <= 1024; q *= 2)
        if (spi * q == floor(spi * q)) return 1.0 / q;
    /* Thirds, tenths and so on, up to the rounding of float64. */
    for (int q = 3; q <= 1000; q++) {
        double p = round(spi * q);
        if (p < 1 || fabs(spi * q - p) > 4 * DBL_EPSILON * p) continue;
        *rounding = 1e-6; /* enough for some 10^9 inserts */
        return 1.0 / q;
    }
    return 0;
}

/* Tests the multiples of g next to the lower edge of the interval with the comparisons that the
 * limiter itself makes, since the edges are rounded. The first multiple at which inserts wait
 * is among them. At a larger multiple samples wait only if they wait at this one too. */
static bool can_block_both(const rp_limiter_options *o, double *where)
{
    enum { TRIES = 4 }; /* low / g is rounded by less than 1 */
    double spi = o->samples_per_insert, rounding, g = lattice(spi, &rounding);
    double low = o->max_diff - spi, high = o->min_diff + 1, first;

    if (g == 0 || fabs(low) > 1e12) {
        *where = high - (high - low) / 2;
        return low < high;
    }
    first = floor(low / g) - 1; /* exact: below 2^53 */
    for (int i = 0; i < TRIES; i++) {
        *where = (first + i) * g;
        if (*where + spi > o->max_diff - rounding && *where - 1 < o->min_diff + rounding)
            return true;
    }
    return false;
}

static rp_status check_ranges(const rp_limiter_options *o, rp_error *err)
{
    if (o->samples_per_insert == 0 && o->min_size == 0 && o->min_diff == 0 && o->max_diff == 0)
        return rp_fail(
            err, RP_INVALID,
            "limiter is not set: use rp_limiter_min_size(1), which only waits for the "
            "first item");
    if (!(o->samples_per_insert >= RP_MIN_SAMPLES_PER_INSERT &&
          o->samples_per_insert <= RP_MAX_SAMPLES_PER_INSERT))
        return rp_fail(
            err, RP_INVALID, "limiter: samples_per_insert must be in %g .. %g, got %g",
            RP_MIN_SAMPLES_PER_INSERT, RP_MAX_SAMPLES_PER_INSERT, o->samples_per_insert);
    if (o->min_size < 1)
        return rp_fail(err, RP_INVALID, "limiter: min_size must be >= 1, got %lld",
                       (long long)o->min_size);
    if (isnan(o->min_diff) || isnan(o->max_diff))
        return rp_fail(err, RP_INVALID, "limiter: min_diff and max_diff must be numbers");
    if (o->min_diff > o->max_diff)
        return rp_fail(err, RP_INVALID, "limiter: min_diff %g must be <= max_diff %g",
                       o->min_diff, o->max_diff);
    if (o->min_diff > RP_MAX_DIFF)
        return rp_fail(err, RP_INVALID,
                       "limiter: with min_diff %g samples would wait for ever: make it at most "
                       "2^53",
                       o->min_diff);
    if (o->max_diff < -RP_MAX_DIFF)
        return rp_fail(
            err, RP_INVALID,
            "limiter: with max_diff %g inserts would wait for ever: make it at least "
            "-2^53",
            o->max_diff);
    return RP_OK;
}

rp_status rp_limiter_check(const rp_limiter_options *o, rp_error *err)
{
    double where;
    rp_status st = check_ranges(o, err);

    if (st != RP_OK) return st;
    if (can_block_both(o, &where))
        return rp_fail(
            err, RP_INVALID,
            "limiter: inserts and samples would both wait for ever once inserts * %g - "
            "samples is %g: max_diff - min_diff is %g, make it at least %g",
            o->samples_per_insert, where, o->max_diff - o->min_diff, o->samples_per_insert + 1);
    return RP_OK;
}

static void carry(rp_rate_limiter *rl, double carried)
{
    assert(fabs(carried) < RP_MAX_DIFF && carried == floor(carried));
    rl->carried = carried;
    rl->min_diff = rl->options.min_diff - carried;
    rl->max_diff = rl->options.max_diff - carried;
}

void rp_rate_limiter_init(rp_rate_limiter *rl, const rp_limiter_options *options)
{
    *rl = (rp_rate_limiter){.options = *options};
    carry(rl, 0);
}

void rp_rate_limiter_reset(rp_rate_limiter *rl)
{
    rl->inserts = rl->samples = rl->deletes = 0;
    carry(rl, 0);
}

void rp_rate_limiter_alter(rp_rate_limiter *rl, const rp_limiter_options *options)
{
    rl->options = *options;
    carry(rl, rl->carried);
}

/* `carried` is a whole number and so a multiple of every g defined above: the difference still
 * takes only multiples of g. */
void rp_rate_limiter_recenter(rp_rate_limiter *rl)
{
    const rp_limiter_options *o = &rl->options;
    double missing = (double)(o->min_size - (rl->inserts - rl->deletes));
    double wanted = o->min_diff + (o->max_diff - o->min_diff) / 2;

    if (missing > 0) wanted -= missing * o->samples_per_insert;
    wanted = round(wanted - (rp_rate_limiter_diff(rl) - rl->carried));
    carry(rl, fabs(wanted) < RP_MAX_DIFF ? wanted : 0);
}

size_t rp_rate_limiter_samples_allowed(const rp_rate_limiter *rl, size_t wanted)
{
    int64_t low = 0, high = (int64_t)wanted; /* `low` is allowed, above `high` is not */

    if (wanted == 0 || rp_rate_limiter_can_sample(rl, high)) return wanted;
    high--;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (rp_rate_limiter_can_sample(rl, middle))
            low = middle;
        else
            high = middle - 1;
    }
    assert(low == 0 || rp_rate_limiter_can_sample(rl, low));
    return (size_t)low;
}

enum { CARRIED_BYTES = 48, BOUND_BYTES = 32 };

/* " + 12 carried", or nothing. Returns `text`. */
static char *carried_text(const rp_rate_limiter *rl, char text[CARRIED_BYTES])
{
    text[0] = '\0';
    if (rl->carried != 0)
        (void)snprintf(text, CARRIED_BYTES, " %c %.0f carried", rl->carried < 0 ? '-' : '+',
                       fabs(rl->carried));
    return text;
}

static double items_until(double distance, double step)
{
    double n = ceil(distance / step);
    return n < 1 ? 1 : n;
}

char *rp_rate_limiter_why_no_insert(const rp_rate_limiter *rl, char *text, size_t size)
{
    const rp_limiter_options *o = &rl->options;
    double diff = rp_rate_limiter_diff(rl) + o->samples_per_insert;
    double more = items_until(diff - o->max_diff, 1);
    char carried[CARRIED_BYTES];

    (void)snprintf(
        text, size,
        "insert waits for samples: (%lld insert%s + 1) * %g - %lld sample%s%s = %g is over "
        "max_diff %g; %.0f more sample%s would release it",
        (long long)rl->inserts, rl->inserts == 1 ? "" : "s", o->samples_per_insert,
        (long long)rl->samples, rl->samples == 1 ? "" : "s", carried_text(rl, carried), diff,
        o->max_diff, more, more == 1 ? "" : "s");
    return text;
}

char *rp_rate_limiter_why_no_sample(const rp_rate_limiter *rl, char *text, size_t size)
{
    const rp_limiter_options *o = &rl->options;
    int64_t items = rl->inserts - rl->deletes;
    double diff = rp_rate_limiter_diff(rl) - 1;
    double more = items_until(o->min_diff - diff, o->samples_per_insert);
    double missing = (double)(o->min_size - items);
    char carried[CARRIED_BYTES], bound[BOUND_BYTES] = "";

    /* With enough items, samples may have to wait for more inserts still. */
    if (more > missing) (void)snprintf(bound, sizeof bound, ", min_diff %g", o->min_diff);
    if (missing > 0)
        (void)snprintf(text, size,
                       "sample waits for inserts: the table has %lld item%s, min_size is "
                       "%lld%s; %.0f more insert%s would release it",
                       (long long)items, items == 1 ? "" : "s", (long long)o->min_size, bound,
                       fmax(more, missing), fmax(more, missing) == 1 ? "" : "s");
    else
        (void)snprintf(
            text, size,
            "sample waits for inserts: %lld insert%s * %g - %lld sample%s%s - 1 = %g "
            "is under min_diff %g; %.0f more insert%s would release it",
            (long long)rl->inserts, rl->inserts == 1 ? "" : "s", o->samples_per_insert,
            (long long)rl->samples, rl->samples == 1 ? "" : "s", carried_text(rl, carried),
            diff, o->min_diff, more, more == 1 ? "" : "s");
    return text;
}
