/* SPDX-License-Identifier: Apache-2.0 */
/* Links under TLS until they are secured. After that: test_link_tls.c. */
#include "unit/net/tls_ends.h"

static void alpn_prefers_h2_and_refuses_unknown_protocols(void **state)
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

static void aes_128_is_chosen_against_the_preference_of_the_client(void **state)
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

static void client_certificate_is_requested_or_required(void **state)
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

static void control_characters_in_a_peer_name_are_replaced(void **state)
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

static void disconnect_within_the_client_hello_breaks_the_link(void **state)
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

static void bytes_other_than_tls_break_the_link(void **state)
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
static void handshake_may_wait_until_writable(void **state)
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

static void reading_and_writing_complete_the_handshake_first(void **state)
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

RP_TESTS(handshake)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alpn_prefers_h2_and_refuses_unknown_protocols),
        cmocka_unit_test(versions_before_1_2_are_refused),
        cmocka_unit_test(aes_128_is_chosen_against_the_preference_of_the_client),
        cmocka_unit_test(client_certificate_is_requested_or_required),
        cmocka_unit_test(control_characters_in_a_peer_name_are_replaced),
        cmocka_unit_test(disconnect_within_the_client_hello_breaks_the_link),
        cmocka_unit_test(bytes_other_than_tls_break_the_link),
        cmocka_unit_test(handshake_may_wait_until_writable),
        cmocka_unit_test(reading_and_writing_complete_the_handshake_first),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
