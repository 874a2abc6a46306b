/* SPDX-License-Identifier: Apache-2.0 */
/* Pages under TLS, on a real server. */
#include "server/http/http_page.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/certificates.h"
#include "support/fixture.h"

enum { WAIT_S = 120, ANSWER_BYTES = 8 << 20, MANY_TABLES = 400 };

typedef struct stage {
    rp_test_bed bed;
    rp_test_certificates certificates;
    rp_server *server;
    SSL_CTX *context;
} stage;

static void open_stage(stage *s)
{
    static const char *const address = "127.0.0.1:0";
    rp_server_options options = {.addresses = &address, .address_count = 1, .loops = 2};
    rp_test_identity identity;

    rp_test_bed_init(&s->bed, NULL);
    rp_test_certificates_init(&s->certificates);
    identity = rp_test_issue(&s->certificates, "server", "localhost", 9);
    options.alloc = &s->bed.alloc;
    options.security.certificate_file = identity.certificate;
    options.security.key_file = identity.key;
    assert_ok_err(rp_server_start(s->bed.store, &options, &s->server, &s->bed.err),
                  &s->bed.err);
    s->context = SSL_CTX_new(TLS_client_method());
    assert_non_null(s->context);
    assert_int_equal(SSL_CTX_load_verify_locations(s->context, s->certificates.ca, NULL), 1);
    SSL_CTX_set_verify(s->context, SSL_VERIFY_PEER, NULL);
}

/* The store and the server count what they have given out: nothing may be left. */
static void close_stage(stage *s)
{
    SSL_CTX_free(s->context);
    rp_server_free(s->server);
    rp_test_certificates_deinit(&s->certificates);
    rp_test_bed_deinit(&s->bed);
}

typedef struct visitor {
    int fd;
    SSL *ssl;
} visitor;

/* Connects and shakes hands. `receive_bytes` is of the socket's buffer; 0: as it is. */
static visitor visit(stage *s, int receive_bytes)
{
    struct timeval patience = {.tv_sec = WAIT_S};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)rp_server_port(s->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    visitor v = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    assert_true(v.fd >= 0);
    (void)setsockopt(v.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(v.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (receive_bytes > 0)
        (void)setsockopt(v.fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    assert_int_equal(connect(v.fd, (struct sockaddr *)&address, sizeof address), 0);
    v.ssl = SSL_new(s->context);
    assert_non_null(v.ssl);
    assert_int_equal(SSL_set_fd(v.ssl, v.fd), 1);
    assert_int_equal(SSL_connect(v.ssl), 1);
    return v;
}

static void leave(visitor *v)
{
    SSL_free(v->ssl);
    (void)close(v->fd);
    ERR_clear_error();
}

static void say(visitor *v, const char *text, size_t size)
{
    assert_int_equal(SSL_write(v->ssl, text, (int)size), size);
}

static void ask(visitor *v, const char *path, const char *more)
{
    char request[256];
    int size = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                        path, more);

    say(v, request, (size_t)size);
}

/* Reads one answer: its head and as much as that announces. Returns the body's bytes, or
 * SIZE_MAX if the connection ended before. `pause_us` between reads. */
static size_t read_answer(visitor *v, int status, unsigned pause_us)
{
    static char answer[ANSWER_BYTES];
    size_t size = 0, head = 0, body = 0;
    char expected[32];

    while (head == 0 || size < head + body) {
        int n = SSL_read(v->ssl, answer + size, (int)(sizeof answer - 1 - size));
        if (n <= 0) return SIZE_MAX;
        size += (size_t)n;
        answer[size] = '\0';
        if (pause_us > 0) (void)usleep(pause_us);
        char *end = head == 0 ? strstr(answer, "\r\n\r\n") : NULL;
        if (end == NULL) continue;
        head = (size_t)(end + 4 - answer);
        const char *length = strstr(answer, "Content-Length: ");
        assert_non_null(length);
        body = strtoul(length + 16, NULL, 10);
        assert_true(head + body < sizeof answer);
    }
    assert_int_equal(size, head + body);
    (void)snprintf(expected, sizeof expected, "HTTP/1.1 %d ", status);
    assert_memory_equal(answer, expected, strlen(expected));
    return body;
}

/* Reads to the end. True if it came in order: with a close_notify. */
static bool read_end(visitor *v)
{
    char byte;
    int n = SSL_read(v->ssl, &byte, 1);

    return n <= 0 && SSL_get_error(v->ssl, n) == SSL_ERROR_ZERO_RETURN;
}

static void a_page_is_served_under_tls(void **state)
{
    stage s;
    visitor v;

    (void)state;
    open_stage(&s);
    v = visit(&s, 0);
    for (int i = 0; i < 3; i++) { /* on one connection */
        ask(&v, "/healthz", "");
        assert_int_equal(read_answer(&v, 200, 0), 8);
    }
    ask(&v, "/nothing", "Connection: close\r\n");
    assert_true(read_answer(&v, 404, 0) < 100);
    assert_true(read_end(&v));
    leave(&v);
    close_stage(&s);
}

static void a_request_may_come_byte_by_byte_or_two_at_once(void **state)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                                  "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    stage s;
    visitor v;

    (void)state;
    open_stage(&s);
    v = visit(&s, 0);
    for (size_t i = 0; i < sizeof request / 2; i++) say(&v, request + i, 1);
    assert_int_equal(read_answer(&v, 200, 0), 8);
    leave(&v);
    v = visit(&s, 0);
    say(&v, request, sizeof request - 1);
    (void)SSL_shutdown(v.ssl); /* nothing more to say, but to hear */
    char answers[4096] = "";
    size_t size = 0;
    for (int n; (n = SSL_read(v.ssl, answers + size, (int)(sizeof answers - 1 - size))) > 0;)
        size += (size_t)n;
    char *first = strstr(answers, "serving");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "serving"));
    leave(&v);
    close_stage(&s);
}

