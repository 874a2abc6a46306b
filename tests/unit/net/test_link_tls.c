/* SPDX-License-Identifier: Apache-2.0 */
/* Links under TLS, against OpenSSL's own client at the other end of a socket pair. Both sides
 * are driven by turns from one thread, so that every order of events can be had. */
#include "net/link.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "support/certificates.h"
#include "support/fixture.h"
#include "util/rng.h"

typedef struct setting {
    rp_test_certificates certificates, strangers; /* two authorities */
    rp_test_identity server, client, stranger;
} setting;

static int set_up(void **state)
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

static int tear_down(void **state)
{
    setting *s = *state;

    rp_test_certificates_deinit(&s->certificates);
    rp_test_certificates_deinit(&s->strangers);
    free(s);
    return 0;
}

/* --- two ends ------------------------------------------------------------------------------- */

/* What a test may ask of the two; zero-initialise it. */
typedef struct wishes {
    const char *offer; /* ALPN as on the wire; NULL: none */
    int version;       /* of the client; 0: any */
    const char *old_ciphers, *new_ciphers;
    const rp_test_identity *client;
    bool ask, require; /* a client certificate */
} wishes;

typedef struct ends {
    rp_tls *tls;
    rp_link link;
    SSL_CTX *context;
    SSL *client;
    int peer; /* the client's descriptor */
} ends;

static SSL_CTX *client_context(const setting *s, const wishes *w)
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

static void open_ends(ends *e, const setting *s, const wishes *w)
{
    rp_tls_files files = {.certificate = s->server.certificate,
                          .key = s->server.key,
                          .client_ca = w->ask ? s->certificates.ca : NULL,
                          .require_client_certificate = w->require};
    rp_error err;
    int fds[2];

    assert_ok_err(rp_tls_new(rp_allocator_default(), &files, &e->tls, &err), &err);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_ok(rp_link_init(&e->link, fds[0], e->tls));
    e->peer = fds[1];
    e->context = client_context(s, w);
    e->client = SSL_new(e->context);
    assert_non_null(e->client);
    assert_int_equal(SSL_set_fd(e->client, e->peer), 1);
    SSL_set_connect_state(e->client);
}

static void close_ends(ends *e)
{
    rp_link_deinit(&e->link);
    rp_tls_unref(e->tls);
    SSL_free(e->client);
    SSL_CTX_free(e->context);
    if (e->peer >= 0) assert_int_equal(close(e->peer), 0);
    ERR_clear_error();
}

/* Drives both sides until the server's is over, one way or the other. */
static rp_link_result shake_hands(ends *e)
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

