/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/unit.h"

static rp_listener open_at(const char *address)
{
    rp_listener l;
    rp_error err;

    assert_ok_err(rp_listener_open(&l, address, &err), &err);
    return l;
}

static bool machine_has_v6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0) (void)close(fd);
    return has;
}

static int connect_v4(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int connect_v6(int port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)port),
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Accepts what connects within a second. */
static int accept_one(int fd, char *peer, size_t peer_bytes)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int accepted;

    assert_int_equal(poll(&ready, 1, 1000), 1);
    accepted = rp_listener_accept(fd, peer, peer_bytes);
    assert_true(accepted >= 0);
    return accepted;
}

static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t bytes = sizeof value;

    assert_int_equal(getsockopt(fd, level, option, &value, &bytes), 0);
    return value;
}

static void expect_quiet(int fd)
{
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}

/* A path in a folder of its own. */
typedef struct place {
    char folder[32], path[48], address[64];
} place;

static void make_place(place *p)
{
    *p = (place){.folder = "/tmp/reprise-test-XXXXXX"};
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->path, sizeof p->path, "%s/socket", p->folder);
    (void)snprintf(p->address, sizeof p->address, "unix:%s", p->path);
}

static void remove_place(place *p)
{
    (void)unlink(p->path);
    assert_int_equal(rmdir(p->folder), 0);
}

static void v4_address_listens_and_is_described(void **state)
{
    (void)state;
    rp_listener l = open_at("127.0.0.1:0");
    char text[64], peer[64];

    assert_int_equal(l.fd_count, 1);
    assert_true(l.port > 0);
    assert_true(l.is_local);
    assert_string_equal(l.unix_path, "");
    (void)snprintf(text, sizeof text, "127.0.0.1:%d", l.port);
    assert_string_equal(l.text, text);
    expect_quiet(l.fds[0]);

    int client = connect_v4(l.port);
    int fd = accept_one(l.fds[0], peer, sizeof peer);
    struct sockaddr_in own;
    socklen_t bytes = sizeof own;
    assert_int_equal(getsockname(client, (struct sockaddr *)&own, &bytes), 0);
    (void)snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(own.sin_port));
    assert_string_equal(peer, text);
    (void)close(fd);
    (void)close(client);
    rp_listener_close(&l);
    assert_int_equal(l.fd_count, 0);
    rp_listener_close(&l); /* twice does no harm */
    rp_listener_close(NULL);
}

static void accepted_socket_is_set_up(void **state)
{
    (void)state;
    rp_listener l = open_at("127.0.0.1:0");
    char peer[64];

    assert_int_equal(rp_listener_accept(l.fds[0], peer, sizeof peer), -1);
    assert_int_equal(errno, EAGAIN);

    int client = connect_v4(l.port), fd = accept_one(l.fds[0], peer, sizeof peer);
    expect_quiet(fd);
    assert_true(option_of(fd, IPPROTO_TCP, TCP_NODELAY) != 0);
    assert_true(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) > 0);
    assert_true(option_of(fd, SOL_SOCKET, SO_SNDBUF) <= 2 * 512 << 10); /* Linux doubles it */
    (void)close(fd);
    (void)close(client);
    rp_listener_close(&l);
}

static void v6_address_listens_where_there_is_v6(void **state)
{
    (void)state;
    char text[64], peer[64];

    if (!machine_has_v6()) {
        print_message("this machine has no IPv6\n");
        skip();
    }
    rp_listener l = open_at("[::1]:0");
    assert_int_equal(l.fd_count, 1);
    assert_true(l.is_local);
    (void)snprintf(text, sizeof text, "[::1]:%d", l.port);
    assert_string_equal(l.text, text);
    int client = connect_v6(l.port), fd = accept_one(l.fds[0], peer, sizeof peer);
    assert_memory_equal(peer, "[::1]:", 6);
    (void)close(fd);
    (void)close(client);
    rp_listener_close(&l);
}

static void localhost_is_v4_and_v6_on_one_port(void **state)
{
    (void)state;
    rp_listener l = open_at("localhost:0");
    size_t expected = machine_has_v6() ? 2 : 1;
    char text[64], peer[64];

    assert_int_equal(l.fd_count, expected);
    assert_true(l.is_local);
    (void)snprintf(text, sizeof text, "localhost:%d", l.port);
    assert_string_equal(l.text, text);
    int client = connect_v4(l.port);
    (void)close(accept_one(l.fds[0], peer, sizeof peer));
    (void)close(client);
    if (expected == 2) {
        client = connect_v6(l.port);
        (void)close(accept_one(l.fds[1], peer, sizeof peer));
        (void)close(client);
    }
    rp_listener_close(&l);
}

