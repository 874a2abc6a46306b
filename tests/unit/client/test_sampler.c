/* SPDX-License-Identifier: Apache-2.0 */
/* One shard: order, credit, ends, waits. */
#include <unistd.h>

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
    rp_test_sources_init(&sources, 1, bed.plain);
    sampler = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_sampler_free(sampler);
    for (size_t i = 0; i < sources.count; i++) assert_true(sources.all[i].closed);
    rp_runtime_put(runtime);
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_sampler_options plain(void)
{
    return (rp_sampler_options){.table = "t", .rate_limiter_timeout_ms = -1};
}

static void open_sampler(const rp_sampler_options *o)
{
    rp_sampler_feed feed = rp_test_sources_feed(&sources, 5);

    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, o, &sampler, &err), &err);
}

/* Takes what is there without waiting; writes the keys. */
static size_t take(uint64_t *keys, size_t capacity)
{
    rp_sample samples[256];
    size_t n = 0;

    assert_true(capacity <= COUNT_OF(samples));
    if (rp_sampler_next(sampler, samples, capacity, &n, rp_wait_none(), &err) != RP_OK)
        return 0;
    for (size_t i = 0; i < n && keys != NULL; i++) keys[i] = samples[i].key;
    rp_samples_release(samples, n);
    return n;
}

/* Ends as it should, and every later call the same. */
static void expect_end(rp_status status, const char *part)
{
    rp_sample sample;
    size_t n;

    for (int i = 0; i < 2; i++)
        assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(10000), &err), status,
                     &err, part);
}

typedef struct taker {
    pthread_t thread;
    rp_wait wait;
    size_t capacity;
    rp_sample samples[256];
    size_t count;
    rp_status status;
    rp_error err;
} taker;

static void *run_taker(void *arg)
{
    taker *t = arg;

    t->status = rp_sampler_next(sampler, t->samples, t->capacity, &t->count, t->wait, &t->err);
    return NULL;
}

static void start(taker *t, rp_wait wait)
{
    memset(t, 0, sizeof *t);
    t->wait = wait;
    t->capacity = 1;
    assert_int_equal(pthread_create(&t->thread, NULL, run_taker, t), 0);
}

static void finish(taker *t, rp_status status)
{
    assert_int_equal(pthread_join(t->thread, NULL), 0);
    assert_int_equal(t->status, status);
    if (status == RP_OK) rp_samples_release(t->samples, t->count);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    rp_sampler_feed feed = rp_test_sources_feed(&sources, 5);
    rp_sampler_options o = plain();

    o.table = NULL;
    assert_fails(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), RP_INVALID,
                 &err, "table");
    o = plain();
    o.max_samples = -1;
    assert_fails(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), RP_INVALID,
                 &err, "max_samples must be >= 0, got -1");
    o = plain();
    o.max_in_flight = 1 << 23;
    assert_fails(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), RP_INVALID,
                 &err, "8388608 in flight");
    o = plain();
    o.streams = 1025;
    assert_fails(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), RP_INVALID,
                 &err, "got 1025");
    o = plain();
    o.beta = -1;
    assert_fails(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), RP_INVALID,
                 &err, "beta");
    assert_int_equal(sources.count, 0);
}

static void a_source_that_cannot_be_made_closes_the_others(void **state)
{
    (void)state;
    rp_sampler_feed feed = rp_test_sources_feed(&sources, 5);
    rp_sampler_options o = plain();

    o.streams = 3;
    sources.fail_at = 2;

    assert_fails(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), RP_DENIED,
                 &err, "not for you");

    assert_int_equal(sources.count, 2);
}

static void an_output_of_zero_samples_is_refused(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    rp_sample sample;
    size_t n;

    open_sampler(&o);
    assert_fails(rp_sampler_next(sampler, &sample, 0, &n, rp_wait_none(), &err), RP_INVALID,
                 &err, "capacity");
}

static void one_stream_gives_samples_in_order(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    uint64_t keys[256];
    size_t expected = 0;

    o.max_in_flight = 7;
    open_sampler(&o);
    for (int round = 0; round < 200; round++) {
        size_t n;

        (void)rp_test_give(&sources, 0, 1 + (size_t)round % 5);
        n = take(keys, 1 + (size_t)round % 4);
        for (size_t i = 0; i < n; i++) assert_int_equal(keys[i], expected++);
    }
    assert_true(expected > 300);
}