static void a_request_with_an_unwanted_body_gets_a_response(void **state)
{
    enum { BODY = 300000 };
    char head[128], *body = calloc(1, BODY);
    stage s;
    visitor v;

    (void)state;
    assert_non_null(body);
    open_stage(&s);
    v = visit(&s, 0);
    int size =
        snprintf(head, sizeof head,
                 "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", BODY);
    say(&v, head, (size_t)size);
    (void)SSL_write(v.ssl, body, BODY);
    assert_true(read_answer(&v, 405, 0) < 200);
    leave(&v);
    free(body);
    close_stage(&s);
}

static void a_slow_reader_gets_all_of_a_large_response(void **state)
{
    char name[32];
    size_t size;
    stage s;
    visitor quick, slow;

    (void)state;
    open_stage(&s);
    for (int i = 0; i < MANY_TABLES; i++) {
        rp_table_options options = rp_test_options(name, RP_FIFO, RP_FIFO, 10);
        (void)snprintf(name, sizeof name, "table %d", i);
        (void)rp_test_bed_table(&s.bed, &options);
    }
    slow = visit(&s, 4096);
    quick = visit(&s, 0);
    ask(&slow, "/metrics", "");
    ask(&quick, "/metrics", "");
    size = read_answer(&quick, 200, 0);
    assert_true(size > 500000 && size != SIZE_MAX);
    size_t slow_size = read_answer(&slow, 200, 200);
    assert_true(slow_size > 500000 && slow_size != SIZE_MAX);
    ask(&slow, "/metrics", ""); /* and goes away in the middle of the next */
    char some[100];
    assert_true(SSL_read(slow.ssl, some, sizeof some) > 0);
    leave(&slow);
    ask(&quick, "/healthz", "");
    assert_int_equal(read_answer(&quick, 200, 0), 8);
    leave(&quick);
    close_stage(&s);
}

static void silent_connections_do_not_block_others(void **state)
{
    enum { SILENT = 2 * RP_HTTP_PAGE_CONNECTIONS + 20 };
    const size_t count = rp_test_length(SILENT, RP_HTTP_PAGE_CONNECTIONS + 20);
    visitor visitors[SILENT];
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < count; i++) visitors[i] = visit(&s, 0);
    visitor v = visit(&s, 0);
    ask(&v, "/healthz", "");
    assert_int_equal(read_answer(&v, 200, 0), 8);
    leave(&v);
    char byte;
    assert_true(SSL_read(visitors[0].ssl, &byte, 1) <= 0); /* the oldest has been cut */
    for (size_t i = 0; i < count; i++) leave(&visitors[i]);
    close_stage(&s);
}

static void stopping_the_server_closes_open_connections(void **state)
{
    visitor visitors[4];
    stage s;

    (void)state;
    open_stage(&s);
    for (size_t i = 0; i < 4; i++) {
        visitors[i] = visit(&s, 0);
        ask(&visitors[i], "/healthz", "");
        assert_int_equal(read_answer(&visitors[i], 200, 0), 8);
    }
    rp_server_free(s.server);
    s.server = NULL;
    for (size_t i = 0; i < 4; i++) {
        (void)read_end(&visitors[i]);
        leave(&visitors[i]);
    }
    close_stage(&s);
}

RP_TESTS(page_tls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_served_under_tls),
        cmocka_unit_test(a_request_may_come_byte_by_byte_or_two_at_once),
        cmocka_unit_test(a_request_with_an_unwanted_body_gets_a_response),
        cmocka_unit_test(a_slow_reader_gets_all_of_a_large_response),
        cmocka_unit_test(silent_connections_do_not_block_others),
        cmocka_unit_test(stopping_the_server_closes_open_connections),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* of OpenSSL's client */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
