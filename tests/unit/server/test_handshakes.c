/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which queued handshakes make their steps, with a real loop and real sockets. */
#include "server/core/handshakes.h"

#include <sys/socket.h>
#include <unistd.h>

#include "support/fixture.h"
#include "util/rng.h"

enum {
    ALL = 24,
    MOST = 4, /* handshakes of an address that are not late, where a test limits them */
};

/* Addresses in queues of their own. */
static const uint64_t a = 1, b = (uint64_t)2 << 32 | 1, c = (uint64_t)3 << 32 | 1;

typedef struct stage {
    rp_loop *loop;
    rp_handshakes queues;
    rp_handshake all[ALL];
    rp_watch watches[ALL];
    rp_link links[ALL];
    int peers[ALL];
    size_t order[ALL]; /* which have made steps, in their order */
    size_t count;
    size_t late[ALL]; /* which have become late, in their order */
    size_t late_count;
} stage;

static stage *current;

static void on_step(rp_handshake *h, int64_t waited_ns)
{
    assert_false(h->is_queued);
    assert_true(waited_ns >= 0);
    assert_true(current->count < ALL);
    current->order[current->count++] = (size_t)(h - current->all);
}

static void on_late(rp_handshake *h)
{
    assert_true(h->is_queued);
    if (current == NULL) return;
    current->late[current->late_count++ % ALL] = (size_t)(h - current->all);
}

static const rp_handshakes_handler handler = {.step = on_step, .on_late = on_late};