static void never_more_than_max_in_flight_are_prefetched(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    size_t ahead[2] = {0, 0}, taken = 0;
    rp_rng rng;

    o.max_in_flight = 10;
    o.streams = 2;
    open_sampler(&o);
    rp_rng_init(&rng, 3);
    assert_int_equal(rp_test_wanted(&sources.all[0]), 10);
    assert_int_equal(rp_test_wanted(&sources.all[1]), 10);
    for (int round = 0; round < 2000; round++) {
        size_t given;

        (void)rp_test_give(&sources, rp_rng_below(&rng, 2), 1 + rp_rng_below(&rng, 10));
        for (size_t i = 0; i < 2; i++) {
            ahead[i] = rp_test_wanted(&sources.all[i]);
            assert_true(ahead[i] <= 10);
        }
        given = sources.all[0].given + sources.all[1].given;
        assert_true(ahead[0] + ahead[1] + given - taken <= 20);
        taken += take(NULL, 1 + rp_rng_below(&rng, 20));
    }
    assert_true(taken > 2000);
}

static void small_requests_are_batched(void **state)
{
    (void)state;
    rp_sampler_options o = plain();

    o.max_in_flight = 10;
    open_sampler(&o);
    assert_int_equal(rp_test_give(&sources, 0, 6), 6);
    for (int i = 0; i < 4; i++) assert_int_equal(take(NULL, 1), 1);
    assert_int_equal(rp_test_wanted(&sources.all[0]), 4); /* 4 wanted, 2 ready, 4 free */
    assert_int_equal(take(NULL, 1), 1);
    assert_int_equal(rp_test_wanted(&sources.all[0]), 9);
}

static void samples_beyond_the_request_are_dropped(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    rp_test_source *t;

    o.max_in_flight = 3;
    open_sampler(&o);
    t = &sources.all[0];
    t->wanted += 5;
    assert_int_equal(rp_test_give(&sources, 0, 8), 8);

    assert_int_equal(take(NULL, 100), 3);
}

static void options_reach_the_sources(void **state)
{
    (void)state;
    rp_sampler_options o = plain();

    o.max_in_flight = 12;
    o.streams = 3;
    o.max_per_stream = 77;
    o.rate_limiter_timeout_ms = 99;
    open_sampler(&o);
    assert_int_equal(sources.count, 3);
    assert_string_equal(sources.all[2].options.table, "t");
    assert_int_equal(sources.all[2].options.request_samples, 12);
    assert_int_equal(sources.all[2].options.max_per_stream, 77);
    assert_int_equal(sources.all[2].options.rate_limiter_timeout_ms, 99);
}

/* Runs three streams that answer in an order of their own; writes the keys that come. */
static void run_ordered(uint64_t seed, uint64_t *keys, size_t count)
{
    rp_sampler_feed feed;
    rp_sampler_options o = plain();
    size_t n = 0;
    rp_rng rng;

    rp_test_sources_init(&sources, 1, bed.plain);
    feed = rp_test_sources_feed(&sources, 11);
    o.streams = 3;
    o.ordered = true;
    o.max_in_flight = 8;
    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), &err);
    rp_rng_init(&rng, seed);
    for (int round = 0; n < count && round < 100000; round++) {
        (void)rp_test_give(&sources, rp_rng_below(&rng, 3), 1 + rp_rng_below(&rng, 4));
        n += take(keys + n, count - n < 5 ? count - n : 5);
    }
    assert_int_equal(n, count);
    rp_sampler_free(sampler);
    sampler = NULL;
}

static void ordered_streams_do_not_depend_on_response_order(void **state)
{
    (void)state;
    uint64_t a[200], b[200], next[3] = {0, 0, 0};

    run_ordered(1, a, 200);
    run_ordered(2, b, 200);

    assert_memory_equal(a, b, sizeof a);
    for (size_t i = 0; i < 200; i++) { /* and each stream's own are in order */
        size_t source = a[i] / 1000000;
        assert_int_equal(a[i] % 1000000, next[source]++);
    }
    for (size_t i = 0; i < 3; i++) assert_true(next[i] > 30);
}