static void open_secured(ends *e, const setting *s, const wishes *w)
{
    open_ends(e, s, w);
    assert_int_equal(shake_hands(e), RP_LINK_OK);
    assert_int_equal(SSL_do_handshake(e->client), 1);
    assert_true(e->link.secured);
    assert_int_equal(e->link.read_waits, RP_READABLE);
    assert_int_equal(e->link.write_waits, RP_WRITABLE);
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

static void client_writes(ends *e, const void *data, size_t size)
{
    assert_int_equal(SSL_write(e->client, data, (int)size), (int)size);
}

/* The link has no bytes now. */
static void expect_nothing(ends *e)
{
    char data[16];
    size_t moved = 99;

    assert_int_equal(read_some(e, data, sizeof data, &moved), RP_LINK_AGAIN);
    assert_int_equal(moved, 0);
    assert_int_equal(e->link.read_waits, RP_READABLE);
}

/* --- the handshake -------------------------------------------------------------------------- */

static void alpn_prefers_h2_and_refuses_what_we_do_not_speak(void **state)
{
    static const struct {
        const char *offer;
        bool taken, h2;
    } cases[] = {
        {NULL, true, false},
        {"\x02h2", true, true},
        {"\x08http/1.1", true, false},
        {"\x08http/1.1\x02h2", true, true},
        {"\x06spdy/3\x08http/1.1", true, false},
        {"\x06spdy/3", false, false},
        {"\x02h3\x03h2c", false, false},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ends e;
        open_ends(&e, *state, &(wishes){.offer = cases[i].offer});
        assert_false(rp_link_is_h2(&e.link));
        assert_int_equal(shake_hands(&e), cases[i].taken ? RP_LINK_OK : RP_LINK_BROKEN);
        assert_int_equal(e.link.secured, cases[i].taken);
        assert_int_equal(rp_link_is_h2(&e.link), cases[i].h2);
        close_ends(&e);
    }
}

static void versions_before_1_2_are_refused(void **state)
{
    static const struct {
        int version;
        bool taken;
    } cases[] = {{TLS1_VERSION, false},
                 {TLS1_1_VERSION, false},
                 {TLS1_2_VERSION, true},
                 {TLS1_3_VERSION, true}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ends e;
        open_ends(&e, *state,
                  &(wishes){.version = cases[i].version,
                            .old_ciphers = cases[i].taken ? NULL : "ALL:@SECLEVEL=0"});
        assert_int_equal(shake_hands(&e), cases[i].taken ? RP_LINK_OK : RP_LINK_BROKEN);
        assert_int_equal(SSL_do_handshake(e.client) == 1, cases[i].taken);
        close_ends(&e);
    }
}

static void aes_128_is_chosen_though_the_client_would_rather_not(void **state)
{
    ends e;

    open_secured(&e, *state,
                 &(wishes){.version = TLS1_3_VERSION,
                           .new_ciphers = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384:"
                                          "TLS_AES_128_GCM_SHA256"});
    assert_string_equal(SSL_get_cipher(e.client), "TLS_AES_128_GCM_SHA256");
    close_ends(&e);

    open_secured(&e, *state,
                 &(wishes){.version = TLS1_2_VERSION,
                           .old_ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384:"
                                          "ECDHE-ECDSA-AES128-GCM-SHA256"});
    assert_string_equal(SSL_get_cipher(e.client), "ECDHE-ECDSA-AES128-GCM-SHA256");
    close_ends(&e);

    open_ends(&e, *state, /* which HTTP/2 does not allow */
              &(wishes){.version = TLS1_2_VERSION, .old_ciphers = "ECDHE-ECDSA-AES128-SHA256"});
    assert_int_equal(shake_hands(&e), RP_LINK_BROKEN);
    close_ends(&e);
}

static void client_certificate_is_asked_for_or_required(void **state)
{
    const setting *s = *state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    const struct {
        bool ask, require;
        const rp_test_identity *client;
        bool taken;
        const char *name;
    } cases[] = {
        {false, false, NULL, true, ""},
        {false, false, &s->client, true, ""},
        {true, false, NULL, true, ""},
        {true, false, &s->client, true, "actor-7"},
        {true, false, &s->stranger, false, ""},
        {true, true, NULL, false, ""},
        {true, true, &s->client, true, "actor-7"},
        {true, true, &s->stranger, false, ""},
    };

    for (size_t i = 0; i < COUNT_OF(cases) * 2; i++) {
        ends e;
        char name[32] = "x";
        size_t c = i / 2;
        open_ends(&e, s,
                  &(wishes){.version = versions[i % 2],
                            .ask = cases[c].ask,
                            .require = cases[c].require,
                            .client = cases[c].client});
        rp_link_peer_name(&e.link, name, sizeof name);
        assert_string_equal(name, ""); /* nobody knows before the handshake is over */
        assert_int_equal(shake_hands(&e), cases[c].taken ? RP_LINK_OK : RP_LINK_BROKEN);
        rp_link_peer_name(&e.link, name, sizeof name);
        assert_string_equal(name, cases[c].name);
        close_ends(&e);
    }
}

static void peer_name_is_made_harmless(void **state)
{
    setting *s = *state;
    static const struct {
        const char *name;
        size_t bytes, room;
        const char *expected;
    } cases[] = {
        {"plain", 5, 32, "plain"},
        {"two\nlines\r", 10, 32, "two?lines?"},
        {"zero\0inside", 11, 32, "zero?inside"},
        {"\x1b[31mred\x7f", 9, 32, "?[31mred?"},
        {"c1 \xc2\x9b control", 13, 32, "c1 ? control"},
        {"Zo\xc3\xab", 4, 32, "Zo\xc3\xab"},
        {"Zo\xc3\xab", 4, 5, "Zo\xc3\xab"},
        {"Zo\xc3\xab", 4, 4, "Zo"}, /* not half a letter */
        {"\xe2\x82\xac\xe2\x82\xac", 6, 6, "\xe2\x82\xac"},
        {"abcdef", 6, 3, "ab"},
        {"abcdef", 6, 1, ""},
        {NULL, 0, 32, ""},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rp_test_identity id =
            rp_test_issue(&s->certificates, "named", cases[i].name, cases[i].bytes);
        ends e;
        char name[32];

        memset(name, '#', sizeof name);
        open_secured(&e, s, &(wishes){.ask = true, .client = &id});
        rp_link_peer_name(&e.link, name, 0); /* no room at all */
        assert_int_equal(name[0], '#');
        rp_link_peer_name(&e.link, name, cases[i].room);
        assert_string_equal(name, cases[i].expected);
        if (cases[i].room < sizeof name) assert_int_equal(name[cases[i].room], '#');
        close_ends(&e);
    }
}

/* What a client says first, by letting one speak to memory. */
static size_t first_words(const setting *s, unsigned char *data, size_t size)
{
    SSL_CTX *context = client_context(s, &(wishes){.offer = "\x02h2"});
    SSL *client = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    int n;

    SSL_set_bio(client, in, out);
    SSL_set_connect_state(client);
    assert_int_equal(SSL_do_handshake(client), -1);
    ERR_clear_error();
    n = BIO_read(out, data, (int)size);
    assert_true(n > 100 && (size_t)n < size);
    SSL_free(client);
    SSL_CTX_free(context);
    return (size_t)n;
}

static void peer_that_goes_in_the_middle_of_its_first_words_breaks_the_link(void **state)
{
    unsigned char words[4096];
    size_t size = first_words(*state, words, sizeof words);

    for (size_t n = 0; n <= size; n += n < 10 ? 1 : 37) {
        ends e;
        open_ends(&e, *state, &(wishes){0});
        for (size_t i = 0; i < n; i++) { /* byte by byte */
            assert_int_equal(rp_link_handshake(&e.link), RP_LINK_AGAIN);
            assert_int_equal(write(e.peer, words + i, 1), 1);
        }
        assert_int_equal(rp_link_handshake(&e.link), RP_LINK_AGAIN);
        assert_int_equal(close(e.peer), 0);
        e.peer = -1;
        for (int i = 0; i < 2; i++)
            assert_int_equal(rp_link_handshake(&e.link), RP_LINK_BROKEN);
        assert_int_equal(ERR_peek_error(), 0);
        close_ends(&e);
    }
}

static void anything_else_than_tls_breaks_the_link(void **state)
{
    static const char *const words[] = {
        "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\xff\xff\x01\x00\x00\x01", "\x15\x03\x03\x00\x02\x02\x28",
        "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00"};

    for (size_t i = 0; i < COUNT_OF(words); i++) {
        ends e;
        char data[64] = {0};
        rp_link_result result;

        open_ends(&e, *state, &(wishes){0});
        memcpy(data, words[i], strlen(words[i]));
        assert_int_equal(write(e.peer, data, sizeof data), sizeof data);
        result = rp_link_handshake(&e.link);
        assert_int_equal(result, RP_LINK_BROKEN);
        assert_int_equal(ERR_peek_error(), 0);
        close_ends(&e);
    }
}

/* The socket is full, so the server's part of the handshake finds no room. */
static void handshake_may_have_to_wait_for_room_to_write(void **state)
{
    ends e;
    static char garbage[1000];
    size_t filled = 0, drained = 0;
    ssize_t n;

    open_ends(&e, *state, &(wishes){0});
    (void)SSL_do_handshake(e.client);
    while ((n = send(e.link.fd, garbage, sizeof garbage, MSG_DONTWAIT)) > 0)
        filled += (size_t)n;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rp_link_handshake(&e.link), RP_LINK_AGAIN);
        assert_int_equal(e.link.read_waits, RP_WRITABLE);
        assert_int_equal(e.link.write_waits, RP_WRITABLE);
    }

    while (drained < filled) {
        n = read(e.peer, garbage, sizeof garbage);
        assert_true(n > 0);
        drained += (size_t)n;
    }
    assert_int_equal(rp_link_handshake(&e.link), RP_LINK_AGAIN);
    assert_int_equal(e.link.read_waits, RP_READABLE);
    assert_int_equal(shake_hands(&e), RP_LINK_OK);
    close_ends(&e);
}

