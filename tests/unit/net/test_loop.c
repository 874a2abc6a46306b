/* SPDX-License-Identifier: Apache-2.0 */
/* Timers and descriptors; test_loop_posts.c has posts and turns. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "reprise/wait.h"
#include "support/unit.h"
#include "util/rng.h"

enum { MS = 1000000 };

static rp_loop *new_loop(void)
{
    rp_loop *loop = NULL;
    rp_error err;

    assert_ok_err(rp_loop_new(rp_allocator_default(), &loop, &err), &err);
    return loop;
}

/* A timer that writes its number down, and stops the loop after the last one. */
typedef struct noted {
    rp_timer timer;
    rp_loop *loop;
    struct journal *journal;
    int number;
} noted;

typedef struct journal {
    int numbers[2000];
    int64_t turns[2000]; /* when each was written, in turns */
    size_t count, stop_at;
    int64_t turn;
} journal;

static void note(journal *j, rp_loop *loop, int number)
{
    assert_true(j->count < COUNT_OF(j->numbers));
    j->turns[j->count] = j->turn;
    j->numbers[j->count++] = number;
    if (j->count == j->stop_at) rp_loop_stop(loop);
}

static void count_turn(void *user)
{
    ((journal *)user)->turn++;
}

static void on_noted(rp_timer *timer)
{
    noted *n = (noted *)timer;

    assert_true(timer->due_ns <= rp_loop_now(n->loop));
    assert_int_equal(timer->place, 0);
    note(n->journal, n->loop, n->number);
}

static void timers_are_called_in_the_order_of_their_times(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    static noted timers[1000];
    static journal j;
    rp_rng rng;

    j = (journal){.stop_at = COUNT_OF(timers)};
    rp_rng_init(&rng, 3);
    for (int i = 0; i < (int)COUNT_OF(timers); i++) {
        timers[i] = (noted){.timer.on_due = on_noted, .loop = loop, .journal = &j, .number = i};
        /* Some have passed, some come within 20 ms. */
        int64_t due = rp_loop_now(loop) + (int64_t)rp_rng_below(&rng, 30 * MS) - 10 * MS;
        assert_ok(rp_loop_arm(loop, &timers[i].timer, due));
    }

    rp_loop_run(loop);

    assert_int_equal(j.count, COUNT_OF(timers));
    for (size_t i = 1; i < j.count; i++)
        assert_true(timers[j.numbers[i - 1]].timer.due_ns <= timers[j.numbers[i]].timer.due_ns);
    rp_loop_free(loop);
}

static void timers_moved_and_disarmed_at_random_keep_their_order(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    static noted timers[300];
    static journal j;
    rp_rng rng;
    size_t armed = 0;

    j = (journal){0};
    rp_rng_init(&rng, 9);
    for (int i = 0; i < (int)COUNT_OF(timers); i++)
        timers[i] = (noted){.timer.on_due = on_noted, .loop = loop, .journal = &j, .number = i};
    for (int i = 0; i < 20000; i++) {
        noted *n = &timers[rp_rng_below(&rng, COUNT_OF(timers))];
        if (rp_rng_below(&rng, 3) == 0)
            rp_loop_disarm(loop, &n->timer);
        else
            assert_ok(rp_loop_arm(loop, &n->timer, (int64_t)rp_rng_below(&rng, 1000)));
    }
    for (size_t i = 0; i < COUNT_OF(timers); i++) armed += timers[i].timer.place != 0;
    assert_true(armed > 100 && armed < COUNT_OF(timers));
    j.stop_at = armed;

    rp_loop_run(loop);

    assert_int_equal(j.count, armed);
    for (size_t i = 1; i < j.count; i++)
        assert_true(timers[j.numbers[i - 1]].timer.due_ns <= timers[j.numbers[i]].timer.due_ns);
    rp_loop_free(loop);
}

static void on_again(rp_timer *timer)
{
    noted *n = (noted *)timer;

    assert_ok(rp_loop_arm(n->loop, timer, 0));
    note(n->journal, n->loop, n->number);
}