static void every_address_takes_v4_and_v6_in_one_socket(void **state)
{
    (void)state;
    rp_listener l = open_at(":0");
    char text[64], peer[64];

    assert_int_equal(l.fd_count, 1);
    assert_false(l.is_local);
    (void)snprintf(text, sizeof text, ":%d", l.port);
    assert_string_equal(l.text, text);
    int client = connect_v4(l.port), fd = accept_one(l.fds[0], peer, sizeof peer);
    assert_memory_equal(peer, "127.0.0.1:", 10); /* not as a mapped v6 address */
    (void)close(fd);
    (void)close(client);
    if (machine_has_v6()) {
        client = connect_v6(l.port);
        (void)close(accept_one(l.fds[0], peer, sizeof peer));
        (void)close(client);
    }
    rp_listener_close(&l);

    l = open_at("0.0.0.0:0");
    assert_false(l.is_local);
    rp_listener_close(&l);
}

static void port_in_use_is_refused_by_name(void **state)
{
    (void)state;
    rp_listener l = open_at("127.0.0.1:0"), second;
    char address[64];
    rp_error err;

    (void)snprintf(address, sizeof address, "127.0.0.1:%d", l.port);
    assert_fails(rp_listener_open(&second, address, &err), RP_UNAVAILABLE, &err, address);
    /* A name of which one address is taken is taken, and leaves nothing open. */
    (void)snprintf(address, sizeof address, "localhost:%d", l.port);
    assert_fails(rp_listener_open(&second, address, &err), RP_UNAVAILABLE, &err, "in use");
    rp_listener_close(&l);

    l = open_at(address); /* the port is free again, at every address */
    rp_listener_close(&l);
}

static void port_taken_at_the_second_address_is_not_picked(void **state)
{
    (void)state;
    rp_listener taken[20];

    if (!machine_has_v6()) {
        print_message("this machine has no IPv6\n");
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(taken); i++) taken[i] = open_at("localhost:0");
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        assert_int_equal(taken[i].fd_count, 2);
        rp_listener_close(&taken[i]);
    }
}

static void malformed_addresses_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *address, *part;
    } wrong[] = {
        {"", "a port is missing"},
        {"localhost", "a port is missing"},
        {"localhost:", "the port must be"},
        {"localhost:x", "the port must be"},
        {"localhost:-1", "the port must be"},
        {"localhost:+1", "the port must be"},
        {"localhost: 1", "an address has no space"},
        {"/tmp/x.sock", "write a socket as 'unix:/tmp/x.sock'"},
        {"localhost:1x", "the port must be"},
        {"localhost:65536", "from 0 to 65535"},
        {"localhost:4294967297", "the port must be"},
        {"::1:80", "[v6]:port"},
        {"::", "[v6]:port"},
        {"http://localhost:80", "without 'http://'"},
        {"localhost:80/", "leave out the '/' at its end, as in 'localhost:80'"},
        {"https://[::1]:80", "without 'https://'"},
        {"[::1", "']' is missing"},
        {"[::1]", "a port is missing"},
        {"[::1]80", "a port is missing"},
        {"[::1]:", "the port must be"},
        {"[]:80", "nothing between"},
        {"[localhost]:80", "not an IPv6 address"},
        {"[1.2.3.4]:80", "not an IPv6 address"},
        {"unix:", "a path is missing"},
        {"fd:", "wants a number"},
        {"fd:x", "wants a number"},
        {"fd:-1", "wants a number"},
        {"fd:123456", "wants a number"},
        {"192.0.2.1:0", "no such address"},
    };
    rp_listener l;
    rp_error err;
    bool local;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_fails(rp_listener_open(&l, wrong[i].address, &err), RP_INVALID, &err,
                     wrong[i].part);
        if (strncmp(wrong[i].address, "192", 3) != 0)
            assert_fails(rp_address_is_local(wrong[i].address, &local, &err), RP_INVALID, &err,
                         wrong[i].part);
    }
    assert_fails(rp_listener_open(&l, "nobody.invalid:0", &err), RP_NOT_FOUND, &err,
                 "nobody.invalid:0");
    assert_fails(rp_address_is_local("nobody.invalid:0", &local, &err), RP_NOT_FOUND, &err,
                 "nobody.invalid:0");
}

