/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile handshakes: which messages end the handshake, and how many bytes OpenSSL allocates
 * for the others. */
#include <openssl/core_names.h>
#include <openssl/pem.h>
#include <stdatomic.h>
#include <string.h>

#include "unit/net/tls_ends.h"

enum {
    MOST_HELD = 60 << 10, /* for one connection whose handshake may not be over */
    SIZE_BYTES = 16,      /* in front of each allocation, its size */
    HELLO_BYTES = 60 << 10,
};

/* Bytes that OpenSSL holds in this process. */
static atomic_size_t held;

static void *count_malloc(size_t size, const char *file, int line)
{
    size_t *at = malloc(SIZE_BYTES + size);

    (void)file;
    (void)line;
    if (at == NULL) return NULL;
    *at = size;
    atomic_fetch_add(&held, size);
    return (char *)at + SIZE_BYTES;
}

static void count_free(void *data, const char *file, int line)
{
    size_t *at = data != NULL ? (size_t *)(void *)((char *)data - SIZE_BYTES) : NULL;

    (void)file;
    (void)line;
    if (at == NULL) return;
    atomic_fetch_sub(&held, *at);
    free(at);
}

static void *count_realloc(void *data, size_t size, const char *file, int line)
{
    void *to = count_malloc(size, file, line);

    if (to == NULL || data == NULL) return to;
    size_t before = *(size_t *)(void *)((char *)data - SIZE_BYTES);
    memcpy(to, data, before < size ? before : size);
    count_free(data, file, line);
    return to;
}

/* OpenSSL accepts these functions only before its first allocation. */
__attribute__((constructor)) static void count_openssl(void)
{
    if (CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) != 1) abort();
}

/* Returns the bytes that OpenSSL held for the link, which is closed. */
static size_t close_link(ends *e)
{
    size_t before = atomic_load(&held);

    rp_link_deinit(&e->link);
    return before - atomic_load(&held);
}

/* The bytes of a ClientHello. */
typedef struct hello {
    uint8_t at[HELLO_BYTES];
    size_t size;
} hello;

static void put(hello *h, const void *data, size_t size)
{
    if (size == 0) return;
    assert_true(h->size + size <= HELLO_BYTES);
    memcpy(h->at + h->size, data, size);
    h->size += size;
}

static void put_number(hello *h, size_t number, int bytes)
{
    while (bytes-- > 0) put(h, &(uint8_t){(uint8_t)(number >> 8 * bytes)}, 1);
}

/* Puts the number of bytes after `from` in front of them. */
static void put_length(hello *h, size_t from, int bytes)
{
    size_t size = h->size - from;

    assert_true(h->size + (size_t)bytes <= HELLO_BYTES);
    memmove(h->at + from + bytes, h->at + from, size);
    for (int i = 0; i < bytes; i++)
        h->at[from + (size_t)i] = (uint8_t)(size >> 8 * (bytes - 1 - i));
    h->size += (size_t)bytes;
}

/* A list in a ClientHello: `count` times the same unit, within a header and an end. */
typedef struct list {
    int extension; /* NO_EXTENSION: the list of ciphers */
    const char *start;
    size_t start_bytes;
    int length_bytes; /* of the list's length: 0 to 2 */
    const char *unit;
    size_t unit_bytes, count;
    const char *end;
    size_t end_bytes;
} list;

enum { NO_EXTENSION = -1 };

static void put_units(hello *h, const list *l)
{
    size_t from;

    put(h, l->start, l->start_bytes);
    from = h->size;
    for (size_t i = 0; i < l->count; i++) put(h, l->unit, l->unit_bytes);
    if (l->length_bytes > 0) put_length(h, from, l->length_bytes);
    put(h, l->end, l->end_bytes);
}

static void put_extension(hello *h, const list *l)
{
    size_t from;

    put_number(h, (size_t)l->extension, 2);
    from = h->size;
    put_units(h, l);
    put_length(h, from, 2);
}

