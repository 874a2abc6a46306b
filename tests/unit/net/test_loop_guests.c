/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do the work of a loop while its own sleeps. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/loop.h"
#include "reprise/wait.h"
#include "support/unit.h"

enum { MS = 1000000, GUESTS = 4, VISITS = 500, ROUNDS = 500 };

typedef struct bed {
    rp_loop *loop;
    pthread_t thread;
    pthread_t ended_by; /* who ended the last turn */
    size_t turns;
} bed;

static void end_turn(void *user)
{
    bed *b = user;

    b->ended_by = pthread_self();
    b->turns++;
}

static void *run(void *user)
{
    rp_loop_run(((bed *)user)->loop);
    return NULL;
}

static void set_up(bed *b)
{
    rp_error err;

    *b = (bed){0};
    assert_ok_err(rp_loop_new(rp_allocator_default(), &b->loop, &err), &err);
    rp_loop_set_turn_end(b->loop, end_turn, b);
    rp_loop_share(b->loop);
    assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
}

static void tear_down(bed *b)
{
    rp_loop_stop(b->loop);
    assert_int_equal(pthread_join(b->thread, NULL), 0);
    rp_loop_free(b->loop);
}

/* Enters once the loop sleeps. */
static void enter_asleep(bed *b)
{
    while (!rp_loop_try_enter(b->loop)) (void)sched_yield();
}

static void guest_ends_its_turn_on_its_own_thread(void **state)
{
    (void)state;
    bed b;
    size_t before;
    int64_t now_ns = rp_now_ns();
    set_up(&b);

    enter_asleep(&b);
    before = b.turns;
    assert_true(rp_loop_now(b.loop) >= now_ns);
    rp_loop_leave(b.loop);

    enter_asleep(&b);
    assert_int_equal(b.turns, before + 1);
    assert_true(pthread_equal(b.ended_by, pthread_self()));
    rp_loop_leave(b.loop);
    tear_down(&b);
}

static void loop_that_is_not_shared_has_no_guests(void **state)
{
    (void)state;
    rp_loop *loop;
    rp_error err;

    assert_ok_err(rp_loop_new(rp_allocator_default(), &loop, &err), &err);
    assert_false(rp_loop_try_enter(loop));
    rp_loop_free(loop);
}

typedef struct slow_post {
    rp_post post; /* first */
    sem_t begun, go;
    bool is_done;
} slow_post;

static void run_slow(rp_post *post)
{
    slow_post *slow = (slow_post *)post;

    (void)sem_post(&slow->begun);
    (void)sem_wait(&slow->go);
    slow->is_done = true;
}

static void *let_go(void *user)
{
    (void)usleep(2000);
    (void)sem_post(&((slow_post *)user)->go);
    return NULL;
}

static void enter_waits_for_a_busy_loop_and_try_enter_does_not(void **state)
{
    (void)state;
    slow_post slow = {.post.run = run_slow};
    pthread_t helper;
    bed b;
    set_up(&b);
    assert_int_equal(sem_init(&slow.begun, 0, 0) | sem_init(&slow.go, 0, 0), 0);
    rp_loop_post(b.loop, &slow.post);
    (void)sem_wait(&slow.begun);

    assert_false(rp_loop_try_enter(b.loop));
    assert_int_equal(pthread_create(&helper, NULL, let_go, &slow), 0);
    rp_loop_enter(b.loop);
    assert_true(slow.is_done);
    rp_loop_leave(b.loop);

    assert_int_equal(pthread_join(helper, NULL), 0);
    tear_down(&b);
}

typedef struct told {
    rp_timer timer; /* first */
    sem_t came;
} told;

static void on_due(rp_timer *timer)
{
    (void)sem_post(&((told *)timer)->came);
}

/* The loop sleeps for ever, or for longer: it has to be told. */
static void timer_of_a_guest_is_called_in_time(void **state)
{
    (void)state;
    told first = {.timer.on_due = on_due}, second = {.timer.on_due = on_due};
    bed b;
    set_up(&b);
    assert_int_equal(sem_init(&first.came, 0, 0) | sem_init(&second.came, 0, 0), 0);

    enter_asleep(&b);
    assert_ok(rp_loop_arm(b.loop, &first.timer, rp_loop_now(b.loop) + (int64_t)3600000 * MS));
    rp_loop_leave(b.loop);
    enter_asleep(&b);
    assert_ok(rp_loop_arm(b.loop, &second.timer, rp_loop_now(b.loop) + 2 * MS));
    rp_loop_leave(b.loop);

    (void)sem_wait(&second.came); /* or this never ends */
    assert_int_equal(sem_trywait(&first.came), -1);
    rp_loop_enter(b.loop);
    rp_loop_disarm(b.loop, &first.timer);
    rp_loop_leave(b.loop);
    tear_down(&b);
}

