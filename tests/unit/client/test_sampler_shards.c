/* SPDX-License-Identifier: Apache-2.0 */
/* Several shards: which is picked, with what probability, and the loss of one. */
#include <math.h>
#include <unistd.h>

#include "client/sampler/local_source.h"
#include "client/sampler/sampler_inside.h"
#include "support/sources.h"

static rp_test_bed bed;
static rp_runtime *runtime;
static rp_test_sources sources;
static rp_sampler *sampler;
static rp_error err;

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    assert_ok_err(rp_runtime_get(&runtime, &err), &err);
    sampler = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_sampler_free(sampler);
    rp_runtime_put(runtime);
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_sampler_options plain(void)
{
    return (rp_sampler_options){
        .table = "t", .rate_limiter_timeout_ms = -1, .max_in_flight = 20};
}

static void open_sampler(const rp_sampler_options *o)
{
    rp_sampler_feed feed = rp_test_sources_feed(&sources, 5);

    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, o, &sampler, &err), &err);
}

/* Waits for another weighing, one that began after this was called. Somebody has to ask for
 * samples meanwhile. */
static void await_weighing(void)
{
    size_t before = rp_test_sources_weighings(&sources);
    rp_sample sample;
    size_t n;

    for (int i = 0; i < 2000; i++) {
        if (rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(10), NULL) == RP_OK)
            rp_samples_release(&sample, n);
        if (rp_test_sources_weighings(&sources) < before + 2) continue;
        rp_mutex_lock(&sampler->mu);
        n = sampler->is_weighing;
        rp_mutex_unlock(&sampler->mu);
        if (n == 0) return;
    }
    fail_msg("nobody weighs");
}

/* Every source gives all that is wanted of it. */
static size_t give_all(void)
{
    size_t n = 0;

    for (size_t i = 0; i < sources.count; i++) n += rp_test_give(&sources, i, 64);
    return n;
}

/* Takes `count` samples, giving on the way; counts them by shard. */
static void take(size_t count, size_t *of_shard, double *probability, int64_t *table_size)
{
    rp_sample samples[32];
    size_t total = 0, n;

    for (int round = 0; total < count; round++) {
        size_t most = count - total < COUNT_OF(samples) ? count - total : COUNT_OF(samples);

        assert_true(round < 1000000);
        (void)give_all();
        if (rp_sampler_next(sampler, samples, most, &n, rp_wait_ms(1), &err) != RP_OK) continue;
        for (size_t i = 0; i < n; i++) {
            size_t shard = sources.all[samples[i].key / 1000000].shard;

            of_shard[shard]++;
            if (probability != NULL) probability[shard] = samples[i].probability;
            if (table_size != NULL) table_size[shard] = samples[i].table_size;
        }
        total += n;
        rp_samples_release(samples, n);
    }
}

static void shards_are_picked_in_proportion_to_their_weight(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        rp_sampler_options o = plain();
        size_t of_shard[3] = {0}, n = 20000;
        double probability[3];
        int64_t size[3];

        rp_test_sources_init(&sources, 3, bed.plain);
        for (size_t i = 0; i < 3; i++)
            sources.states[i] =
                (rp_shard_state){.weight = (double)(i + 1), .size = 10 * (int64_t)(i + 1)};
        o.ordered = ordered == 1;
        o.streams = 2;
        open_sampler(&o);
        for (size_t i = 0; i < 6; i++) sources.all[i].table_size = 10 + (int64_t)i / 2;

        take(n, of_shard, probability, size);

        for (size_t i = 0; i < 3; i++) {
            double share = (double)(i + 1) / 6, expected = share * (double)n;
            double sigma = sqrt(expected * (1 - share));

            assert_true(fabs((double)of_shard[i] - expected) < 5 * sigma);
            assert_true(fabs(probability[i] - 0.5 * share) < 1e-12);
        }
        assert_int_equal(size[0], 10 + 20 + 30); /* its own word for itself */
        assert_int_equal(size[1], 11 + 10 + 30);
        assert_int_equal(size[2], 12 + 10 + 20);
        rp_sampler_free(sampler);
        sampler = NULL;
    }
}

static void a_shard_without_weight_is_skipped_until_it_has_some(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    size_t of_shard[2] = {0};

    rp_test_sources_init(&sources, 2, bed.plain);
    sources.states[1] = (rp_shard_state){0};
    open_sampler(&o);

    take(200, of_shard, NULL, NULL);
    assert_int_equal(of_shard[1], 0);
    assert_int_equal(sources.all[1].most_wanted, 0);
    rp_test_sources_set(&sources, 1, (rp_shard_state){.weight = 1, .size = 10});
    await_weighing();
    take(400, of_shard, NULL, NULL);
    assert_true(of_shard[1] > 50);
}