static void text_of_any_length_is_refused_or_taken(void **state)
{
    (void)state;
    static char text[4096];
    rp_listener l;
    rp_error err;

    for (size_t length = 90; length < 400; length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        memcpy(text, "unix:/nowhere/", 14);
        rp_status st = rp_listener_open(&l, text, &err);
        assert_int_equal(st, length - 5 > 107 ? RP_INVALID : RP_NOT_FOUND);
        memset(text, 'x', 14);
        memcpy(text + length - 3, ".:0", 3); /* a label of this length is no name */
        st = rp_listener_open(&l, text, &err);
        assert_true(st == RP_INVALID || st == RP_NOT_FOUND);
    }
}

static void unix_socket_listens_and_goes_with_its_listener(void **state)
{
    (void)state;
    place p;
    char peer[64];

    make_place(&p);
    rp_listener l = open_at(p.address);
    assert_int_equal(l.fd_count, 1);
    assert_int_equal(l.port, 0);
    assert_true(l.is_local);
    assert_string_equal(l.unix_path, p.path);
    assert_string_equal(l.text, p.address);
    expect_quiet(l.fds[0]);

    int client = connect_unix(p.path), fd = accept_one(l.fds[0], peer, sizeof peer);
    expect_quiet(fd);
    assert_memory_equal(peer, "unix:", 5);
    int plain = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(option_of(fd, SOL_SOCKET, SO_SNDBUF) >=
                option_of(plain, SOL_SOCKET, SO_SNDBUF));
    (void)close(plain);
    (void)close(fd);
    (void)close(client);

    rp_listener_close(&l);
    assert_int_equal(access(p.path, F_OK), -1);
    remove_place(&p);
}

static void stale_socket_file_is_replaced(void **state)
{
    (void)state;
    place p;
    char peer[64];

    make_place(&p);
    rp_listener dead = open_at(p.address);
    (void)close(dead.fds[0]); /* as if its process had been killed */
    assert_int_equal(access(p.path, F_OK), 0);

    rp_listener l = open_at(p.address);
    int client = connect_unix(p.path);
    (void)close(accept_one(l.fds[0], peer, sizeof peer));
    (void)close(client);
    rp_listener_close(&l);
    remove_place(&p);
}

static void live_socket_file_is_left_alone(void **state)
{
    (void)state;
    place p;
    rp_error err;
    rp_listener second;
    char peer[64];

    make_place(&p);
    rp_listener l = open_at(p.address);
    assert_fails(rp_listener_open(&second, p.address, &err), RP_UNAVAILABLE, &err, p.path);

    int client = connect_unix(p.path); /* the first one still listens there */
    (void)close(accept_one(l.fds[0], peer, sizeof peer));
    (void)close(client);
    rp_listener_close(&l);
    remove_place(&p);
}

static void file_that_is_no_socket_is_left_alone(void **state)
{
    (void)state;
    place p;
    rp_error err;
    rp_listener l;

    make_place(&p);
    int fd = open(p.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "precious", 8), 8);
    (void)close(fd);
    assert_fails(rp_listener_open(&l, p.address, &err), RP_UNAVAILABLE, &err, "not a socket");
    struct stat file;
    assert_int_equal(stat(p.path, &file), 0);
    assert_int_equal(file.st_size, 8);
    remove_place(&p);
}

static void folder_that_cannot_be_written_is_denied(void **state)
{
    (void)state;
    place p;
    rp_error err;
    rp_listener l;

    uid_t user = geteuid();
    make_place(&p);
    assert_int_equal(chmod(p.folder, 0500), 0);
    if (user == 0) assert_int_equal(seteuid(65534), 0); /* nothing is denied to root */
    rp_status st = rp_listener_open(&l, p.address, &err);
    if (user == 0) assert_int_equal(seteuid(0), 0);
    assert_fails(st, RP_DENIED, &err, p.path);
    assert_int_equal(chmod(p.folder, 0700), 0);
    remove_place(&p);
}

static void descriptor_that_listens_is_taken(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    char text[64], peer[64];
    rp_listener l;
    rp_error err;
    bool local = false;

    (void)snprintf(text, sizeof text, "fd:%d", fd);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_fails(rp_listener_open(&l, text, &err), RP_INVALID, &err, "does not listen");
    assert_int_equal(listen(fd, 5), 0);
    assert_ok(rp_address_is_local(text, &local, &err));
    assert_true(local);

    l = open_at(text);
    assert_int_equal(l.fd_count, 1);
    assert_int_equal(l.fds[0], fd);
    assert_true(l.port > 0);
    assert_true(l.is_local);
    expect_quiet(fd);
    (void)snprintf(text, sizeof text, "127.0.0.1:%d", l.port);
    assert_string_equal(l.text, text);
    int client = connect_v4(l.port);
    (void)close(accept_one(l.fds[0], peer, sizeof peer));
    (void)close(client);
    rp_listener_close(&l);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed */
}