static void on_ready(rp_watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static void end_turn(void *user)
{
    rp_handshakes_end_turn(user);
}

static void open_stage(stage *s)
{
    rp_error err = {0};
    int fds[2];

    memset(s, 0, sizeof *s);
    current = s;
    assert_ok_err(rp_loop_new(rp_allocator_default(), &s->loop, &err), &err);
    rp_handshakes_init(&s->queues, s->loop, &handler);
    rp_loop_set_turn_end(s->loop, end_turn, &s->queues);
    for (size_t i = 0; i < ALL; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        assert_ok(rp_link_init(&s->links[i], fds[0], NULL));
        s->peers[i] = fds[1];
        s->watches[i] = (rp_watch){.fd = fds[0], .on_ready = on_ready};
        assert_ok(rp_loop_watch(s->loop, &s->watches[i], RP_READABLE));
        s->all[i] = (rp_handshake){.link = &s->links[i], .watch = &s->watches[i]};
    }
}

/* Checks H2, H3 and H4. */
static void check(stage *s)
{
    size_t listed = 0, queued = 0, ring = 0, busy = 0;
    const rp_handshake_queue *q = s->queues.turn;

    for (size_t i = 0; i < RP_HANDSHAKE_QUEUES; i++) {
        const rp_handshake_queue *queue = &s->queues.queues[i];
        size_t of_rank[RP_HANDSHAKE_RANKS] = {0}, sum = 0;

        for (int rank = 0; rank < RP_HANDSHAKE_RANKS; rank++) {
            const rp_handshake *before = NULL;
            for (rp_handshake *h = queue->lists[rank].first; h != NULL; h = h->next) {
                assert_true(h->is_queued && (int)h->rank == rank && h->prev == before);
                assert_int_equal((h->address >> 32) % RP_HANDSHAKE_QUEUES, i);
                before = h;
                of_rank[rank]++;
            }
            assert_ptr_equal(queue->lists[rank].last, before);
            sum += of_rank[rank];
        }
        assert_int_equal(queue->prompt,
                         of_rank[RP_HANDSHAKE_BEGUN] + of_rank[RP_HANDSHAKE_NEW]);
        assert_int_equal(queue->next != NULL, sum > 0);
        listed += sum;
        busy += sum > 0;
    }
    for (size_t i = 0; i < ALL; i++) queued += s->all[i].is_queued;
    assert_int_equal(listed, queued);
    if (q != NULL) do {
            ring++;
            assert_ptr_equal(q->next->prev, q);
            q = q->next;
        } while (q != s->queues.turn && ring <= ALL);
    assert_int_equal(ring, busy);
    assert_int_equal(ring, s->queues.busy);
    if (queued > 0) assert_true(s->queues.timer.place != 0);
}

static void close_stage(stage *s)
{
    for (size_t i = 0; i < ALL; i++) rp_handshake_forget(&s->queues, &s->all[i]);
    check(s);
    assert_null(s->queues.turn);
    for (size_t i = 0; i < ALL; i++) {
        rp_loop_forget(s->loop, &s->watches[i]);
        rp_link_deinit(&s->links[i]);
        if (s->peers[i] >= 0) (void)close(s->peers[i]);
    }
    rp_loop_disarm(s->loop, &s->queues.timer);
    rp_loop_free(s->loop);
}

/* A handshake becomes ready in a turn that has made its steps already. */
static void add(stage *s, size_t i, uint64_t address)
{
    const rp_handshake_queue *q = &s->queues.queues[(address >> 32) % RP_HANDSHAKE_QUEUES];

    s->all[i].address = address;
    s->queues.steps = RP_TURN_HANDSHAKES;
    assert_false(rp_handshake_may_step(&s->queues, &s->all[i]));
    assert_true(s->all[i].is_queued);
    rp_handshakes_end_turn(&s->queues);
    check(s);
    assert_true(q->prompt == 1 || (q->prompt <= RP_PROMPT_HANDSHAKES &&
                                   q->prompt * 8 * s->queues.busy <= s->queues.places));
}

static rp_loop *stopped_loop;

static void stop_loop(rp_timer *timer)
{
    (void)timer;
    rp_loop_stop(stopped_loop);
}

static void run_turn(stage *s)
{
    rp_timer now = {.on_due = stop_loop};
    size_t before = s->count;

    stopped_loop = s->loop;
    assert_ok(rp_loop_arm(s->loop, &now, 0));
    rp_loop_run(s->loop);
    assert_true(s->count <= before + RP_TURN_HANDSHAKES); /* H1 */
    check(s);
}

/* Runs turns until all queues are empty, and compares the order with `expected`. */
static void expect_order(stage *s, const size_t *expected, size_t count)
{
    s->count = 0;
    for (size_t turns = 0; s->queues.turn != NULL && turns <= ALL; turns++) run_turn(s);
    assert_null(s->queues.turn);
    assert_int_equal(s->queues.timer.place, 0); /* an idle loop sleeps */
    assert_int_equal(s->count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(s->order[i], expected[i]);
}

#define EXPECT(s, ...)                                                                         \
    expect_order(s, (const size_t[]){__VA_ARGS__},                                             \
                 sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static void an_address_is_served_in_the_order_of_arrival(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < 5; i++) add(&s, i, a);
    EXPECT(&s, 0, 1, 2, 3, 4);
    for (size_t i = 0; i < RP_TURN_HANDSHAKES; i++) /* nothing is queued: at once */
        assert_true(rp_handshake_may_step(&s.queues, &s.all[i]));
    assert_false(rp_handshake_may_step(&s.queues, &s.all[5]));
    assert_true(s.all[5].is_queued);
    close_stage(&s);
}

static void addresses_take_turns(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < 6; i++) add(&s, i, a);
    add(&s, 6, b);
    add(&s, 7, b);
    add(&s, 8, c);
    EXPECT(&s, 0, 6, 8, 1, 7, 2, 3, 4, 5);
    close_stage(&s);
}

static void an_address_that_comes_later_waits_one_round(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < 6; i++) add(&s, i, a);
    for (size_t i = 6; i < 9; i++) add(&s, i, b);
    run_turn(&s);
    assert_int_equal(s.count, 2);
    add(&s, 9, c);
    EXPECT(&s, 1, 7, 9, 2, 8, 3, 4, 5);
    close_stage(&s);
}

