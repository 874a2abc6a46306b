/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on the connection of a lease, from correct and from hostile clients. */
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/fd_pass.h"
#include "reprise/wait.h"
#include "server/core/server_state.h"
#include "support/live_server.h"

static rp_test_live live;

static int start(const rp_server_options *options)
{
    rp_test_live_start(&live, options);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return start(NULL);
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_live_stop(&live);
    return 0;
}

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", live.path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const void *data, size_t size)
{
    assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void greet(int fd, const char *authorization)
{
    uint8_t message[4096];
    size_t size = strlen(authorization);

    memcpy(message, RP_LEASE_MAGIC, 4);
    message[4] = (uint8_t)size;
    message[5] = (uint8_t)(size >> 8);
    memcpy(message + 6, authorization, size);
    say(fd, message, 6 + size);
}

/* Waits until there is something to read, or nobody to write it. */
static void await(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&p, 1, 20000), 1);
}

static void expect_hung_up(int fd)
{
    char byte;

    await(fd);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    (void)close(fd);
}

/* A lease: its id. No descriptor comes before there is a hold. */
static void expect_welcome(int fd, uint8_t id[16])
{
    uint8_t answer[RP_LEASE_GREETING_BYTES];
    bool broken;
    int part;

    await(fd);
    assert_int_equal(rp_fd_receive(fd, answer, sizeof answer, &part, &broken), 32);
    assert_memory_equal(answer, "RSM1\2\0\0\0", 8);
    assert_int_equal(part, -1);
    memcpy(id, answer + 16, 16);
}

static uint64_t leases(void)
{
    return rp_counter_get(&rp_metrics_shared(live.server->metrics)->leases);
}

static uint64_t refusals(rp_refusal why)
{
    rp_loop_metrics sums;

    rp_metrics_sum(live.server->metrics, &sums);
    return rp_counter_get(&sums.refusals[why]);
}

static void await_leases(uint64_t count)
{
    for (int i = 0; i < 20000 && leases() != count; i++) (void)usleep(1000);
    assert_int_equal(leases(), count);
}

static void a_client_gets_a_lease_for_as_long_as_it_stays(void **state)
{
    (void)state;
    int fds[3];
    uint8_t ids[3][16];

    for (int i = 0; i < 3; i++) {
        fds[i] = dial();
        greet(fds[i], "");
        expect_welcome(fds[i], ids[i]);
    }
    assert_memory_not_equal(ids[0], ids[1], 16);
    assert_int_equal(leases(), 3);
    (void)close(fds[0]);
    (void)close(fds[2]);
    await_leases(1);
    (void)close(fds[1]);
    await_leases(0);
}

static void the_greeting_may_come_in_pieces(void **state)
{
    (void)state;
    int fd = dial();
    uint8_t id[16];
    const char message[] = "RSM1\0";

    for (size_t i = 0; i < sizeof message; i++) {
        say(fd, message + i, 1);
        (void)usleep(2000);
    }
    expect_welcome(fd, id);
    (void)close(fd);
    await_leases(0);
}

static void garbage_ends_the_connection(void **state)
{
    (void)state;
    uint8_t long_token[] = {'R', 'S', 'M', '1', 0xff, 0xff, 'x'};
    uint8_t zero_within[] = {'R', 'S', 'M', '1', 2, 0, 'x', 0};
    uint8_t too_early[] = {'R', 'S', 'M', '1', 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    int fd = dial();

    say(fd, long_token, sizeof long_token);
    expect_hung_up(fd);
    fd = dial();
    say(fd, zero_within, sizeof zero_within);
    expect_hung_up(fd);
    fd = dial();
    say(fd, too_early, sizeof too_early);
    expect_hung_up(fd);
    assert_int_equal(refusals(RP_REFUSED_DECODE), 3);
    assert_int_equal(leases(), 0);
}

static void releasing_unknown_holds_ends_the_lease(void **state)
{
    (void)state;
    static const uint64_t nonsense[] = {1, 0, UINT64_C(0x7fffffffffffffff)};

    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        uint8_t id[16];
        int fd = dial();

        greet(fd, "");
        expect_welcome(fd, id);
        say(fd, &nonsense[i], sizeof nonsense[i]); /* our machines are little-endian */
        expect_hung_up(fd);
    }
    await_leases(0);
}

