/* SPDX-License-Identifier: Apache-2.0 */
/* A sampler of a table in this process, direct or not. */
#include <unistd.h>

#include "client/sampler/local_source.h"
#include "client/sampler/sampler_inside.h"
#include "support/sources.h"

static rp_test_bed bed;
static rp_runtime *runtime;
static rp_error err;

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    assert_ok_err(rp_runtime_get(&runtime, &err), &err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_runtime_put(runtime);
    rp_test_bed_deinit(&bed);
    return 0;
}

static void await_parked(rp_table *t, int64_t count)
{
    for (int i = 0; i < 100000; i++) {
        if (rp_test_info_of(t).waiting_samples == count) return;
        (void)usleep(100);
    }
    fail_msg("no sample waits");
}

static rp_status open_local(void *ctx, size_t shard, const rp_source_options *options,
                            const rp_source_events *events, rp_source **out, rp_error *e)
{
    (void)ctx;
    (void)shard;
    return rp_local_source_open(&bed.alloc, runtime, bed.store, options, events, out, e);
}

static rp_sampler *open_sampler(rp_sampler_options o)
{
    rp_sampler_feed feed = {.shard_count = 1, .open = open_local};
    rp_sampler *s = NULL;

    o.table = "q";
    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &s, &err), &err);
    return s;
}

static void sampler_empties_a_queue_in_order(void **state)
{
    (void)state;
    rp_sampler *s;
    rp_sample samples[64];
    size_t n, expected = 0;
    rp_status st;

    rp_test_bed_fill(&bed, rp_test_bed_queue(&bed, "q"), 0, 1000);
    s = open_sampler(
        (rp_sampler_options){.rate_limiter_timeout_ms = 1000, .max_in_flight = 50});
    for (;;) {
        st = rp_sampler_next(s, samples, COUNT_OF(samples), &n, rp_wait_ms(10000), &err);
        if (st != RP_OK) break;
        for (size_t i = 0; i < n; i++) assert_int_equal(samples[i].key, expected++);
        rp_samples_release(samples, n);
    }
    assert_int_equal(expected, 1000);
    assert_fails(st, RP_DEADLINE, &err, "table 'q' timed out");
    rp_sampler_free(s);
}

/* Nothing is drawn before a call, and no more than it takes. */
static void a_direct_sampler_draws_when_it_is_asked(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    rp_sampler *s =
        open_sampler((rp_sampler_options){.rate_limiter_timeout_ms = -1, .direct = true});
    rp_sample samples[8];
    size_t n, expected = 0;

    rp_test_bed_fill(&bed, t, 0, 20);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rp_test_info_of(t).size, 20 - (int)expected);
        assert_ok_err(rp_sampler_next(s, samples, 8, &n, rp_wait_none(), &err), &err);
        assert_int_equal(n, i < 2 ? 8 : 4);
        for (size_t k = 0; k < n; k++) assert_int_equal(samples[k].key, expected++);
        rp_samples_release(samples, n);
    }
    assert_fails(rp_sampler_next(s, samples, 8, &n, rp_wait_none(), &err), RP_DEADLINE, &err,
                 "in time");
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0); /* it did not leave a request */
    rp_sampler_free(s);
}

static void a_direct_sampler_ends_with_its_table(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    rp_sampler *s =
        open_sampler((rp_sampler_options){.rate_limiter_timeout_ms = 30, .direct = true});
    rp_sample sample;
    size_t n;

    assert_fails(rp_sampler_next(s, &sample, 1, &n, rp_wait_ms(10000), &err), RP_DEADLINE, &err,
                 "table 'q' timed out");
    rp_sampler_free(s);
    s = open_sampler((rp_sampler_options){.rate_limiter_timeout_ms = -1, .direct = true});
    rp_table_close(t);
    assert_fails(rp_sampler_next(s, &sample, 1, &n, rp_wait_ms(10000), &err), RP_CANCELLED,
                 &err, "q");
    rp_sampler_free(s);
}

static void sampler_of_a_closed_table_ends(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    rp_sampler *s = open_sampler((rp_sampler_options){.rate_limiter_timeout_ms = -1});
    rp_sample sample;
    size_t n;

    await_parked(t, 1);
    rp_table_close(t);
    assert_fails(rp_sampler_next(s, &sample, 1, &n, rp_wait_ms(10000), &err), RP_CANCELLED,
                 &err, "q");
    rp_sampler_free(s);
}