static void reading_and_writing_shake_hands_first(void **state)
{
    ends e;
    char data[8] = "";
    size_t moved = 99;

    open_ends(&e, *state, &(wishes){0});
    assert_int_equal(write_some(&e, "hello", 5, &moved), RP_LINK_AGAIN);
    assert_int_equal(moved, 0);
    assert_int_equal(e.link.write_waits, RP_READABLE); /* the other way round */
    (void)SSL_do_handshake(e.client);
    expect_nothing(&e);
    (void)SSL_do_handshake(e.client);
    assert_int_equal(write_some(&e, "hello", 5, &moved), RP_LINK_OK);
    assert_true(e.link.secured);
    assert_int_equal(SSL_read(e.client, data, sizeof data), 5);
    close_ends(&e);
}

/* --- reading -------------------------------------------------------------------------------- */

static void read_takes_several_records_and_knows_what_is_left(void **state)
{
    ends e;
    static char out[16000], in[40000];
    struct iovec parts[] = {{in, 10}, {in + 10, 0}, {in + 10, 20}};
    struct pollfd ready;
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    expect_nothing(&e);
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(i % 101);
    client_writes(&e, out, sizeof out);
    client_writes(&e, out, sizeof out);

    assert_int_equal(rp_link_read(&e.link, parts, 3, &moved), RP_LINK_OK);
    assert_int_equal(moved, 30);
    assert_true(rp_link_has_pending(&e.link));
    assert_int_equal(read_some(&e, in + 30, sizeof out - 30, &moved), RP_LINK_OK);
    assert_int_equal(moved, sizeof out - 30);
    assert_memory_equal(in, out, sizeof out);

    assert_int_equal(read_some(&e, in, sizeof in, &moved), RP_LINK_OK);
    assert_int_equal(moved, sizeof out);
    assert_memory_equal(in, out, sizeof out);
    assert_false(rp_link_has_pending(&e.link));
    ready = (struct pollfd){.fd = e.link.fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 0);
    expect_nothing(&e);
    close_ends(&e);
}

