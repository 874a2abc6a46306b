/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a table in this process, without a sampler. */
#include <unistd.h>

#include "client/sampler/local_source.h"
#include "support/sources.h"
#include "table/table.h"
#include "util/mutex.h"

enum { MOST = 4096 };

/* What a source has told. */
typedef struct record {
    pthread_mutex_t mu;
    pthread_cond_t cv;
    uint64_t keys[MOST];
    size_t batches[MOST];
    size_t count, batch_count, ends, forgotten;
    rp_status status; /* of the last end */
    char text[RP_ERROR_TEXT_BYTES];
    bool in_event; /* one at a time */
    bool slow;     /* samples take a while to be taken */
} record;

static rp_test_bed bed;
static rp_runtime *runtime;
static rp_error err;
static record rec;
static rp_source *source;

static void enter_event(record *r)
{
    pthread_mutex_lock(&r->mu);
    assert_false(r->in_event);
    r->in_event = true;
    pthread_mutex_unlock(&r->mu);
    if (r->slow) (void)usleep(1000);
    pthread_mutex_lock(&r->mu);
    r->in_event = false;
    pthread_cond_broadcast(&r->cv);
}

static void on_samples(void *user, const rp_sample *samples, size_t count)
{
    record *r = user;

    enter_event(r);
    assert_true(r->count + count <= MOST);
    r->batches[r->batch_count++] = count;
    for (size_t i = 0; i < count; i++) {
        r->keys[r->count++] = samples[i].key;
        rp_trajectory_unref(samples[i].trajectory);
    }
    pthread_mutex_unlock(&r->mu);
}

static void on_end(void *user, size_t forgotten, rp_status status, const char *text)
{
    record *r = user;

    enter_event(r);
    r->ends++;
    r->forgotten += forgotten;
    r->status = status;
    (void)snprintf(r->text, sizeof r->text, "%s", text);
    pthread_mutex_unlock(&r->mu);
}

static void on_reach(void *user, bool reached, const char *text)
{
    (void)user;
    (void)reached;
    (void)text;
    fail();
}

/* Waits for so many samples and ends, ten seconds at most. */
static void await(size_t count, size_t ends)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&rec.mu);
    while (rec.count < count || rec.ends < ends)
        assert_int_equal(pthread_cond_timedwait(&rec.cv, &rec.mu, &until), 0);
    assert_int_equal(rec.count, count);
    assert_int_equal(rec.ends, ends);
    pthread_mutex_unlock(&rec.mu);
}

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    assert_ok_err(rp_runtime_get(&runtime, &err), &err);
    memset(&rec, 0, sizeof rec);
    pthread_mutex_init(&rec.mu, NULL);
    pthread_cond_init(&rec.cv, NULL);
    source = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (source != NULL) source->class->close(source);
    rp_runtime_put(runtime);
    rp_test_bed_deinit(&bed);
    return 0;
}

static rp_status open_source(const rp_allocator *alloc, int64_t timeout_ms)
{
    rp_source_options o = {
        .table = "q", .rate_limiter_timeout_ms = timeout_ms, .request_samples = 2000};
    rp_source_events events = {on_samples, on_end, on_reach, &rec};

    return rp_local_source_open(alloc, runtime, bed.store, &o, &events, &source, &err);
}

static void make_source(int64_t timeout_ms)
{
    assert_ok_err(open_source(&bed.alloc, timeout_ms), &err);
}

static void want(size_t count)
{
    source->class->want(source, count);
}

static void await_parked(rp_table *t, int64_t count)
{
    for (int i = 0; i < 100000; i++) {
        if (rp_test_info_of(t).waiting_samples == count) return;
        (void)usleep(100);
    }
    fail_msg("no sample waits");
}

static void samples_come_in_doubling_batches(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");

    rp_test_bed_fill(&bed, t, 0, 400);
    make_source(-1);
    want(100);
    await(100, 0);

    assert_int_equal(rec.batch_count, 3);
    assert_int_equal(rec.batches[0], 16);
    assert_int_equal(rec.batches[1], 32);
    assert_int_equal(rec.batches[2], 52);
    for (size_t i = 0; i < 100; i++) assert_int_equal(rec.keys[i], i);
    assert_int_equal(rp_test_info_of(t).size, 300); /* and not one more */
}

static void a_request_waits_in_the_table_without_a_thread(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");

    make_source(-1);
    want(5);
    await_parked(t, 1);
    rp_test_bed_fill(&bed, t, 0, 2);
    await(2, 0);
    await_parked(t, 1);
    want(1);
    rp_test_bed_fill(&bed, t, 2, 10);
    await(6, 0);
    await_parked(t, 0);
    assert_int_equal(rp_test_info_of(t).size, 6);
}

static void timeout_drops_the_request(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");

    make_source(20);
    rp_test_bed_fill(&bed, t, 0, 3);
    want(5);
    await(3, 1);
    assert_int_equal(rec.status, RP_DEADLINE);
    assert_int_equal(rec.forgotten, 2);
    assert_non_null(strstr(rec.text, "table 'q' timed out"));
    await_parked(t, 0);
    for (size_t i = 1; i < 4; i++) { /* and again */
        want(1);
        await(3, 1 + i);
    }
    want(2);
    rp_test_bed_fill(&bed, t, 3, 2);
    await(5, 4);
}