/* Makes the records of a ClientHello that has this list. */
static void make_hello(hello *h, const list *l, bool is_tls13)
{
    static const list regular[] = {
        {43, "\x02\x03\x04", 3, 0, NULL, 0, 0, NULL, 0},             /* TLS 1.3 */
        {10, "\x00\x04\x11\xec\x00\x1d", 6, 0, NULL, 0, 0, NULL, 0}, /* and X25519 */
        {13, "\x00\x02\x04\x03", 4, 0, NULL, 0, 0, NULL, 0},         /* ECDSA with P-256 */
        {51, "\x00\x24\x00\x1d\x00\x20", 6, 0, "\x09", 1, 32, NULL, 0},
    };
    static hello message;
    hello *m = &message;
    size_t from;

    m->size = h->size = 0;
    put(m, "\x03\x03", 2);
    for (int i = 0; i < 32; i++) put_number(m, 7, 1); /* random */
    put_number(m, 0, 1);                              /* no session */
    from = m->size;
    put(m, "\x13\x01\xc0\x2b", 4);
    if (l->extension == NO_EXTENSION) put_units(m, l);
    put_length(m, from, 2);
    put(m, "\x01\x00", 2); /* no compression */
    from = m->size;
    for (size_t i = is_tls13 ? 0 : 1; i < COUNT_OF(regular); i++)
        if (regular[i].extension != l->extension) put_extension(m, &regular[i]);
    if (l->extension != NO_EXTENSION) put_extension(m, l);
    put_length(m, from, 2);
    put_length(m, 0, 3);
    for (size_t i = 0, n; i < 1 + m->size; i += n) {
        n = 1 + m->size - i < 16384 ? 1 + m->size - i : 16384;
        put(h, "\x16\x03\x01", 3);
        put_number(h, n, 2);
        if (i == 0) put(h, "\x01", 1);
        put(h, m->at + (i == 0 ? 0 : i - 1), i == 0 ? n - 1 : n);
    }
}

/* Sends the ClientHello on a connection of its own. Returns whether the server accepts it, and
 * the bytes that OpenSSL then holds for the connection. */
static bool send_hello(rp_tls *tls, const hello *h, size_t *bytes)
{
    rp_link_result result = RP_LINK_AGAIN;
    ends e = {.tls = rp_tls_ref(tls)};
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_ok(rp_link_init(&e.link, fds[0], e.tls));
    e.peer = fds[1];
    for (size_t i = 0, n; i < h->size && result == RP_LINK_AGAIN; i += n) {
        n = h->size - i < 4096 ? h->size - i : 4096;
        assert_int_equal(write(e.peer, h->at + i, n), n);
        result = rp_link_handshake(&e.link);
    }
    assert_true(result == RP_LINK_AGAIN || result == RP_LINK_BROKEN);
    *bytes = close_link(&e);
    close_ends(&e);
    return result == RP_LINK_AGAIN;
}

#define LIST(extension, length, unit, count)                                                   \
    {                                                                                          \
        extension, NULL, 0, length, unit, sizeof(unit) - 1, count, NULL, 0                     \
    }

static void long_lists_of_a_client_hello_are_refused(void **state)
{
    static const struct {
        list list;
        bool taken;
    } cases[] = {
        {LIST(47, 2, "\x00\x02\x30\x00", 63), true}, /* authorities with empty names */
        {LIST(47, 2, "\x00\x02\x30\x00", 64), false},
        {LIST(47, 2, "\x00\x02\x30\x00", 3000), false},
        {LIST(16, 2, "\x02h2", 170), true}, /* ALPN */
        {LIST(16, 2, "\x02h2", 171), false},
        {LIST(16, 2, "\x02h2", 5000), false},
        {LIST(10, 2, "\x00\x1d", 255), true}, /* groups */
        {LIST(10, 2, "\x00\x1d", 256), false},
        {LIST(13, 2, "\x04\x03", 255), true}, /* signature algorithms */
        {LIST(13, 2, "\x04\x03", 256), false},
        {LIST(50, 2, "\x04\x03", 255), true}, /* the same for certificates */
        {LIST(50, 2, "\x04\x03", 256), false},
        /* OCSP: responders, then extensions */
        {{5, "\x01", 1, 2, "\x00\x04\xa1\x02\x30\x00", 6, 9, "\x00\x00", 2}, true},
        {{5, "\x01", 1, 2, "\x00\x04\xa1\x02\x30\x00", 6, 10, "\x00\x00", 2}, false},
        {LIST(NO_EXTENSION, 0, "\x13\x01", 254), true}, /* ciphers */
        {LIST(NO_EXTENSION, 0, "\x13\x01", 255), false},
        {LIST(21, 0, "\0", 15 << 10), true}, /* padding: the size of all of the message */
        {LIST(21, 0, "\0", 17 << 10), false},
        {LIST(21, 0, "\0", 50 << 10), false},
        {LIST(0xfe0d, 0, "\0", 8000), true}, /* ECH, which OpenSSL 3.0 does not know */
        /* X25519MLKEM768, and X25519 */
        {{51, "\x04\xe8\x11\xec\x04\xc0", 6, 0, "\x05", 1, 1216,
          "\x00\x1d\x00\x20"
          "01234567890123456789012345678901",
          36},
         true},
    };
    static hello h;
    rp_tls *tls = new_tls(*state, &(wishes){0});

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t bytes;

        make_hello(&h, &cases[i].list, true);
        assert_int_equal(send_hello(tls, &h, &bytes), cases[i].taken);
        if (cases[i].taken) assert_in_range(bytes, 1, MOST_HELD);
    }
    rp_tls_unref(tls);
}

