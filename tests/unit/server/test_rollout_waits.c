/* SPDX-License-Identifier: Apache-2.0 */
/* The list of calls that wait for rollouts: which of them a change tries again, in what order,
 * and how many in a turn of the loop. */
#include "server/bounds/rollout_waits.h"

#include "rollouts/rollout_set.h"
#include "support/fixture.h"

enum { CALLS = 6 };

typedef struct stage stage;

typedef struct call {
    rp_rollout_wait wait; /* first */
    stage *stage;
    size_t work;
    int number;
    bool is_over; /* the retry ends the wait */
} call;

struct stage {
    rp_test_bed bed;
    rp_loop *loop;
    rp_rollout_waits waits;
    rp_rollouts *rollouts[2];
    call calls[CALLS];
    int tried[64]; /* the numbers, in order; -1: a turn has ended */
    size_t count;
    size_t turns; /* until the loop stops */
    rp_timer turn;
};

static void note(stage *s, int number)
{
    assert_true(s->count < sizeof s->tried / sizeof s->tried[0]);
    s->tried[s->count++] = number;
}

static size_t on_retry(rp_rollout_wait *wait)
{
    call *c = (call *)(void *)wait;

    note(c->stage, c->number);
    if (c->is_over) rp_rollout_waits_remove(&c->stage->waits, wait);
    return c->work;
}

static void on_turn(rp_timer *timer)
{
    stage *s = (stage *)(void *)((char *)timer - offsetof(stage, turn));

    if (s->turns-- == 0)
        rp_loop_stop(s->loop);
    else
        assert_ok(rp_loop_arm(s->loop, &s->turn, rp_loop_now(s->loop)));
}

/* Runs some turns of the loop, more than any test needs. */
static void run(stage *s)
{
    s->turns = 20;
    s->turn.on_due = on_turn;
    assert_ok(rp_loop_arm(s->loop, &s->turn, rp_loop_now(s->loop)));
    rp_loop_run(s->loop);
}

static void wait_for(stage *s, int number, size_t rollouts, size_t work)
{
    call *c = &s->calls[number];

    *c = (call){.wait = {.retry = on_retry, .rollouts = s->rollouts[rollouts]},
                .stage = s,
                .work = work,
                .number = number};
    rp_rollout_waits_add(&s->waits, &c->wait);
}

static void expect(stage *s, const int *tried, size_t count)
{
    run(s);
    assert_int_equal(s->count, count);
    if (count > 0) assert_memory_equal(s->tried, tried, count * sizeof *tried);
    s->count = 0;
}

/* Addresses of two rollouts that have different lists. */
static void choose_rollouts(stage *s)
{
    static char places[RP_ROLLOUT_LISTS][64];

    s->rollouts[0] = (rp_rollouts *)(void *)places[0];
    for (size_t i = 1; i < RP_ROLLOUT_LISTS; i++) {
        call *c = &s->calls[0];

        s->rollouts[1] = (rp_rollouts *)(void *)places[i];
        wait_for(s, 0, 1, 1);
        rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
        run(s);
        rp_rollout_waits_remove(&s->waits, &c->wait);
        if (s->count == 0) return;
        s->count = 0;
    }
    fail_msg("all addresses have one list");
}

static int set_up(void **state)
{
    stage *s = test_calloc(1, sizeof *s);

    rp_test_bed_init(&s->bed, NULL);
    assert_ok(rp_loop_new(&s->bed.alloc, &s->loop, NULL));
    rp_rollout_waits_init(&s->waits, s->loop, s->bed.store);
    choose_rollouts(s);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    stage *s = *state;

    for (int i = 0; i < CALLS; i++) rp_rollout_waits_remove(&s->waits, &s->calls[i].wait);
    rp_rollout_waits_deinit(&s->waits);
    rp_loop_free(s->loop);
    rp_test_bed_deinit(&s->bed);
    test_free(s);
    return 0;
}