static void timer_that_arms_itself_for_the_past_lets_the_turn_end(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    journal j = {.stop_at = 10};
    noted again = {{.on_due = on_again}, loop, &j, 1},
          other = {{.on_due = on_noted}, loop, &j, 2};

    rp_loop_set_turn_end(loop, count_turn, &j);
    assert_ok(rp_loop_arm(loop, &again.timer, 0));
    assert_ok(rp_loop_arm(loop, &other.timer, 1));
    rp_loop_run(loop);

    assert_int_equal(j.numbers[0], 1);
    assert_int_equal(j.numbers[1], 2);
    assert_int_equal(j.turns[1], j.turns[0]);
    for (size_t i = 2; i < j.count; i++) {
        assert_int_equal(j.numbers[i], 1);
        assert_int_equal(j.turns[i], j.turns[i - 1] + 1);
    }
    rp_loop_free(loop);
}

static void on_later(rp_timer *timer)
{
    noted *n = (noted *)timer;

    if (n->journal->count + 1 < n->journal->stop_at)
        assert_ok(rp_loop_arm(n->loop, timer, rp_loop_now(n->loop) + 2 * MS));
    note(n->journal, n->loop, n->number);
}

static void timer_armed_again_in_its_callback_waits_its_time(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    journal j = {.stop_at = 5};
    noted later = {{.on_due = on_later}, loop, &j, 1};
    int64_t start = rp_now_ns();

    assert_ok(rp_loop_arm(loop, &later.timer, start));
    rp_loop_run(loop);

    assert_true(rp_now_ns() - start >= 8 * MS);
    assert_int_equal(later.timer.place, 0);
    rp_loop_free(loop);
}

/* Called first, it disarms a second one that is due as well and moves a third. */
typedef struct meddler {
    rp_timer timer;
    rp_loop *loop;
    noted *disarmed, *moved;
} meddler;

static void on_meddle(rp_timer *timer)
{
    meddler *m = (meddler *)timer;

    rp_loop_disarm(m->loop, &m->disarmed->timer);
    rp_loop_disarm(m->loop, &m->disarmed->timer); /* twice does nothing */
    assert_ok(rp_loop_arm(m->loop, &m->moved->timer, rp_loop_now(m->loop) + MS));
}

static void timer_disarmed_or_moved_by_one_of_the_same_turn_is_not_called(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    journal j = {.stop_at = 1};
    noted disarmed = {{.on_due = on_noted}, loop, &j, 1},
          moved = {{.on_due = on_noted}, loop, &j, 2};
    meddler m = {{.on_due = on_meddle}, loop, &disarmed, &moved};

    rp_loop_set_turn_end(loop, count_turn, &j);
    assert_ok(rp_loop_arm(loop, &m.timer, 1));
    assert_ok(rp_loop_arm(loop, &disarmed.timer, 2));
    assert_ok(rp_loop_arm(loop, &moved.timer, 3));
    rp_loop_run(loop);

    assert_int_equal(j.count, 1);
    assert_int_equal(j.numbers[0], 2);
    assert_true(j.turns[0] > 0);
    rp_loop_free(loop);
}

static void extreme_times_are_no_special_case(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    journal j = {.stop_at = 2};
    noted first = {{.on_due = on_noted}, loop, &j, 1},
          second = {{.on_due = on_noted}, loop, &j, 2},
          never = {{.on_due = on_noted}, loop, &j, 3};

    assert_ok(rp_loop_arm(loop, &never.timer, INT64_MAX));
    assert_ok(rp_loop_arm(loop, &second.timer, rp_loop_now(loop) + MS));
    assert_ok(rp_loop_arm(loop, &first.timer, INT64_MIN));
    rp_loop_run(loop);

    assert_int_equal(j.numbers[0], 1);
    assert_int_equal(j.numbers[1], 2);
    rp_loop_free(loop);
}

enum { BULK_TIMERS = 1500, PROMPT = -1, READY = -2 };

/* Notes itself in every turn, as others of its kind may: a timer that is not bulk. */
static void on_prompt(rp_timer *timer)
{
    noted *n = (noted *)timer;

    assert_ok(rp_loop_arm(n->loop, timer, 0));
    note(n->journal, n->loop, n->number);
}

typedef struct ready_note {
    rp_watch watch;
    rp_loop *loop;
    journal *journal;
} ready_note;