static void max_samples_are_drawn_and_given_exactly(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        rp_sampler_options o = plain();
        size_t n = 0;

        rp_test_sources_init(&sources, 1, bed.plain);
        o.max_samples = 137;
        o.max_in_flight = 10;
        o.streams = 4;
        o.ordered = ordered == 1;
        open_sampler(&o);
        for (int round = 0; round < 1000 && n < 137; round++) {
            (void)rp_test_give(&sources, (size_t)round % 4, 3);
            n += take(NULL, 50);
        }
        assert_int_equal(n, 137);
        expect_end(RP_PRECONDITION, "all of its 137 samples");
        n = 0;
        for (size_t i = 0; i < 4; i++) {
            n += sources.all[i].given;
            assert_int_equal(rp_test_wanted(&sources.all[i]), 0);
        }
        assert_int_equal(n, 137);
        rp_sampler_free(sampler);
        sampler = NULL;
    }
}

static void streams_without_samples_to_draw_are_not_opened(void **state)
{
    (void)state;
    rp_sampler_options o = plain();

    o.max_samples = 25;
    o.max_in_flight = 10;
    o.streams = 8;
    open_sampler(&o);
    assert_int_equal(sources.count, 2);
}

static void timeout_ends_the_sampler_while_a_caller_waits(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    taker t;

    o.rate_limiter_timeout_ms = 50;
    open_sampler(&o);
    start(&t, rp_wait_forever());
    rp_test_await_line(sampler, 1);

    rp_test_end(&sources, 0, RP_DEADLINE, "table 't' timed out: sample waits");

    finish(&t, RP_DEADLINE);
    assert_string_equal(t.err.text, "table 't' timed out: sample waits");
    expect_end(RP_DEADLINE, "timed out");
}

static size_t questions; /* to a server that has a request */
static bool is_frozen;
static size_t frozen_for; /* questions after which it responds again; 0: it never does */

static bool responds(void *ctx, const char *table, size_t shard, int64_t since_ns, rp_wait wait,
                     char *why, size_t size)
{
    assert_true(since_ns <= rp_now_ns() && wait.until_ns > 0);
    assert_ptr_equal(ctx, &sources);
    assert_string_equal(table, "t");
    assert_int_equal(shard, 0);
    if (is_frozen) (void)snprintf(why, size, "it sleeps");
    questions++;
    if (questions == frozen_for) {
        is_frozen = false;
        return true;
    }
    if (!is_frozen) rp_test_end(&sources, 0, RP_DEADLINE, "table 't' timed out");
    return !is_frozen;
}

static void open_asking(int64_t timeout_ms)
{
    rp_sampler_feed feed = rp_test_sources_feed(&sources, 5);
    rp_sampler_options o = plain();

    feed.responds = responds;
    questions = frozen_for = 0;
    o.rate_limiter_timeout_ms = timeout_ms;
    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), &err);
}

static void timeout_ends_the_sampler_of_a_frozen_server(void **state)
{
    (void)state;
    is_frozen = true;
    open_asking(50);
    assert_int_equal(rp_test_give(&sources, 0, 1), 1);
    assert_int_equal(take(NULL, 1), 1);

    expect_end(RP_UNAVAILABLE,
               "no sample of 't' within 50 ms, the timeout of the rate limiter: it sleeps");

    assert_true(questions > 1);
}

static void a_server_that_is_frozen_for_a_while_ends_nothing(void **state)
{
    (void)state;
    is_frozen = true;
    open_asking(50);
    frozen_for = 3;

    expect_end(RP_DEADLINE, "table 't' timed out");

    assert_int_equal(questions, 4);
}

static void the_response_of_a_slow_server_comes_first(void **state)
{
    (void)state;
    is_frozen = false;
    open_asking(50);

    expect_end(RP_DEADLINE, "table 't' timed out");

    assert_int_equal(questions, 1);
}

static void without_a_timeout_a_frozen_server_is_awaited(void **state)
{
    (void)state;
    rp_sample sample;
    size_t n;

    is_frozen = true;
    open_asking(-1);
    assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(700), &err), RP_DEADLINE,
                 &err, "in time");
    assert_int_equal(questions, 0);
}