/* Whatever a read with enough room leaves, the descriptor is readable for it. */
static void read_with_room_hides_nothing(void **state)
{
    enum { MOST = RP_LINK_ROOM + 70000 };
    static unsigned char out[400000], in[MOST];
    size_t sent = 0, received = 0, moved, stopped = 0, next = 1;
    ends e;
    rp_rng rng;

    rp_rng_init(&rng, 5);
    for (size_t i = 0; i < sizeof out; i++) out[i] = (unsigned char)(i * 13 + i / 256);
    open_secured(&e, *state, &(wishes){0});
    while (received < sizeof out) {
        size_t room = RP_LINK_ROOM + rp_rng_below(&rng, 70000),
               cut_at = rp_rng_below(&rng, room);
        struct iovec parts[] = {{in, cut_at}, {in + cut_at, room - cut_at}};
        struct pollfd ready = {.fd = e.link.fd, .events = POLLIN};

        for (int n = 1; n > 0 && sent < sizeof out;) { /* until the socket is full */
            if (next > sizeof out - sent) next = sizeof out - sent;
            n = SSL_write(e.client, out + sent, (int)next);
            if (n <= 0) continue;
            sent += (size_t)n;
            next = rp_rng_below(&rng, 3) == 0 ? 500 : 16384;
        }
        ERR_clear_error();
        assert_int_equal(rp_link_read(&e.link, parts, 2, &moved), RP_LINK_OK);
        assert_memory_equal(in, out + received, moved);
        assert_true(moved < room);
        received += moved;
        if (poll(&ready, 1, 0) == 0)
            expect_nothing(&e);
        else
            stopped++;
    }
    assert_true(stopped > 0); /* it had to be in time at least once */
    close_ends(&e);
}

static void peer_that_says_goodbye_can_still_be_written_to(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION});
    client_writes(&e, "last", 4);
    assert_int_equal(SSL_shutdown(e.client), 0);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 4);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_END);
    assert_int_equal(moved, 0);

    assert_int_equal(write_some(&e, "answer", 6, &moved), RP_LINK_OK);
    assert_int_equal(SSL_read(e.client, data, sizeof data), 6);
    close_ends(&e);
}

static void peer_that_goes_without_goodbye_breaks_the_link(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    client_writes(&e, "last", 4);
    assert_int_equal(close(e.peer), 0);
    e.peer = -1;
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 4); /* what came is not lost */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_BROKEN);
        assert_int_equal(moved, 0);
    }
    assert_int_equal(write_some(&e, "x", 1, &moved), RP_LINK_BROKEN);
    assert_int_equal(ERR_peek_error(), 0);
    close_ends(&e);
}