static void unix_descriptor_keeps_its_file(void **state)
{
    (void)state;
    place p;
    char text[16];

    make_place(&p);
    rp_listener other = open_at(p.address);
    (void)snprintf(text, sizeof text, "fd:%d", other.fds[0]);
    rp_listener l = open_at(text);
    assert_string_equal(l.unix_path, "");
    assert_string_equal(l.text, p.address);
    assert_true(l.is_local);
    rp_listener_close(&l);
    assert_int_equal(access(p.path, F_OK), 0); /* whoever made it removes it */
    remove_place(&p);
}

static void descriptor_of_something_else_is_refused(void **state)
{
    (void)state;
    int fds[2];
    char text[16];
    rp_listener l;
    rp_error err;

    assert_int_equal(pipe(fds), 0);
    (void)snprintf(text, sizeof text, "fd:%d", fds[0]);
    assert_fails(rp_listener_open(&l, text, &err), RP_INVALID, &err, text);
    (void)close(fds[0]);
    (void)close(fds[1]);
    assert_fails(rp_listener_open(&l, text, &err), RP_INVALID, &err, text); /* closed */
}

static void locality_is_known_without_binding(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        bool local;
    } cases[] = {
        {"localhost:8000", true},
        {"127.0.0.1:80", true},
        {"127.9.9.9:80", true},
        {"[::1]:80", true},
        {"[::ffff:127.0.0.1]:1", true},
        {"unix:/nowhere/at/all", true},
        {":8000", false},
        {"0.0.0.0:8000", false},
        {"[::]:80", false},
        {"192.0.2.1:80", false},
        {"[2001:db8::1]:80", false},
        {"[::ffff:192.0.2.1]:1", false},
    };
    rp_error err;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool local = !cases[i].local;
        assert_ok_err(rp_address_is_local(cases[i].address, &local, &err), &err);
        assert_int_equal(local, cases[i].local);
    }
}

static void listener_without_descriptors_fails(void **state)
{
    (void)state;
    struct rlimit old, few;
    rp_listener l;
    rp_error err;
    int next = dup(0);
    static const char *const addresses[] = {"127.0.0.1:0", "localhost:0", ":0", "unix:/tmp/x"};

    assert_true(next >= 0);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        rp_status st = rp_listener_open(&l, addresses[i], &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        assert_fails(st, RP_NO_RESOURCE, &err, addresses[i]);
    }

    l = open_at("127.0.0.1:0"); /* and a connection that finds none stays in the queue */
    char peer[64];
    int client = connect_v4(l.port);
    few.rlim_cur = (rlim_t)client + 1;
    struct pollfd ready = {.fd = l.fds[0], .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 1000), 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int fd = rp_listener_accept(l.fds[0], peer, sizeof peer), why = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(why, EMFILE);
    (void)close(accept_one(l.fds[0], peer, sizeof peer));
    (void)close(client);
    rp_listener_close(&l);
}

RP_TESTS(listener)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v4_address_listens_and_is_described),
        cmocka_unit_test(accepted_socket_is_set_up),
        cmocka_unit_test(v6_address_listens_where_there_is_v6),
        cmocka_unit_test(localhost_is_v4_and_v6_on_one_port),
        cmocka_unit_test(every_address_takes_v4_and_v6_in_one_socket),
        cmocka_unit_test(port_in_use_is_refused_by_name),
        cmocka_unit_test(port_taken_at_the_second_address_is_not_picked),
        cmocka_unit_test(malformed_addresses_are_named),
        cmocka_unit_test(text_of_any_length_is_refused_or_taken),
        cmocka_unit_test(unix_socket_listens_and_goes_with_its_listener),
        cmocka_unit_test(stale_socket_file_is_replaced),
        cmocka_unit_test(live_socket_file_is_left_alone),
        cmocka_unit_test(file_that_is_no_socket_is_left_alone),
        cmocka_unit_test(folder_that_cannot_be_written_is_denied),
        cmocka_unit_test(descriptor_that_listens_is_taken),
        cmocka_unit_test(unix_descriptor_keeps_its_file),
        cmocka_unit_test(descriptor_of_something_else_is_refused),
        cmocka_unit_test(locality_is_known_without_binding),
        cmocka_unit_test(listener_without_descriptors_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
