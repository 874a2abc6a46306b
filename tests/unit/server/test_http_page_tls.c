/* SPDX-License-Identifier: Apache-2.0 */
/* Pages under TLS, requested by OpenSSL's own client. */
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "server/http/http_page.h"
#include "support/certificates.h"
#include "support/hosted.h"
#include "support/strict.h"

static rp_test_hosted hosted;
static rp_http_page *page;
static rp_test_certificates certificates;
static rp_tls *tls;

static int set_up(void **state)
{
    rp_test_identity server;
    rp_tls_files files;

    (void)state;
    rp_test_hosted_init(&hosted, false);
    rp_test_certificates_init(&certificates);
    server = rp_test_issue(&certificates, "server", "localhost", 9);
    files = (rp_tls_files){
        .certificate = server.certificate, .key = server.key, .client_ca = certificates.ca};
    assert_ok(rp_tls_new(&hosted.observed.bed.alloc, &files, &tls, NULL));
    assert_ok(rp_http_page_new(&hosted.observed.bed.alloc, &hosted.host, &page, NULL));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_http_page_free(page);
    rp_tls_unref(tls);
    rp_test_certificates_deinit(&certificates);
    rp_test_hosted_deinit(&hosted);
    return 0;
}

typedef struct client {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
    char text[256 << 10]; /* what has come, ended by a zero */
    size_t size;
} client;

static client peer;

/* Connects, with that certificate if there is one; both ends shake hands on this thread, then
 * the page has the other. */
static void open_client(client *c, const rp_test_identity *who)
{
    rp_link_result result = RP_LINK_AGAIN;
    char name[RP_AUTH_MAX_NAME_BYTES + 1];
    rp_link link;
    int pair[2];

    memset(c, 0, sizeof *c);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                     0);
    assert_ok(rp_link_init(&link, pair[0], tls));
    c->fd = pair[1];
    c->context = SSL_CTX_new(TLS_client_method());
    assert_non_null(c->context);
    if (who != NULL) {
        assert_int_equal(SSL_CTX_use_certificate_chain_file(c->context, who->certificate), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(c->context, who->key, SSL_FILETYPE_PEM),
                         1);
    }
    c->ssl = SSL_new(c->context);
    assert_non_null(c->ssl);
    assert_int_equal(SSL_set_fd(c->ssl, c->fd), 1);
    SSL_set_connect_state(c->ssl);
    for (int i = 0; i < 20 && result == RP_LINK_AGAIN; i++) {
        (void)SSL_do_handshake(c->ssl);
        result = rp_link_handshake(&link);
    }
    assert_int_equal(result, RP_LINK_OK);
    rp_link_peer_name(&link, name, sizeof name);
    /* the first bytes may be in OpenSSL already when the page takes over */
    assert_int_equal(SSL_write(c->ssl, "GET ", 4), 4);
    assert_true(rp_http_page_take_link(page, &link, "10.0.0.1:1", name));
    assert_int_equal(link.fd, -1);
    assert_int_equal(fcntl(c->fd, F_SETFL, 0), 0); /* from now on it waits */
}

static void close_client(client *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    assert_int_equal(close(c->fd), 0);
    ERR_clear_error();
}

/* Reads until `enough`, or to the end if that is NULL. */
static void read_until(client *c, const char *enough)
{
    while (enough == NULL || strstr(c->text, enough) == NULL) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        int n;

        if (SSL_pending(c->ssl) == 0) assert_int_equal(poll(&p, 1, 10000), 1);
        n = SSL_read(c->ssl, c->text + c->size, (int)(sizeof c->text - 1 - c->size));
        if (n <= 0) {
            assert_null(enough);
            return;
        }
        c->size += (size_t)n;
    }
}

static void say(client *c, const char *text)
{
    assert_int_equal(SSL_write(c->ssl, text, (int)strlen(text)), (int)strlen(text));
}

static void pages_are_served_under_tls(void **state)
{
    const char *body;

    (void)state;
    open_client(&peer, NULL);
    say(&peer, "/healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    read_until(&peer, "degraded: ");
    say(&peer, "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer reader\r\n"
               "Connection: close\r\n\r\n");
    read_until(&peer, NULL);
    body = strstr(strstr(peer.text, "version=0.0.4"), "\r\n\r\n") + 4;
    assert_null(rp_test_prometheus_mistake(body, strlen(body)));
    assert_int_equal(SSL_get_shutdown(peer.ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    close_client(&peer);
}

static void a_client_certificate_is_passed_to_the_page(void **state)
{
    rp_test_identity dash = rp_test_issue(&certificates, "dash", "dash", 4),
                     other = rp_test_issue(&certificates, "other", "other", 5);

    (void)state;
    open_client(&peer, &dash);
    say(&peer, "/v1/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    read_until(&peer, NULL);
    assert_memory_equal(peer.text, "HTTP/1.1 200 ", 13);
    close_client(&peer);
    open_client(&peer, &other);
    say(&peer, "/v1/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    read_until(&peer, NULL);
    assert_memory_equal(peer.text, "HTTP/1.1 403 ", 13);
    close_client(&peer);
}

static void a_client_that_disconnects_affects_no_other(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        open_client(&peer, NULL);
        if (i % 2 == 0) say(&peer, "/metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        close_client(&peer);
    }
    open_client(&peer, NULL);
    say(&peer, "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    read_until(&peer, NULL);
    assert_memory_equal(peer.text, "HTTP/1.1 200 ", 13);
    close_client(&peer);
}

static void stopping_the_page_server_closes_tls_connections(void **state)
{
    (void)state;
    open_client(&peer, NULL);
    rp_http_page_free(page);
    page = NULL;
    read_until(&peer, NULL);
    assert_int_equal(peer.size, 0);
    close_client(&peer);
}

RP_TESTS(http_page_tls)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(pages_are_served_under_tls),
        CASE(a_client_certificate_is_passed_to_the_page),
        CASE(a_client_that_disconnects_affects_no_other),
        CASE(stopping_the_page_server_closes_tls_connections),
    };
    (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL's client writes to who is gone */
    return cmocka_run_group_tests_name("http_page_tls", tests, NULL, NULL);
}
