/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the journal: in order, across threads, and each of them ends. */
#include "server/core/safety.h"

#include <pthread.h>

#include "support/unit.h"
#include "util/rng.h"

typedef struct bench {
    rp_safety safety;
    rp_loop *loop;
    rp_safe_waits waits;
    uint64_t woken[2000];
    size_t woken_count, stop_at;
    size_t woken_before, most_woken; /* before this turn, and in one turn */
} bench;

typedef struct waiter {
    rp_safe_wait wait;
    bench *bench;
    uint64_t number;
} waiter;

static void on_safe(rp_safe_wait *wait)
{
    waiter *w = (waiter *)(void *)wait;
    bench *b = w->bench;

    assert_int_equal(wait->lsn, 0);
    b->woken[b->woken_count++] = w->number;
    if (b->woken_count == b->stop_at) rp_loop_stop(b->loop);
}

static void begin(bench *b, waiter *w, uint64_t number)
{
    *w = (waiter){.wait = {.on_safe = on_safe}, .bench = b, .number = number};
    rp_safe_wait_begin(&b->waits, &w->wait, number);
}

static void raise_to(bench *b, uint64_t lsn)
{
    if (rp_safety_raise(&b->safety, lsn)) rp_safe_waits_wake(&b->waits);
}

static void init(bench *b)
{
    rp_error err;

    *b = (bench){0};
    rp_safety_init(&b->safety);
    atomic_store(&b->safety.safe, 0);
    assert_ok_err(rp_loop_new(rp_allocator_default(), &b->loop, &err), &err);
    rp_safe_waits_init(&b->waits, &b->safety, b->loop);
}

static void the_safe_number_is_raised_and_never_lowered(void **state)
{
    (void)state;
    bench b;

    init(&b);
    assert_true(rp_safety_raise(&b.safety, 5));
    assert_false(rp_safety_raise(&b.safety, 5));
    assert_false(rp_safety_raise(&b.safety, 4));
    assert_int_equal(rp_safe_now(&b.safety), 5);
    rp_safety_init(&b.safety);
    assert_true(rp_safe_now(&b.safety) == UINT64_MAX);
    assert_false(rp_safety_raise(&b.safety, 7));
    rp_loop_free(b.loop);
}

static void waiters_are_woken_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    waiter w[5];
    bench b;

    init(&b);
    begin(&b, &w[0], 30);
    begin(&b, &w[1], 10);
    begin(&b, &w[2], 20);
    begin(&b, &w[3], 50);
    begin(&b, &w[4], 20);
    rp_safe_wait_end(&b.waits, &w[3].wait);
    rp_safe_wait_end(&b.waits, &w[3].wait); /* again: nothing */
    b.stop_at = 3;
    raise_to(&b, 20);
    rp_loop_run(b.loop);
    assert_int_equal(b.woken_count, 3);
    assert_int_equal(b.woken[0], 10);
    assert_int_equal(b.woken[1], 20);
    assert_int_equal(b.woken[2], 20);
    b.stop_at = 4;
    raise_to(&b, 60);
    rp_loop_run(b.loop);
    assert_int_equal(b.woken[3], 30);
    assert_null(b.waits.first);
    assert_null(b.waits.last);
    rp_loop_free(b.loop);
}

static void on_turn_end(void *user)
{
    bench *b = user;
    size_t woken = b->woken_count - b->woken_before;

    if (woken > b->most_woken) b->most_woken = woken;
    b->woken_before = b->woken_count;
}

static void a_turn_wakes_some_of_many_waiters(void **state)
{
    (void)state;
    enum { MANY = 1300 };
    static waiter w[MANY];
    static bench b;

    init(&b);
    rp_loop_set_turn_end(b.loop, on_turn_end, &b);
    for (size_t i = 0; i < MANY; i++) begin(&b, &w[i], i + 1);
    b.stop_at = MANY;
    raise_to(&b, MANY); /* all are safe at one moment, and nobody says so again */
    rp_loop_run(b.loop);

    assert_int_equal(b.woken_count, MANY);
    for (size_t i = 0; i < MANY; i++) assert_int_equal(b.woken[i], i + 1);
    assert_int_equal(b.most_woken, 512);
    assert_null(b.waits.first);
    rp_loop_free(b.loop);
}

static void a_wait_for_a_safe_number_is_woken_at_once(void **state)
{
    (void)state;
    waiter w;
    bench b;

    init(&b);
    raise_to(&b, 10); /* nobody waits */
    b.stop_at = 1;
    begin(&b, &w, 9);
    rp_loop_run(b.loop);
    assert_int_equal(b.woken_count, 1);
    rp_loop_free(b.loop);
}

static void a_repeated_wait_takes_the_higher_number(void **state)
{
    (void)state;
    waiter w;
    bench b;

    init(&b);
    begin(&b, &w, 10);
    rp_safe_wait_begin(&b.waits, &w.wait, 5);
    assert_int_equal(w.wait.lsn, 10);
    rp_safe_wait_begin(&b.waits, &w.wait, 15);
    assert_int_equal(w.wait.lsn, 15);
    assert_ptr_equal(b.waits.first, b.waits.last);
    rp_safe_wait_end(&b.waits, &w.wait);
    rp_loop_free(b.loop);
}

enum { ROUNDS = 20000 };

typedef struct chase {
    bench bench;
    rp_safe_wait wait;
    atomic_uint_fast64_t asked; /* the journal makes this much safe */
    atomic_bool over;
    uint64_t round;
} chase;

static void go_on(chase *c)
{
    rp_safe_wait_begin(&c->bench.waits, &c->wait, ++c->round);
    atomic_store(&c->asked, c->round);
}

static void on_chased(rp_safe_wait *wait)
{
    chase *c = (chase *)(void *)((char *)wait - offsetof(chase, wait));

    if (c->round < ROUNDS)
        go_on(c);
    else
        rp_loop_stop(c->bench.loop);
}

static void *journal_main(void *ctx)
{
    chase *c = ctx;
    uint64_t last = 0;

    while (!atomic_load(&c->over)) {
        uint64_t asked = atomic_load(&c->asked);
        if (asked == last) continue;
        last = asked;
        raise_to(&c->bench, asked);
    }
    return NULL;
}

static void no_waiter_is_missed_between_two_threads(void **state)
{
    (void)state;
    static chase c;
    pthread_t journal;

    init(&c.bench);
    c.wait.on_safe = on_chased;
    assert_int_equal(pthread_create(&journal, NULL, journal_main, &c), 0);
    go_on(&c);
    rp_loop_run(c.bench.loop); /* hangs if one is */
    atomic_store(&c.over, true);
    (void)pthread_join(journal, NULL);
    assert_int_equal(c.round, ROUNDS);
    rp_loop_free(c.bench.loop);
}

RP_TESTS(safety)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_safe_number_is_raised_and_never_lowered),
        cmocka_unit_test(waiters_are_woken_in_the_order_of_their_numbers),
        cmocka_unit_test(a_turn_wakes_some_of_many_waiters),
        cmocka_unit_test(a_wait_for_a_safe_number_is_woken_at_once),
        cmocka_unit_test(a_repeated_wait_takes_the_higher_number),
        cmocka_unit_test(no_waiter_is_missed_between_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