static void when_all_weights_are_zero_sizes_count(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    size_t of_shard[2] = {0};
    double probability[2];

    rp_test_sources_init(&sources, 2, bed.plain);
    sources.states[0] = (rp_shard_state){.weight = 0, .size = 30};
    sources.states[1] = (rp_shard_state){.weight = 0, .size = 10};
    open_sampler(&o);

    take(1000, of_shard, probability, NULL);

    assert_true(fabs((double)of_shard[0] - 750) < 5 * sqrt(1000 * .25 * .75));
    assert_true(fabs(probability[0] - 0.5 * 0.75) < 1e-12);
}

static void order_over_shards_is_reproducible(void **state)
{
    (void)state;
    uint64_t keys[2][300];

    for (size_t run = 0; run < 2; run++) {
        rp_sampler_options o = plain();
        rp_sample samples[7];
        rp_rng rng;
        size_t total = 0, n;

        rp_test_sources_init(&sources, 3, bed.plain);
        for (size_t i = 0; i < 3; i++)
            sources.states[i] = (rp_shard_state){.weight = 1 + (double)i, .size = 5};
        o.ordered = true;
        o.streams = 2;
        open_sampler(&o);
        rp_rng_init(&rng, run);
        for (int round = 0; total < 300 && round < 1000000; round++) {
            (void)rp_test_give(&sources, rp_rng_below(&rng, 6), 1 + rp_rng_below(&rng, 5));
            if (rp_sampler_next(sampler, samples, total + 7 <= 300 ? 7 : 1, &n, rp_wait_none(),
                                NULL) != RP_OK)
                continue;
            for (size_t i = 0; i < n; i++) keys[run][total++] = samples[i].key;
            rp_samples_release(samples, n);
        }
        assert_int_equal(total, 300);
        rp_sampler_free(sampler);
        sampler = NULL;
    }
    assert_memory_equal(keys[0], keys[1], sizeof keys[0]);
}

static void max_samples_over_shards_are_exact(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    size_t of_shard[3] = {0}, n = 0, drawn = 0;
    rp_sample sample;

    rp_test_sources_init(&sources, 3, bed.plain);
    o.max_samples = 333;
    open_sampler(&o);
    take(333, of_shard, NULL, NULL);
    assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_forever(), &err),
                 RP_PRECONDITION, &err, "333");
    for (size_t i = 0; i < 3; i++) drawn += sources.all[i].given + sources.all[i].wanted;
    assert_int_equal(drawn, 333);
}

static void a_lost_shard_is_skipped_until_it_is_back(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    size_t of_shard[3] = {0}, before, wanted;

    rp_test_sources_init(&sources, 3, bed.plain);
    open_sampler(&o);
    take(100, of_shard, NULL, NULL);

    rp_test_reach(&sources, 1, false);
    wanted = rp_test_wanted(&sources.all[1]);
    for (int i = 0; i < 300; i++) { /* the others go on; of what it gave some may be left */
        (void)rp_test_give(&sources, 0, 64);
        (void)rp_test_give(&sources, 2, 64);
        rp_sample sample;
        size_t n;

        assert_ok_err(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(10000), &err), &err);
        rp_samples_release(&sample, 1);
    }
    assert_int_equal(rp_test_wanted(&sources.all[1]), wanted); /* nothing more was asked */

    rp_test_reach(&sources, 1, true);
    before = of_shard[1];
    take(300, of_shard, NULL, NULL);
    assert_true(of_shard[1] > before + 50);
    assert_true(sources.all[1].most_wanted <= 20);
}

static void a_shard_that_closed_its_table_is_skipped_until_weighed_again(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    size_t of_shard[2] = {0}, n, given;
    rp_sample sample;

    rp_test_sources_init(&sources, 2, bed.plain);
    open_sampler(&o);
    take(100, of_shard, NULL, NULL);
    rp_test_end(&sources, 0, RP_CANCELLED, "table 't' is closed");
    given = sources.all[0].given;
    take(100, of_shard, NULL, NULL);
    assert_true(sources.all[0].given >= given);
    await_weighing();
    take(200, of_shard, NULL, NULL);
    assert_true(sources.all[0].given > given);
    rp_test_end(&sources, 0, RP_CANCELLED, "table 't' is closed");
    rp_test_end(&sources, 1, RP_CANCELLED, "table 't' is closed too");
    for (int i = 0; i < 100; i++) {
        rp_status st = rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(10000), &err);

        if (st == RP_OK) {
            rp_samples_release(&sample, 1);
            continue;
        }
        assert_int_equal(st, RP_CANCELLED);
        return;
    }
    fail();
}