static void a_second_step_goes_before_first_steps_of_its_address(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < 4; i++) add(&s, i, a);
    for (size_t i = 4; i < 6; i++) add(&s, i, b);
    run_turn(&s); /* 0 and 4 */
    assert_int_equal(s.order[0], 0);
    assert_int_equal(s.order[1], 4);
    add(&s, 0, a);
    EXPECT(&s, 0, 5, 1, 2, 3);
    add(&s, 1, a);
    add(&s, 6, a);
    add(&s, 0, a); /* its third step */
    EXPECT(&s, 1, 6, 0);
    close_stage(&s);
}

static void the_newest_of_an_address_come_before_the_late(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    rp_handshakes_set_places(&s.queues, 8 * MOST);
    for (size_t i = 0; i < 8; i++) add(&s, i, a);
    add(&s, 8, b);
    assert_int_equal(s.late_count, 8 - MOST);
    for (size_t i = 0; i < s.late_count; i++) assert_int_equal(s.late[i], i);
    EXPECT(&s, 4, 8, 5, 6, 7, 3, 2, 1, 0);
    close_stage(&s);
}

/* Each that is answered comes again, and none that comes in the meantime becomes late. */
static void a_client_waits_for_no_more_than_the_newest_of_its_address(void **state)
{
    stage s;
    size_t next = 12;

    (void)state;
    open_stage(&s);
    rp_handshakes_set_places(&s.queues, 8 * MOST);
    for (size_t i = 0; i < 12; i++) add(&s, i, a);
    for (int turn = 0; turn < MOST / RP_TURN_HANDSHAKES; turn++) {
        run_turn(&s);
        while (next < 12 + s.count) add(&s, next++, a);
    }
    assert_int_equal(s.late_count, 12 - MOST);
    run_turn(&s);
    assert_int_equal(s.order[MOST], 12); /* the first that came while 12 were queued */
    close_stage(&s);
}

static void the_one_that_is_added_does_not_become_late(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    rp_handshakes_set_places(&s.queues, 8 * MOST);
    for (size_t i = 0; i < MOST; i++) {
        s.all[i].steps = 1;
        add(&s, i, a);
    }
    add(&s, MOST, a);
    assert_int_equal(s.late_count, 1);
    assert_int_equal(s.late[0], 0);
    EXPECT(&s, 1, 2, 3, 4, 0);
    close_stage(&s);
}

static void fewer_places_make_more_late(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < 6; i++) add(&s, i, a);
    rp_handshakes_set_places(&s.queues, 23); /* for two that are not late */
    assert_int_equal(s.late_count, 0);
    add(&s, 6, a);
    assert_int_equal(s.late_count, 5);
    rp_handshakes_set_places(&s.queues, 0);
    add(&s, 7, a);
    assert_int_equal(s.late_count, 7);
    EXPECT(&s, 7, 6, 5, 4, 3, 2, 1, 0);
    close_stage(&s);
}

static void more_addresses_make_more_late(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    rp_handshakes_set_places(&s.queues, 8 * 6);
    for (size_t i = 0; i < 6; i++) add(&s, i, a);   /* all six */
    for (size_t i = 6; i < 10; i++) add(&s, i, b);  /* three of four */
    for (size_t i = 10; i < 13; i++) add(&s, i, c); /* two of three */
    assert_int_equal(s.late_count, 2);
    assert_int_equal(s.late[0], 6);
    assert_int_equal(s.late[1], 10);
    add(&s, 13, a); /* two of seven */
    assert_int_equal(s.late_count, 7);
    close_stage(&s);
}

/* Each that was added to a queue of its own found fewer places. */
static void all_addresses_together_leave_places(void **state)
{
    const size_t places = 500;
    size_t prompt = 0;
    rp_handshake *many = calloc(places, sizeof *many);
    stage s;

    (void)state;
    assert_non_null(many);
    open_stage(&s);
    current = NULL; /* on_late() does nothing */
    rp_handshakes_set_places(&s.queues, places);
    s.queues.steps = RP_TURN_HANDSHAKES;
    for (size_t i = 0; i < places; i++) {
        many[i] = (rp_handshake){.watch = &s.watches[0], .address = (uint64_t)(i / 100) << 32};
        assert_false(rp_handshake_may_step(&s.queues, &many[i]));
    }
    for (size_t i = 0; i < RP_HANDSHAKE_QUEUES; i++) prompt += s.queues.queues[i].prompt;
    assert_int_equal(prompt, 62 + 31 + 20 + 15 + 12);
    for (size_t i = 0; i < places; i++) rp_handshake_forget(&s.queues, &many[i]);
    free(many);
    current = &s;
    close_stage(&s);
}

