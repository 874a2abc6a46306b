/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reprise/wait.h"
#include "support/fixture.h"
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

/* --- timers --------------------------------------------------------------------------------- */

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

/* --- descriptors ---------------------------------------------------------------------------- */

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

static void descriptor_is_reported_for_what_is_asked(void **state)
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

static void watch_forgotten_by_one_of_the_same_turn_is_not_called(void **state)
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

static void what_is_no_longer_asked_for_is_not_reported(void **state)
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

/* --- posts ---------------------------------------------------------------------------------- */

enum { POSTERS = 8, POSTS = 20000 /* of each, at scale 1 */ };

typedef struct poster {
    rp_loop *loop;
    struct posted *posts;
    size_t count;
    size_t next; /* the loop's: the one that has to come */
    atomic_size_t *left;
} poster;

typedef struct posted {
    rp_post post;
    poster *by;
    size_t number;
    size_t weight; /* written by the poster, read by the loop */
} posted;

static void on_posted(rp_post *post)
{
    posted *p = (posted *)post;

    assert_int_equal(p->number, p->by->next++);
    assert_int_equal(p->weight, p->number * 3);
    if (atomic_fetch_sub(p->by->left, 1) == 1) rp_loop_stop(p->by->loop);
}

static void *post_all(void *arg)
{
    poster *by = arg;

    for (size_t i = 0; i < by->count; i++) {
        by->posts[i] = (posted){{.run = on_posted}, by, i, i * 3};
        rp_loop_post(by->loop, &by->posts[i].post);
        if (i % 1000 == 999) (void)sched_yield(); /* let the loop fall asleep now and then */
    }
    return NULL;
}

static void posts_of_many_threads_arrive_in_the_order_of_each(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    size_t count = rp_test_scaled(POSTS, 200);
    atomic_size_t left;
    poster by[POSTERS];
    pthread_t threads[POSTERS];

    atomic_init(&left, POSTERS * count);
    for (size_t i = 0; i < POSTERS; i++) {
        by[i] = (poster){loop, calloc(count, sizeof(posted)), count, 0, &left};
        assert_non_null(by[i].posts);
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &by[i]), 0);
    }
    rp_loop_run(loop);

    assert_int_equal(left, 0);
    for (size_t i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(by[i].next, count);
        free(by[i].posts);
    }
    rp_loop_free(loop);
}

/* Two loops on two threads that wake each other. */
typedef struct player {
    rp_post post;
    rp_loop *loop;
    struct player *other;
    size_t left;
} player;

static void on_ball(rp_post *post)
{
    player *p = (player *)post;

    if (p->left == 0) {
        rp_loop_stop(p->loop);
        rp_loop_stop(p->other->loop);
        return;
    }
    p->other->left = p->left - 1;
    rp_loop_post(p->other->loop, &p->other->post);
}

static void *run_loop(void *arg)
{
    rp_loop_run(arg);
    return NULL;
}

static void post_always_wakes_a_loop_that_sleeps(void **state)
{
    (void)state;
    player a = {{.run = on_ball}, new_loop(), NULL, rp_test_scaled(20000, 500)},
           b = {{.run = on_ball}, new_loop(), &a, 0};
    pthread_t thread;

    a.other = &b;
    assert_int_equal(pthread_create(&thread, NULL, run_loop, b.loop), 0);
    rp_loop_post(a.loop, &a.post);
    rp_loop_run(a.loop);
    assert_int_equal(pthread_join(thread, NULL), 0);

    assert_int_equal(a.left + b.left, 1); /* counted down to the end, by turns */
    rp_loop_free(a.loop);
    rp_loop_free(b.loop);
}

typedef struct parting {
    rp_post post;
    rp_loop *loop;
} parting;

static void on_parting(rp_post *post)
{
    rp_loop_stop(((parting *)post)->loop);
}

static void *post_parting(void *arg)
{
    parting *p = arg;

    rp_loop_post(p->loop, &p->post);
    return NULL;
}