static void forged_record_breaks_the_link_but_no_other(void **state)
{
    ends e, bystander;
    char data[16], forged[30] = "\x17\x03\x03\x00\x19";
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    open_secured(&bystander, *state, &(wishes){0});
    assert_int_equal(write(e.peer, forged, sizeof forged), sizeof forged);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_BROKEN);
    expect_nothing(&bystander); /* OpenSSL's errors are per thread, not per connection */
    client_writes(&bystander, "fine", 4);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_BROKEN);
    assert_int_equal(read_some(&bystander, data, sizeof data, &moved), RP_LINK_OK);
    close_ends(&e);
    close_ends(&bystander);
}

/* --- writing -------------------------------------------------------------------------------- */

static void small_parts_are_gathered_into_records(void **state)
{
    enum { PARTS = 3000, BYTES = 7 };
    ends e;
    static struct iovec parts[PARTS];
    static char out[PARTS * BYTES], in[PARTS * BYTES];
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(i % 113);
    for (int i = 0; i < PARTS; i++) parts[i] = (struct iovec){out + i * BYTES, BYTES};
    assert_int_equal(rp_link_write(&e.link, parts, PARTS, false, &moved), RP_LINK_OK);
    assert_int_equal(moved, sizeof out);

    /* SSL_read() gives one record at a time. */
    assert_int_equal(SSL_read(e.client, in, sizeof in), 16384);
    assert_int_equal(SSL_read(e.client, in + 16384, sizeof in), PARTS * BYTES - 16384);
    assert_memory_equal(in, out, sizeof in);
    close_ends(&e);
}

static void small_head_and_large_body_fill_their_records(void **state)
{
    enum { HEAD = 9, BODY = 40000, TOTAL = 3 * HEAD + BODY };
    ends e;
    static char body[BODY], in[TOTAL];
    struct iovec parts[] = {{"headhead9", HEAD}, {NULL, 0},           {body, BODY},
                            {"headhead9", HEAD}, {"headhead9", HEAD}, {body, 0}};
    size_t moved, at = 0;
    int records = 0;

    open_secured(&e, *state, &(wishes){0});
    memset(body, 'b', sizeof body);
    assert_int_equal(rp_link_write(&e.link, parts, 6, true, &moved), RP_LINK_OK);
    assert_int_equal(moved, TOTAL);
    for (; at < TOTAL; records++) {
        int n = SSL_read(e.client, in + at, (int)(TOTAL - at));
        assert_true(n > 0);
        at += (size_t)n;
    }
    assert_int_equal(records, 3);
    assert_memory_equal(in, "headhead9bbb", 12);
    assert_memory_equal(in + HEAD + BODY - 1, "bheadhead9headhead9", 19);
    assert_int_equal(rp_link_write(&e.link, parts, 0, false, &moved), RP_LINK_OK);
    assert_int_equal(rp_link_write(&e.link, parts + 5, 1, false, &moved), RP_LINK_OK);
    assert_int_equal(moved, 0);
    close_ends(&e);
}

/* Cuts `size` bytes into parts of random length, 40 at most; returns how many. */
static int cut(rp_rng *rng, struct iovec *parts, unsigned char *data, size_t size)
{
    int count = 0;

    while (size > 0 && count < 40) {
        size_t most = rp_rng_below(rng, 4) == 0 ? 60000 : 300, n = rp_rng_below(rng, most);
        if (n > size) n = size;
        parts[count++] = (struct iovec){data, n};
        data += n;
        size -= n;
    }
    return count;
}

/* Writes from a stream cut anew each time, into a buffer that is full most of the time, to a
 * reader that takes odd amounts, and reads what the client writes meanwhile. */