static void empty_shards_time_out(void **state)
{
    (void)state;
    for (int timeout_ms = 0; timeout_ms < 31; timeout_ms += 30) {
        rp_sampler_options o = plain();
        rp_sample sample;
        size_t n;
        int64_t begin_ns;

        rp_test_sources_init(&sources, 3, bed.plain);
        for (size_t i = 0; i < 3; i++) sources.states[i] = (rp_shard_state){0};
        o.rate_limiter_timeout_ms = timeout_ms;
        open_sampler(&o);
        begin_ns = rp_now_ns();
        assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(20000), &err),
                     RP_DEADLINE, &err, "no shard has an item");
        assert_true(rp_now_ns() - begin_ns >= (int64_t)timeout_ms * 1000000);
        rp_sampler_free(sampler);
        sampler = NULL;
    }
}

static void *take_one(void *arg)
{
    rp_sample sample;
    size_t n;
    rp_status *st = arg;

    *st = rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(20000), NULL);
    if (*st == RP_OK) rp_samples_release(&sample, n);
    return NULL;
}

static void timeout_counts_for_the_awaited_shard(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    rp_sample sample;
    size_t n, at;
    bool waits = false;
    char text[100];
    pthread_t thread;
    rp_status st;

    rp_test_sources_init(&sources, 2, bed.plain);
    o.rate_limiter_timeout_ms = 5000;
    open_sampler(&o);
    /* Nobody waits: swallowed. */
    for (int i = 0; i < 10000 && rp_test_wanted(&sources.all[0]) == 0; i++) (void)usleep(1000);
    rp_test_end(&sources, 0, RP_DEADLINE, "timed out");
    rp_test_end(&sources, 1, RP_DEADLINE, "timed out");
    assert_true(rp_test_wanted(&sources.all[0]) > 0 && rp_test_wanted(&sources.all[1]) > 0);
    /* Take until the next one is to come from a shard that has given nothing. */
    (void)rp_test_give(&sources, 0, 64);
    while (rp_sampler_next(sampler, &sample, 1, &n, rp_wait_none(), &err) == RP_OK)
        rp_samples_release(&sample, 1);
    rp_mutex_lock(&sampler->mu);
    at = sampler->schedule[sampler->schedule_first].lane;
    rp_mutex_unlock(&sampler->mu);
    assert_int_equal(at, 1);
    rp_test_end(&sources, 1, RP_DEADLINE, "swallowed");
    assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_none(), &err), RP_DEADLINE,
                 &err, "in time"); /* goes on */
    /* Somebody waits for the second. */
    assert_int_equal(pthread_create(&thread, NULL, take_one, &st), 0);
    for (int i = 0; i < 10000 && !waits; i++) {
        rp_mutex_lock(&sampler->mu);
        waits = sampler->first != NULL;
        rp_mutex_unlock(&sampler->mu);
        (void)usleep(500);
    }
    rp_test_end(&sources, 0, RP_DEADLINE, "swallowed");
    rp_sampler_why(sampler, text, sizeof text);
    assert_string_equal(text, "table 't', shard 1 of 2: source 1 rests");
    rp_test_end(&sources, 1, RP_DEADLINE, "final");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(st, RP_DEADLINE);
    assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_none(), &err), RP_DEADLINE,
                 &err, "final");
}

static void a_failed_weighing_is_retried(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    size_t of_shard[2] = {0}, n;
    rp_sample sample;
    char text[200];

    rp_test_sources_init(&sources, 2, bed.plain);
    sources.weigh_status = RP_UNAVAILABLE;
    open_sampler(&o);
    assert_int_equal(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(50), &err),
                     RP_DEADLINE);
    rp_sampler_why(sampler, text, sizeof text);
    assert_non_null(strstr(text, "scales are broken"));
    pthread_mutex_lock(&sources.mu);
    sources.weigh_status = RP_OK;
    pthread_mutex_unlock(&sources.mu);
    take(50, of_shard, NULL, NULL);
}

static void expect_end_by_weighing(rp_status status)
{
    rp_sampler_options o = plain();
    size_t of_shard[2] = {0}, n;
    rp_sample sample;

    rp_test_sources_init(&sources, 2, bed.plain);
    open_sampler(&o);
    take(50, of_shard, NULL, NULL);
    rp_test_end(&sources, 0, RP_CANCELLED, "the client gave up");
    pthread_mutex_lock(&sources.mu);
    sources.weigh_status = status;
    pthread_mutex_unlock(&sources.mu);
    for (int i = 0; i < 100000; i++) {
        rp_status st = rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(10000), &err);

        if (st == RP_OK) rp_samples_release(&sample, 1);
        if (st == RP_OK) continue;
        assert_int_equal(st, status);
        return;
    }
    fail();
}

