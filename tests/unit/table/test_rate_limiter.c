/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>

#include "support/unit.h"
#include "table/rate_limiter.h"
#include "util/rng.h"

static rp_rate_limiter at(rp_limiter_options options, int64_t inserts, int64_t samples,
                          int64_t deletes)
{
    rp_rate_limiter rl;

    rp_rate_limiter_init(&rl, &options);
    rl.inserts = inserts;
    rl.samples = samples;
    rl.deletes = deletes;
    return rl;
}

static bool can_insert(rp_limiter_options o, int64_t i, int64_t s, int64_t d, int64_t n)
{
    rp_rate_limiter rl = at(o, i, s, d);
    return rp_rate_limiter_can_insert(&rl, n);
}

static bool can_sample(rp_limiter_options o, int64_t i, int64_t s, int64_t d, int64_t n)
{
    rp_rate_limiter rl = at(o, i, s, d);
    return rp_rate_limiter_can_sample(&rl, n);
}

static void samples_wait_below_min_size_and_not_at_it(void **state)
{
    (void)state;
    rp_limiter_options o = rp_limiter_min_size(3);

    assert_false(can_sample(o, 2, 0, 0, 1));
    assert_true(can_sample(o, 3, 0, 0, 1));
    assert_true(can_sample(o, 3, 0, 0, 1000000)); /* and then as many as wanted */
    assert_false(can_sample(o, 3, 0, 1, 1));      /* a delete counts against it */
    assert_true(can_sample(o, 4, 0, 1, 1));
}

static void inserts_never_wait_with_min_size(void **state)
{
    (void)state;
    assert_true(can_insert(rp_limiter_min_size(1), 1000000, 0, 0, 1000000));
    assert_true(can_insert(rp_limiter_min_size(1), 0, 0, 0, 1));
}

static void bounds_of_diff_are_inclusive(void **state)
{
    (void)state;
    rp_limiter_options o = {2.0, 1, -4.0, 10.0};

    assert_true(can_sample(o, 5, 13, 0, 1)); /* 10 - 13 - 1 = -4 */
    assert_false(can_sample(o, 5, 13, 0, 2));
    assert_false(can_sample(o, 5, 14, 0, 1));
    assert_true(can_insert(o, 5, 2, 0, 1)); /* 12 - 2 = 10 */
    assert_false(can_insert(o, 5, 2, 0, 2));
    assert_false(can_insert(o, 5, 1, 0, 1));
}

static void inserts_up_to_min_size_never_wait(void **state)
{
    (void)state;
    rp_limiter_options o = {1.0, 5, 0.0, 2.0};

    assert_true(can_insert(o, 4, 0, 0, 1));
    assert_false(can_insert(o, 4, 0, 0, 2)); /* one of the two would be over both bounds */
    assert_false(can_insert(o, 5, 0, 0, 1));
    assert_true(can_insert(o, 105, 0, 101, 1)); /* 4 are left: the fifth is free */
    assert_false(can_insert(o, 105, 0, 100, 1));
}

static void largest_count_is_compared_like_any_other(void **state)
{
    (void)state;
    rp_limiter_options large = {1.0, INT64_MAX, 0.0, 2.0};

    assert_false(can_insert(rp_limiter_queue(3), 1, 0, 0, INT64_MAX));
    assert_false(can_insert(rp_limiter_queue(3), INT64_MAX, INT64_MAX, 1, INT64_MAX));
    assert_true(can_insert(rp_limiter_min_size(1), 1, 0, 0, INT64_MAX));
    assert_true(can_insert(large, 0, 0, 0, INT64_MAX)); /* up to min_size, exactly */
    assert_true(can_insert(large, 1, 0, 1, INT64_MAX));
    assert_false(can_insert(large, 1, 0, 0, INT64_MAX));
    assert_false(can_sample(rp_limiter_queue(3), 1, 0, 0, INT64_MAX));
    assert_true(can_sample(rp_limiter_min_size(1), 1, 0, 0, INT64_MAX));
}