static void only_calls_of_the_changed_rollouts_are_tried(void **state)
{
    stage *s = *state;

    for (int i = 0; i < 4; i++) wait_for(s, i, (size_t)i % 2, 1);
    rp_rollout_waits_wake(&s->waits, s->rollouts[1]);
    expect(s, (const int[]){1, 3}, 2);
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    expect(s, (const int[]){0, 2}, 2);
}

static void a_change_of_any_rollouts_tries_all_calls(void **state)
{
    stage *s = *state;
    unsigned tried = 0;

    for (int i = 0; i < 4; i++) wait_for(s, i, (size_t)i % 2, 1);
    rp_rollout_waits_wake(&s->waits, NULL);
    run(s);
    assert_int_equal(s->count, 4);
    for (size_t i = 0; i < s->count; i++) tried |= 1u << s->tried[i];
    assert_int_equal(tried, 15);
}

static void calls_that_end_are_not_tried(void **state)
{
    stage *s = *state;

    for (int i = 0; i < 4; i++) wait_for(s, i, 0, 1);
    s->calls[1].is_over = true;
    rp_rollout_waits_remove(&s->waits, &s->calls[2].wait);
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    expect(s, (const int[]){0, 1, 3}, 3);
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    expect(s, (const int[]){0, 3}, 2);
    rp_rollout_waits_remove(&s->waits, &s->calls[0].wait);
    rp_rollout_waits_remove(&s->waits, &s->calls[3].wait);
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    expect(s, NULL, 0);
}

/* A timer that notes the turns, between those of the calls. */
typedef struct ticker {
    rp_timer timer; /* first */
    stage *stage;
    size_t left;
} ticker;

static void on_tick(rp_timer *timer)
{
    ticker *t = (ticker *)(void *)timer;

    note(t->stage, -1);
    if (--t->left > 0)
        assert_ok(rp_loop_arm(t->stage->loop, timer, rp_loop_now(t->stage->loop)));
}

static void a_turn_ends_with_its_work(void **state)
{
    stage *s = *state;
    ticker t = {.timer = {.on_due = on_tick}, .stage = s, .left = 10};
    int most = 0, calls = 0, in_turn = 0;

    for (int i = 0; i < CALLS; i++) wait_for(s, i, 0, RP_ROLLOUT_RETRY_WORK / 2);
    assert_ok(rp_loop_arm(s->loop, &t.timer, rp_loop_now(s->loop)));
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    run(s);
    for (size_t i = 0; i < s->count; i++) {
        in_turn = s->tried[i] < 0 ? 0 : in_turn + 1;
        if (in_turn > most) most = in_turn;
        if (s->tried[i] < 0) continue;
        assert_int_equal(s->tried[i], calls); /* in the order in which they came */
        calls++;
    }
    assert_int_equal(calls, CALLS);
    assert_true(most < CALLS);
}

static void a_change_while_calls_are_tried_tries_all_again(void **state)
{
    stage *s = *state;
    size_t tried[CALLS] = {0};

    for (int i = 0; i < CALLS; i++) wait_for(s, i, 0, RP_ROLLOUT_RETRY_WORK);
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    s->turns = 1;
    s->turn.on_due = on_turn;
    assert_ok(rp_loop_arm(s->loop, &s->turn, rp_loop_now(s->loop)));
    rp_loop_run(s->loop); /* tries some of the calls */
    assert_true(s->count > 0 && s->count < CALLS);
    rp_rollout_waits_wake(&s->waits, s->rollouts[0]);
    run(s);
    for (size_t i = 0; i < s->count; i++) tried[s->tried[i]]++;
    for (int i = 0; i < CALLS; i++) assert_true(tried[i] >= 1);
    assert_int_equal(tried[0], 2);
}

RP_TESTS(rollout_waits)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(only_calls_of_the_changed_rollouts_are_tried),
        CASE(a_change_of_any_rollouts_tries_all_calls),
        CASE(calls_that_end_are_not_tried),
        CASE(a_turn_ends_with_its_work),
        CASE(a_change_while_calls_are_tried_tries_all_again),
    };
    return cmocka_run_group_tests_name("rollout_waits", tests, NULL, NULL);
}