static void timeout_is_ignored_without_a_waiting_caller(void **state)
{
    (void)state;
    rp_sampler_options o = plain();

    o.rate_limiter_timeout_ms = 50;
    o.max_in_flight = 10;
    open_sampler(&o);

    rp_test_end(&sources, 0, RP_DEADLINE, "timed out");

    assert_int_equal(rp_test_wanted(&sources.all[0]), 10); /* asked again */
    assert_int_equal(rp_test_give(&sources, 0, 2), 2);
    rp_test_end(&sources, 0, RP_DEADLINE, "timed out");
    assert_int_equal(rp_test_wanted(&sources.all[0]), 8);
    assert_int_equal(take(NULL, 10), 2);
}

static void timeout_of_zero_ends_the_sampler_after_its_samples(void **state)
{
    (void)state;
    rp_sampler_options o = plain();

    o.rate_limiter_timeout_ms = 0;
    o.max_in_flight = 10;
    open_sampler(&o);
    assert_int_equal(rp_test_give(&sources, 0, 2), 2);

    rp_test_end(&sources, 0, RP_DEADLINE, "would have to wait");

    assert_int_equal(rp_test_wanted(&sources.all[0]), 0);
    assert_int_equal(take(NULL, 10), 2);
    expect_end(RP_DEADLINE, "would have to wait");
}

static void the_end_of_a_source_ends_the_sampler(void **state)
{
    (void)state;
    static const rp_status ends[] = {RP_NOT_FOUND,      RP_INVALID,   RP_DENIED,
                                     RP_CORRUPT,        RP_CANCELLED, RP_NO_RESOURCE,
                                     RP_UNAUTHENTICATED};

    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        rp_sampler_options o = plain();

        rp_test_sources_init(&sources, 1, bed.plain);
        open_sampler(&o);
        assert_int_equal(rp_test_give(&sources, 0, 1), 1);
        rp_test_end(&sources, 0, ends[i], "so it is");
        assert_int_equal(take(NULL, 10), 1);
        expect_end(ends[i], "so it is");
        rp_sampler_free(sampler);
        sampler = NULL;
    }
}

static void a_lost_server_is_awaited(void **state)
{
    (void)state;
    rp_sampler_options o = plain();

    o.max_in_flight = 10;
    open_sampler(&o);
    rp_test_reach(&sources, 0, false);
    assert_int_equal(take(NULL, 10), 0);
    rp_test_reach(&sources, 0, true);

    assert_int_equal(rp_test_give(&sources, 0, 10), 10); /* the wish had stayed one */
    assert_int_equal(take(NULL, 20), 10);
}

static void samples_unlike_the_signature_end_the_sampler(void **state)
{
    (void)state;
    rp_spec spec = {"x", RP_FLOAT64, {.rank = 3, .dims = {1, 2, 3}}};
    rp_sampler_feed feed = rp_test_sources_feed(&sources, 5);
    rp_sampler_options o = plain();

    assert_ok(rp_signature_flat(&bed.alloc, &spec, 1, &feed.signature, &err));
    o.checked = true;
    assert_ok_err(rp_sampler_open(&bed.alloc, runtime, &feed, &o, &sampler, &err), &err);
    rp_signature_unref(feed.signature);

    assert_int_equal(rp_test_give(&sources, 0, 3), 3);

    expect_end(RP_INVALID, "column 0");
}

static void deadline_ends_a_wait_and_nothing_else(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    rp_sample sample;
    size_t n;

    open_sampler(&o);
    assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_none(), &err), RP_DEADLINE,
                 &err, "in time");
    assert_fails(rp_sampler_next(sampler, &sample, 1, &n, rp_wait_ms(5), &err), RP_DEADLINE,
                 &err, "in time");
    assert_int_equal(rp_test_give(&sources, 0, 1), 1);
    assert_int_equal(take(NULL, 1), 1);
}

static void token_ends_a_wait(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    rp_cancel *cancel;
    taker a, b;

    open_sampler(&o);
    assert_ok(rp_cancel_new(&cancel));
    start(&a, (rp_wait){RP_FOREVER, cancel});
    start(&b, rp_wait_forever());
    rp_test_await_line(sampler, 2);

    rp_cancel_fire(cancel);

    finish(&a, RP_CANCELLED);
    assert_int_equal(rp_test_give(&sources, 0, 1), 1);
    finish(&b, RP_OK);
    start(&a, (rp_wait){RP_FOREVER, cancel}); /* fired before */
    finish(&a, RP_CANCELLED);
    rp_cancel_free(cancel);
}

