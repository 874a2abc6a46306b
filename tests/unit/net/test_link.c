/* SPDX-License-Identifier: Apache-2.0 */
/* Plain links; test_link_tls.c has the others. */
#include "net/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "support/unit.h"

enum { BULK = 4 << 20 };

/* A link and the other end of it. */
typedef struct ends {
    rp_link link;
    int peer;
} ends;

static void open_ends(ends *e)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_ok(rp_link_init(&e->link, fds[0], NULL));
    e->peer = fds[1];
}

/* The same over TCP, where a peer can reset a connection. */
static void open_tcp_ends(ends *e)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    e->peer = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(e->peer, (struct sockaddr *)&address, bytes), 0);
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    assert_true(fd >= 0);
    (void)close(listener);
    assert_ok(rp_link_init(&e->link, fd, NULL));
}

static void close_ends(ends *e)
{
    rp_link_deinit(&e->link);
    if (e->peer >= 0) assert_int_equal(close(e->peer), 0);
}

static rp_link_result read_some(ends *e, void *data, size_t size, size_t *moved)
{
    struct iovec part = {data, size};

    return rp_link_read(&e->link, &part, 1, moved);
}

static rp_link_result write_some(ends *e, const void *data, size_t size, size_t *moved)
{
    struct iovec part = {(void *)data, size};

    return rp_link_write(&e->link, &part, 1, false, moved);
}

static void read_fills_its_parts_one_after_the_other(void **state)
{
    (void)state;
    ends e;
    char a[3] = "", b[10] = "";
    struct iovec parts[] = {{a, 2}, {b, 9}};
    size_t moved = 99;

    open_ends(&e);
    assert_int_equal(rp_link_read(&e.link, parts, 2, &moved), RP_LINK_AGAIN);
    assert_int_equal(moved, 0);
    assert_int_equal(e.link.read_waits, RP_READABLE);
    assert_int_equal(rp_link_waiting(&e.link), 0);

    assert_int_equal(write(e.peer, "hello", 5), 5);
    assert_int_equal(rp_link_waiting(&e.link), 5);
    assert_int_equal(rp_link_read(&e.link, parts, 2, &moved), RP_LINK_OK);
    assert_int_equal(moved, 5);
    assert_int_equal(rp_link_waiting(&e.link), 0);
    assert_string_equal(a, "he");
    assert_string_equal(b, "llo");
    assert_false(rp_link_has_pending(&e.link));
    close_ends(&e);
}

static void hang_up_is_a_full_close_and_not_a_half_close(void **state)
{
    (void)state;
    ends e;

    open_ends(&e);
    assert_int_equal(write(e.peer, "x", 1), 1);
    assert_false(rp_link_is_hung_up(&e.link));
    assert_int_equal(shutdown(e.peer, SHUT_WR), 0);
    assert_false(rp_link_is_hung_up(&e.link));
    assert_int_equal(shutdown(e.peer, SHUT_RDWR), 0);
    assert_true(rp_link_is_hung_up(&e.link)); /* although there is a byte to read */
    close_ends(&e);
}

static void peek_takes_nothing(void **state)
{
    (void)state;
    ends e;
    char data[8] = "";
    size_t moved;

    open_ends(&e);
    assert_int_equal(rp_link_peek(&e.link, data, 4, &moved), RP_LINK_AGAIN);
    assert_int_equal(write(e.peer, "PRI * ", 6), 6);
    assert_int_equal(rp_link_peek(&e.link, data, 4, &moved), RP_LINK_OK);
    assert_int_equal(moved, 4);
    assert_string_equal(data, "PRI ");

    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 6);
    assert_int_equal(close(e.peer), 0);
    e.peer = -1;
    assert_int_equal(rp_link_peek(&e.link, data, 4, &moved), RP_LINK_END);
    close_ends(&e);
}

static void peer_that_ends_its_side_can_still_be_written_to(void **state)
{
    (void)state;
    ends e;
    char data[8] = "";
    size_t moved;

    open_ends(&e);
    assert_int_equal(write(e.peer, "last", 4), 4);
    assert_int_equal(shutdown(e.peer, SHUT_WR), 0);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_END);
        assert_int_equal(moved, 0);
    }

    assert_int_equal(write_some(&e, "answer", 6, &moved), RP_LINK_OK);
    rp_link_end_writing(&e.link);
    assert_int_equal(read(e.peer, data, sizeof data), 6);
    assert_int_equal(read(e.peer, data, sizeof data), 0);
    close_ends(&e);
}