static void on_ready_note(rp_watch *watch, uint32_t events)
{
    ready_note *r = (ready_note *)watch;

    (void)events;
    note(r->journal, r->loop, READY);
}

static void a_turn_calls_some_bulk_timers_and_everything_else(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    static noted timers[BULK_TIMERS];
    static journal j;
    noted prompt = {{.on_due = on_prompt}, loop, &j, PROMPT};
    ready_note ready = {{.fd = eventfd(1, EFD_NONBLOCK), .on_ready = on_ready_note}, loop, &j};
    size_t in_turn[16] = {0}, prompts[16] = {0}, readies[16] = {0}, next = 0;

    j = (journal){.stop_at = BULK_TIMERS + 6}; /* three turns with one of each other */
    rp_loop_set_turn_end(loop, count_turn, &j);
    for (int i = 0; i < BULK_TIMERS; i++) {
        timers[i] = (noted){{.on_due = on_noted, .is_bulk = true}, loop, &j, i};
        assert_ok(rp_loop_arm(loop, &timers[i].timer, i));
    }
    assert_ok(rp_loop_arm(loop, &prompt.timer, BULK_TIMERS)); /* after all of them */
    assert_ok(rp_loop_watch(loop, &ready.watch, RP_READABLE));

    rp_loop_run(loop);

    for (size_t i = 0; i < j.count; i++) {
        assert_true(j.turns[i] < (int64_t)COUNT_OF(in_turn));
        if (j.numbers[i] >= 0) {
            assert_int_equal(j.numbers[i], next++); /* in their order */
            in_turn[j.turns[i]]++;
        } else {
            (j.numbers[i] == PROMPT ? prompts : readies)[j.turns[i]]++;
        }
    }
    assert_int_equal(next, BULK_TIMERS);
    for (size_t turn = 0, left = BULK_TIMERS; left > 0; left -= in_turn[turn++]) {
        assert_int_equal(in_turn[turn], left < 512 ? left : 512);
        assert_int_equal(prompts[turn], 1);
        assert_int_equal(readies[turn], 1);
    }
    rp_loop_forget(loop, &ready.watch);
    assert_int_equal(close(ready.watch.fd), 0);
    rp_loop_free(loop);
}

typedef struct seen {
    rp_watch watch;
    rp_loop *loop;
    struct seen *other;
    uint32_t events;
    int calls;
} seen;

static void on_seen(rp_watch *watch, uint32_t events)
{
    seen *s = (seen *)watch;

    s->events = events;
    s->calls++;
    rp_loop_stop(s->loop);
}

static void new_pair(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
}

static void descriptor_is_reported_for_watched_events(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    int fds[2];
    seen s = {.watch.on_ready = on_seen, .loop = loop};

    new_pair(fds);
    s.watch.fd = fds[0];
    assert_ok(rp_loop_watch(loop, &s.watch, RP_WRITABLE));
    rp_loop_run(loop);
    assert_int_equal(s.events, RP_WRITABLE);

    rp_loop_change(loop, &s.watch, RP_READABLE | RP_WRITABLE);
    assert_int_equal(write(fds[1], "x", 1), 1);
    rp_loop_run(loop);
    assert_int_equal(s.events, RP_READABLE | RP_WRITABLE);

    rp_loop_change(loop, &s.watch, RP_READABLE);
    rp_loop_run(loop); /* nobody has read it: level-triggered */
    assert_int_equal(s.events, RP_READABLE);
    assert_int_equal(s.calls, 3);

    rp_loop_change(loop, &s.watch, 0);
    rp_loop_stop(loop);
    rp_loop_run(loop);
    assert_int_equal(s.calls, 3);

    assert_int_equal(close(fds[1]), 0); /* told even to who asks for nothing */
    rp_loop_run(loop);
    assert_int_equal(s.events, RP_HUNG_UP);

    rp_loop_forget(loop, &s.watch);
    rp_loop_stop(loop);
    rp_loop_run(loop);
    assert_int_equal(s.calls, 4);
    assert_int_equal(close(fds[0]), 0);
    rp_loop_free(loop);
}