static void ratio_centres_its_bounds_on_the_first_sample(void **state)
{
    (void)state;
    rp_limiter_options o = rp_limiter_ratio(4.0, 10, 8.0);

    assert_true(o.samples_per_insert == 4 && o.min_size == 10);
    assert_true(o.min_diff == 32 && o.max_diff == 48);
    assert_true(can_sample(o, 10, 0, 0, 8));
    assert_false(can_sample(o, 10, 0, 0, 9));
    assert_true(can_insert(o, 10, 0, 0, 2));
    assert_false(can_insert(o, 10, 0, 0, 3));
}

static void queue_holds_its_size_and_gives_each_once(void **state)
{
    (void)state;
    rp_limiter_options o = rp_limiter_queue(3), stack = rp_limiter_stack(3);

    assert_true(o.samples_per_insert == 1 && o.min_size == 1);
    assert_true(o.min_diff == 0 && o.max_diff == 3);
    assert_memory_equal(&o, &stack, sizeof o);
    assert_true(can_insert(o, 0, 0, 0, 3));
    assert_false(can_insert(o, 0, 0, 0, 4));
    assert_true(can_sample(o, 3, 0, 0, 3));
    assert_false(can_sample(o, 3, 0, 0, 4));
    assert_false(can_sample(o, 3, 3, 3, 1));
    assert_true(can_insert(o, 3, 1, 1, 1));
}

static void min_size_has_no_bounds_on_diff(void **state)
{
    (void)state;
    rp_limiter_options o = rp_limiter_min_size(7);

    assert_true(o.samples_per_insert == 1 && o.min_size == 7);
    assert_true(o.min_diff == -DBL_MAX && o.max_diff == DBL_MAX);
}

static void allowed_samples_equal_asking_one_by_one(void **state)
{
    (void)state;
    rp_rng rng;
    rp_rng_init(&rng, 1);

    for (size_t i = 0; i < rp_test_length(20000, 4000); i++) {
        rp_limiter_options o = {0.25 * (double)(1 + rp_rng_below(&rng, 20)),
                                1 + (int64_t)rp_rng_below(&rng, 4),
                                0.5 * (double)rp_rng_below(&rng, 40) - 10, 1e6};
        rp_rate_limiter rl =
            at(o, (int64_t)rp_rng_below(&rng, 30), (int64_t)rp_rng_below(&rng, 60),
               (int64_t)rp_rng_below(&rng, 3));
        size_t wanted = rp_rng_below(&rng, 70), n = 0;
        rp_rate_limiter walk = rl;

        while (n < wanted && rp_rate_limiter_can_sample(&walk, 1)) walk.samples++, n++;

        assert_int_equal(rp_rate_limiter_samples_allowed(&rl, wanted), n);
    }
}

static void reset_zeroes_the_counts_and_keeps_the_options(void **state)
{
    (void)state;
    rp_rate_limiter rl = at(rp_limiter_queue(2), 5, 4, 3);

    rp_rate_limiter_reset(&rl);

    assert_true(rl.inserts == 0 && rl.samples == 0 && rl.deletes == 0);
    assert_true(rl.options.max_diff == 2);
}

static void assert_refused(rp_limiter_options o, const char *part)
{
    rp_error err = {0};
    assert_fails(rp_limiter_check(&o, &err), RP_INVALID, &err, part);
}

