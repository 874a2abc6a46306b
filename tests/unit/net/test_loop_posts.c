/* SPDX-License-Identifier: Apache-2.0 */
/* Posts from other threads, and the order of a turn; test_loop.c has timers and descriptors. */
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "reprise/wait.h"
#include "support/fixture.h"
#include "util/polling.h"

enum { MS = 1000000 };

static rp_loop *new_loop(void)
{
    rp_loop *loop = NULL;
    rp_error err;

    assert_ok_err(rp_loop_new(rp_allocator_default(), &loop, &err), &err);
    return loop;
}

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
static void loop_is_not_freed_while_a_poster_wakes_it(void **state)
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
    int calls;
    int again; /* how often it posts itself before it stops the loop */
    int turns; /* that have ended */
} tally;

static void on_tally(rp_post *post)
{
    tally *t = (tally *)post;

    t->calls++;
    if (t->again-- > 0)
        rp_loop_post(t->loop, post);
    else
        rp_loop_stop(t->loop);
}

static void on_tally_turn(void *user)
{
    tally *t = user;

    assert_true(t->calls <= ++t->turns);
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
    tally t = {.post.run = on_tally, .loop = loop, .again = 5};

    rp_loop_set_turn_end(loop, on_tally_turn, &t);
    rp_loop_post(loop, &t.post);
    rp_loop_run(loop);

    assert_int_equal(t.calls, 6);
    assert_int_equal(t.turns, 7); /* and one for the stop */
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

/* Many posts at once, and a descriptor that is always ready. */
typedef struct crowd {
    rp_loop *loop;
    struct member *members;
    rp_watch watch;
    size_t run, in_turn, most_in_turn;
    size_t readies;      /* how often the descriptor was reported */
    size_t run_at_ready; /* posts, when it was reported first */
    size_t stop_at;
} crowd;

typedef struct member {
    rp_post post;
    crowd *crowd;
    size_t number;
} member;

static void on_member(rp_post *post)
{
    member *m = (member *)post;
    crowd *c = m->crowd;

    assert_int_equal(m->number, c->run);
    c->in_turn++;
    if (++c->run == c->stop_at) rp_loop_stop(c->loop);
}

static void on_crowd_ready(rp_watch *watch, uint32_t events)
{
    crowd *c = (crowd *)(void *)((char *)watch - offsetof(crowd, watch));

    (void)events;
    if (c->readies++ == 0) c->run_at_ready = c->run;
}

static void on_crowd_turn(void *user)
{
    crowd *c = user;

    if (c->in_turn > c->most_in_turn) c->most_in_turn = c->in_turn;
    c->in_turn = 0;
}

static void crowd_post(crowd *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        c->members[i] = (member){{.run = on_member}, c, i};
        rp_loop_post(c->loop, &c->members[i].post);
    }
}

static void a_turn_runs_some_of_many_posts(void **state)
{
    (void)state;
    static member members[1500];
    crowd c = {.loop = new_loop(),
               .members = members,
               .watch = {.fd = eventfd(1, EFD_NONBLOCK), .on_ready = on_crowd_ready},
               .stop_at = 1500};

    rp_loop_set_turn_end(c.loop, on_crowd_turn, &c);
    assert_ok(rp_loop_watch(c.loop, &c.watch, RP_READABLE));
    crowd_post(&c, 1500);
    rp_loop_run(c.loop);

    assert_int_equal(c.run, 1500);
    assert_int_equal(c.most_in_turn, 512);
    assert_int_equal(c.run_at_ready, 512); /* it does not wait for the others */
    assert_int_equal(c.readies, 3);        /* the turn that stops reports none */
    rp_loop_forget(c.loop, &c.watch);
    assert_int_equal(close(c.watch.fd), 0);
    rp_loop_free(c.loop);
}

static void a_loop_that_stops_runs_all_posts_that_it_has_taken(void **state)
{
    (void)state;
    static member members[1500];
    crowd c = {.loop = new_loop(), .members = members};

    rp_loop_stop(c.loop); /* before all of them */
    crowd_post(&c, 1500);
    rp_loop_run(c.loop);
    assert_int_equal(c.run, 1500);

    c.run = 0;
    crowd_post(&c, 1500);
    rp_loop_stop(c.loop); /* behind them */
    rp_loop_run(c.loop);
    assert_int_equal(c.run, 1500);
    rp_loop_free(c.loop);
}

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

static void turn_end_runs_after_posts_watches_and_timers(void **state)
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

/* A loop that polls without end: what arrives must end the poll. */
typedef struct polled {
    rp_watch watch;
    rp_timer timer;
    rp_loop *loop;
    size_t echoes, posts, ticks, rounds;
} polled;

