/* SPDX-License-Identifier: Apache-2.0 */
/* Items of three server processes are drawn as if they were in one table: chi-square against
 * the distribution of that table. The shards are as uneven as can be, in number and in weight.
 *
 * RP_TEST_SCALE multiplies the number of draws. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"
#include "support/transports.h"

enum { ITEMS = 90, DRAWS = 60000 };
static const double exponent = 0.6;

/* Where an item is, and what it counts for. */
static size_t shard_of(size_t item)
{
    return item < 4 ? 0 : item < 24 ? 1 : 2;
}

static double priority_of(size_t item)
{
    if (item % 9 == 5) return 0; /* never drawn */
    return shard_of(item) == 0 ? 40 : 0.5 + (double)(item % 13);
}

/* Writes the items of a shard to it alone. */
static void fill_shard(rp_test_transport *t, const char *table, size_t shard,
                       uint64_t keys[ITEMS])
{
    rp_client *all = t->client;
    rp_trajectory_writer *w;
    char address[64];

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", t->servers[shard].port);
    assert_ok_err(
        rp_client_new(address, &(rp_client_options){.seed = 100 + shard}, &t->client, &t->err),
        &t->err);
    w = rp_test_writer(t, 4, 1);
    for (size_t i = 0; i < ITEMS; i++) {
        rp_ref ref;

        if (shard_of(i) != shard) continue;
        ref = rp_test_append(t, w, (int32_t)i);
        keys[i] = rp_test_create(t, w, table, priority_of(i), &ref, 1);
    }
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
    rp_client_free(t->client);
    t->client = all;
}

static size_t find(const uint64_t keys[ITEMS], uint64_t key)
{
    size_t i = 0;

    while (i < ITEMS && keys[i] != key) i++;
    assert_true(i < ITEMS);
    return i;
}

/* Draws and counts; what each sample says of itself must be true of all shards together. */
static void draw(rp_test_transport *t, const char *table, const uint64_t keys[ITEMS],
                 double total, bool ordered, size_t draws, size_t counts[ITEMS])
{
    rp_sampler_options options = {.table = table,
                                  .max_samples = (int64_t)draws,
                                  .ordered = ordered,
                                  .rate_limiter_timeout_ms = -1};
    rp_sampler *sampler = NULL;
    size_t n;

    assert_ok_err(rp_sampler_new(t->client, &options, &sampler, &t->err), &t->err);
    for (size_t done = 0; done < draws; done += n) {
        rp_sample out[100];

        assert_ok_err(rp_sampler_next(sampler, out, 100, &n, rp_test_soon(), &t->err), &t->err);
        for (size_t i = 0; i < n; i++) {
            size_t item = find(keys, out[i].key);
            double expected = pow(priority_of(item), exponent) / total;

            counts[item]++;
            assert_true(fabs(out[i].probability - expected) < 1e-9);
            assert_int_equal(out[i].table_size, ITEMS);
        }
        rp_samples_release(out, n);
    }
    rp_sampler_free(sampler);
}

static void try_draws(rp_test_transport *t, bool ordered)
{
    const char *table = rp_test_make_table(
        t, &(rp_table_options){.limiter = rp_limiter_min_size(1),
                               .sampler = {.kind = RP_PRIORITIZED, .exponent = exponent},
                               .max_size = 1000,
                               .seed = 21});
    size_t counts[ITEMS] = {0}, draws = rp_test_scaled(DRAWS, 20000), cells = 0;
    double total = 0, chi_square = 0;
    uint64_t keys[ITEMS];

    for (size_t shard = 0; shard < RP_TEST_SHARD_COUNT; shard++)
        fill_shard(t, table, shard, keys);
    for (size_t i = 0; i < ITEMS; i++)
        if (priority_of(i) > 0) total += pow(priority_of(i), exponent);
    assert_true(fabs(rp_test_table_sum(t, table).total_weight - total) < 1e-9 * total);
    draw(t, table, keys, total, ordered, draws, counts);
    for (size_t i = 0; i < ITEMS; i++) {
        double expected = (double)draws * pow(priority_of(i), exponent) / total;

        if (priority_of(i) == 0) {
            assert_int_equal(counts[i], 0);
            continue;
        }
        assert_true(expected > 20);
        chi_square +=
            ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
        cells++;
    }
    /* Wilson and Hilferty: a normal deviate of five happens once in some millions. */
    {
        double freedom = (double)cells - 1, v = 2 / (9 * freedom);
        double deviate = (cbrt(chi_square / freedom) - (1 - v)) / sqrt(v);

        if (deviate > 5 || deviate < -5)
            fail_msg("chi-square %g with %g degrees of freedom", chi_square, freedom);
    }
}

static void draws_over_shards_are_distributed_as_from_one_table(rp_test_transport *t)
{
    try_draws(t, false);
}

static void ordered_draws_over_shards_are_distributed_as_from_one_table(rp_test_transport *t)
{
    try_draws(t, true);
}

RP_TESTS(shards)
{
    static const rp_test_case cases[] = {
        RP_TEST_CASE_OVER(1 << RP_TEST_SHARDS,
                          draws_over_shards_are_distributed_as_from_one_table),
        RP_TEST_CASE_OVER(1 << RP_TEST_SHARDS,
                          ordered_draws_over_shards_are_distributed_as_from_one_table),
    };

    (void)setenv("RP_TEST_WAY", "three shards", 1); /* no others are needed */
    return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
}