/* Several threads take, others insert: every item comes exactly once. */
typedef struct consumer {
    pthread_t thread;
    rp_sampler *sampler;
    uint8_t *seen; /* of all together; atomic */
    size_t count;
    rp_status status;
} consumer;

enum { ITEMS = 4000, CONSUMERS = 4 };

static void *consume(void *arg)
{
    consumer *c = arg;
    rp_sample samples[17];
    size_t n;

    for (;;) {
        c->status = rp_sampler_next(c->sampler, samples, COUNT_OF(samples), &n,
                                    rp_wait_ms(20000), NULL);
        if (c->status != RP_OK) return NULL;
        for (size_t i = 0; i < n; i++)
            __atomic_fetch_add(&c->seen[samples[i].key], 1, __ATOMIC_RELAXED);
        c->count += n;
        rp_samples_release(samples, n);
    }
}

static void *insert_all(void *arg)
{
    rp_table *t = arg;

    for (uint64_t i = 0; i < ITEMS; i++)
        if (rp_test_try_put(t, i, 1, bed.plain, NULL) != RP_OK) return arg;
    return NULL;
}

static void consume_all(rp_sampler_options options, void *(*consumer_run)(void *))
{
    static uint8_t seen[ITEMS];
    rp_table *t = rp_test_bed_queue(&bed, "q");
    rp_sampler *s = open_sampler(options);
    consumer c[CONSUMERS];
    pthread_t inserter;
    void *failed;
    size_t total = 0;

    memset(seen, 0, sizeof seen);
    assert_int_equal(pthread_create(&inserter, NULL, insert_all, t), 0);
    for (size_t i = 0; i < CONSUMERS; i++) {
        c[i] = (consumer){.sampler = s, .seen = seen};
        assert_int_equal(pthread_create(&c[i].thread, NULL, consumer_run, &c[i]), 0);
    }
    for (size_t i = 0; i < CONSUMERS; i++) {
        assert_int_equal(pthread_join(c[i].thread, NULL), 0);
        assert_int_equal(c[i].status, RP_PRECONDITION);
        total += c[i].count;
    }
    assert_int_equal(pthread_join(inserter, &failed), 0);
    assert_null(failed);
    assert_int_equal(total, ITEMS);
    for (size_t i = 0; i < ITEMS; i++) assert_int_equal(seen[i], 1);
    rp_sampler_free(s);
}

static void several_consumers_get_every_item_once(void **state)
{
    (void)state;
    consume_all((rp_sampler_options){.rate_limiter_timeout_ms = -1,
                                     .max_in_flight = 20,
                                     .streams = 3,
                                     .max_samples = ITEMS},
                consume);
}

static void several_consumers_of_a_direct_sampler_get_every_item_once(void **state)
{
    (void)state;
    consume_all((rp_sampler_options){.rate_limiter_timeout_ms = -1,
                                     .max_in_flight = 20,
                                     .max_samples = ITEMS,
                                     .direct = true},
                consume);
}

/* A call that wants so many samples. */
typedef struct fetch {
    pthread_t thread;
    rp_sampler *sampler;
    size_t least, count;
    int64_t wait_ms;
    rp_status status;
    rp_sample samples[200];
} fetch;

static void *run_fetch(void *arg)
{
    fetch *f = arg;

    assert_true(f->least <= COUNT_OF(f->samples));
    f->status = rp_sampler_fetch(f->sampler, f->samples, f->least, f->least, &f->count,
                                 rp_wait_ms(f->wait_ms), NULL);
    rp_samples_release(f->samples, f->count);
    return NULL;
}

static fetch fetch_now(rp_sampler *s, size_t least, int64_t wait_ms)
{
    fetch f = {.sampler = s, .least = least, .wait_ms = wait_ms};

    (void)run_fetch(&f);
    return f;
}

static fetch *start_fetch(rp_sampler *s, size_t least)
{
    static fetch f;

    f = (fetch){.sampler = s, .least = least, .wait_ms = 20000};
    assert_int_equal(pthread_create(&f.thread, NULL, run_fetch, &f), 0);
    return &f;
}

static void expect_fetched(fetch *f)
{
    assert_int_equal(pthread_join(f->thread, NULL), 0);
    assert_int_equal(f->status, RP_OK);
    assert_int_equal(f->count, f->least);
}