static void a_missing_table_ends_the_sampler(void **state)
{
    (void)state;
    expect_end_by_weighing(RP_NOT_FOUND);
}

/* Also if a weighing that has begun before takes the first shard back into use. */
static void a_client_that_gives_up_ends_the_sampler(void **state)
{
    (void)state;
    expect_end_by_weighing(RP_CANCELLED);
}

static void shards_that_are_not_random_take_turns(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        rp_sampler_options o = plain();
        size_t of_shard[3] = {0};
        double probability[3];

        rp_test_sources_init(&sources, 3, bed.plain);
        for (size_t i = 0; i < 3; i++)
            sources.states[i] =
                (rp_shard_state){.weight = 1 + 10 * (double)i, .size = 5, .by_turns = true};
        o.ordered = ordered == 1;
        open_sampler(&o);
        take(300, of_shard, probability, NULL);
        for (size_t i = 0; i < 3; i++) {
            assert_in_range(of_shard[i], 90, 110);
            assert_true(probability[i] == 0.5);
        }
        rp_sampler_free(sampler);
        sampler = NULL;
    }
}

static void an_empty_shard_does_not_delay_turns(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    rp_sample sample;
    size_t n;

    rp_test_sources_init(&sources, 3, bed.plain);
    for (size_t i = 0; i < 3; i++)
        sources.states[i] =
            (rp_shard_state){.weight = i == 1, .size = i == 1 ? 5 : 0, .by_turns = true};
    o.max_samples = 4;
    open_sampler(&o);
    for (size_t i = 0; i < 4; i++) {
        for (int round = 0;; round++) {
            assert_true(round < 1000);
            (void)rp_test_give(&sources, 1, 64); /* the others have nothing, ever */
            if (rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(20), &err) == RP_OK) break;
            assert_int_equal(err.code, RP_DEADLINE);
        }
        assert_int_equal(sample.key, 1000000 + i);
        rp_samples_release(&sample, 1);
    }
}

static void remaining_samples_are_requested_from_shards_with_items(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    rp_sample out[4];
    size_t n;

    rp_test_sources_init(&sources, 3, bed.plain);
    for (size_t i = 0; i < 3; i++)
        sources.states[i] =
            (rp_shard_state){.weight = i > 0, .size = i > 0 ? 5 : 0, .by_turns = true};
    o.max_samples = 4;
    open_sampler(&o);
    for (int ms = 0; rp_test_wanted(&sources.all[2]) == 0; ms++) {
        assert_true(ms < 10000);
        (void)usleep(1000);
    }
    assert_int_equal(rp_test_wanted(&sources.all[0]), 0);
    assert_int_equal(rp_test_wanted(&sources.all[1]), 2);
    assert_int_equal(rp_test_wanted(&sources.all[2]), 2);
    /* One keeps what it was asked for to itself: as soon as that is waited for, the other is
     * asked as well. */
    assert_int_equal(rp_test_give(&sources, 1, 64), 2);
    assert_ok_err(rp_sampler_next(sampler, out, 4, &n, rp_wait_ms(10000), &err), &err);
    assert_int_equal(n, 2);
    rp_samples_release(out, n);
    assert_int_equal(rp_sampler_next(sampler, out, 4, &n, rp_wait_ms(1), &err), RP_DEADLINE);
    assert_int_equal(rp_test_wanted(&sources.all[0]), 0);
    assert_int_equal(rp_test_wanted(&sources.all[1]), 1);
    assert_int_equal(rp_test_wanted(&sources.all[2]), 2);
}

enum { SHARDS = 3, KEYS = 60 };
static rp_store *stores[SHARDS];
static rp_table *tables[SHARDS];
static const double exponent = 0.6;

static double priority_of(uint64_t key)
{
    return key % 7 == 0 ? 0 : (double)(1 + key % 11);
}

static size_t shard_of(uint64_t key)
{
    return key < 5 ? 0 : key < 25 ? 1 : 2; /* uneven */
}

static rp_status open_store(void *ctx, size_t shard, const rp_source_options *options,
                            const rp_source_events *events, rp_source **out, rp_error *e)
{
    (void)ctx;
    return rp_local_source_open(&bed.alloc, runtime, stores[shard], options, events, out, e);
}