static void handshakes_leave_from_any_place(void **state)
{
    static const size_t gone[] = {0, 2, 5, 6, 8, 11};
    stage s;

    (void)state;
    open_stage(&s);
    rp_handshakes_set_places(&s.queues, 8 * MOST);
    for (size_t i = 0; i < 8; i++) add(&s, i, a); /* 0 to 3 are late */
    rp_handshakes_set_places(&s.queues, SIZE_MAX);
    add(&s, 8, b);
    for (size_t i = 9; i < 12; i++) add(&s, i, c);
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        rp_handshake_forget(&s.queues, &s.all[gone[i]]);
        assert_false(s.all[gone[i]].is_queued);
        check(&s);
        rp_handshake_forget(&s.queues, &s.all[gone[i]]); /* not there: nothing */
        check(&s);
    }
    EXPECT(&s, 4, 9, 7, 10, 3, 1);
    close_stage(&s);
}

/* They are passed to `step`, which closes them, and the turn still makes all of its steps. */
static void peers_that_have_gone_take_no_step(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < 5; i++) add(&s, i, a);
    add(&s, 5, b);
    for (size_t i = 0; i < 3; i++) {
        (void)close(s.peers[i]);
        s.peers[i] = -1;
    }
    stopped_loop = s.loop;
    rp_timer now = {.on_due = stop_loop};
    assert_ok(rp_loop_arm(s.loop, &now, 0));
    rp_loop_run(s.loop);
    check(&s);
    assert_int_equal(s.count, 5);
    assert_int_equal(s.order[3], 3);
    assert_int_equal(s.order[4], 5);
    assert_true(s.all[4].is_queued);
    close_stage(&s);
}

static void random_operations_keep_the_invariants(void **state)
{
    const uint64_t addresses[] = {a, b, c, a + ((uint64_t)RP_HANDSHAKE_QUEUES << 32)};
    rp_rng rng;
    stage s;

    (void)state;
    open_stage(&s);
    rp_rng_init(&rng, 17);
    for (int i = 0; i < 2000; i++) {
        size_t which = (size_t)rp_rng_below(&rng, ALL);
        uint64_t kind = rp_rng_below(&rng, 16);

        s.count = 0;
        if (kind == 0) {
            rp_handshakes_set_places(&s.queues, (size_t)rp_rng_below(&rng, 200));
        } else if (kind < 4) {
            rp_handshake_forget(&s.queues, &s.all[which]);
        } else if (kind < 7) {
            run_turn(&s);
        } else if (!s.all[which].is_queued) {
            s.all[which].steps = (unsigned)rp_rng_below(&rng, 3);
            add(&s, which, addresses[rp_rng_below(&rng, 4)]);
        }
        check(&s);
    }
    close_stage(&s);
}

RP_TESTS(handshakes)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_served_in_the_order_of_arrival),
        cmocka_unit_test(addresses_take_turns),
        cmocka_unit_test(an_address_that_comes_later_waits_one_round),
        cmocka_unit_test(a_second_step_goes_before_first_steps_of_its_address),
        cmocka_unit_test(the_newest_of_an_address_come_before_the_late),
        cmocka_unit_test(a_client_waits_for_no_more_than_the_newest_of_its_address),
        cmocka_unit_test(the_one_that_is_added_does_not_become_late),
        cmocka_unit_test(fewer_places_make_more_late),
        cmocka_unit_test(more_addresses_make_more_late),
        cmocka_unit_test(all_addresses_together_leave_places),
        cmocka_unit_test(handshakes_leave_from_any_place),
        cmocka_unit_test(peers_that_have_gone_take_no_step),
        cmocka_unit_test(random_operations_keep_the_invariants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