static void samples_go_to_callers_in_order_of_arrival(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    taker t[4];

    open_sampler(&o);
    for (size_t i = 0; i < 4; i++) {
        start(&t[i], rp_wait_forever());
        rp_test_await_line(sampler, i + 1);
    }

    assert_int_equal(rp_test_give(&sources, 0, 4), 4);

    for (size_t i = 0; i < 4; i++) {
        finish(&t[i], RP_OK);
        assert_int_equal(t[i].samples[0].key, i);
    }
}

static void close_ends_waits_now_and_later(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    taker t[3];

    open_sampler(&o);
    for (size_t i = 0; i < 3; i++) start(&t[i], rp_wait_forever());
    rp_test_await_line(sampler, 3);

    rp_sampler_close(sampler);

    for (size_t i = 0; i < 3; i++) finish(&t[i], RP_CANCELLED);
    expect_end(RP_CANCELLED, "closed");
    assert_int_equal(rp_test_give(&sources, 0, 4), 4); /* and are let go */
    rp_test_end(&sources, 0, RP_DEADLINE, "");
}

static void free_waits_for_waiting_callers(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    taker t[3];

    open_sampler(&o);
    for (size_t i = 0; i < 3; i++) start(&t[i], rp_wait_forever());
    rp_test_await_line(sampler, 3);

    rp_sampler_free(sampler);
    sampler = NULL;

    for (size_t i = 0; i < 3; i++) finish(&t[i], RP_CANCELLED);
}

static void why_has_the_reason_of_the_wait(void **state)
{
    (void)state;
    rp_sampler_options o = plain();
    char text[128];

    open_sampler(&o);
    rp_sampler_why(sampler, text, sizeof text);
    assert_string_equal(text, "source 0 rests");
    assert_int_equal(rp_test_give(&sources, 0, 1), 1);
    rp_sampler_why(sampler, text, sizeof text);
    assert_non_null(strstr(text, "nothing to wait for"));
    assert_int_equal(take(NULL, 1), 1);
    rp_test_end(&sources, 0, RP_NOT_FOUND, "no table 't'");
    rp_sampler_why(sampler, text, sizeof text);
    assert_string_equal(text, "no table 't'");
}

static rp_status open_and_free(const rp_allocator *alloc)
{
    rp_sampler_feed feed;
    rp_sampler_options o = plain();
    rp_sampler *s;
    rp_status st;

    rp_test_sources_init(&sources, 1, bed.plain);
    feed = rp_test_sources_feed(&sources, 5);
    o.streams = 2;
    o.ordered = true;
    st = rp_sampler_open(alloc, runtime, &feed, &o, &s, &err);
    if (st != RP_OK) return st;
    (void)rp_test_give(&sources, 0, 10);
    rp_sampler_free(s);
    return RP_OK;
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(open_and_free);
}

RP_TESTS(sampler)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(options_out_of_range_are_refused),
        T(a_source_that_cannot_be_made_closes_the_others),
        T(an_output_of_zero_samples_is_refused),
        T(one_stream_gives_samples_in_order),
        T(never_more_than_max_in_flight_are_prefetched),
        T(small_requests_are_batched),
        T(samples_beyond_the_request_are_dropped),
        T(options_reach_the_sources),
        T(ordered_streams_do_not_depend_on_response_order),
        T(max_samples_are_drawn_and_given_exactly),
        T(streams_without_samples_to_draw_are_not_opened),
        T(timeout_ends_the_sampler_while_a_caller_waits),
        T(timeout_ends_the_sampler_of_a_frozen_server),
        T(a_server_that_is_frozen_for_a_while_ends_nothing),
        T(the_response_of_a_slow_server_comes_first),
        T(without_a_timeout_a_frozen_server_is_awaited),
        T(timeout_is_ignored_without_a_waiting_caller),
        T(timeout_of_zero_ends_the_sampler_after_its_samples),
        T(the_end_of_a_source_ends_the_sampler),
        T(a_lost_server_is_awaited),
        T(samples_unlike_the_signature_end_the_sampler),
        T(deadline_ends_a_wait_and_nothing_else),
        T(token_ends_a_wait),
        T(samples_go_to_callers_in_order_of_arrival),
        T(close_ends_waits_now_and_later),
        T(free_waits_for_waiting_callers),
        T(why_has_the_reason_of_the_wait),
        T(survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
