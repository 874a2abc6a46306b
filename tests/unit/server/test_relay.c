/* SPDX-License-Identifier: Apache-2.0 */
/* Relays between two pairs of sockets: the test holds the outer ends, the relay the inner ones,
 * and a timer stops the loop when it has run long enough for the test. */
#include "server/http/relay.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reprise/wait.h"
#include "support/unit.h"

enum { BIG = 1 << 20 };

static const int64_t linger_ns = 50000000;

static rp_test_oom oom;
static rp_allocator alloc;
static rp_loop *loop;
static rp_relays relays;
static rp_timer stopper;
static int near, far; /* the outer ends */

static void stop_loop(rp_timer *timer)
{
    (void)timer;
    rp_loop_stop(loop);
}

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    near = far = -1;
    if (rp_loop_new(&alloc, &loop, NULL) != RP_OK) return 1;
    stopper = (rp_timer){.on_due = stop_loop};
    relays = (rp_relays){.loop = loop, .linger_ns = linger_ns, .most = 2};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_relays_deinit(&relays);
    rp_loop_free(loop);
    if (near >= 0) (void)close(near);
    if (far >= 0) (void)close(far);
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

/* Our end of a new pair; its other end is a link. */
static int make_end(rp_link *link)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                     0);
    assert_ok(rp_link_init(link, pair[0], NULL));
    return pair[1];
}

static rp_status start_relay(void)
{
    rp_link near_link, far_link;
    rp_status st;

    near = make_end(&near_link);
    far = make_end(&far_link);
    st = rp_relay_start(&alloc, &relays, &near_link, &far_link);
    assert_int_equal(near_link.fd, -1);
    assert_int_equal(far_link.fd, -1);
    return st;
}

static void run_for(int64_t ns)
{
    assert_ok(rp_loop_arm(loop, &stopper, rp_now_ns() + ns));
    rp_loop_run(loop);
}

static void run_a_little(void)
{
    run_for(5000000);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void expect(int fd, const char *text)
{
    char got[64] = "";

    assert_int_equal(recv(fd, got, sizeof got - 1, 0), (ssize_t)strlen(text));
    assert_string_equal(got, text);
}

static void expect_end(int fd)
{
    char byte;

    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

static void bytes_go_both_ways(void **state)
{
    (void)state;
    assert_ok(start_relay());
    say(near, "question");
    run_a_little();
    expect(far, "question");
    say(far, "answer");
    say(near, "again");
    run_a_little();
    expect(near, "answer");
    expect(far, "again");
    assert_int_equal(relays.count, 1);
}

static void bytes_present_at_the_start_are_relayed_at_once(void **state)
{
    rp_link near_link, far_link;

    (void)state;
    near = make_end(&near_link);
    far = make_end(&far_link);
    say(near, "early");
    assert_ok(rp_relay_start(&alloc, &relays, &near_link, &far_link));
    expect(far, "early"); /* before the loop runs */
}

static void close_end(int *fd)
{
    assert_int_equal(close(*fd), 0);
    *fd = -1;
}

static void the_end_of_both_sides_ends_the_relay(void **state)
{
    (void)state;
    relays.linger_ns = INT64_C(60000000000);
    assert_ok(start_relay());
    say(far, "last words");
    close_end(&far);
    run_a_little();
    expect(near, "last words");
    expect_end(near);
    assert_int_equal(relays.count, 1);
    close_end(&near);
    run_a_little();
    assert_int_equal(relays.count, 0);
}

static void a_near_side_that_stays_open_lingers_briefly(void **state)
{
    (void)state;
    assert_ok(start_relay());
    close_end(&far);
    run_a_little();
    expect_end(near);
    run_for(2 * linger_ns);
    assert_int_equal(relays.count, 0);
}

/* The answer is there, though the far side never took what was said to it. */
static void bytes_the_far_side_never_read_lose_no_response(void **state)
{
    (void)state;
    relays.linger_ns = INT64_C(60000000000);
    assert_ok(start_relay());
    say(near, "unwanted");
    run_a_little();
    say(far, "answer");
    close_end(&far); /* with something unread */
    say(near, "more of it");
    run_a_little();
    expect(near, "answer");
    expect_end(near);
    say(near, "and more");
    run_a_little();
    assert_int_equal(relays.count, 1);
    close_end(&near);
    run_a_little();
    assert_int_equal(relays.count, 0);
}

static void bytes_for_a_closed_far_side_are_bounded(void **state)
{
    size_t sent = 0;

    (void)state;
    relays.linger_ns = INT64_C(60000000000);
    assert_ok(start_relay());
    close_end(&far);
    run_a_little();
    for (int i = 0; i < 1000 && relays.count > 0; i++) {
        char noise[16384] = "";
        ssize_t n = send(near, noise, sizeof noise, MSG_NOSIGNAL);
        if (n > 0) sent += (size_t)n;
        run_a_little();
    }
    assert_int_equal(relays.count, 0);
    assert_true(sent > BIG && sent < 2 * BIG);
}

static void a_lingering_relay_gives_way_to_a_new_one(void **state)
{
    int first_near, second_near, second_far;

    (void)state;
    relays.linger_ns = INT64_C(60000000000);
    assert_ok(start_relay());
    close_end(&far);
    run_a_little();
    first_near = near;
    assert_ok(start_relay());
    second_near = near;
    second_far = far;
    assert_int_equal(relays.count, 2);
    assert_ok(start_relay());
    assert_int_equal(relays.count, 2);
    expect_end(first_near);
    say(second_near, "still here");
    run_a_little();
    expect(second_far, "still here");
    (void)close(near);
    (void)close(far);
    assert_int_equal(start_relay(), RP_NO_RESOURCE); /* nobody lingers any more */
    (void)close(first_near);
    (void)close(second_near);
    (void)close(second_far);
}

static void a_half_close_is_passed_on_and_the_response_still_comes(void **state)
{
    (void)state;
    assert_ok(start_relay());
    say(near, "question");
    assert_int_equal(shutdown(near, SHUT_WR), 0);
    run_a_little();
    expect(far, "question");
    expect_end(far);
    assert_int_equal(relays.count, 1);
    say(far, "answer");
    assert_int_equal(close(far), 0);
    far = -1;
    run_a_little();
    expect(near, "answer");
    expect_end(near);
    assert_int_equal(relays.count, 0);
}

static void a_reset_of_the_near_side_ends_the_relay(void **state)
{
    (void)state;
    assert_ok(start_relay());
    say(far, "unread");
    run_a_little();
    assert_int_equal(close(near), 0);
    near = -1;
    say(far, "more");
    run_a_little();
    (void)send(far, "x", 1, MSG_NOSIGNAL);
    run_a_little();
    assert_int_equal(relays.count, 0);
}

/* Sends as much as goes and returns how much that was. */
static size_t fill(int fd)
{
    static char bytes[65536];
    size_t total = 0;
    ssize_t n;

    while ((n = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL)) > 0) total += (size_t)n;
    return total;
}

static size_t drain(int fd)
{
    static char bytes[65536];
    size_t total = 0;
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) total += (size_t)n;
    return total;
}