static void a_direct_sampler_draws_nothing_after_a_wait(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    rp_sampler *s =
        open_sampler((rp_sampler_options){.rate_limiter_timeout_ms = -1, .direct = true});

    for (uint64_t i = 0; i < 5; i++) {
        fetch *f = start_fetch(s, 4);

        await_parked(t, 1);
        rp_test_bed_fill(&bed, t, 14 * i, 4);
        expect_fetched(f);
        rp_test_bed_fill(&bed, t, 14 * i + 4, 10);
        (void)usleep(1000); /* for a job that should not be there */
        assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
        assert_int_equal(rp_test_info_of(t).size, 10);
        assert_int_equal(fetch_now(s, 10, 20000).status, RP_OK); /* on this thread */
    }
    rp_sampler_free(s);
}

/* The first request has max_in_flight samples, the last only the rest. */
static void a_direct_sampler_requests_the_rest_of_a_large_call(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    rp_sampler *s = open_sampler((rp_sampler_options){
        .rate_limiter_timeout_ms = -1, .max_in_flight = 100, .direct = true});
    fetch *f = start_fetch(s, 150);

    await_parked(t, 1);
    rp_test_bed_fill(&bed, t, 0, 100);
    await_parked(t, 1);
    rp_test_bed_fill(&bed, t, 100, 50);
    expect_fetched(f);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
    assert_int_equal(rp_test_info_of(t).size, 0);
    rp_sampler_free(s);
}

/* Where samples are checked as they arrive, or come of several streams, callers do not draw,
 * and nothing waits for a whole request. */
static void a_sampler_that_cannot_be_direct_does_not_wait_for_more(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");

    for (int i = 0; i < 2; i++) {
        rp_sampler *s = open_sampler((rp_sampler_options){.rate_limiter_timeout_ms = -1,
                                                          .direct = true,
                                                          .checked = i == 0,
                                                          .streams = i == 0 ? 1 : 2});

        rp_test_bed_fill(&bed, t, 5 * (uint64_t)i, 5);
        assert_int_equal(fetch_now(s, 1, 20000).status, RP_OK);
        rp_sampler_free(s);
    }
}

static void a_smaller_call_does_not_wait_for_a_larger_one(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    rp_sampler *s =
        open_sampler((rp_sampler_options){.rate_limiter_timeout_ms = -1, .direct = true});
    fetch *f;

    assert_int_equal(fetch_now(s, 10, 1).status, RP_DEADLINE);
    await_parked(t, 1);
    rp_test_bed_fill(&bed, t, 0, 5); /* the waiting operation draws them */
    assert_int_equal(fetch_now(s, 5, 20000).status, RP_OK);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);

    assert_int_equal(fetch_now(s, 10, 1).status, RP_DEADLINE);
    await_parked(t, 1);
    rp_test_bed_fill(&bed, t, 5, 2);
    f = start_fetch(s, 4);
    rp_test_bed_fill(&bed, t, 7, 2);
    expect_fetched(f);
    rp_test_bed_fill(&bed, t, 9, 3);
    assert_int_equal(rp_test_info_of(t).size, 3);
    rp_sampler_free(s);
}

/* Takes samples in calls of different sizes, most of which do not wait long enough. */
static void *consume_by_calls(void *arg)
{
    consumer *c = arg;
    rp_sample samples[8];
    size_t n;

    for (size_t i = 0; c->status != RP_PRECONDITION; i++) {
        c->status = rp_sampler_fetch(c->sampler, samples, 1 + i * 5 % 8, COUNT_OF(samples), &n,
                                     rp_wait_ms((int64_t)(i % 3)), NULL);
        for (size_t k = 0; k < n; k++)
            __atomic_fetch_add(&c->seen[samples[k].key], 1, __ATOMIC_RELAXED);
        c->count += n;
        rp_samples_release(samples, n);
    }
    return NULL;
}

static void calls_of_any_size_get_every_item_once(void **state)
{
    (void)state;
    consume_all((rp_sampler_options){.rate_limiter_timeout_ms = 100000,
                                     .max_in_flight = 6,
                                     .max_samples = ITEMS,
                                     .direct = true},
                consume_by_calls);
}

RP_TESTS(local_sampler)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(sampler_empties_a_queue_in_order),
        T(sampler_of_a_closed_table_ends),
        T(several_consumers_get_every_item_once),
        T(several_consumers_of_a_direct_sampler_get_every_item_once),
        T(a_direct_sampler_draws_when_it_is_asked),
        T(a_direct_sampler_ends_with_its_table),
        T(a_direct_sampler_draws_nothing_after_a_wait),
        T(a_direct_sampler_requests_the_rest_of_a_large_call),
        T(a_sampler_that_cannot_be_direct_does_not_wait_for_more),
        T(a_smaller_call_does_not_wait_for_a_larger_one),
        T(calls_of_any_size_get_every_item_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