static void assert_accepted(rp_limiter_options o)
{
    rp_error err = {0};
    assert_ok_err(rp_limiter_check(&o, &err), &err);
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    assert_refused((rp_limiter_options){0, 1, 0, 10},
                   "samples_per_insert must be in 1e-12 .. 1e+09, got 0");
    assert_refused((rp_limiter_options){0.9e-12, 1, 0, 10}, "got 9e-13");
    assert_refused((rp_limiter_options){1.1e9, 1, 0, 1e30}, "got 1.1e+09");
    assert_refused((rp_limiter_options){-1, 1, 0, 10}, "got -1");
    assert_refused((rp_limiter_options){NAN, 1, 0, 10}, "got nan");
    assert_refused((rp_limiter_options){INFINITY, 1, 0, 10}, "got inf");
    assert_refused((rp_limiter_options){1, 0, 0, 10}, "min_size must be >= 1, got 0");
    assert_refused((rp_limiter_options){1, INT64_MIN, 0, 10}, "min_size must be >= 1");
    assert_refused((rp_limiter_options){1, 1, NAN, 10}, "must be numbers");
    assert_refused((rp_limiter_options){1, 1, 0, NAN}, "must be numbers");
    assert_refused((rp_limiter_options){1, 1, 5, 4}, "min_diff 5 must be <= max_diff 4");
    assert_refused((rp_limiter_options){1, 1, 1e16, DBL_MAX}, "samples would wait for ever");
    assert_refused((rp_limiter_options){1, 1, INFINITY, INFINITY}, "make it at most 2^53");
    assert_refused((rp_limiter_options){1, 1, -DBL_MAX, -1e16}, "inserts would wait for ever");
    assert_refused((rp_limiter_options){1, 1, -INFINITY, -INFINITY}, "at least -2^53");
}

static void bounds_beyond_all_counts_are_no_bounds(void **state)
{
    (void)state;
    static const double huge[] = {1e12, 1e16, 1e30, 1e308, DBL_MAX, INFINITY};
    static const double ratios[] = {1e-12, 0.1, 1.0 / 3, 1, 2.5, 1e9};

    for (size_t i = 0; i < COUNT_OF(huge); i++)
        for (size_t j = 0; j < COUNT_OF(ratios); j++) {
            rp_limiter_options o = {ratios[j], 1, -huge[i], huge[i]};

            assert_accepted(o);
            assert_true(can_insert(o, 1, 0, 0, 1) && can_sample(o, 1, 0, 0, 1));
        }
}

static const double extremes[] = {
    0,    -0.0, 5e-324, DBL_MIN, 1e-300,   1e-12,  0.1,        0.5,         1,
    3,    1e3,  1e9,    1e12,    1e15,     0x1p52, 0x1p53,     0x1p53 + 2,  0x1p63,
    1e19, 1e30, 1e300,  DBL_MAX, INFINITY, NAN,    1e12 + 0.1, 1 - 0x1p-53, 1.0 / 3,
};