/* The post ends the loop, which is freed while the poster may still be on its way out. */
static void loop_is_not_freed_under_the_hands_of_who_wakes_it(void **state)
{
    (void)state;
    size_t rounds = rp_test_scaled(500, 50);

    for (size_t i = 0; i < rounds; i++) {
        parting p = {{.run = on_parting}, new_loop()};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, post_parting, &p), 0);
        rp_loop_run(p.loop);
        rp_loop_free(p.loop);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

typedef struct tally {
    rp_post post;
    rp_loop *loop;
    int calls, again; /* how often it posts itself */
    journal *journal;
} tally;

static void on_tally(rp_post *post)
{
    tally *t = (tally *)post;

    t->calls++;
    if (t->journal != NULL) note(t->journal, t->loop, t->calls);
    if (t->again-- > 0) rp_loop_post(t->loop, post);
}

static void loop_stopped_before_it_runs_still_runs_its_posts(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    tally before[3] = {0}, after = {.post.run = on_tally, .loop = loop};

    for (int i = 0; i < 3; i++) {
        before[i] = (tally){.post.run = on_tally, .loop = loop};
        rp_loop_post(loop, &before[i].post);
    }
    rp_loop_stop(loop);
    rp_loop_stop(loop); /* twice is as good as once */
    rp_loop_run(loop);
    for (int i = 0; i < 3; i++) assert_int_equal(before[i].calls, 1);

    rp_loop_post(loop, &after.post); /* and it can be run again */
    rp_loop_stop(loop);
    rp_loop_run(loop);
    assert_int_equal(after.calls, 1);
    rp_loop_free(loop);
}

static void post_that_posts_itself_runs_once_a_turn(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();
    journal j = {.stop_at = 6};
    tally t = {.post.run = on_tally, .loop = loop, .again = 5, .journal = &j};

    rp_loop_set_turn_end(loop, count_turn, &j);
    rp_loop_post(loop, &t.post);
    rp_loop_run(loop);

    assert_int_equal(t.calls, 6);
    for (size_t i = 1; i < j.count; i++) assert_int_equal(j.turns[i], j.turns[i - 1] + 1);
    rp_loop_free(loop);
}

static void on_free_itself(rp_post *post)
{
    tally *t = (tally *)post;

    rp_loop_stop(t->loop);
    free(t);
}

static void post_may_free_itself(void **state)
{
    (void)state;
    rp_loop *loop = new_loop();

    for (int i = 0; i < 3; i++) {
        tally *t = calloc(1, sizeof *t);
        assert_non_null(t);
        *t = (tally){.post.run = on_free_itself, .loop = loop};
        rp_loop_post(loop, &t->post);
    }
    rp_loop_run(loop);
    rp_loop_free(loop);
}

/* --- turns ---------------------------------------------------------------------------------- */

/* Everything that can happen in a turn, written down in order. */
typedef struct sequence {
    rp_loop *loop;
    char text[32];
    rp_post post;
    rp_watch watch;
    rp_timer timer;
} sequence;

static void append(sequence *s, char what)
{
    size_t length = strlen(s->text);

    assert_true(length + 1 < sizeof s->text);
    s->text[length] = what;
}

#define OWNER(member, pointer)                                                                 \
    ((sequence *)(void *)((char *)(pointer)-offsetof(sequence, member)))

static void sequence_post(rp_post *post)
{
    append(OWNER(post, post), 'p');
}

static void sequence_ready(rp_watch *watch, uint32_t events)
{
    sequence *s = OWNER(watch, watch);

    (void)events;
    append(s, 'r');
    rp_loop_change(s->loop, watch, 0);
}

static void sequence_due(rp_timer *timer)
{
    append(OWNER(timer, timer), 't');
    rp_loop_stop(OWNER(timer, timer)->loop);
}

static void sequence_end(void *user)
{
    append(user, 'e');
}