static void a_stalled_reader_blocks_the_writer(void **state)
{
    size_t sent = 0, more;

    (void)state;
    assert_ok(start_relay());
    do { /* until nothing moves any more */
        more = fill(far);
        sent += more;
        run_a_little();
    } while (more > 0 && sent < (size_t)64 * BIG);
    assert_true(sent < (size_t)64 * BIG); /* the relay has not taken it all in */

    size_t got = 0;
    for (int i = 0; i < 1000 && got < sent; i++) {
        got += drain(near);
        run_a_little();
    }
    assert_int_equal(got, sent);
    assert_int_equal(relays.count, 1);
}

static void remaining_bytes_are_delivered_after_the_far_side_closed(void **state)
{
    size_t sent = 0, got = 0, more;

    (void)state;
    relays.linger_ns = INT64_C(60000000000);
    assert_ok(start_relay());
    do {
        more = fill(far);
        sent += more;
        run_a_little();
    } while (more > 0);
    assert_int_equal(close(far), 0);
    far = -1;
    run_a_little();
    assert_int_equal(relays.count, 1);
    for (int i = 0; i < 1000 && got < sent; i++) {
        got += drain(near);
        run_a_little();
    }
    assert_int_equal(got, sent);
    expect_end(near);
}

static void a_stalled_near_side_lingers_briefly(void **state)
{
    size_t more;

    (void)state;
    assert_ok(start_relay());
    do {
        more = fill(far);
        run_a_little();
    } while (more > 0);
    assert_int_equal(close(far), 0);
    far = -1;
    for (int i = 0; i < 1000 && relays.count > 0; i++) {
        (void)!recv(near, &(char){0}, 1, 0); /* a byte at a time does not help it */
        run_for(linger_ns);
    }
    assert_int_equal(relays.count, 0);
}

static void the_number_of_relays_has_a_limit(void **state)
{
    int ends[2][2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_ok(start_relay());
        ends[i][0] = near;
        ends[i][1] = far;
    }
    assert_int_equal(start_relay(), RP_NO_RESOURCE);
    expect_end(near);
    expect_end(far);
    assert_int_equal(relays.count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(close(ends[i][0]), 0);
        assert_int_equal(close(ends[i][1]), 0);
    }
    run_a_little();
    assert_int_equal(relays.count, 0);
}

static void the_owner_can_end_all_relays(void **state)
{
    (void)state;
    assert_ok(start_relay());
    rp_relays_deinit(&relays);
    expect_end(near);
    expect_end(far);
    assert_int_equal(relays.count, 0);
}

static rp_status start_and_end(const rp_allocator *a)
{
    rp_loop *other = NULL;
    rp_link near_link, far_link;
    rp_status st = rp_loop_new(a, &other, NULL);
    rp_relays few = {.loop = other, .linger_ns = 1, .most = 1};
    int ends[2];

    if (st != RP_OK) return st;
    ends[0] = make_end(&near_link);
    ends[1] = make_end(&far_link);
    st = rp_relay_start(a, &few, &near_link, &far_link);
    rp_relays_deinit(&few);
    rp_loop_free(other);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(start_and_end);
}

RP_TESTS(relay)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(bytes_go_both_ways),
        CASE(bytes_present_at_the_start_are_relayed_at_once),
        CASE(the_end_of_both_sides_ends_the_relay),
        CASE(a_near_side_that_stays_open_lingers_briefly),
        CASE(bytes_the_far_side_never_read_lose_no_response),
        CASE(bytes_for_a_closed_far_side_are_bounded),
        CASE(a_lingering_relay_gives_way_to_a_new_one),
        CASE(a_half_close_is_passed_on_and_the_response_still_comes),
        CASE(a_reset_of_the_near_side_ends_the_relay),
        CASE(a_stalled_reader_blocks_the_writer),
        CASE(remaining_bytes_are_delivered_after_the_far_side_closed),
        CASE(a_stalled_near_side_lingers_briefly),
        CASE(the_number_of_relays_has_a_limit),
        CASE(the_owner_can_end_all_relays),
        CASE(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