static double any_double(rp_rng *rng)
{
    uint64_t bits = rp_rng_next(rng);
    double value;

    if (rp_rng_below(rng, 2) == 0) {
        value = extremes[rp_rng_below(rng, COUNT_OF(extremes))];
        return rp_rng_below(rng, 2) == 0 ? value : -value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One side can go ahead at `inserts` and around them, wherever samples have come to. Counts and
 * bounds are small enough for diff to be exact, or off by as little as the check allows for. */
static void assert_never_stuck_near(const rp_limiter_options *o, int64_t inserts, rp_rng *rng)
{
    double spi = o->samples_per_insert;

    for (int i = 0; i < 20; i++) {
        double edge = rp_rng_below(rng, 2) == 0 ? o->max_diff - spi : o->min_diff + 1;
        double samples = (double)inserts * spi - edge + (double)rp_rng_below(rng, 7) - 3;

        if (!(samples >= 0 && samples < 1e12)) continue;
        if (!can_insert(*o, inserts, (int64_t)samples, 0, 1) &&
            !can_sample(*o, inserts, (int64_t)samples, 0, 1))
            fail_msg("spi %.17g, diff %.17g .. %.17g is stuck at (%lld, %.17g)", spi,
                     o->min_diff, o->max_diff, (long long)inserts, samples);
    }
}

/* The check of the code of before did not end for {1e30, 1, -1e30, 1e30}, nor for any ratio
 * whose float64 neighbours are further apart than g. */
static void any_numbers_are_decided_in_a_few_steps(void **state)
{
    (void)state;
    rp_limiter_options hangs = {1e30, 1, -1e30, 1e30};
    size_t count = rp_test_length(300000, 30000), accepted = 0;
    rp_rng rng;
    rp_rng_init(&rng, 9);

    assert_refused(hangs, "samples_per_insert must be in 1e-12 .. 1e+09, got 1e+30");
    for (size_t i = 0; i < count; i++) {
        rp_limiter_options o = {any_double(&rng),
                                (int64_t)rp_rng_next(&rng) >> rp_rng_below(&rng, 64),
                                any_double(&rng), any_double(&rng)};
        rp_rate_limiter rl;
        char text[RP_ERROR_TEXT_BYTES];

        if (rp_limiter_check(&o, NULL) != RP_OK) continue;
        accepted++;
        rl = at(o, (int64_t)RP_MAX_DIFF, (int64_t)rp_rng_below(&rng, 1u << 31), 0);
        assert_true(isfinite(rp_rate_limiter_diff(&rl)));
        rp_rate_limiter_recenter(&rl);
        assert_true(fabs(rl.carried) < RP_MAX_DIFF);
        assert_true(strlen(rp_rate_limiter_why_no_insert(&rl, text, sizeof text)) > 0);
        assert_true(strlen(rp_rate_limiter_why_no_sample(&rl, text, sizeof text)) > 0);
    }
    assert_true(accepted > count / 300);
}

static void accepted_limiters_with_large_numbers_are_never_stuck(void **state)
{
    (void)state;
    size_t count = rp_test_length(100000, 10000), accepted = 0;
    rp_rng rng;
    rp_rng_init(&rng, 10);

    for (size_t i = 0; i < count; i++) {
        double q = (double)(1u << rp_rng_below(&rng, 11));
        double spi = (double)(1 + rp_rng_below(&rng, 1u << rp_rng_below(&rng, 20))) / q;
        double low =
            floor((rp_rng_unit(&rng) - 0.5) * ldexp(1, (int)rp_rng_below(&rng, 40))) / q;
        double width = (spi + 1) * (0.9 + 0.2 * rp_rng_unit(&rng));
        rp_limiter_options o = {spi, 1, low, low + floor(width * q) / q};

        if (rp_limiter_check(&o, NULL) != RP_OK) continue;
        accepted++;
        assert_never_stuck_near(&o, 1 + (int64_t)rp_rng_below(&rng, 1u << 20), &rng);
    }
    assert_true(accepted > count / 100);
}

static void limiter_that_would_block_both_sides_is_refused(void **state)
{
    (void)state;
    assert_refused(rp_limiter_queue(0), "both wait for ever");
    assert_refused((rp_limiter_options){3, 1, 0, 2}, "both wait for ever");
    assert_refused((rp_limiter_options){1, 1, 0.5, 1.5}, "make it at least 2");
    assert_refused((rp_limiter_options){0.5, 1, 0, 0.75}, "make it at least 1.5");
    assert_refused(rp_limiter_ratio(2, 1, 0.5), "inserts * 2 - samples is 1");
}

/* A ratio that is nearly, but not quite, a small fraction drifts off its multiples, and comes
 * to a standstill after millions of steps. */
static void ratio_near_a_fraction_is_not_taken_for_it(void **state)
{
    (void)state;
    assert_refused(
        (rp_limiter_options){0.3333333333, 1, (1.0 / 3 - 1e-5) - 1, 1e-5 + 0.3333333333},
        "both wait for ever");
    assert_refused((rp_limiter_options){0.1000000001, 1, (0.1 - 2e-5) - 1, 2e-5 + 0.1000000001},
                   "both wait for ever");
    assert_refused((rp_limiter_options){1e-10, 1, -0.9, 0.05}, "both wait for ever");
}

static void least_buffer_of_a_ratio_is_accepted_for_fractions(void **state)
{
    (void)state;
    static const double ratios[] = {1.0 / 3, 0.1, 2.5, 7};
    static const int64_t sizes[] = {1, 10, 1000};

    for (size_t i = 0; i < COUNT_OF(ratios); i++)
        for (size_t j = 0; j < COUNT_OF(sizes); j++) {
            double least = fmax(1, ratios[i]);
            assert_accepted(rp_limiter_ratio(ratios[i], sizes[j], least + 1e-3));
            assert_accepted(rp_limiter_ratio(ratios[i], sizes[j], 10 * least));
        }
    /* Thirds as thirds: no multiple of 1/3 lies in the open interval (0.01, 0.33). */
    assert_accepted((rp_limiter_options){1.0 / 3, 1, 0.33 - 1, 0.01 + 1.0 / 3});
}

static void queue_of_one_is_accepted(void **state)
{
    (void)state;
    assert_accepted(rp_limiter_queue(1));
    assert_accepted(rp_limiter_stack(1));
    assert_accepted(rp_limiter_queue(1000000));
}

static void min_size_is_always_accepted(void **state)
{
    (void)state;
    assert_accepted(rp_limiter_min_size(1));
    assert_accepted(rp_limiter_min_size(INT64_MAX));
}

/* Reverb lets SampleToInsertRatio have any bounds with max_diff - min_diff >= 2 max(1, spi). */
static void every_legal_ratio_of_reverb_is_accepted(void **state)
{
    (void)state;
    rp_rng rng;
    rp_rng_init(&rng, 2);

    for (size_t i = 0; i < rp_test_length(20000, 4000); i++) {
        double spi = i % 3 == 0   ? (double)(1 + rp_rng_below(&rng, 64))
                     : i % 3 == 1 ? 0.1 * (double)(1 + rp_rng_below(&rng, 50))
                                  : 0.001 + 10 * rp_rng_unit(&rng);
        int64_t min_size = 1 + (int64_t)rp_rng_below(&rng, 100000);
        double least = spi > 1 ? spi : 1, extra = i % 2 == 0 ? 0 : 50 * rp_rng_unit(&rng);
        rp_limiter_options o = rp_limiter_ratio(spi, min_size, least + extra);

        if (o.max_diff - o.min_diff < 2 * least)
            continue; /* lost in rounding: Reverb refuses too */
        assert_accepted(o);
    }
}

enum { SMALL = 80 };

/* Walks every state with few inserts and samples that is reachable by allowed inserts and
 * samples (deletes only lift bounds on inserts, see below). True if both sides are stuck in one
 * of them. */
static bool gets_stuck(const rp_limiter_options *o, int64_t *inserts, int64_t *samples)
{
    static bool reached[SMALL + 2][4 * SMALL + 2];

    memset(reached, 0, sizeof reached);
    reached[0][0] = true;
    for (int64_t i = 0; i <= SMALL; i++)
        for (int64_t s = 0; s <= 4 * SMALL; s++) {
            bool insert, sample;
            if (!reached[i][s]) continue;
            insert = can_insert(*o, i, s, 0, 1);
            sample = can_sample(*o, i, s, 0, 1);
            reached[i + 1][s] |= insert;
            reached[i][s + 1] |= sample;
            *inserts = i, *samples = s;
            if (!insert && !sample) return true;
        }
    return false;
}

static void expect_check_to_be_right(rp_limiter_options o)
{
    rp_error err = {0};
    int64_t inserts = 0, samples = 0;
    bool refused = rp_limiter_check(&o, &err) != RP_OK;
    bool stuck = gets_stuck(&o, &inserts, &samples);

    if (refused != stuck)
        fail_msg("spi %.17g, min_size %lld, diff %.17g .. %.17g is %s, but %s (%lld, %lld)",
                 o.samples_per_insert, (long long)o.min_size, o.min_diff, o.max_diff,
                 refused ? "refused" : "accepted", stuck ? "gets stuck" : "never gets stuck",
                 (long long)inserts, (long long)samples);
}

static void check_refuses_exactly_the_stuck_whole_and_binary_ratios(void **state)
{
    (void)state;
    static const double ratios[] = {0.125, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 3.5};
    rp_rng rng;
    rp_rng_init(&rng, 3);

    for (size_t i = 0; i < rp_test_length(3000, 400); i++) {
        double spi = ratios[rp_rng_below(&rng, COUNT_OF(ratios))];
        double low = 0.125 * (double)rp_rng_below(&rng, 65) - 4;
        double width = 0.125 * (double)rp_rng_below(&rng, 48);
        expect_check_to_be_right(
            (rp_limiter_options){spi, 1 + (int64_t)rp_rng_below(&rng, 4), low, low + width});
    }
}

static void check_refuses_exactly_the_stuck_decimal_ratios(void **state)
{
    (void)state;
    static const double ratios[] = {0.1, 0.2, 0.3,     0.7,     0.9,
                                    1.1, 1.7, 1.0 / 3, 2.0 / 3, 4.0 / 3};
    rp_rng rng;
    rp_rng_init(&rng, 4);

    for (size_t i = 0; i < rp_test_length(3000, 400); i++) {
        double spi = ratios[rp_rng_below(&rng, COUNT_OF(ratios))];
        /* Not on the edges, where the rounding of inserts * spi decides. */
        double low = 0.1 * (double)rp_rng_below(&rng, 80) - 4 + 0.013;
        double width = 0.1 * (double)rp_rng_below(&rng, 40) + 0.004;
        expect_check_to_be_right(
            (rp_limiter_options){spi, 1 + (int64_t)rp_rng_below(&rng, 4), low, low + width});
    }
}

static void accepted_limiters_never_get_stuck_even_on_the_edges(void **state)
{
    (void)state;
    rp_rng rng;
    rp_rng_init(&rng, 5);

    for (size_t i = 0; i < rp_test_length(6000, 600); i++) {
        double q = (double)(2 + rp_rng_below(&rng, 40)),
               p = (double)(1 + rp_rng_below(&rng, 90));
        double low = (double)rp_rng_below(&rng, 200) / q - 3;
        double width = p / q + 1 + ((double)rp_rng_below(&rng, 5) - 2) / q;
        rp_limiter_options o = {p / q, 1 + (int64_t)rp_rng_below(&rng, 3), low, low + width};
        int64_t inserts, samples;

        if (rp_limiter_check(&o, NULL) != RP_OK || !gets_stuck(&o, &inserts, &samples))
            continue;
        fail_msg("spi %.17g, min_size %lld, diff %.17g .. %.17g gets stuck at (%lld, %lld)",
                 o.samples_per_insert, (long long)o.min_size, o.min_diff, o.max_diff,
                 (long long)inserts, (long long)samples);
    }
}

/* Deletes make room for inserts: with fewer than min_size items an insert always goes ahead,
 * and with that many or more deletes do not matter. */
static void deletes_never_block_an_accepted_limiter(void **state)
{
    (void)state;
    rp_rng rng;
    rp_rng_init(&rng, 6);

    for (size_t i = 0; i < rp_test_length(300, 60); i++) {
        rp_limiter_options o = {0.25 * (double)(1 + rp_rng_below(&rng, 12)),
                                1 + (int64_t)rp_rng_below(&rng, 5),
                                (double)rp_rng_below(&rng, 12) - 6, 0};
        rp_rate_limiter rl;
        o.max_diff = o.min_diff + 0.25 * (double)rp_rng_below(&rng, 40);
        if (rp_limiter_check(&o, NULL) != RP_OK) continue;
        rl = at(o, 0, 0, 0);
        for (int step = 0; step < 2000; step++) {
            bool insert = rp_rate_limiter_can_insert(&rl, 1);
            bool sample = rp_rate_limiter_can_sample(&rl, 1);
            assert_true(insert || sample);
            if (rl.inserts > rl.deletes && rp_rng_below(&rng, 3) == 0)
                rl.deletes++;
            else if (insert && (!sample || rp_rng_below(&rng, 2) == 0))
                rl.inserts++;
            else if (sample)
                rl.samples++;
        }
    }
}

/* Whatever a limiter becomes, and whatever it carries, one side can always go ahead. */
static void altered_limiters_never_block_both_sides(void **state)
{
    (void)state;
    rp_rng rng;
    rp_rate_limiter rl = at(rp_limiter_min_size(1), 0, 0, 0);
    rp_rng_init(&rng, 8);

    for (size_t i = 0; i < rp_test_length(2000, 400); i++) {
        rp_limiter_options o = {0.25 * (double)(1 + rp_rng_below(&rng, 12)),
                                1 + (int64_t)rp_rng_below(&rng, 5),
                                (double)rp_rng_below(&rng, 12) - 6.5, 0};
        o.max_diff = o.min_diff + 0.25 * (double)rp_rng_below(&rng, 40);
        if (rp_limiter_check(&o, NULL) != RP_OK) continue;
        rp_rate_limiter_alter(&rl, &o);
        if (rp_rng_below(&rng, 2) == 0) {
            rp_rate_limiter_recenter(&rl);
            assert_true(rl.carried == floor(rl.carried));
            assert_true(rl.inserts - rl.deletes < o.min_size ||
                        fabs(rp_rate_limiter_diff(&rl) - (o.min_diff + o.max_diff) / 2) <= 0.5);
        }
        for (int step = 0; step < 100; step++) {
            bool insert = rp_rate_limiter_can_insert(&rl, 1);
            bool sample = rp_rate_limiter_can_sample(&rl, 1);
            assert_true(insert || sample);
            if (rl.inserts > rl.deletes && rp_rng_below(&rng, 3) == 0)
                rl.deletes++;
            else if (insert && (!sample || rp_rng_below(&rng, 2) == 0))
                rl.inserts++;
            else if (sample)
                rl.samples++;
        }
    }
}

static void recentering_an_unbounded_limiter_carries_nothing(void **state)
{
    (void)state;
    rp_rate_limiter rl = at(rp_limiter_min_size(3), 100, 7, 1), huge = rl;

    rp_rate_limiter_recenter(&rl);
    assert_true(rl.carried == 0);
    huge.options.samples_per_insert = 1e308;
    rp_rate_limiter_recenter(&huge);

    assert_true(huge.carried == 0);
    assert_true(rp_rate_limiter_can_insert(&rl, 1) && rp_rate_limiter_can_sample(&rl, 1));
}

static void reason_for_a_waiting_insert_has_the_numbers(void **state)
{
    (void)state;
    rp_rate_limiter rl = at((rp_limiter_options){2, 1, -4, 10}, 7, 3, 0);
    char text[RP_ERROR_TEXT_BYTES];

    assert_string_equal(
        rp_rate_limiter_why_no_insert(&rl, text, sizeof text),
        "insert waits for samples: (7 inserts + 1) * 2 - 3 samples = 13 is over "
        "max_diff 10; 3 more samples would release it");
    rl.samples += 3;
    assert_true(rp_rate_limiter_can_insert(&rl, 1));
}

static void number_of_inserts_satisfies_both_bounds(void **state)
{
    (void)state;
    rp_rate_limiter rl = at((rp_limiter_options){4, 2, 32, 100}, 0, 0, 0);
    char text[RP_ERROR_TEXT_BYTES];

    assert_string_equal(rp_rate_limiter_why_no_sample(&rl, text, sizeof text),
                        "sample waits for inserts: the table has 0 items, min_size is 2, "
                        "min_diff 32; 9 more inserts would release it");
    rl.inserts = 8;
    assert_false(rp_rate_limiter_can_sample(&rl, 1));
    rl.inserts = 9;
    assert_true(rp_rate_limiter_can_sample(&rl, 1));
    rl.options.min_size = 10; /* now the first bound is the farther one */
    assert_string_equal(rp_rate_limiter_why_no_sample(&rl, text, sizeof text),
                        "sample waits for inserts: the table has 9 items, min_size is 10; 1 "
                        "more insert would release it");
}

static void reason_for_a_waiting_sample_has_the_numbers(void **state)
{
    (void)state;
    rp_rate_limiter rl = at((rp_limiter_options){0.5, 4, 0, 100}, 3, 0, 1);
    char text[RP_ERROR_TEXT_BYTES];

    assert_string_equal(
        rp_rate_limiter_why_no_sample(&rl, text, sizeof text),
        "sample waits for inserts: the table has 2 items, min_size is 4; 2 more "
        "inserts would release it");
    rl.inserts = 9;
    rl.samples = 4;
    assert_string_equal(rp_rate_limiter_why_no_sample(&rl, text, sizeof text),
                        "sample waits for inserts: 9 inserts * 0.5 - 4 samples - 1 = -0.5 is "
                        "under min_diff 0; 1 more insert would release it");
    rl.inserts++;
    assert_true(rp_rate_limiter_can_sample(&rl, 1));
}

/* The number of releases that the text promises is the smallest that is enough. */
static void promised_releases_are_exact(void **state)
{
    (void)state;
    rp_rng rng;
    rp_rng_init(&rng, 7);

    for (int i = 0; i < 5000; i++) {
        rp_limiter_options o = {0.25 * (double)(1 + rp_rng_below(&rng, 12)), 1, -2, 10};
        rp_rate_limiter rl =
            at(o, 1 + (int64_t)rp_rng_below(&rng, 40), (int64_t)rp_rng_below(&rng, 40), 0);
        char text[RP_ERROR_TEXT_BYTES];
        int64_t more = 0;

        if (!rp_rate_limiter_can_insert(&rl, 1)) {
            (void)rp_rate_limiter_why_no_insert(&rl, text, sizeof text);
            more = strtoll(strchr(text, ';') + 1, NULL, 10);
            rl.samples += more - 1;
            assert_false(rp_rate_limiter_can_insert(&rl, 1));
            rl.samples++;
            assert_true(rp_rate_limiter_can_insert(&rl, 1));
        } else if (!rp_rate_limiter_can_sample(&rl, 1)) {
            (void)rp_rate_limiter_why_no_sample(&rl, text, sizeof text);
            more = strtoll(strchr(text, ';') + 1, NULL, 10);
            rl.inserts += more - 1;
            assert_false(rp_rate_limiter_can_sample(&rl, 1));
            rl.inserts++;
            assert_true(rp_rate_limiter_can_sample(&rl, 1));
        }
    }
}

RP_TESTS(rate_limiter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_wait_below_min_size_and_not_at_it),
        cmocka_unit_test(inserts_never_wait_with_min_size),
        cmocka_unit_test(bounds_of_diff_are_inclusive),
        cmocka_unit_test(inserts_up_to_min_size_never_wait),
        cmocka_unit_test(largest_count_is_compared_like_any_other),
        cmocka_unit_test(ratio_centres_its_bounds_on_the_first_sample),
        cmocka_unit_test(queue_holds_its_size_and_gives_each_once),
        cmocka_unit_test(min_size_has_no_bounds_on_diff),
        cmocka_unit_test(allowed_samples_equal_asking_one_by_one),
        cmocka_unit_test(reset_zeroes_the_counts_and_keeps_the_options),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(bounds_beyond_all_counts_are_no_bounds),
        cmocka_unit_test(any_numbers_are_decided_in_a_few_steps),
        cmocka_unit_test(accepted_limiters_with_large_numbers_are_never_stuck),
        cmocka_unit_test(limiter_that_would_block_both_sides_is_refused),
        cmocka_unit_test(ratio_near_a_fraction_is_not_taken_for_it),
        cmocka_unit_test(least_buffer_of_a_ratio_is_accepted_for_fractions),
        cmocka_unit_test(queue_of_one_is_accepted),
        cmocka_unit_test(min_size_is_always_accepted),
        cmocka_unit_test(every_legal_ratio_of_reverb_is_accepted),
        cmocka_unit_test(check_refuses_exactly_the_stuck_whole_and_binary_ratios),
        cmocka_unit_test(check_refuses_exactly_the_stuck_decimal_ratios),
        cmocka_unit_test(accepted_limiters_never_get_stuck_even_on_the_edges),
        cmocka_unit_test(deletes_never_block_an_accepted_limiter),
        cmocka_unit_test(altered_limiters_never_block_both_sides),
        cmocka_unit_test(recentering_an_unbounded_limiter_carries_nothing),
        cmocka_unit_test(reason_for_a_waiting_insert_has_the_numbers),
        cmocka_unit_test(number_of_inserts_satisfies_both_bounds),
        cmocka_unit_test(reason_for_a_waiting_sample_has_the_numbers),
        cmocka_unit_test(promised_releases_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