/* Every extension that has a number, with lists of different forms in it. */
static void no_extension_makes_openssl_hold_much(void **state)
{
    static const list forms[] = {
        LIST(0, 2, "\x00\x02\x30\x00", 3000),
        LIST(0, 2, "\x00\x1d", 6000),
        LIST(0, 2, "\x00\x1d\x00\x01x", 2400), /* key shares */
        LIST(0, 2, "\x02h2", 4000),
        LIST(0, 1, "\x01", 255),
        {0, "\x01", 1, 2, "\x00\x04\xa1\x02\x30\x00", 6, 2000, "\x00\x00", 2},
        {0, "\x01\x00\x00", 3, 2, "\x30\x07\x06\x03\x55\x1d\x0e\x04\x00", 9, 1300, NULL, 0},
        {0, "\x00\x00", 2, 2, "abc", 3, 4000, NULL, 0},
        {0, "\x20\x00", 2, 0, "\x00\x01x\x00\x00\x00\x00", 7, 1170, "\x00\x21\x20",
         3}, /* PSK */
    };
    static hello h;
    rp_tls *tls = new_tls(*state, &(wishes){0});

    for (int extension = 0; extension <= 64; extension++)
        for (size_t i = 0; i < COUNT_OF(forms) * 2; i++) {
            list l = forms[i / 2];
            size_t bytes;

            l.extension = extension < 64 ? extension : 0xff01;
            make_hello(&h, &l, i % 2 != 0);
            if (send_hello(tls, &h, &bytes)) assert_in_range(bytes, 1, MOST_HELD);
        }
    rp_tls_unref(tls);
}

/* The length alone: OpenSSL would allocate it when the first nine bytes have arrived. */
static void declared_length_of_a_long_client_hello_is_refused(void **state)
{
    static hello h;
    rp_tls *tls = new_tls(*state, &(wishes){0});
    size_t bytes;

    h.size = 0;
    put(&h, "\x16\x03\x01\x40\x00\x01\x01\xff\x00", 9);
    assert_false(send_hello(tls, &h, &bytes));
    rp_tls_unref(tls);
}

static void append(const char *path, X509 *certificate)
{
    FILE *file = fopen(path, "a");

    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
}

/* Makes a certificate that is no part of any chain. */
static X509 *make_other(EVP_PKEY *key, int names)
{
    X509 *certificate = X509_new();

    assert_non_null(key);
    assert_int_equal(X509_set_version(certificate, X509_VERSION_3), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -1000));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 1000));
    for (int i = 0; i < names; i++)
        assert_int_equal(X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate),
                                                    NID_commonName, MBSTRING_ASC,
                                                    (const unsigned char *)"x", 1, -1, 0),
                         1);
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    EVP_PKEY_free(key);
    return certificate;
}

static EVP_PKEY *explicit_key(void)
{
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0),
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_EC_ENCODING, "explicit", 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY *key = NULL;

    assert_int_equal(EVP_PKEY_keygen_init(maker), 1);
    assert_int_equal(EVP_PKEY_CTX_set_params(maker, parameters), 1);
    assert_int_equal(EVP_PKEY_generate(maker, &key), 1);
    EVP_PKEY_CTX_free(maker);
    return key;
}

/* What a peer sends besides its own certificate, which is valid. */
typedef struct extras {
    bool has_explicit_key;
    const char *curve;
    int names, count;
    bool taken;
} extras;