typedef struct polled_post {
    rp_post post;
    polled *p;
} polled_post;

static void end_if_done(polled *p)
{
    if (p->echoes == p->rounds && p->posts == p->rounds && p->ticks > 0) rp_loop_stop(p->loop);
}

static void on_byte(rp_watch *watch, uint32_t events)
{
    polled *p = (polled *)watch;
    char byte;

    assert_true((events & RP_READABLE) != 0);
    assert_int_equal(read(watch->fd, &byte, 1), 1);
    assert_int_equal(write(watch->fd, &byte, 1), 1);
    p->echoes++;
    end_if_done(p);
}

static void on_polled_post(rp_post *post)
{
    polled *p = ((polled_post *)post)->p;

    p->posts++;
    end_if_done(p);
}

static void on_tick(rp_timer *timer)
{
    polled *p = (polled *)((char *)timer - offsetof(polled, timer));

    p->ticks++;
    assert_ok(rp_loop_arm(p->loop, timer, rp_loop_now(p->loop) + MS));
    end_if_done(p);
}

typedef struct asker {
    polled *p;
    int fd;
} asker;

/* Each echo is followed by a post, which finds the loop in a poll. */
static void *ask_and_post(void *arg)
{
    asker *a = arg;
    polled_post *posts = calloc(a->p->rounds, sizeof *posts);

    assert_non_null(posts);
    for (size_t i = 0; i < a->p->rounds; i++) {
        char byte = (char)i, echo = 0;

        assert_int_equal(write(a->fd, &byte, 1), 1);
        assert_int_equal(read(a->fd, &echo, 1), 1);
        assert_int_equal(echo, byte);
        posts[i] = (polled_post){{.run = on_polled_post}, a->p};
        rp_loop_post(a->p->loop, &posts[i].post);
    }
    return posts;
}

static void a_poll_ends_with_what_arrives(void **state)
{
    (void)state;
    int ends[2];
    void *posts;
    pthread_t thread;
    polled p = {.watch.on_ready = on_byte,
                .timer.on_due = on_tick,
                .loop = new_loop(),
                .rounds = rp_test_scaled(20000, 200)};
    asker a = {.p = &p};

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    p.watch.fd = ends[0];
    a.fd = ends[1];
    rp_loop_set_poll(p.loop, INT64_MAX / 4);
    assert_ok(rp_loop_watch(p.loop, &p.watch, RP_READABLE));
    assert_ok(rp_loop_arm(p.loop, &p.timer, rp_loop_now(p.loop) + MS));
    assert_int_equal(pthread_create(&thread, NULL, ask_and_post, &a), 0);
    rp_loop_run(p.loop);

    assert_int_equal(pthread_join(thread, &posts), 0);
    assert_int_equal(p.echoes, p.rounds);
    assert_int_equal(p.posts, p.rounds);
    free(posts);
    assert_int_equal(close(ends[0]) + close(ends[1]), 0);
    rp_loop_free(p.loop);
}

static void a_poll_that_misses_often_becomes_rare(void **state)
{
    (void)state;
    rp_polling polling;
    size_t polls = 0;

    rp_polling_init(&polling);
    polling.has_processors = false;
    assert_false(rp_polling_may(&polling));
    polling.has_processors = true;
    for (int i = 0; i < RP_POLL_MISSES; i++) {
        assert_true(rp_polling_may(&polling));
        rp_polling_count(&polling, false);
    }
    for (int i = 0; i < 10 * RP_POLL_AGAIN; i++)
        if (rp_polling_may(&polling)) {
            rp_polling_count(&polling, false);
            polls++;
        }
    assert_int_equal(polls, 10);
    rp_polling_count(&polling, true);
    assert_true(rp_polling_may(&polling));
}

RP_TESTS(loop_posts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posts_of_many_threads_arrive_in_the_order_of_each),
        cmocka_unit_test(post_always_wakes_a_loop_that_sleeps),
        cmocka_unit_test(loop_is_not_freed_while_a_poster_wakes_it),
        cmocka_unit_test(loop_stopped_before_it_runs_still_runs_its_posts),
        cmocka_unit_test(post_that_posts_itself_runs_once_a_turn),
        cmocka_unit_test(post_may_free_itself),
        cmocka_unit_test(a_turn_runs_some_of_many_posts),
        cmocka_unit_test(a_loop_that_stops_runs_all_posts_that_it_has_taken),
        cmocka_unit_test(turn_end_runs_after_posts_watches_and_timers),
        cmocka_unit_test(a_poll_ends_with_what_arrives),
        cmocka_unit_test(a_poll_that_misses_often_becomes_rare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
