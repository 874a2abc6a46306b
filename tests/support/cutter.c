/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cutter.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/unit.h"
#include "util/rng.h"

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)port)};
}

static int connect_to(int port)
{
    struct sockaddr_in at = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Forwards the bytes that have arrived; false at the end. */
static bool carry_some(int from, int to, size_t *left)
{
    char bytes[4096];
    ssize_t n = read(from, bytes, *left < sizeof bytes ? *left : sizeof bytes);

    if (n <= 0) return false;
    *left -= (size_t)n;
    for (ssize_t done = 0, sent; done < n; done += sent) {
        sent = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
        if (sent <= 0) return false;
    }
    return true;
}

static void carry(rp_test_cutter *c, int client, int server, size_t left, bool with_reset)
{
    const struct linger abrupt = {1, 0};
    bool goes_on = true;

    while (goes_on && left > 0) {
        struct pollfd fds[] = {
            {client, POLLIN, 0}, {server, POLLIN, 0}, {c->listener, POLLIN, 0}};

        /* A new connection ends the old one. So does the shutdown at the end of the test. */
        if (poll(fds, 3, -1) < 0 || fds[2].revents != 0) break;
        if (fds[0].revents != 0) goes_on = carry_some(client, server, &left);
        if (goes_on && left > 0 && fds[1].revents != 0)
            goes_on = carry_some(server, client, &left);
    }
    if (left == 0) atomic_fetch_add(&c->cuts, 1);
    if (with_reset) {
        (void)setsockopt(client, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
        (void)setsockopt(server, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
    }
}

static void *run(void *user)
{
    rp_test_cutter *c = user;
    rp_rng rng;

    rp_rng_init(&rng, c->seed);
    for (;;) {
        int client = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC), server;
        size_t left = c->least + (size_t)rp_rng_below(&rng, c->most - c->least + 1);

        if (client < 0) return NULL;
        if (atomic_load(&c->mended)) left = SIZE_MAX;
        server = connect_to(c->server_port);
        if (server >= 0) {
            carry(c, client, server, left, rp_rng_below(&rng, 2) == 0);
            (void)close(server);
        }
        (void)close(client);
    }
}

void rp_test_cutter_start(rp_test_cutter *c, int server_port, size_t least, size_t most)
{
    struct sockaddr_in at = loopback(0);
    socklen_t bytes = sizeof at;

    *c = (rp_test_cutter){.server_port = server_port, .least = least, .most = most, .seed = 3};
    c->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(c->listener >= 0);
    assert_int_equal(bind(c->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(c->listener, 16), 0);
    assert_int_equal(getsockname(c->listener, (struct sockaddr *)&at, &bytes), 0);
    c->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0);
}

void rp_test_cutter_stop(rp_test_cutter *c)
{
    (void)shutdown(c->listener, SHUT_RDWR);
    (void)pthread_join(c->thread, NULL);
    (void)close(c->listener);
}
