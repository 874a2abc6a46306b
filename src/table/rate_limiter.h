/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limiter of a table: decides whether an insert or a sample may proceed, so that the
 * ratio of samples to inserts stays near a target.
 *
 * The struct has no lock, no clock and no pointer to its table. The table that embeds it locks
 * it, makes operations wait, and resumes them. The formulas are in reprise/table_options.h.
 *
 * Invariants:
 *   R1  inserts, samples and deletes are >= 0, and deletes <= inserts;
 *   R2  min_diff and max_diff are the values of the options minus `carried`. */
#ifndef RP_TABLE_RATE_LIMITER_H
#define RP_TABLE_RATE_LIMITER_H

#include <assert.h>

#include "reprise/table.h"

typedef struct rp_rate_limiter {
    rp_limiter_options options;
    /* Numbers of operations since the creation or the last reset. */
    int64_t inserts, samples, deletes;
    double carried;            /* offset in the difference, a whole number; set by
                                  rp_rate_limiter_recenter() */
    double min_diff, max_diff; /* see invariant R2 */
} rp_rate_limiter;

/* Checks options. Returns RP_INVALID with the reason if a number is out of range, or if the
 * limiter could block both inserts and samples for ever. Takes constant time. */
RP_NODISCARD rp_status rp_limiter_check(const rp_limiter_options *options, rp_error *err);

/* Initializes a limiter. `options` must have passed rp_limiter_check(). */
void rp_rate_limiter_init(rp_rate_limiter *rl, const rp_limiter_options *options);

/* Changes the options and keeps the counts. `options` must have passed rp_limiter_check(). */
void rp_rate_limiter_alter(rp_rate_limiter *rl, const rp_limiter_options *options);

/* Sets `carried` so that the difference (rp_rate_limiter_diff()) is half-way between its
 * bounds. If the table has fewer than min_size items, chooses `carried` so that the difference
 * will be half-way when the table has min_size items. If a bound is infinite, sets `carried` to
 * 0. */
void rp_rate_limiter_recenter(rp_rate_limiter *rl);

/* Returns the difference: inserts * samples_per_insert - samples + carried. The limiter keeps
 * the difference between options.min_diff and options.max_diff. */
static inline double rp_rate_limiter_diff(const rp_rate_limiter *rl)
{
    return (double)rl->inserts * rl->options.samples_per_insert - (double)rl->samples +
           rl->carried;
}

/* Zeroes the counts and `carried`. */
void rp_rate_limiter_reset(rp_rate_limiter *rl);

/* The next two functions return true if the limiter permits `n` (>= 1) more inserts or samples
 * now. They change nothing. */
static inline bool rp_rate_limiter_can_insert(const rp_rate_limiter *rl, int64_t n)
{
    const rp_limiter_options *o = &rl->options;

    assert(n >= 1 && rl->deletes >= 0 && rl->deletes <= rl->inserts); /* R1 */
    if (n <= o->min_size - (rl->inserts - rl->deletes)) return true;  /* cannot overflow */
    return ((double)rl->inserts + (double)n) * o->samples_per_insert - (double)rl->samples <=
           rl->max_diff;
}

static inline bool rp_rate_limiter_can_sample(const rp_rate_limiter *rl, int64_t n)
{
    const rp_limiter_options *o = &rl->options;

    assert(n >= 1 && rl->samples >= 0);
    if (rl->inserts - rl->deletes < o->min_size) return false;
    return (double)rl->inserts * o->samples_per_insert - (double)rl->samples - (double)n >=
           rl->min_diff;
}

/* Returns how many samples the limiter permits now, at most `wanted`. */
size_t rp_rate_limiter_samples_allowed(const rp_rate_limiter *rl, size_t wanted);

/* Both functions write to `text` why the next insert or sample must wait, and what would let it
 * proceed. They return `text`. */
char *rp_rate_limiter_why_no_insert(const rp_rate_limiter *rl, char *text, size_t size);
char *rp_rate_limiter_why_no_sample(const rp_rate_limiter *rl, char *text, size_t size);

#endif
