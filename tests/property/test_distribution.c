/* SPDX-License-Identifier: Apache-2.0 */
/* What is drawn at random is drawn with the probability that is reported: chi-square tests over
 * every random selector, with fixed seeds.
 *
 * The statistic sum((seen - expected)^2 / expected) over k cells has mean k - 1 and variance 2
 * (k - 1); we allow five standard deviations above the mean, which a right selector exceeds in
 * about one run of 10^5 with these cells, and with a fixed seed always or never. */
#include <math.h>

#include "support/fixture.h"
#include "util/rng.h"

enum { ITEMS = 64, FEW = 7, BATCH = 1000 };

static rp_test_bed bed;

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_table *make(rp_selector_kind kind, double exponent)
{
    rp_table_options o = rp_test_options("t", kind, RP_FIFO, 10000);
    o.sampler.exponent = exponent;
    return rp_test_bed_table(&bed, &o);
}

/* Cells that nothing is expected in must be empty. */
static void expect_fits(const double *seen, const double *expected, size_t count)
{
    double chi = 0, cells = 0;

    for (size_t i = 0; i < count; i++) {
        if (expected[i] == 0) {
            assert_true(seen[i] == 0);
            continue;
        }
        assert_true(expected[i] > 5); /* or the bound means nothing */
        chi += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
        cells++;
    }
    if (cells > 1 && chi > cells - 1 + 5 * sqrt(2 * (cells - 1)))
        fail_msg("chi-square is %g over %g cells", chi, cells);
}

/* Draws many and holds them against `weights`, by key; checks each reported probability too. */
static void expect_drawn_like(rp_table *t, const double *weights, size_t count)
{
    size_t draws = rp_test_scaled(400000, rp_test_length(100000, 50000)) / BATCH * BATCH;
    double *seen = calloc(count, sizeof *seen), *expected = calloc(count, sizeof *expected);
    double total = 0;
    rp_sample *s = calloc(BATCH, sizeof *s);
    rp_sample_options o = {.count = BATCH};
    assert_true(seen != NULL && expected != NULL && s != NULL);

    for (size_t i = 0; i < count; i++) total += weights[i];
    for (size_t i = 0; i < count; i++) expected[i] = weights[i] / total * (double)draws;
    for (size_t n = 0; n < draws; n += BATCH) {
        assert_int_equal(rp_test_draw_many(t, &o, s), BATCH);
        for (size_t i = 0; i < BATCH; i++) {
            assert_true(s[i].key < count);
            assert_true(fabs(s[i].probability / (weights[s[i].key] / total) - 1) < 1e-12);
            seen[s[i].key]++;
        }
    }
    expect_fits(seen, expected, count);
    free(seen);
    free(expected);
    free(s);
}

static void uniform_draws_are_uniform(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, 0);
    double weights[ITEMS];
    for (uint64_t key = 0; key < ITEMS; key++) {
        rp_test_put(t, key, (double)key, bed.plain);
        weights[key] = 1;
    }

    expect_drawn_like(t, weights, ITEMS);
}

static void prioritized_draws_follow_their_weights(void **state)
{
    (void)state;
    static const double exponents[] = {0, 0.5, 0.6, 1, 2, -0.4};

    for (size_t e = 0; e < COUNT_OF(exponents); e++) {
        double weights[ITEMS];
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, &(rp_store_options){.seed = 100 + e});
        rp_table *t = make(RP_PRIORITIZED, exponents[e]);
        for (uint64_t key = 0; key < ITEMS; key++) {
            double priority = key % 5 == 0 ? 0 : 0.5 + (double)(key % 11);
            rp_test_put(t, key, priority, bed.plain);
            weights[key] = priority == 0 ? 0 : pow(priority, exponents[e]);
        }
        expect_drawn_like(t, weights, ITEMS);
    }
}

static void items_without_weight_are_drawn_uniformly_when_alone(void **state)
{
    (void)state;
    rp_table *t = make(RP_PRIORITIZED, 0.6);
    double weights[ITEMS];
    for (uint64_t key = 0; key < ITEMS; key++) {
        rp_test_put(t, key, 0, bed.plain);
        weights[key] = 1;
    }

    expect_drawn_like(t, weights, ITEMS);
}

static void draws_are_right_after_many_changes(void **state)
{
    (void)state;
    enum { MANY = 400 };
    static const rp_selector_kind kinds[] = {RP_UNIFORM, RP_PRIORITIZED};

    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        double weights[MANY] = {0};
        rp_rng rng;
        rp_test_bed_deinit(&bed);
        rp_test_bed_init(&bed, &(rp_store_options){.seed = 200 + k});
        rp_table *t = make(kinds[k], 1);
        rp_rng_init(&rng, 3);
        for (int i = 0; i < 20000; i++) {
            uint64_t key = rp_rng_below(&rng, MANY);
            double priority = (double)rp_rng_below(&rng, 8);
            if (rp_rng_below(&rng, 3) == 0) {
                assert_ok(rp_table_delete(t, &key, 1, NULL, NULL));
                weights[key] = 0;
            } else {
                rp_test_put(t, key, priority, bed.plain);
                weights[key] = kinds[k] == RP_UNIFORM ? 1 : priority;
            }
        }
        expect_drawn_like(t, weights, MANY);
    }
}

/* Ordered pairs of a distinct batch of two: the first with w_i / W, the second with w_j / (W -
 * w_i). */