static rp_status weigh_stores(void *ctx, const char *table, rp_wait wait, rp_shard_state *out,
                              rp_error *e)
{
    (void)table;
    (void)ctx;
    (void)wait;
    (void)e;
    for (uint64_t key = 0; key < KEYS; key++) {
        double priority = priority_of(key);

        out[shard_of(key)].weight += priority > 0 ? pow(priority, exponent) : 0;
        out[shard_of(key)].size++;
    }
    return RP_OK;
}

static void make_stores(void)
{
    for (size_t i = 0; i < SHARDS; i++) {
        rp_store_options so = {.alloc = &bed.alloc, .seed = 100 + i};
        rp_table_options to = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 1000);

        to.sampler.exponent = exponent;
        assert_ok_err(rp_store_new(&so, &stores[i], &err), &err);
        assert_ok_err(rp_store_add_table(stores[i], &to, &tables[i], &err), &err);
    }
}

static void free_stores(void)
{
    for (size_t i = 0; i < SHARDS; i++) rp_store_free(stores[i]);
}

/* An item is as likely over three shards as in one table; and what is reported is that. */
static void global_probabilities_are_those_of_one_table(void **state)
{
    (void)state;
    enum { DRAWS = 60000 };
    rp_trajectory *own[SHARDS];
    double total = 0, chi = 0, bound;
    size_t counts[KEYS] = {0}, n, drawn = 0, cells = 0;
    rp_sampler_feed feed = {
        .shard_count = SHARDS, .open = open_store, .weigh = weigh_stores, .seed = 77};
    rp_sampler_options o = plain();
    rp_sample samples[100];

    make_stores();
    for (size_t i = 0; i < SHARDS; i++) /* a chunk belongs to one store */
        own[i] = rp_test_blob_trajectory(&bed.alloc, 9000 + i, 1, 10);
    for (uint64_t key = 0; key < KEYS; key++) {
        rp_test_put(tables[shard_of(key)], key, priority_of(key), own[shard_of(key)]);
        if (priority_of(key) > 0) total += pow(priority_of(key), exponent);
    }
    o.beta = 0.5;
    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), &err);
    while (drawn < DRAWS) {
        double largest = 0;

        assert_ok_err(rp_sampler_next(sampler, samples, 100, &n, rp_wait_ms(20000), &err),
                      &err);
        for (size_t i = 0; i < n; i++) {
            double p = pow(samples[i].priority, exponent) / total;

            assert_true(fabs(samples[i].probability - p) < 1e-9);
            assert_int_equal(samples[i].table_size, KEYS);
            largest = fmax(largest, samples[i].weight);
            counts[samples[i].key]++;
        }
        for (size_t i = 1; i < n; i++) /* (N p)^-beta, up to one factor */
            assert_true(fabs(samples[i].weight * sqrt(samples[i].probability) -
                             samples[0].weight * sqrt(samples[0].probability)) < 1e-9);
        assert_true(largest == 1);
        drawn += n;
        rp_samples_release(samples, n);
    }
    for (uint64_t key = 0; key < KEYS; key++) {
        double expected =
            priority_of(key) > 0 ? pow(priority_of(key), exponent) / total * (double)drawn : 0;

        if (expected == 0) {
            assert_int_equal(counts[key], 0);
            continue;
        }
        chi += ((double)counts[key] - expected) * ((double)counts[key] - expected) / expected;
        cells++;
    }
    /* Mean and deviation of the distribution; five of them are about one in a million. */
    bound = (double)(cells - 1) + 5 * sqrt(2 * (double)(cells - 1));
    assert_true(chi < bound);
    rp_sampler_free(sampler);
    sampler = NULL;
    for (size_t i = 0; i < SHARDS; i++) rp_trajectory_unref(own[i]);
    free_stores();
}

RP_TESTS(sampler_shards)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(shards_are_picked_in_proportion_to_their_weight),
        T(a_shard_without_weight_is_skipped_until_it_has_some),
        T(when_all_weights_are_zero_sizes_count),
        T(order_over_shards_is_reproducible),
        T(max_samples_over_shards_are_exact),
        T(a_lost_shard_is_skipped_until_it_is_back),
        T(a_shard_that_closed_its_table_is_skipped_until_weighed_again),
        T(empty_shards_time_out),
        T(timeout_counts_for_the_awaited_shard),
        T(a_failed_weighing_is_retried),
        T(a_missing_table_ends_the_sampler),
        T(a_client_that_gives_up_ends_the_sampler),
        T(shards_that_are_not_random_take_turns),
        T(an_empty_shard_does_not_delay_turns),
        T(remaining_samples_are_requested_from_shards_with_items),
        T(global_probabilities_are_those_of_one_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