static void timeout_of_zero_does_not_wait(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");

    make_source(0);
    rp_test_bed_fill(&bed, t, 0, 3);
    want(5);
    await(3, 1);
    assert_int_equal(rec.status, RP_DEADLINE);
    assert_int_equal(rec.forgotten, 2);
}

static void a_table_created_later_is_found(void **state)
{
    (void)state;
    make_source(-1);
    want(7);
    await(0, 1);
    assert_int_equal(rec.status, RP_NOT_FOUND);
    assert_int_equal(rec.forgotten, 7);
    assert_string_equal(rec.text, "Priority table q was not found: there are no tables");
    rp_test_bed_fill(&bed, rp_test_bed_queue(&bed, "q"), 0, 3);
    want(3);
    await(3, 1);
}

static void dropping_the_table_ends_the_request(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");

    make_source(-1);
    want(3);
    await_parked(t, 1);
    assert_ok_err(rp_store_drop_table(bed.store, (rp_string){"q", 1}, &err), &err);
    await(0, 1);
    assert_int_equal(rec.status, RP_CANCELLED);
    rp_test_bed_fill(&bed, rp_test_bed_queue(&bed, "q"), 0, 3); /* another of that name */
    want(3);
    await(3, 1);
}

static void closing_withdraws_a_waiting_operation(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");

    for (int timeout_ms = -1; timeout_ms < 100000; timeout_ms += 50000) {
        if (timeout_ms == 0) continue;
        make_source(timeout_ms);
        want(3);
        await_parked(t, 1);
        source->class->close(source);
        source = NULL;
        assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
    }
    rp_test_bed_fill(&bed, t, 0, 3);
    assert_int_equal(rp_test_info_of(t).size, 3);
    assert_int_equal(rec.count, 0);
}

static void why_is_the_reason_of_the_table(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    char text[300];

    make_source(-1);
    source->class->why(source, text, sizeof text);
    assert_string_equal(text, "");
    want(1);
    await_parked(t, 1);
    source->class->why(source, text, sizeof text);
    assert_non_null(strstr(text, "table 'q': sample"));
}

/* Inserts one by one while the source is opened and closed and its timer goes off. */
static void *insert_slowly(void *arg)
{
    rp_table *t = arg;
    rp_error e;

    for (uint64_t i = 0; i < 400; i++) {
        rp_status st = rp_test_try_put(t, i, 1, bed.plain, &e);
        if (st != RP_OK) return arg;
        (void)usleep((useconds_t)(i % 7) * 100);
    }
    return NULL;
}

static void timer_inserts_and_close_do_not_race(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    pthread_t thread;
    void *failed;

    assert_int_equal(pthread_create(&thread, NULL, insert_slowly, t), 0);
    for (size_t i = 0; i < 150; i++) {
        make_source(1);
        want(1 + i % 5);
        if (i % 3 == 0) (void)usleep((useconds_t)(i % 5) * 500);
        want(1);
        source->class->close(source);
        source = NULL;
    }
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(rp_test_info_of(t).waiting_samples, 0);
    assert_true(rec.count + (size_t)rp_test_info_of(t).size <= 400);
    assert_true(rp_table_check(t));
}

/* The source is idle again, while the job whose operation has waited may still be returning
 * from the table. */
static void a_draw_may_begin_before_a_job_has_returned(void **state)
{
    (void)state;
    rp_table *t = rp_test_bed_queue(&bed, "q");
    size_t rounds = rp_test_scaled(20000, 500), drawn = 0;
    rp_sample sample;

    make_source(-1);
    for (size_t i = 0; i < rounds; i++) {
        rec.count = rec.batch_count = 0;
        want(1);
        while (rp_test_info_of(t).waiting_samples == 0) continue;
        rp_test_bed_fill(&bed, t, 2 * i, 2);
        for (;;) { /* the first is delivered at some time before a draw succeeds */
            size_t n = source->class->draw(source, &sample, 1);
            if (n == 0) continue;
            assert_int_equal(sample.key, 2 * i + 1);
            rp_samples_release(&sample, n);
            drawn += n;
            break;
        }
        await(1, 0);
        assert_int_equal(rec.keys[0], 2 * i);
    }
    assert_int_equal(drawn, rounds);
    assert_int_equal(rp_test_info_of(t).size, 0);
}

static rp_status open_and_close(const rp_allocator *alloc)
{
    rp_status st = open_source(alloc, 10);

    if (st == RP_OK) source->class->close(source);
    source = NULL;
    return st;
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(open_and_close);
}

RP_TESTS(local_source)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(samples_come_in_doubling_batches),
        T(a_request_waits_in_the_table_without_a_thread),
        T(timeout_drops_the_request),
        T(timeout_of_zero_does_not_wait),
        T(a_table_created_later_is_found),
        T(dropping_the_table_ends_the_request),
        T(closing_withdraws_a_waiting_operation),
        T(why_is_the_reason_of_the_table),
        T(timer_inserts_and_close_do_not_race),
        T(a_draw_may_begin_before_a_job_has_returned),
        T(survives_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