static void bulk_survives_partial_writes_in_both_directions(void **state)
{
    const size_t bulk = rp_test_scaled(16 << 20, 1 << 20);
    unsigned char *out = malloc(bulk), *in = malloc(bulk + 50000), *back = malloc(bulk + 50000);
    size_t sent = 0, received = 0, client_sent = 0, returned = 0, moved, agains = 0,
           offered = 0;
    ends e;
    rp_rng rng;

    assert_true(out != NULL && in != NULL && back != NULL);
    rp_rng_init(&rng, 11);
    for (size_t i = 0; i < bulk; i++) out[i] = (unsigned char)(rp_rng_next(&rng) >> 56);
    open_secured(&e, *state, &(wishes){0});
    while (received < bulk || returned < bulk) {
        struct iovec parts[40];
        int n, count = cut(&rng, parts, out + sent, bulk - sent);

        /* All that was offered and not moved is offered again. */
        for (size_t sum = 0, i = 0; i < (size_t)count; i++) {
            sum += parts[i].iov_len;
            if (i + 1 < (size_t)count) continue;
            if (sum < offered) parts[i].iov_len += offered - sum;
            offered = sum < offered ? offered : sum;
        }
        if (count > 0) {
            rp_link_result result = rp_link_write(&e.link, parts, count, sent % 2 == 0, &moved);
            assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
            agains += result == RP_LINK_AGAIN;
            sent += moved;
            offered -= moved;
        }
        n = SSL_read(e.client, in + received, (int)rp_rng_below(&rng, 50000) + 1);
        if (n > 0) received += (size_t)n;
        if (client_sent < bulk) {
            size_t most = bulk - client_sent < 30000 ? bulk - client_sent : 30000;
            n = SSL_write(e.client, out + client_sent, (int)most);
            if (n > 0) client_sent += (size_t)n;
        }
        rp_link_result result =
            read_some(&e, back + returned, rp_rng_below(&rng, 50000) + 1, &moved);
        assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
        returned += moved;
        ERR_clear_error();
    }
    assert_int_equal(sent, bulk);
    assert_true(agains > 0);
    assert_memory_equal(in, out, bulk);
    assert_memory_equal(back, out, bulk);
    close_ends(&e);
    free(out);
    free(in);
    free(back);
}

/* Fills the socket until the link says that it must wait. */
static size_t fill(ends *e, const char *data, size_t size)
{
    size_t sum = 0, moved;

    while (write_some(e, data, size, &moved) == RP_LINK_OK) sum += moved;
    assert_false(e->link.broken);
    assert_int_equal(e->link.write_waits, RP_WRITABLE);
    return sum;
}

/* The client asks for new keys while a record is half written. */
static void new_keys_in_the_middle_of_a_record_do_no_harm(void **state)
{
    ends e;
    static char block[16384], in[16384];
    size_t moved, sum, seen = 0, sent;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION});
    memset(block, 'z', sizeof block);
    sum = fill(&e, block, sizeof block);
    assert_int_equal(SSL_key_update(e.client, SSL_KEY_UPDATE_REQUESTED), 1);
    client_writes(&e, "request", 7);

    bool got = false;
    sent = sum;
    for (int i = 0; i < 100000 && (!got || seen < sum + sizeof block); i++) {
        if (!got) {
            rp_link_result result = read_some(&e, in, sizeof in, &moved);
            assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
            got = result == RP_LINK_OK;
        }
        if (sent < sum + sizeof block) {
            rp_link_result result = write_some(&e, block, sum + sizeof block - sent, &moved);
            assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
            sent += moved;
        }
        int n = SSL_read(e.client, in, sizeof in);
        if (n > 0) seen += (size_t)n;
        ERR_clear_error();
    }
    assert_true(got);
    assert_int_equal(seen, sum + sizeof block);
    close_ends(&e);
}

static void client_that_wants_to_renegotiate_is_turned_down(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_2_VERSION});
    client_writes(&e, "before", 6);
    assert_int_equal(SSL_renegotiate(e.client), 1);
    (void)SSL_do_handshake(e.client);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 6);
    rp_link_result result = read_some(&e, data, sizeof data, &moved);
    assert_true(result == RP_LINK_AGAIN || result == RP_LINK_BROKEN);
    assert_true(SSL_do_handshake(e.client) <= 0);
    close_ends(&e);
}

/* SIGPIPE has its usual effect in a test: it would end the program. */
static void write_to_who_is_gone_breaks_the_link_without_a_signal(void **state)
{
    ends e;
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    assert_int_equal(close(e.peer), 0);
    e.peer = -1;
    for (int i = 0; i < 2; i++)
        assert_int_equal(write_some(&e, "hello", 5, &moved), RP_LINK_BROKEN);
    assert_int_equal(moved, 0);
    rp_link_end_writing(&e.link); /* does no harm */
    close_ends(&e);
}

