/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/http_page.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/hosted.h"
#include "support/strict.h"

static rp_test_hosted hosted;
static rp_http_page *page;

/* With so much silence before a connection is closed; 0: as usual. */
static int start(unsigned idle_s)
{
    rp_test_hosted_init(&hosted, false);
    hosted.host.idle_s = idle_s;
    return rp_http_page_new(&hosted.observed.bed.alloc, &hosted.host, &page, NULL) != RP_OK;
}

static int set_up(void **state)
{
    (void)state;
    return start(0);
}

static int set_up_impatient(void **state)
{
    (void)state;
    return start(1);
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_release(&hosted); /* a test that failed may hold a page */
    rp_http_page_free(page);
    rp_test_hosted_deinit(&hosted);
    return 0;
}

/* Our end of a pair whose other end the page has. */
static int connect_pair(const char *peer, const char *certificate)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_true(rp_http_page_take(page, pair[1], peer, certificate));
    return pair[0];
}

/* The same over TCP. */
static int connect_tcp(void)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), accepted;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(listener >= 0 && client >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(accepted >= 0);
    assert_int_equal(close(listener), 0);
    assert_true(rp_http_page_take(page, accepted, "127.0.0.1:5", NULL));
    return client;
}

static void send_text(int fd, const char *text)
{
    size_t size = strlen(text);

    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Whether something is there to read, or the end is, within `ms`. */
static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

typedef struct reply {
    char text[256 << 10]; /* head and body, ended by a zero */
    const char *body;
    size_t size, body_size;
    int status;
} reply;

/* Reads one answer: its head, and a body as long as it says, or none after HEAD. */
static void read_reply(int fd, reply *r, bool head_only)
{
    const char *length = NULL, *end = NULL;

    memset(r, 0, sizeof *r);
    for (;;) {
        ssize_t n;

        end = strstr(r->text, "\r\n\r\n");
        if (end != NULL) {
            length = strcasestr(r->text, "content-length:");
            assert_non_null(length);
            r->body = end + 4;
            r->body_size = head_only ? 0 : strtoul(length + 15, NULL, 10);
            if (r->size >= (size_t)(r->body - r->text) + r->body_size) break;
        }
        assert_true(r->size < sizeof r->text - 1);
        assert_true(readable(fd, 10000));
        n = recv(fd, r->text + r->size, sizeof r->text - 1 - r->size, 0);
        assert_true(n > 0);
        r->size += (size_t)n;
    }
    assert_int_equal(sscanf(r->text, "HTTP/1.1 %d", &r->status), 1);
}

/* Reads until the peer closes. True if it does so in time. */
static bool closes(int fd, int ms)
{
    char bytes[4096];

    while (readable(fd, ms))
        if (recv(fd, bytes, sizeof bytes, 0) <= 0) return true;
    return false;
}

static void ask(int fd, const char *request, reply *r)
{
    send_text(fd, request);
    read_reply(fd, r, strncmp(request, "HEAD", 4) == 0);
}

static uint64_t refused(rp_refusal reason)
{
    return rp_counter_get(&hosted.host.counters->refusals[reason]);
}

static reply got;

static void pages_are_served_over_tcp_and_over_pairs(void **state)
{
    int fds[2] = {connect_tcp(), connect_pair("10.0.0.1:1", NULL)};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        ask(fds[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got);
        assert_int_equal(got.status, 200);
        assert_memory_equal(got.body, "degraded: ", 10);
        assert_non_null(strcasestr(got.text, "content-type: text/plain; charset=utf-8\r\n"));
        assert_non_null(strcasestr(got.text, "cache-control: no-store\r\n"));
        /* and again, on the same connection */
        ask(fds[i],
            "GET /metrics?a=%20 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer reader\r\n\r\n",
            &got);
        assert_int_equal(got.status, 200);
        assert_null(rp_test_prometheus_mistake(got.body, got.body_size));
        ask(fds[i], "GET /v1/info HTTP/1.1\r\nHost: x\r\nauthorization: bearer reader\r\n\r\n",
            &got);
        assert_null(rp_test_json_mistake(got.body, got.body_size));
        assert_int_equal(close(fds[i]), 0);
    }
}

static void head_has_the_length_and_no_body(void **state)
{
    int fd = connect_tcp();

    (void)state;
    ask(fd, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_int_equal(got.status, 200);
    assert_true(strtoul(strcasestr(got.text, "content-length:") + 15, NULL, 10) > 5);
    ask(fd, "GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n", &got); /* nothing came in between */
    assert_memory_equal(got.body, "reprise 1.2.3", 13);
    assert_int_equal(close(fd), 0);
}

static void statuses_and_their_headers_arrive(void **state)
{
    int fd = connect_tcp();

    (void)state;
    ask(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_int_equal(got.status, 401);
    assert_non_null(strcasestr(got.text, "www-authenticate: Bearer\r\n"));
    ask(fd, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_int_equal(got.status, 404);
    ask(fd, "GET /%68ealthz HTTP/1.1\r\nHost: x\r\n\r\n", &got); /* is not decoded */
    assert_int_equal(got.status, 404);
    ask(fd, "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_int_equal(got.status, 405);
    assert_non_null(strcasestr(got.text, "allow: GET, HEAD\r\n"));
    assert_true(closes(fd, 10000));
    assert_int_equal(close(fd), 0);
}

static void a_request_body_is_not_awaited(void **state)
{
    int fd = connect_tcp();

    (void)state;
    ask(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nabc", &got);
    assert_int_equal(got.status, 405);
    assert_true(closes(fd, 10000));
    assert_int_equal(close(fd), 0);
}

static void certificate_and_peer_are_passed_with_the_connection(void **state)
{
    static const char request[] = "GET /v1/info HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char wrong[] =
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer no\r\n\r\n";
    int dash = connect_pair("10.0.0.1:1", "dash"), other = connect_pair("10.0.0.1:1", "x");

    (void)state;
    ask(dash, request, &got);
    assert_int_equal(got.status, 200);
    ask(other, request, &got);
    assert_int_equal(got.status, 403);
    for (int i = 0; i < RP_GATE_BURST; i++) ask(dash, wrong, &got);
    assert_int_equal(got.status, 401);
    ask(other, wrong, &got); /* the same address, braked */
    assert_int_equal(got.status, 429);
    assert_int_equal(close(dash), 0);
    assert_int_equal(close(other), 0);
}

/* A name that was cut to fit could be somebody else's. */
static void a_certificate_name_too_long_counts_as_none(void **state)
{
    char name[RP_AUTH_MAX_NAME_BYTES + 2] = "";
    int fd;

    (void)state;
    memset(name, 'd', sizeof name - 1);
    fd = connect_pair(name, name);
    ask(fd, "GET /v1/info HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_int_equal(got.status, 401);
    assert_int_equal(close(fd), 0);
}

static void malformed_requests_get_a_response_or_are_closed(void **state)
{
    static const char *const nonsense[] = {
        "\r\n\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", /* without a host */
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this begins like TLS\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        ": : :\r\n: :\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        int fd = connect_tcp();

        send_text(fd, nonsense[i]);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        assert_true(closes(fd, 10000));
        assert_int_equal(close(fd), 0);
    }
}

static void headers_are_bounded(void **state)
{
    static char request[64 << 10] = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
    size_t at = strlen(request);
    int fd = connect_tcp();

    (void)state;
    memset(request + at, 'x', 8000); /* fits */
    memcpy(request + at + 8000, "\r\n\r\n", 5);
    ask(fd, request, &got);
    assert_int_equal(got.status, 200);
    assert_int_equal(close(fd), 0);

    fd = connect_tcp();
    memset(request + at, 'x', sizeof request - at - 5);
    memcpy(request + sizeof request - 5, "\r\n\r\n", 5);
    (void)send(fd, request, sizeof request - 1, MSG_NOSIGNAL);
    assert_true(closes(fd, 10000));
    assert_int_equal(close(fd), 0);
}

static void silent_connections_are_closed(void **state)
{
    int silent = connect_tcp(), half = connect_pair("10.0.0.1:1", NULL), kept = connect_tcp();

    (void)state;
    send_text(half, "GET /healthz HTT");
    ask(kept, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_true(closes(silent, 10000));
    assert_true(closes(half, 10000));
    assert_true(closes(kept, 10000));
    assert_int_equal(close(silent), 0);
    assert_int_equal(close(half), 0);
    assert_int_equal(close(kept), 0);
}

static const char metrics_request[] =
    "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer reader\r\n\r\n";

enum { SLOW = 16 };

static const char change[] =
    "POST /v1/checkpoint HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer boss\r\n"
    "x-reprise-confirm: checkpoint\r\nContent-Length: ";

/* Peers that send a byte now and then are never silent, but are closed all the same. */
static void slow_bodies_are_closed(void **state)
{
    int fds[SLOW];
    size_t open = SLOW;

    (void)state;
    for (size_t i = 0; i < SLOW; i++) {
        fds[i] = connect_pair("10.0.0.1:1", NULL);
        send_text(fds[i], change);
        send_text(fds[i], "1000\r\n\r\n{");
    }
    for (int round = 0; open > 0 && round < 400; round++) { /* 40 s, where it should take one */
        for (size_t i = 0; i < SLOW; i++) {
            if (fds[i] < 0) continue;
            if (send(fds[i], " ", 1, MSG_NOSIGNAL) == 1 && !readable(fds[i], 100 / SLOW))
                continue;
            assert_true(closes(fds[i], 10000));
            assert_int_equal(close(fds[i]), 0);
            fds[i] = -1;
            open--;
        }
    }
    assert_int_equal(open, 0);
}

/* As many bodies as there are connections: a change gets through, from the same address too. */
static void slow_bodies_keep_no_change_out(void **state)
{
    int fds[RP_HTTP_PAGE_CONNECTIONS], boss;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = connect_pair("10.0.0.1:1", NULL);
        send_text(fds[i], change);
        send_text(fds[i], "1000\r\n\r\n{");
    }
    boss = connect_pair("10.0.0.1:1", NULL);
    send_text(boss, change);
    ask(boss, "0\r\n\r\n", &got); /* refused by the host of this test, in its own words */
    assert_memory_equal(got.body, "{\"error\":\"this server cannot be changed", 38);
    assert_int_equal(close(boss), 0);
    for (size_t i = 0; i < COUNT_OF(fds); i++) assert_int_equal(close(fds[i]), 0);
}

/* Connections that have shown no role are closed before those that wait for a page, the oldest
 * first. */
static void strangers_do_not_close_connections_that_wait(void **state)
{
    static int strangers[3 * RP_OPEN_FDS];
    int waits = connect_pair("10.0.0.1:1", NULL), idle = connect_pair("10.0.0.1:1", NULL);

    (void)state;
    ask(idle, metrics_request, &got);
    rp_test_hold(&hosted);
    send_text(waits, metrics_request);
    rp_test_await_held(&hosted);
    for (size_t i = 0; i < COUNT_OF(strangers); i++) {
        strangers[i] = connect_pair("10.0.0.1:1", NULL);
        if (i % 2 == 0)
            send_text(strangers[i], "GET /healthz HTTP/1.1\r\n");
        else
            ask(strangers[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got);
        if (i >= RP_OPEN_FDS) assert_int_equal(close(strangers[i - RP_OPEN_FDS]), 0);
    }
    rp_test_release(&hosted);
    read_reply(waits, &got, false);
    assert_int_equal(got.status, 200);
    ask(idle, metrics_request, &got);
    assert_int_equal(got.status, 200);
    for (size_t i = COUNT_OF(strangers) - RP_OPEN_FDS; i < COUNT_OF(strangers); i++)
        assert_int_equal(close(strangers[i]), 0);
    assert_int_equal(close(waits), 0);
    assert_int_equal(close(idle), 0);
}

static void the_oldest_connection_is_closed_over_the_limit(void **state)
{
    int fds[RP_HTTP_PAGE_CONNECTIONS], late;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = connect_pair("10.0.0.1:1", NULL);
        ask(fds[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got); /* it has begun */
    }
    assert_int_equal(refused(RP_REFUSED_PAGE_CONNECTIONS), 0);
    assert_false(readable(fds[0], 0));

    late = connect_pair("10.0.0.1:1", NULL);
    ask(late, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_int_equal(got.status, 200);
    assert_true(closes(fds[0], 10000));
    assert_false(readable(fds[1], 0));
    assert_int_equal(refused(RP_REFUSED_PAGE_CONNECTIONS), 1);
    ask(fds[1], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got);
    assert_int_equal(got.status, 200);

    for (size_t i = 0; i < COUNT_OF(fds); i++) assert_int_equal(close(fds[i]), 0);
    assert_int_equal(close(late), 0);
}

static void a_closed_connection_frees_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4 * RP_HTTP_PAGE_CONNECTIONS; i++) {
        int fd = connect_pair("10.0.0.1:1", NULL);

        ask(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &got);
        assert_int_equal(got.status, 200);
        assert_true(closes(fd, 10000));
        assert_int_equal(close(fd), 0);
    }
    assert_int_equal(refused(RP_REFUSED_PAGE_CONNECTIONS), 0);
}

static void a_descriptor_other_than_a_socket_is_refused(void **state)
{
    (void)state;
    assert_false(rp_http_page_take(page, -1, "10.0.0.1:1", NULL));
    assert_int_equal(refused(RP_REFUSED_PAGE_CONNECTIONS), 1);
}

static void stopping_the_page_server_closes_its_connections(void **state)
{
    int idle = connect_pair("10.0.0.1:1", NULL), half = connect_pair("10.0.0.1:1", NULL);

    (void)state;
    send_text(half, "GET /heal");
    rp_http_page_free(page);
    page = NULL;
    assert_true(closes(idle, 10000));
    assert_true(closes(half, 10000));
    assert_int_equal(close(idle), 0);
    assert_int_equal(close(half), 0);
}

static void other_requests_are_served_while_a_page_is_made(void **state)
{
    int waits = connect_pair("10.0.0.1:1", NULL), other = connect_pair("10.0.0.1:1", NULL);

    (void)state;
    rp_test_hold(&hosted);
    send_text(waits, metrics_request);
    rp_test_await_held(&hosted);
    for (int i = 0; i < 3; i++) {
        ask(other, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", &got);
        assert_int_equal(got.status, 200);
    }
    assert_false(readable(waits, 0));
    rp_test_release(&hosted);
    read_reply(waits, &got, false);
    assert_int_equal(got.status, 200);
    assert_null(rp_test_prometheus_mistake(got.body, got.body_size));
    ask(waits, metrics_request, &got); /* and once more on this connection */
    assert_int_equal(got.status, 200);
    assert_int_equal(close(waits), 0);
    assert_int_equal(close(other), 0);
}

/* Who leaves, is cut, or sends more while he waits for a page. */
static void a_waiting_reader_may_disconnect(void **state)
{
    int fds[4];

    (void)state;
    rp_test_hold(&hosted);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = connect_pair("10.0.0.1:1", NULL);
        send_text(fds[i], metrics_request);
    }
    rp_test_await_held(&hosted);
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
    send_text(fds[2], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    rp_test_release(&hosted);
    read_reply(fds[3], &got, false);
    assert_int_equal(got.status, 200);
    for (size_t i = 1; i < COUNT_OF(fds); i++) assert_int_equal(close(fds[i]), 0);
}

/* A connection that waits for a page can be closed, so waiting readers cannot keep others out.
 */
static void waiting_readers_do_not_keep_others_out(void **state)
{
    static const char health[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    int held = connect_pair("10.0.0.1:1", NULL), fd;

    (void)state;
    rp_test_hold(&hosted);
    send_text(held, "GET /v1/tables/empty HTTP/1.1\r\nHost: x\r\n"
                    "Authorization: Bearer reader\r\n\r\n");
    rp_test_await_held(&hosted);
    for (size_t i = 0; i < 2 * RP_OPEN_FDS; i++) {
        fd = connect_pair("10.0.0.1:1", NULL);
        ask(fd, health, &got);
        assert_int_equal(got.status, 200);
        send_text(fd, "GET /v1/tables/replay HTTP/1.1\r\nHost: x\r\n"
                      "Authorization: Bearer reader\r\n\r\n");
        assert_int_equal(close(fd), 0);
    }
    fd = connect_pair("10.0.0.1:1", NULL);
    ask(fd, metrics_request, &got);
    assert_int_equal(got.status, 200);
    rp_test_release(&hosted);
    assert_int_equal(close(held), 0);
    assert_int_equal(close(fd), 0);
}

static void stopping_the_page_server_closes_waiting_readers(void **state)
{
    int fds[8];

    (void)state;
    rp_test_hold(&hosted);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = connect_pair("10.0.0.1:1", NULL);
        send_text(fds[i], metrics_request);
    }
    rp_test_await_held(&hosted);
    rp_test_release(&hosted);
    rp_http_page_free(page);
    page = NULL;
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        assert_true(closes(fds[i], 10000));
        assert_int_equal(close(fds[i]), 0);
    }
}

/* The response does not wait for another event of the page's thread. */
static void a_request_that_cannot_wait_gets_its_response(void **state)
{
    int fd = connect_pair("10.0.0.1:1", NULL);

    (void)state;
    rp_page_maker_stop(rp_http_page_maker(page));
    for (int round = 0; round < 3; round++) {
        ask(fd, metrics_request, &got);
        assert_int_equal(got.status, 503);
    }
    assert_int_equal(close(fd), 0);
}

static void a_request_with_a_body_does_not_wait_for_a_page(void **state)
{
    int fd = connect_tcp();

    (void)state;
    ask(fd,
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer reader\r\n"
        "Content-Length: 1000000000\r\n\r\nabc",
        &got);
    assert_int_equal(got.status, 400);
    assert_true(closes(fd, 10000));
    assert_int_equal(close(fd), 0);
}

/* Each reads a page of its own, and stops after the first bytes. */
static void slow_readers_hold_a_few_pages(void **state)
{
    enum { LONG = 60, READERS = 16 };
    size_t most = rp_page_most_bytes(LONG + 3), before, total = 0;
    int fds[READERS];

    (void)state;
    rp_test_observed_add_long(&hosted.observed, LONG);
    before = atomic_load(&hosted.observed.bed.oom.live_bytes);
    for (size_t i = 0; i < READERS; i++) {
        fds[i] = connect_pair("10.0.0.1:1", NULL);
        send_text(fds[i], metrics_request);
        assert_true(readable(fds[i], 10000));
    }
    assert_true(refused(RP_REFUSED_PAGE_CONNECTIONS) >= READERS - 8);
    assert_true(refused(RP_REFUSED_PAGE_CONNECTIONS) < READERS);
    assert_true(closes(fds[0], 10000));          /* the oldest */
    for (char bytes[4096]; total <= most / 2;) { /* the newest reads on */
        ssize_t n = recv(fds[READERS - 1], bytes, sizeof bytes, 0);

        assert_true(n > 0);
        total += (size_t)n;
    }
    assert_true(atomic_load(&hosted.observed.bed.oom.live_bytes) - before < 5 * most);
    for (size_t i = 0; i < READERS; i++) assert_int_equal(close(fds[i]), 0);
}

enum { CLIENTS = 4, REQUESTS = 20 };

static void *ask_many(void *arg)
{
    reply *mine = malloc(sizeof *mine);

    (void)arg;
    for (int i = 0; mine != NULL && i < REQUESTS; i++) {
        int fd = connect_pair("10.0.0.1:1", NULL);

        ask(fd, metrics_request, mine);
        if (mine->status != 200) break;
        (void)close(fd);
        if (i == REQUESTS - 1) {
            free(mine);
            return arg;
        }
    }
    free(mine);
    return NULL;
}

/* Threads hand over and ask, while tables change and counters run. */
static void pages_are_served_while_everything_changes(void **state)
{
    rp_table *t = rp_test_table(hosted.observed.bed.store, "replay");
    rp_loop_metrics *loop = rp_metrics_loop(hosted.observed.view.metrics, 0);
    pthread_t threads[CLIENTS];
    void *result;

    (void)state;
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, &hosted), 0);
    for (uint64_t key = 100; key < 1100; key++) {
        rp_update update = {.key = key % 5, .priority = 2};

        rp_counter_add(&loop->messages_read, 1);
        assert_ok(rp_table_update(t, &update, 1, NULL, NULL));
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &hosted);
    }
}

static rp_status start_and_stop(const rp_allocator *alloc)
{
    rp_http_page *p = NULL;
    rp_error err;
    rp_status st = rp_http_page_new(alloc, &hosted.host, &p, &err);

    rp_http_page_free(p);
    return st;
}

static void starting_may_find_no_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(start_and_stop);
    rp_http_page_free(NULL);
}

RP_TESTS(http_page)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define IMPATIENT(name) cmocka_unit_test_setup_teardown(name, set_up_impatient, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(pages_are_served_over_tcp_and_over_pairs),
        CASE(head_has_the_length_and_no_body),
        CASE(statuses_and_their_headers_arrive),
        CASE(a_request_body_is_not_awaited),
        CASE(certificate_and_peer_are_passed_with_the_connection),
        CASE(a_certificate_name_too_long_counts_as_none),
        IMPATIENT(malformed_requests_get_a_response_or_are_closed),
        CASE(headers_are_bounded),
        IMPATIENT(silent_connections_are_closed),
        IMPATIENT(slow_bodies_are_closed),
        CASE(slow_bodies_keep_no_change_out),
        CASE(strangers_do_not_close_connections_that_wait),
        CASE(the_oldest_connection_is_closed_over_the_limit),
        CASE(a_closed_connection_frees_its_place),
        CASE(a_descriptor_other_than_a_socket_is_refused),
        CASE(stopping_the_page_server_closes_its_connections),
        CASE(other_requests_are_served_while_a_page_is_made),
        CASE(a_waiting_reader_may_disconnect),
        CASE(waiting_readers_do_not_keep_others_out),
        CASE(stopping_the_page_server_closes_waiting_readers),
        CASE(a_request_that_cannot_wait_gets_its_response),
        CASE(a_request_with_a_body_does_not_wait_for_a_page),
        CASE(slow_readers_hold_a_few_pages),
        CASE(pages_are_served_while_everything_changes),
        CASE(starting_may_find_no_memory),
    };
    return cmocka_run_group_tests_name("http_page", tests, NULL, NULL);
}
