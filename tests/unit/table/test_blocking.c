/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait. Tests do not sleep: they poll until the other thread waits. */
#include <pthread.h>
#include <sched.h>

#include "support/fixture.h"
#include "table/table.h"

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

static rp_table *make_queue(int64_t size)
{
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 1000);
    o.limiter = rp_limiter_queue(size);
    o.max_times_sampled = 1;
    return rp_test_bed_table(&bed, &o);
}

/* A call on another thread. */
typedef struct caller {
    pthread_t thread;
    rp_table *table;
    rp_wait wait;
    size_t count;
    uint64_t key; /* of the first item of an insert */
    rp_trajectory *trajectory;
    rp_sample samples[8];
    size_t done;
    rp_status status;
    rp_error err;
} caller;

static void *run_sample(void *arg)
{
    caller *c = arg;
    rp_sample_options o = {.count = c->count};

    c->status = rp_table_sample(c->table, &o, c->samples, &c->done, c->wait, &c->err);
    return NULL;
}

static void *run_insert(void *arg)
{
    caller *c = arg;
    rp_insert items[8];

    for (size_t i = 0; i < c->count; i++)
        items[i] = (rp_insert){.key = c->key + i, .priority = 1, .trajectory = c->trajectory};
    c->status = rp_table_insert(c->table, items, c->count, c->wait, &c->done, &c->err);
    return NULL;
}

static void start(caller *c, void *(*call)(void *), rp_table *t, size_t count, rp_wait wait)
{
    *c = (caller){.table = t,
                  .wait = wait,
                  .count = count,
                  .key = c->key,
                  .trajectory = c->trajectory != NULL ? c->trajectory : bed.plain};
    assert_int_equal(pthread_create(&c->thread, NULL, call, c), 0);
}

static void join(caller *c)
{
    assert_int_equal(pthread_join(c->thread, NULL), 0);
}

/* Looks until so many calls wait. */
static void await_waiting(rp_table *t, int64_t inserts, int64_t samples)
{
    rp_table_info info;

    do {
        (void)sched_yield();
        info = rp_test_info_of(t);
    } while (info.waiting_inserts != inserts || info.waiting_samples != samples);
}

static void sample_waits_for_an_insert(void **state)
{
    (void)state;
    rp_table *t = make_queue(4);
    caller c = {0};
    start(&c, run_sample, t, 2, rp_wait_forever());
    await_waiting(t, 0, 1);

    rp_test_put(t, 5, 1, bed.plain);
    rp_test_put(t, 6, 1, bed.plain);

    join(&c);
    assert_true(c.status == RP_OK && c.done == 2);
    assert_true(c.samples[0].key == 5 && c.samples[1].key == 6 && c.samples[0].rate_limited);
    rp_samples_release(c.samples, c.done);
}

static void insert_waits_for_a_sample(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    caller c = {.key = 1};
    start(&c, run_insert, t, 3, rp_wait_forever());
    await_waiting(t, 1, 0);

    for (uint64_t key = 1; key <= 2; key++) assert_int_equal(rp_test_draw(t).key, key);

    join(&c);
    assert_true(c.status == RP_OK && c.done == 3);
    assert_int_equal(rp_test_draw(t).key, 3);
}

static void deadline_ends_a_wait(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    rp_sample_options one = {.count = 1};
    rp_sample s;
    size_t drawn = 5, inserted = 5;
    int64_t start_ns = rp_now_ns();
    rp_insert items[] = {{.key = 1, .trajectory = bed.plain},
                         {.key = 2, .trajectory = bed.plain}};

    assert_fails(rp_table_sample(t, &one, &s, &drawn, rp_wait_ms(20), &bed.err), RP_DEADLINE,
                 &bed.err,
                 "table 'q' timed out: sample waits for inserts: the table has 0 items");
    assert_true(rp_now_ns() - start_ns >= 20000000);
    assert_int_equal(drawn, 5);
    assert_fails(rp_table_insert(t, items, 2, rp_wait_ms(1), &inserted, &bed.err), RP_DEADLINE,
                 &bed.err, "timed out: insert waits for samples");
    assert_int_equal(inserted, 1);
    assert_int_equal(rp_test_info_of(t).waiting_inserts, 0);
}

static void deadline_returns_the_samples_drawn_so_far(void **state)
{
    (void)state;
    rp_table *t = make_queue(4);
    rp_sample_options three = {.count = 3};
    rp_sample s[3];
    size_t drawn = 0;
    rp_test_put(t, 1, 1, bed.plain);

    assert_ok(rp_table_sample(t, &three, s, &drawn, rp_wait_ms(5), NULL));

    assert_int_equal(drawn, 1);
    rp_samples_release(s, drawn);
}

static void deadline_in_the_past_still_draws_existing_items(void **state)
{
    (void)state;
    rp_table *t = make_queue(4);
    rp_sample_options one = {.count = 1};
    rp_sample s;
    size_t drawn = 0;
    rp_wait past = {.until_ns = 1};

    assert_int_equal(rp_table_sample(t, &one, &s, &drawn, past, NULL), RP_DEADLINE);
    rp_test_put(t, 1, 1, bed.plain);
    assert_ok(rp_table_sample(t, &one, &s, &drawn, past, NULL));
    rp_samples_release(&s, 1);
}

