/* SPDX-License-Identifier: Apache-2.0 */
/* A link under TLS and OpenSSL's own client at the other end of a socket pair. One thread runs
 * both in turn, so that a test can produce every order of events. */
#ifndef RP_TEST_TLS_ENDS_H
#define RP_TEST_TLS_ENDS_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/link.h"
#include "net/loop.h"
#include "support/certificates.h"
#include "support/unit.h"

typedef struct setting {
    rp_test_certificates certificates, strangers; /* two authorities */
    rp_test_identity server, client, stranger;
} setting;

static inline int set_up(void **state)
{
    setting *s = calloc(1, sizeof *s);

    assert_non_null(s);
    rp_test_certificates_init(&s->certificates);
    rp_test_certificates_init(&s->strangers);
    s->server = rp_test_issue(&s->certificates, "server", "localhost", 9);
    s->client = rp_test_issue(&s->certificates, "client", "actor-7", 7);
    s->stranger = rp_test_issue(&s->strangers, "stranger", "actor-7", 7);
    *state = s;
    return 0;
}

static inline int tear_down(void **state)
{
    setting *s = *state;

    rp_test_certificates_deinit(&s->certificates);
    rp_test_certificates_deinit(&s->strangers);
    free(s);
    return 0;
}

/* What a test may ask of the two; zero-initialise it. */
typedef struct wishes {
    const char *offer; /* ALPN as on the wire; NULL: none */
    int version;       /* of the client; 0: any */
    const char *old_ciphers, *new_ciphers;
    const rp_test_identity *client;
    bool ask, require; /* a client certificate */
    bool tcp; /* over loopback: holds many small records, of which a socket pair holds few */
} wishes;

typedef struct ends {
    rp_tls *tls;
    rp_link link;
    SSL_CTX *context;
    SSL *client;
    int peer; /* the client's descriptor */
} ends;

static inline SSL_CTX *client_context(const setting *s, const wishes *w)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    assert_non_null(context);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    assert_int_equal(SSL_CTX_load_verify_file(context, s->certificates.ca), 1);
    if (w->offer != NULL)
        assert_int_equal(SSL_CTX_set_alpn_protos(context, (const unsigned char *)w->offer,
                                                 (unsigned int)strlen(w->offer)),
                         0);
    if (w->version != 0) {
        SSL_CTX_set_security_level(context, 0); /* or it would not even offer old ones */
        assert_int_equal(SSL_CTX_set_min_proto_version(context, w->version), 1);
        assert_int_equal(SSL_CTX_set_max_proto_version(context, w->version), 1);
    }
    if (w->old_ciphers != NULL)
        assert_int_equal(SSL_CTX_set_cipher_list(context, w->old_ciphers), 1);
    if (w->new_ciphers != NULL)
        assert_int_equal(SSL_CTX_set_ciphersuites(context, w->new_ciphers), 1);
    if (w->client != NULL) {
        assert_int_equal(SSL_CTX_use_certificate_chain_file(context, w->client->certificate),
                         1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(context, w->client->key, SSL_FILETYPE_PEM),
                         1);
    }
    (void)SSL_CTX_set_mode(context,
                           SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

static inline rp_tls *new_tls(const setting *s, const wishes *w)
{
    rp_tls_files files = {.certificate = s->server.certificate,
                          .key = s->server.key,
                          .client_ca = w->ask ? s->certificates.ca : NULL,
                          .require_client_certificate = w->require};
    rp_tls *tls = NULL;
    rp_error err;

    assert_ok_err(rp_tls_new(rp_allocator_default(), &files, &tls, &err), &err);
    return tls;
}

/* Two ends of a connection over loopback, which do not block. */
static inline void connect_tcp(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), room = 1 << 20;

    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fds[1], (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    fds[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    assert_true(fds[0] >= 0);
    assert_int_equal(close(listener), 0);
}

/* Takes the reference to `tls`. */
static inline void open_ends_with(ends *e, const setting *s, const wishes *w, rp_tls *tls)
{
    int fds[2];

    e->tls = tls;
    if (w->tcp)
        connect_tcp(fds);
    else
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_ok(rp_link_init(&e->link, fds[0], e->tls));
    e->peer = fds[1];
    e->context = client_context(s, w);
    e->client = SSL_new(e->context);
    assert_non_null(e->client);
    assert_int_equal(SSL_set_fd(e->client, e->peer), 1);
    SSL_set_connect_state(e->client);
}

static inline void open_ends(ends *e, const setting *s, const wishes *w)
{
    open_ends_with(e, s, w, new_tls(s, w));
}

static inline void close_ends(ends *e)
{
    rp_link_deinit(&e->link);
    rp_tls_unref(e->tls);
    SSL_free(e->client);
    SSL_CTX_free(e->context);
    if (e->peer >= 0) assert_int_equal(close(e->peer), 0);
    ERR_clear_error();
}

/* Drives both sides until the server's is over, one way or the other. */
static inline rp_link_result shake_hands(ends *e)
{
    rp_link_result result = RP_LINK_AGAIN;

    for (int i = 0; i < 20 && result == RP_LINK_AGAIN; i++) {
        (void)SSL_do_handshake(e->client);
        ERR_clear_error();
        result = rp_link_handshake(&e->link);
        if (result == RP_LINK_AGAIN) {
            assert_int_equal(e->link.read_waits, RP_READABLE);
            assert_int_equal(e->link.write_waits, RP_READABLE);
        }
        assert_int_equal(ERR_peek_error(), 0);
    }
    return result;
}

static inline void open_secured(ends *e, const setting *s, const wishes *w)
{
    open_ends(e, s, w);
    assert_int_equal(shake_hands(e), RP_LINK_OK);
    assert_int_equal(SSL_do_handshake(e->client), 1);
    assert_true(e->link.secured);
    assert_int_equal(e->link.read_waits, RP_READABLE);
    assert_int_equal(e->link.write_waits, RP_WRITABLE);
}

static inline rp_link_result read_some(ends *e, void *data, size_t size, size_t *moved)
{
    struct iovec part = {data, size};

    return rp_link_read(&e->link, &part, 1, moved);
}

static inline rp_link_result write_some(ends *e, const void *data, size_t size, size_t *moved)
{
    struct iovec part = {(void *)data, size};

    return rp_link_write(&e->link, &part, 1, false, moved);
}

static inline void client_writes(ends *e, const void *data, size_t size)
{
    assert_int_equal(SSL_write(e->client, data, (int)size), (int)size);
}

/* The link has no bytes now. */
static inline void expect_nothing(ends *e)
{
    char data[16];
    size_t moved = 99;

    assert_int_equal(read_some(e, data, sizeof data, &moved), RP_LINK_AGAIN);
    assert_int_equal(moved, 0);
    assert_int_equal(e->link.read_waits, RP_READABLE);
}

#endif