static void on_forget_other(rp_watch *watch, uint32_t events)
{
    seen *s = (seen *)watch;

    (void)events;
    s->calls++;
    rp_loop_forget(s->loop, &s->other->watch);
    assert_int_equal(close(s->other->watch.fd), 0);
    s->other->watch.fd = -1;
    s->other->watch.events = RP_READABLE; /* as the next owner of its memory might */
    rp_loop_stop(s->loop);
}

static void watch_removed_by_one_of_the_same_turn_is_not_called(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    seen s[2];
    int fds[2][2];

    for (int i = 0; i < 2; i++) {
        new_pair(fds[i]);
        s[i] = (seen){.watch = {.fd = fds[i][0], .on_ready = on_forget_other},
                      .loop = loop,
                      .other = &s[1 - i]};
        assert_int_equal(write(fds[i][1], "x", 1), 1);
        assert_ok(rp_loop_watch(loop, &s[i].watch, RP_READABLE));
    }
    rp_loop_run(loop); /* both are ready in its first turn */

    int survivor = s[0].watch.fd == fds[0][0] ? 0 : 1;
    assert_int_equal(s[survivor].calls, 1);
    assert_int_equal(s[1 - survivor].calls, 0);
    rp_loop_forget(loop, &s[survivor].watch);
    for (int i = 0; i < 2; i++) (void)close(fds[i][1]);
    assert_int_equal(close(fds[survivor][0]), 0);
    rp_loop_free(loop);
}

static void on_ask_nothing_of_other(rp_watch *watch, uint32_t events)
{
    seen *s = (seen *)watch;

    (void)events;
    s->calls++;
    rp_loop_change(s->loop, &s->other->watch, 0);
    rp_loop_stop(s->loop);
}

static void unwatched_events_are_not_reported(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    seen s[2];
    int fds[2][2];

    for (int i = 0; i < 2; i++) {
        new_pair(fds[i]);
        s[i] = (seen){.watch = {.fd = fds[i][0], .on_ready = on_ask_nothing_of_other},
                      .loop = loop,
                      .other = &s[1 - i]};
        assert_ok(rp_loop_watch(loop, &s[i].watch, RP_WRITABLE));
    }
    rp_loop_run(loop);

    assert_int_equal(s[0].calls + s[1].calls, 1);
    for (int i = 0; i < 4; i++) (void)close(fds[i / 2][i % 2]);
    rp_loop_free(loop);
}

/* Forgets itself and watches another descriptor in the same memory. */
static void on_change_descriptor(rp_watch *watch, uint32_t events)
{
    seen *s = (seen *)watch;

    (void)events;
    s->calls++;
    rp_loop_forget(s->loop, watch);
    watch->fd = s->other->watch.fd;
    watch->on_ready = on_seen;
    assert_ok(rp_loop_watch(s->loop, watch, RP_READABLE));
}

static void watch_can_be_used_again_from_its_own_callback(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    int a[2], b[2];
    seen next = {0}, s = {.watch.on_ready = on_change_descriptor, .loop = loop, .other = &next};

    new_pair(a);
    new_pair(b);
    s.watch.fd = a[0];
    next.watch.fd = b[0];
    assert_ok(rp_loop_watch(loop, &s.watch, RP_WRITABLE));
    assert_int_equal(write(b[1], "x", 1), 1);
    rp_loop_run(loop);

    assert_int_equal(s.calls, 2);
    assert_int_equal(s.events, RP_READABLE);
    for (int i = 0; i < 2; i++) {
        (void)close(a[i]);
        (void)close(b[i]);
    }
    rp_loop_free(loop);
}

static void on_count_all(rp_watch *watch, uint32_t events)
{
    seen *s = (seen *)watch;

    (void)events;
    rp_loop_change(s->loop, watch, 0);
    if (++s->other->calls == 300) rp_loop_stop(s->loop);
}