static void reset_breaks_the_link_for_good(void **state)
{
    (void)state;
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    ends e;
    char data[8];
    size_t moved;

    open_tcp_ends(&e);
    assert_int_equal(setsockopt(e.peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    assert_int_equal(close(e.peer), 0);
    e.peer = -1;
    for (int i = 0; i < 3; i++) /* the system reports it once, the link always */
        assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_BROKEN);
    assert_int_equal(write_some(&e, "x", 1, &moved), RP_LINK_BROKEN);
    close_ends(&e);
}

static void write_that_does_not_fit_is_partial(void **state)
{
    (void)state;
    ends e;
    unsigned char *out = malloc(BULK), *in = malloc(BULK);
    size_t sent = 0, received = 0, moved, shorts = 0;

    assert_non_null(out);
    assert_non_null(in);
    for (size_t i = 0; i < BULK; i++) out[i] = (unsigned char)(i * 7 + i / 251);
    open_ends(&e);
    while (received < BULK) {
        struct iovec parts[] = {{out + sent, (BULK - sent) / 3}, {NULL, 0}, {NULL, 0}};
        parts[2].iov_base = out + sent + parts[0].iov_len;
        parts[2].iov_len = BULK - sent - parts[0].iov_len;
        rp_link_result result =
            sent < BULK ? rp_link_write(&e.link, parts, 3, false, &moved) : RP_LINK_AGAIN;
        if (result == RP_LINK_OK) {
            shorts += moved < BULK - sent;
            sent += moved;
            continue;
        }
        assert_int_equal(result, RP_LINK_AGAIN);
        assert_int_equal(e.link.write_waits, RP_WRITABLE);
        size_t most = BULK - received < 10000 ? BULK - received : 10000;
        ssize_t n = read(e.peer, in + received, most);
        assert_true(n > 0);
        received += (size_t)n;
    }
    assert_int_equal(sent, BULK);
    assert_true(shorts > 0);
    assert_memory_equal(in, out, BULK);
    close_ends(&e);
    free(out);
    free(in);
}

static void more_parts_than_iov_max_are_written_in_turns(void **state)
{
    (void)state;
    enum { PARTS = IOV_MAX + 500 };
    ends e;
    static struct iovec parts[PARTS];
    static char in[PARTS];
    char letters[] = "abcdefg";
    size_t moved, room;

    open_ends(&e);
    for (int i = 0; i < PARTS; i++) parts[i] = (struct iovec){&letters[i % 7], 1};
    assert_int_equal(rp_link_write(&e.link, parts, PARTS, true, &moved), RP_LINK_OK);
    assert_int_equal(moved, IOV_MAX);
    assert_int_equal(rp_link_write(&e.link, parts + moved, PARTS - IOV_MAX, false, &moved),
                     RP_LINK_OK);
    assert_int_equal(moved, 500);
    assert_int_equal(write(e.peer, in, PARTS), PARTS);

    assert_int_equal(read(e.peer, in, PARTS), PARTS);
    for (int i = 0; i < PARTS; i++) assert_int_equal(in[i], letters[i % 7]);
    for (int i = 0; i < PARTS; i++) parts[i] = (struct iovec){in + i, 1};
    assert_int_equal(rp_link_read(&e.link, parts, PARTS, &room), RP_LINK_OK);
    assert_int_equal(room, IOV_MAX);
    close_ends(&e);
}

/* SIGPIPE has its usual effect in a test: it would end the program. */
static void write_to_a_closed_peer_breaks_the_link_without_a_signal(void **state)
{
    (void)state;
    ends e;
    size_t moved;

    open_ends(&e);
    assert_int_equal(close(e.peer), 0);
    e.peer = -1;
    for (int i = 0; i < 2; i++)
        assert_int_equal(write_some(&e, "hello", 5, &moved), RP_LINK_BROKEN);
    assert_int_equal(moved, 0);
    rp_link_end_writing(&e.link); /* does no harm */
    close_ends(&e);
}

static void write_after_the_end_is_broken(void **state)
{
    (void)state;
    ends e;
    char data[8];
    size_t moved;

    open_ends(&e);
    rp_link_end_writing(&e.link);
    assert_int_equal(read(e.peer, data, sizeof data), 0);
    assert_int_equal(write_some(&e, "late", 4, &moved), RP_LINK_BROKEN);
    close_ends(&e);
}

/* `more` holds a small write back until the next one, so that both travel together. */
static void more_joins_small_writes_into_one_packet(void **state)
{
    (void)state;
    ends e;
    char data[16];
    struct iovec part = {"head", 4};
    size_t moved;

    open_tcp_ends(&e);
    assert_int_equal(rp_link_write(&e.link, &part, 1, true, &moved), RP_LINK_OK);
    assert_int_equal(recv(e.peer, data, sizeof data, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(write_some(&e, "body", 4, &moved), RP_LINK_OK);
    assert_int_equal(recv(e.peer, data, sizeof data, 0), 8);
    assert_memory_equal(data, "headbody", 8);
    close_ends(&e);
}

static void descriptor_given_away_is_not_closed(void **state)
{
    (void)state;
    ends e;
    char data[4];

    open_ends(&e);
    int fd = rp_link_take_fd(&e.link);
    assert_int_equal(e.link.fd, -1);
    rp_link_deinit(&e.link);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(read(e.peer, data, sizeof data), 1);
    assert_int_equal(close(fd), 0);
    close_ends(&e); /* a second deinit does no harm */
    rp_link_deinit(NULL);
}

static void plain_link_has_no_tls_state(void **state)
{
    (void)state;
    ends e;
    char name[8] = "someone";

    open_ends(&e);
    assert_int_equal(rp_link_handshake(&e.link), RP_LINK_OK);
    assert_false(e.link.secured);
    assert_false(rp_link_is_h2(&e.link));
    rp_link_peer_name(&e.link, name, sizeof name);
    assert_string_equal(name, "");
    close_ends(&e);
}

RP_TESTS(link)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_fills_its_parts_one_after_the_other),
        cmocka_unit_test(hang_up_is_a_full_close_and_not_a_half_close),
        cmocka_unit_test(peek_takes_nothing),
        cmocka_unit_test(peer_that_ends_its_side_can_still_be_written_to),
        cmocka_unit_test(reset_breaks_the_link_for_good),
        cmocka_unit_test(write_that_does_not_fit_is_partial),
        cmocka_unit_test(more_parts_than_iov_max_are_written_in_turns),
        cmocka_unit_test(write_to_a_closed_peer_breaks_the_link_without_a_signal),
        cmocka_unit_test(write_after_the_end_is_broken),
        cmocka_unit_test(more_joins_small_writes_into_one_packet),
        cmocka_unit_test(descriptor_given_away_is_not_closed),
        cmocka_unit_test(plain_link_has_no_tls_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