static void a_silent_client_times_out(void **state)
{
    (void)state;
    static const char *const beginnings[] = {"", "R", "RSM1", "RSM1\5"};
    const rp_server_options options = {.limits = {.handshake_ms = 100}};
    int fds[COUNT_OF(beginnings)];

    start(&options);
    for (size_t i = 0; i < COUNT_OF(beginnings); i++) {
        fds[i] = dial();
        if (beginnings[i][0] != '\0') say(fds[i], beginnings[i], strlen(beginnings[i]));
    }
    for (size_t i = 0; i < COUNT_OF(beginnings); i++) expect_hung_up(fds[i]);
    assert_int_equal(refusals(RP_REFUSED_HANDSHAKE), COUNT_OF(beginnings));
    rp_test_live_stop(&live);
}

static void a_lease_outlives_the_time_for_greetings(void **state)
{
    (void)state;
    const rp_server_options options = {.limits = {.handshake_ms = 50, .ping_ms = 50}};
    struct pollfd p = {.events = POLLIN};
    uint8_t id[16];

    start(&options);
    p.fd = dial();
    greet(p.fd, "");
    expect_welcome(p.fd, id);
    assert_int_equal(poll(&p, 1, 300), 0); /* nothing is said, nobody hangs up */
    assert_int_equal(leases(), 1);
    (void)close(p.fd);
    await_leases(0);
    rp_test_live_stop(&live);
}

/* SHA-256 of "reader", of "nobody" a wrong one. */
static void a_lease_needs_a_token_like_any_call(void **state)
{
    (void)state;
    static const char tokens[] =
        "read reader sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\n";
    char path[] = "/tmp/reprise-tokens-XXXXXX";
    int file = mkstemp(path), fd;
    const rp_server_options options = {.security = {.tokens_file = path}};
    uint8_t id[16];

    assert_int_equal(write(file, tokens, sizeof tokens - 1), sizeof tokens - 1);
    (void)close(file);
    start(&options);
    fd = dial();
    greet(fd, "");
    expect_hung_up(fd);
    fd = dial();
    greet(fd, "Bearer nobody");
    expect_hung_up(fd);
    assert_int_equal(refusals(RP_REFUSED_UNAUTHENTICATED), 2);
    fd = dial();
    greet(fd, "Bearer reader");
    expect_welcome(fd, id);
    (void)close(fd);
    await_leases(0);
    rp_test_live_stop(&live);
    (void)unlink(path);
}

static void a_server_without_shared_memory_hangs_up(void **state)
{
    (void)state;
    const rp_server_options options = {.shared_memory_off = true};
    int fd;

    start(&options);
    fd = dial();
    greet(fd, "");
    expect_hung_up(fd);
    rp_test_live_stop(&live);
}

static void a_drain_does_not_wait_for_leases(void **state)
{
    (void)state;
    int fd = dial();
    uint8_t id[16];
    int64_t began_ns = rp_now_ns();

    greet(fd, "");
    expect_welcome(fd, id);
    rp_server_drain(live.server, 20000);
    assert_true(rp_now_ns() - began_ns < INT64_C(10000000000));
    expect_hung_up(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(lease_link)
{
    const struct CMUnitTest tests[] = {
        TEST(a_client_gets_a_lease_for_as_long_as_it_stays),
        TEST(the_greeting_may_come_in_pieces),
        TEST(garbage_ends_the_connection),
        TEST(releasing_unknown_holds_ends_the_lease),
        cmocka_unit_test(a_silent_client_times_out),
        cmocka_unit_test(a_lease_outlives_the_time_for_greetings),
        cmocka_unit_test(a_lease_needs_a_token_like_any_call),
        cmocka_unit_test(a_server_without_shared_memory_hangs_up),
        TEST(a_drain_does_not_wait_for_leases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