typedef struct marker {
    rp_post post; /* first */
    sem_t came;
} marker;

static void on_marker(rp_post *post)
{
    (void)sem_post(&((marker *)post)->came);
}

/* Until the loop's own thread has ended a turn: what it had been woken for is done then. */
static void await_turn(bed *b)
{
    for (int i = 0; i < 2; i++) {
        marker m = {.post.run = on_marker};

        assert_int_equal(sem_init(&m.came, 0, 0), 0);
        rp_loop_post(b->loop, &m.post);
        (void)sem_wait(&m.came);
    }
}

typedef struct mortal {
    rp_watch watch; /* first */
    bool is_gone;
    atomic_bool was_called_dead;
} mortal;

static void on_mortal(rp_watch *watch, uint32_t events)
{
    mortal *m = (mortal *)watch;
    uint64_t count;

    (void)events;
    if (m->is_gone) atomic_store(&m->was_called_dead, true);
    (void)!read(watch->fd, &count, sizeof count);
}

/* The loop has been woken for a descriptor that a guest forgets before it has its turn. */
static void watches_removed_by_a_guest_are_not_called(void **state)
{
    (void)state;
    static const uint64_t one = 1;
    bed b;
    set_up(&b);

    for (int i = 0; i < ROUNDS; i++) {
        mortal m = {.watch = {.fd = eventfd(0, EFD_NONBLOCK), .on_ready = on_mortal}};
        assert_true(m.watch.fd >= 0);
        rp_loop_enter(b.loop);
        assert_ok(rp_loop_watch(b.loop, &m.watch, RP_READABLE));
        rp_loop_leave(b.loop);
        enter_asleep(&b);
        assert_int_equal(write(m.watch.fd, &one, sizeof one), sizeof one);
        if (i % 2 == 0) (void)usleep(50); /* it is awake, and waits for us */
        rp_loop_forget(b.loop, &m.watch);
        m.is_gone = true;
        m.watch.events = RP_READABLE; /* as if its memory were somebody else's */
        rp_loop_leave(b.loop);
        await_turn(&b);
        assert_false(atomic_load(&m.was_called_dead));
        (void)close(m.watch.fd);
    }
    tear_down(&b);
}

typedef struct visitor {
    bed *bed;
    pthread_t thread;
    size_t *visits; /* guarded by being the loop's thread */
} visitor;

typedef struct visit_post {
    rp_post post; /* first */
    size_t *visits;
    atomic_bool is_run;
} visit_post;

static void run_visit(rp_post *post)
{
    visit_post *v = (visit_post *)post;

    ++*v->visits;
    atomic_store(&v->is_run, true);
}

static void *visit(void *user)
{
    visitor *v = user;

    for (int i = 0; i < VISITS; i++) {
        visit_post p = {.post.run = run_visit, .visits = v->visits};

        if (i % 3 == 0 && rp_loop_try_enter(v->bed->loop)) {
            ++*v->visits;
            rp_loop_leave(v->bed->loop);
        } else if (i % 3 == 1) {
            rp_loop_enter(v->bed->loop);
            ++*v->visits;
            rp_loop_leave(v->bed->loop);
        } else {
            rp_loop_post(v->bed->loop, &p.post);
            while (!atomic_load(&p.is_run)) (void)sched_yield();
        }
    }
    return NULL;
}

static void one_thread_at_a_time_runs_the_loop(void **state)
{
    (void)state;
    visitor visitors[GUESTS];
    size_t visits = 0;
    bed b;
    set_up(&b);

    for (int i = 0; i < GUESTS; i++) {
        visitors[i] = (visitor){.bed = &b, .visits = &visits};
        assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
    }
    for (int i = 0; i < GUESTS; i++)
        assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);

    tear_down(&b);
    assert_int_equal(visits, GUESTS * VISITS);
}

RP_TESTS(loop_guests)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guest_ends_its_turn_on_its_own_thread),
        cmocka_unit_test(loop_that_is_not_shared_has_no_guests),
        cmocka_unit_test(enter_waits_for_a_busy_loop_and_try_enter_does_not),
        cmocka_unit_test(timer_of_a_guest_is_called_in_time),
        cmocka_unit_test(watches_removed_by_a_guest_are_not_called),
        cmocka_unit_test(one_thread_at_a_time_runs_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