static void token_cancels_every_wait_that_uses_it(void **state)
{
    (void)state;
    rp_table *t = make_queue(1);
    rp_cancel *token = NULL;
    caller c[3] = {{.key = 10}, {.key = 20}, {.key = 30}}, other = {.key = 40};
    assert_ok(rp_cancel_new(&token));
    rp_test_put(t, 1, 1, bed.plain);
    for (size_t i = 0; i < 3; i++) start(&c[i], run_insert, t, 1, (rp_wait){RP_FOREVER, token});
    start(&other, run_insert, t, 1, rp_wait_forever());
    await_waiting(t, 4, 0);

    rp_cancel_fire(token);

    for (size_t i = 0; i < 3; i++) {
        join(&c[i]);
        assert_true(c[i].status == RP_CANCELLED && c[i].done == 0);
        assert_non_null(strstr(c[i].err.text, "table 'q' wait was ended: "));
    }
    await_waiting(t, 1, 0); /* the one without the token goes on waiting */
    assert_int_equal(rp_test_draw(t).key, 1);
    join(&other);
    assert_int_equal(other.status, RP_OK);
    rp_cancel_fire(token); /* again is fine */
    rp_cancel_free(token);
    rp_cancel_free(NULL);
}

static void fired_token_cancels_later_waits_and_nothing_else(void **state)
{
    (void)state;
    rp_table *t = make_queue(2);
    rp_cancel *token = NULL;
    rp_sample_options one = {.count = 1};
    rp_sample s;
    size_t drawn = 0;
    assert_ok(rp_cancel_new(&token));
    rp_cancel_fire(token);

    assert_int_equal(
        rp_table_sample(t, &one, &s, &drawn, (rp_wait){RP_FOREVER, token}, &bed.err),
        RP_CANCELLED);
    rp_test_put(t, 1, 1, bed.plain);
    assert_ok(rp_table_sample(t, &one, &s, &drawn, (rp_wait){RP_FOREVER, token}, NULL));

    assert_int_equal(drawn, 1); /* it did not have to wait */
    rp_samples_release(&s, 1);
    rp_cancel_free(token);
}

static void close_wakes_all_waiting_calls(void **state)
{
    (void)state;
    rp_table *q = make_queue(1);
    rp_table_options o = rp_test_options("other", RP_FIFO, RP_FIFO, 10);
    rp_table *t = rp_test_bed_table(&bed, &o);
    caller c[4] = {{.key = 10}, {.key = 20}};
    rp_test_put(q, 1, 1, bed.plain);
    for (size_t i = 0; i < 2; i++) start(&c[i], run_insert, q, 1, rp_wait_forever());
    for (size_t i = 2; i < 4; i++) start(&c[i], run_sample, t, 1, rp_wait_ms(600000));
    await_waiting(q, 2, 0);
    await_waiting(t, 0, 2);

    rp_store_close(bed.store);

    for (size_t i = 0; i < 4; i++) {
        join(&c[i]);
        assert_int_equal(c[i].status, RP_CANCELLED);
        assert_non_null(strstr(c[i].err.text, "was closed"));
    }
}

static void full_store_blocks_a_thread_until_another_table_deletes(void **state)
{
    (void)state;
    rp_test_bed own;
    rp_table_options a = rp_test_options("a", RP_FIFO, RP_FIFO, 10);
    rp_table_options b = rp_test_options("b", RP_FIFO, RP_FIFO, 10);
    caller c = {.key = 5};
    rp_trajectory *other;
    rp_store_options o = {.max_bytes = rp_trajectory_cost(bed.plain),
                          .policy = RP_BUDGET_BLOCK};
    rp_test_bed_init(&own, &o);
    rp_table *ta = rp_test_bed_table(&own, &a), *tb = rp_test_bed_table(&own, &b);
    other = rp_test_blob_trajectory(&own.alloc, 1, 1, 16);
    rp_test_put(tb, 1, 1, other);
    c.trajectory = own.plain;
    start(&c, run_insert, ta, 1, rp_wait_forever());
    await_waiting(ta, 1, 0);

    assert_ok(rp_table_delete(tb, &(uint64_t){1}, 1, NULL, NULL));

    join(&c);
    assert_int_equal(c.status, RP_OK);
    rp_trajectory_unref(other);
    rp_test_bed_deinit(&own);
}

static void producer_and_consumer_pass_a_queue_of_one_in_order(void **state)
{
    (void)state;
    enum { ITEMS = 2000 };
    rp_table *t = make_queue(1);
    caller c = {0};

    for (uint64_t i = 0; i < ITEMS; i += 4) {
        c.key = i;
        start(&c, run_insert, t, 4, rp_wait_forever());
        for (uint64_t j = 0; j < 4; j++) {
            rp_sample_options one = {.count = 1};
            rp_sample s;
            size_t drawn;
            assert_ok(rp_table_sample(t, &one, &s, &drawn, rp_wait_forever(), NULL));
            assert_int_equal(s.key, i + j);
            rp_samples_release(&s, 1);
        }
        join(&c);
        assert_int_equal(c.status, RP_OK);
    }
    assert_true(rp_table_check(t));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(blocking)
{
    const struct CMUnitTest tests[] = {
        TEST(sample_waits_for_an_insert),
        TEST(insert_waits_for_a_sample),
        TEST(deadline_ends_a_wait),
        TEST(deadline_returns_the_samples_drawn_so_far),
        TEST(deadline_in_the_past_still_draws_existing_items),
        TEST(token_cancels_every_wait_that_uses_it),
        TEST(fired_token_cancels_later_waits_and_nothing_else),
        TEST(close_wakes_all_waiting_calls),
        TEST(full_store_blocks_a_thread_until_another_table_deletes),
        TEST(producer_and_consumer_pass_a_queue_of_one_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