static void turn_ends_after_all_that_was_ready(void **state)
{
    (void)state;
    sequence s = {.loop = new_loop(),
                  .post.run = sequence_post,
                  .watch = {.fd = eventfd(1, EFD_NONBLOCK), .on_ready = sequence_ready},
                  .timer.on_due = sequence_due};

    rp_loop_set_turn_end(s.loop, sequence_end, &s);
    rp_loop_post(s.loop, &s.post);
    assert_ok(rp_loop_watch(s.loop, &s.watch, RP_READABLE));
    assert_ok(rp_loop_arm(s.loop, &s.timer, 0));
    rp_loop_run(s.loop);

    assert_string_equal(s.text, "prtee"); /* the second turn runs the stop */
    assert_int_equal(close(s.watch.fd), 0);
    rp_loop_free(s.loop);
}

typedef struct rester {
    rp_post post;
    rp_loop *loop;
    int64_t times[20];
    int runs;
} rester;

static void on_rest(rp_post *post)
{
    rester *r = (rester *)post;

    r->times[r->runs++] = rp_loop_now(r->loop);
    if (r->runs == 1) {
        rp_loop_rest(r->loop, 30 * MS);
        rp_loop_rest(r->loop, MS); /* the longest counts */
    }
    if (r->runs < (int)COUNT_OF(r->times))
        rp_loop_post(r->loop, post);
    else
        rp_loop_stop(r->loop);
}

static void rest_delays_the_next_turn_and_only_that(void **state)
{
    (void)state;
    rester r = {.post.run = on_rest, .loop = new_loop()};
    int64_t shortest = INT64_MAX;

    rp_loop_post(r.loop, &r.post);
    rp_loop_run(r.loop);

    assert_true(r.times[1] - r.times[0] >= 30 * MS);
    for (int i = 2; i < r.runs; i++)
        if (r.times[i] - r.times[i - 1] < shortest) shortest = r.times[i] - r.times[i - 1];
    assert_true(shortest < 30 * MS); /* the machine may be busy, but not every time */
    rp_loop_free(r.loop);
}

/* --- what fails ----------------------------------------------------------------------------- */

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

static void loop_without_descriptors_says_so(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_are_called_in_the_order_of_their_times),
        cmocka_unit_test(timers_moved_and_disarmed_at_random_keep_their_order),
        cmocka_unit_test(timer_that_arms_itself_for_the_past_lets_the_turn_end),
        cmocka_unit_test(timer_armed_again_in_its_callback_waits_its_time),
        cmocka_unit_test(timer_disarmed_or_moved_by_one_of_the_same_turn_is_not_called),
        cmocka_unit_test(extreme_times_are_no_special_case),
        cmocka_unit_test(descriptor_is_reported_for_what_is_asked),
        cmocka_unit_test(watch_forgotten_by_one_of_the_same_turn_is_not_called),
        cmocka_unit_test(what_is_no_longer_asked_for_is_not_reported),
        cmocka_unit_test(watch_can_be_used_again_from_its_own_callback),
        cmocka_unit_test(more_descriptors_than_one_turn_takes_are_all_called),
        cmocka_unit_test(descriptor_that_cannot_be_watched_is_refused),
        cmocka_unit_test(posts_of_many_threads_arrive_in_the_order_of_each),
        cmocka_unit_test(post_always_wakes_a_loop_that_sleeps),
        cmocka_unit_test(loop_is_not_freed_under_the_hands_of_who_wakes_it),
        cmocka_unit_test(loop_stopped_before_it_runs_still_runs_its_posts),
        cmocka_unit_test(post_that_posts_itself_runs_once_a_turn),
        cmocka_unit_test(post_may_free_itself),
        cmocka_unit_test(turn_ends_after_all_that_was_ready),
        cmocka_unit_test(rest_delays_the_next_turn_and_only_that),
        cmocka_unit_test(loop_survives_each_allocation_that_fails),
        cmocka_unit_test(loop_without_descriptors_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