static void expect_pairs_like(rp_table *t, const double *weights)
{
    size_t draws = rp_test_scaled(200000, rp_test_length(60000, 10000));
    double seen[FEW * FEW] = {0}, expected[FEW * FEW] = {0}, total = 0;
    rp_sample_options two = {.count = 2, .distinct = true};
    rp_sample s[2];

    for (size_t i = 0; i < FEW; i++) total += weights[i];
    for (size_t i = 0; i < FEW; i++)
        for (size_t j = 0; j < FEW; j++)
            if (i != j)
                expected[i * FEW + j] =
                    weights[i] / total * weights[j] / (total - weights[i]) * (double)draws;
    for (size_t n = 0; n < draws; n++) {
        assert_int_equal(rp_test_draw_many(t, &two, s), 2);
        double first = weights[s[0].key], second = weights[s[1].key];
        assert_true(fabs(s[0].probability - first / total) < 1e-12);
        assert_true(fabs(s[1].probability - second / (total - first)) < 1e-12);
        seen[s[0].key * FEW + s[1].key]++;
    }
    expect_fits(seen, expected, FEW * FEW);
}

static void distinct_pairs_of_a_uniform_table_are_uniform(void **state)
{
    (void)state;
    rp_table *t = make(RP_UNIFORM, 0);
    double weights[FEW];
    for (uint64_t key = 0; key < FEW; key++) {
        rp_test_put(t, key, 1, bed.plain);
        weights[key] = 1;
    }

    expect_pairs_like(t, weights);
}

static void distinct_pairs_follow_the_remaining_weights(void **state)
{
    (void)state;
    static const double weights[FEW] = {1, 2, 3, 4, 5, 6, 30};
    rp_table *t = make(RP_PRIORITIZED, 1);
    for (uint64_t key = 0; key < FEW; key++) rp_test_put(t, key, weights[key], bed.plain);

    expect_pairs_like(t, weights);
}

static void distinct_pairs_of_items_without_weight_are_uniform(void **state)
{
    (void)state;
    static const double weights[FEW] = {1, 1, 1, 1, 1, 1, 1};
    rp_table *t = make(RP_PRIORITIZED, 1);
    for (uint64_t key = 0; key < FEW; key++) rp_test_put(t, key, 0, bed.plain);

    expect_pairs_like(t, weights);
}

/* In every batch of all items, each stands in each place: the last as often as the first if
 * uniform. */
static void whole_distinct_batches_are_fair_permutations(void **state)
{
    (void)state;
    size_t draws = rp_test_scaled(60000, rp_test_length(20000, 3000));
    double seen[FEW * FEW] = {0}, expected[FEW * FEW];
    rp_table *t = make(RP_UNIFORM, 0);
    rp_sample_options all = {.count = FEW, .distinct = true};
    rp_sample s[FEW];
    for (uint64_t key = 0; key < FEW; key++) rp_test_put(t, key, 1, bed.plain);

    for (size_t n = 0; n < draws; n++) {
        assert_int_equal(rp_test_draw_many(t, &all, s), FEW);
        for (size_t i = 0; i < FEW; i++) seen[i * FEW + s[i].key]++;
    }

    for (size_t i = 0; i < FEW * FEW; i++) expected[i] = (double)draws / FEW;
    expect_fits(seen, expected, FEW * FEW);
}

/* Fills a table of FEW items beyond its bound, again and again, and looks who had to go. */
static void expect_evicted_like(rp_selector_kind kind, double exponent,
                                const double *priorities, const double *weights)
{
    size_t rounds = rp_test_scaled(40000, rp_test_length(15000, 2000));
    double seen[FEW] = {0}, expected[FEW], total = 0;
    rp_table_options o = rp_test_options("t", RP_FIFO, kind, FEW - 1);
    rp_insert items[FEW];
    o.remover.exponent = exponent;
    rp_test_bed_deinit(&bed);
    rp_test_bed_init(&bed, NULL);
    rp_table *t = rp_test_bed_table(&bed, &o);
    for (uint64_t i = 0; i < FEW; i++) {
        items[i] = (rp_insert){.key = i, .priority = priorities[i], .trajectory = bed.plain};
        total += weights[i];
    }

    for (size_t n = 0; n < rounds; n++) {
        bool there[FEW] = {false};
        rp_sample_options all = {.count = FEW, .distinct = true};
        rp_sample s[FEW];
        assert_ok(rp_table_insert(t, items, FEW, rp_wait_none(), NULL, NULL));
        assert_int_equal(rp_test_draw_many(t, &all, s), FEW - 1);
        for (size_t i = 0; i < FEW - 1; i++) there[s[i].key] = true;
        for (size_t i = 0; i < FEW; i++) seen[i] += !there[i];
        assert_ok(rp_table_reset(t, NULL));
    }

    for (size_t i = 0; i < FEW; i++) expected[i] = weights[i] / total * (double)rounds;
    expect_fits(seen, expected, FEW);
}

static void removers_evict_with_their_probabilities(void **state)
{
    (void)state;
    static const double priorities[FEW] = {1, 2, 4, 8, 16, 32, 0};
    double weights[FEW];

    for (size_t i = 0; i < FEW; i++) weights[i] = 1;
    expect_evicted_like(RP_UNIFORM, 0, priorities, weights);
    for (size_t i = 0; i < FEW; i++)
        weights[i] = priorities[i] == 0 ? 0 : pow(priorities[i], -0.4);
    expect_evicted_like(RP_PRIORITIZED, -0.4, priorities, weights);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(distribution)
{
    const struct CMUnitTest tests[] = {
        TEST(uniform_draws_are_uniform),
        TEST(prioritized_draws_follow_their_weights),
        TEST(items_without_weight_are_drawn_uniformly_when_alone),
        TEST(draws_are_right_after_many_changes),
        TEST(distinct_pairs_of_a_uniform_table_are_uniform),
        TEST(distinct_pairs_follow_the_remaining_weights),
        TEST(distinct_pairs_of_items_without_weight_are_uniform),
        TEST(whole_distinct_batches_are_fair_permutations),
        TEST(removers_evict_with_their_probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