static void more_descriptors_than_one_turn_takes_are_all_called(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    static seen s[300];
    seen sum = {0};

    for (size_t i = 0; i < COUNT_OF(s); i++) {
        s[i] = (seen){.watch = {.fd = eventfd(1, EFD_NONBLOCK), .on_ready = on_count_all},
                      .loop = loop,
                      .other = &sum};
        assert_true(s[i].watch.fd >= 0);
        assert_ok(rp_loop_watch(loop, &s[i].watch, RP_READABLE));
    }
    rp_loop_run(loop);

    assert_int_equal(sum.calls, 300);
    for (size_t i = 0; i < COUNT_OF(s); i++) {
        rp_loop_forget(loop, &s[i].watch);
        assert_int_equal(close(s[i].watch.fd), 0);
    }
    rp_loop_free(loop);
}

static void descriptor_that_cannot_be_watched_is_refused(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    seen s = {.watch.on_ready = on_seen}, closed = {.watch.fd = -1};
    int fds[2];

    s.watch.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(s.watch.fd >= 0);
    assert_int_equal(rp_loop_watch(loop, &s.watch, RP_READABLE), RP_INVALID);
    assert_int_equal(close(s.watch.fd), 0);
    assert_int_equal(rp_loop_watch(loop, &closed.watch, RP_READABLE), RP_INVALID);

    new_pair(fds);
    s.watch.fd = fds[0];
    assert_ok(rp_loop_watch(loop, &s.watch, 0));
    assert_int_equal(rp_loop_watch(loop, &s.watch, 0), RP_INVALID);
    (void)close(fds[0]);
    (void)close(fds[1]);
    rp_loop_free(loop);
}

static rp_status arm_many(const rp_allocator *alloc)
{
    rp_loop *loop = NULL;
    rp_timer timers[100] = {0};
    rp_error err;
    rp_status st = rp_loop_new(alloc, &loop, &err);
    size_t armed = 0;

    while (st == RP_OK && armed < COUNT_OF(timers)) {
        st = rp_loop_arm(loop, &timers[armed], (int64_t)armed);
        if (st == RP_OK) armed++;
    }
    for (size_t i = 0; i < armed; i++) /* those that are armed can be moved all the same */
        assert_ok(rp_loop_arm(loop, &timers[i], -(int64_t)i));
    for (size_t i = armed; i < COUNT_OF(timers); i++) assert_int_equal(timers[i].place, 0);
    rp_loop_free(loop);
    return st;
}

static void loop_survives_each_allocation_that_fails(void **state)
{
    (void)state;
    rp_test_survives_oom(arm_many);
}

static void loop_without_descriptors_fails(void **state)
{
    (void)state;
    struct rlimit old, few;
    rp_loop *loop = NULL;
    rp_error err;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    int next = dup(0);

    assert_true(next >= 0);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (rlim_t more = 0; more < 2; more++) {
        few = (struct rlimit){.rlim_cur = (rlim_t)next + more, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        rp_status st = rp_loop_new(&alloc, &loop, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        assert_fails(st, RP_NO_RESOURCE, &err, "descriptor");
        assert_int_equal(oom.live, 0);
    }
    next = dup(0);
    assert_true(next >= 0); /* the first of the two was given back */
    assert_int_equal((rlim_t)next, few.rlim_cur - 1);
    (void)close(next);
}

RP_TESTS(loop)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_are_called_in_the_order_of_their_times),
        cmocka_unit_test(timers_moved_and_disarmed_at_random_keep_their_order),
        cmocka_unit_test(timer_that_arms_itself_for_the_past_lets_the_turn_end),
        cmocka_unit_test(timer_armed_again_in_its_callback_waits_its_time),
        cmocka_unit_test(timer_disarmed_or_moved_by_one_of_the_same_turn_is_not_called),
        cmocka_unit_test(extreme_times_are_no_special_case),
        cmocka_unit_test(a_turn_calls_some_bulk_timers_and_everything_else),
        cmocka_unit_test(descriptor_is_reported_for_watched_events),
        cmocka_unit_test(watch_removed_by_one_of_the_same_turn_is_not_called),
        cmocka_unit_test(unwatched_events_are_not_reported),
        cmocka_unit_test(watch_can_be_used_again_from_its_own_callback),
        cmocka_unit_test(more_descriptors_than_one_turn_takes_are_all_called),
        cmocka_unit_test(descriptor_that_cannot_be_watched_is_refused),
        cmocka_unit_test(loop_survives_each_allocation_that_fails),
        cmocka_unit_test(loop_without_descriptors_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