static void goodbye_reaches_the_peer_who_can_still_answer(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION});
    assert_int_equal(write_some(&e, "last", 4, &moved), RP_LINK_OK);
    rp_link_end_writing(&e.link);
    assert_int_equal(SSL_read(e.client, data, sizeof data), 4);
    int n = SSL_read(e.client, data, sizeof data);
    assert_int_equal(SSL_get_error(e.client, n), SSL_ERROR_ZERO_RETURN);
    assert_int_equal(read(e.peer, data, sizeof data), 0);

    client_writes(&e, "answer", 6);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 6);
    assert_int_equal(write_some(&e, "late", 4, &moved), RP_LINK_BROKEN);
    close_ends(&e);

    open_ends(&e, *state, &(wishes){0}); /* and before the handshake there is none */
    rp_link_end_writing(&e.link);
    assert_int_equal(read(e.peer, data, sizeof data), 0);
    close_ends(&e);
}

/* --- lifetimes ------------------------------------------------------------------------------ */

static void link_outlives_what_it_was_made_from_and_may_be_moved(void **state)
{
    ends e, moved_to;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.offer = "\x02h2"});
    rp_tls_unref(e.tls); /* a reload */
    e.tls = NULL;
    moved_to = e;
    memset(&e, 0xee, sizeof e);

    assert_int_equal(write_some(&moved_to, "hello", 5, &moved), RP_LINK_OK);
    assert_int_equal(SSL_read(moved_to.client, data, sizeof data), 5);
    client_writes(&moved_to, "world", 5);
    assert_int_equal(read_some(&moved_to, data, sizeof data, &moved), RP_LINK_OK);
    close_ends(&moved_to);
}

static void link_that_finds_no_memory_leaves_the_descriptor(void **state)
{
    const setting *s = *state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_tls_files files = {.certificate = s->server.certificate, .key = s->server.key};
    rp_tls *tls = NULL;
    rp_link link;
    rp_error err;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_ok_err(rp_tls_new(&alloc, &files, &tls, &err), &err);
    atomic_store(&oom.left, 0);
    assert_int_equal(rp_link_init(&link, fds[0], tls), RP_NO_RESOURCE);
    assert_int_equal(write(fds[0], "x", 1), 1);

    atomic_store(&oom.left, 1);
    assert_ok(rp_link_init(&link, fds[0], tls));
    rp_tls_unref(tls);
    assert_true(oom.live > 0);
    rp_link_deinit(&link);
    assert_int_equal(oom.live, 0);
    assert_int_equal(write(fds[0], "x", 1), -1); /* closed */
    assert_int_equal(close(fds[1]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alpn_prefers_h2_and_refuses_what_we_do_not_speak),
        cmocka_unit_test(versions_before_1_2_are_refused),
        cmocka_unit_test(aes_128_is_chosen_though_the_client_would_rather_not),
        cmocka_unit_test(client_certificate_is_asked_for_or_required),
        cmocka_unit_test(peer_name_is_made_harmless),
        cmocka_unit_test(peer_that_goes_in_the_middle_of_its_first_words_breaks_the_link),
        cmocka_unit_test(anything_else_than_tls_breaks_the_link),
        cmocka_unit_test(handshake_may_have_to_wait_for_room_to_write),
        cmocka_unit_test(reading_and_writing_shake_hands_first),
        cmocka_unit_test(read_takes_several_records_and_knows_what_is_left),
        cmocka_unit_test(read_with_room_hides_nothing),
        cmocka_unit_test(peer_that_says_goodbye_can_still_be_written_to),
        cmocka_unit_test(peer_that_goes_without_goodbye_breaks_the_link),
        cmocka_unit_test(forged_record_breaks_the_link_but_no_other),
        cmocka_unit_test(small_parts_are_gathered_into_records),
        cmocka_unit_test(small_head_and_large_body_fill_their_records),
        cmocka_unit_test(bulk_survives_partial_writes_in_both_directions),
        cmocka_unit_test(new_keys_in_the_middle_of_a_record_do_no_harm),
        cmocka_unit_test(client_that_wants_to_renegotiate_is_turned_down),
        cmocka_unit_test(write_to_who_is_gone_breaks_the_link_without_a_signal),
        cmocka_unit_test(goodbye_reaches_the_peer_who_can_still_answer),
        cmocka_unit_test(link_outlives_what_it_was_made_from_and_may_be_moved),
        cmocka_unit_test(link_that_finds_no_memory_leaves_the_descriptor),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
