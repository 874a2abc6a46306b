/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fd_pass.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/unit.h"

enum { MANY = 8, LOOKED_AT = 256 };

static int sockets[2];

static int set_up(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
}

static int tear_down(void **state)
{
    (void)state;
    (void)close(sockets[0]);
    (void)close(sockets[1]);
    return 0;
}

static size_t open_descriptors(void)
{
    size_t count = 0;

    for (int fd = 0; fd < LOOKED_AT; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Sends `count` copies of a descriptor with one byte. */
static void send_many(size_t count)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(MANY * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; i++)
        memcpy(CMSG_DATA(head) + i * sizeof(int), &sockets[0], sizeof(int));
    assert_int_equal(sendmsg(sockets[0], &message, 0), 1);
}

static void a_descriptor_is_passed_with_its_message(void **state)
{
    (void)state;
    char text[8] = "";
    bool broken;
    int fd;

    assert_int_equal(rp_fd_receive(sockets[1], text, sizeof text, &fd, &broken), -1);
    assert_false(broken);
    assert_true(rp_fd_send(sockets[0], "hello", 5, sockets[0]));
    assert_int_equal(rp_fd_receive(sockets[1], text, sizeof text, &fd, &broken), 5);
    assert_string_equal(text, "hello");
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    (void)close(fd);
}

/* A peer that sends more than one must not fill our table of descriptors. */
static void unrequested_descriptors_are_closed_issue_20(void **state)
{
    (void)state;
    size_t before = open_descriptors();

    for (size_t count = 1; count <= MANY; count++) {
        char byte;
        bool broken;
        int fd;

        send_many(count);
        assert_int_equal(rp_fd_receive(sockets[1], &byte, 1, &fd, &broken), 1);
        assert_true(fd >= 0);
        (void)close(fd);
        assert_int_equal(open_descriptors(), before);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(fd_pass)
{
    const struct CMUnitTest tests[] = {
        TEST(a_descriptor_is_passed_with_its_message),
        TEST(unrequested_descriptors_are_closed_issue_20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