static const extras chains[] = {
    {false, "P-256", 0, 0, true},   {false, "P-256", 1, 9, true},
    {false, "P-256", 1, 10, false}, {false, "P-256", 900, 1, true},
    {false, "P-384", 1, 3, true},   {false, "secp256k1", 1, 1, false},
    {true, NULL, 1, 1, false},
};

/* Issues a certificate of the authority, with those of `x` after it in its file. */
static rp_test_identity issue_with(setting *s, const extras *x)
{
    rp_test_identity id = rp_test_issue(&s->certificates, "chain", "actor-7", 7);

    if (x->count > 0) {
        X509 *other =
            make_other(x->has_explicit_key ? explicit_key() : EVP_EC_gen(x->curve), x->names);
        for (int i = 0; i < x->count; i++) append(id.certificate, other);
        X509_free(other);
    }
    return id;
}

static void costly_chains_of_clients_are_refused(void **state)
{
    setting *s = *state;

    for (size_t i = 0; i < COUNT_OF(chains) * 2; i++) {
        const extras *x = &chains[i / 2];
        rp_test_identity id = issue_with(s, x);
        char name[32];
        size_t bytes;
        ends e;

        open_ends(&e, s,
                  &(wishes){.version = i % 2 != 0 ? TLS1_3_VERSION : TLS1_2_VERSION,
                            .ask = true,
                            .client = &id});
        assert_int_equal(shake_hands(&e), x->taken ? RP_LINK_OK : RP_LINK_BROKEN);
        assert_int_equal(e.link.secured, x->taken);
        rp_link_peer_name(&e.link, name, sizeof name);
        assert_string_equal(name, x->taken ? "actor-7" : "");
        /* If the chain is refused, OpenSSL has not parsed the first certificate either. */
        assert_int_equal(SSL_get0_peer_certificate(e.link.ssl) != NULL, x->taken);
        bytes = close_link(&e);
        if (x->taken) assert_in_range(bytes, 1, MOST_HELD);
        close_ends(&e);
    }
}

/* The link connects to OpenSSL's server, which sends these certificates. */
static void costly_chains_of_servers_are_refused(void **state)
{
    setting *s = *state;
    const rp_tls_client_files files = {.ca = s->certificates.ca};

    for (size_t i = 0; i < COUNT_OF(chains) * 2; i++) {
        const extras *x = &chains[i / 2];
        rp_test_identity id = issue_with(s, x);
        rp_link_result result = RP_LINK_AGAIN;
        rp_error err;
        char why[100];
        int fds[2];
        ends e;

        assert_ok_err(rp_tls_new_client(rp_allocator_default(), &files, &e.tls, &err), &err);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        assert_ok(rp_link_init(&e.link, fds[0], e.tls));
        assert_ok(rp_link_expect(&e.link, "localhost"));
        e.peer = fds[1];
        e.context = SSL_CTX_new(TLS_server_method());
        assert_int_equal(SSL_CTX_set_max_proto_version(e.context, i % 2 != 0 ? TLS1_3_VERSION
                                                                             : TLS1_2_VERSION),
                         1);
        assert_int_equal(SSL_CTX_use_certificate_chain_file(e.context, id.certificate), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(e.context, id.key, SSL_FILETYPE_PEM), 1);
        e.client = SSL_new(e.context);
        assert_int_equal(SSL_set_fd(e.client, e.peer), 1);
        SSL_set_accept_state(e.client);
        for (int j = 0; j < 20 && result == RP_LINK_AGAIN; j++) {
            result = rp_link_handshake(&e.link);
            (void)SSL_do_handshake(e.client);
            ERR_clear_error();
        }
        assert_int_equal(result, x->taken ? RP_LINK_OK : RP_LINK_BROKEN);
        assert_int_equal(SSL_get0_peer_certificate(e.link.ssl) != NULL, x->taken);
        rp_link_why(&e.link, why, sizeof why);
        if (!x->taken) assert_non_null(strstr(why, "certificate"));
        close_ends(&e);
    }
}

RP_TESTS(handshake_limits)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_lists_of_a_client_hello_are_refused),
        cmocka_unit_test(no_extension_makes_openssl_hold_much),
        cmocka_unit_test(declared_length_of_a_long_client_hello_is_refused),
        cmocka_unit_test(costly_chains_of_clients_are_refused),
        cmocka_unit_test(costly_chains_of_servers_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
