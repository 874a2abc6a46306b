/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and sessions of OpenSSL.
 *
 * Sessions are not resumed: connections are long-lived, a reload must be able to exclude a
 * peer, and without tickets a session costs no more than its connection. Renegotiation is off
 * for the same reason. The ciphers are those that HTTP/2 allows, cheapest first.
 *
 * OpenSSL's own socket BIO raises SIGPIPE and does not use MSG_MORE, so a session writes and
 * reads through a BIO that is defined here. Its data is a `wire`, which also holds a reference
 * to the rp_tls.
 *
 * The work and the memory that a peer can cause in OpenSSL before it has sent a byte of data is
 * bounded: the BIO reads no more than its allowance, records without data are counted, and key
 * exchanges use elliptic curves only. OpenSSL itself refuses more than 32 records in a row
 * without a byte, and more than 5 warnings in a row. Early data is not accepted.
 *
 * The handshake messages of the peer are checked before OpenSSL parses them (tls_limits.h):
 *   - the length of a ClientHello in wire_read(), before OpenSSL allocates its buffer;
 *   - the lists in a ClientHello in check_hello(), before OpenSSL parses and keeps them;
 *   - a Certificate message in on_protocol_message(), see refuse_message(). */
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tls.h"
#include "net/tls_limits.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/refcount.h"

enum {
    CHAIN_DEPTH = 8,          /* certificates between the peer's and the authority's */
    REQUEST_BYTES = 64 << 10, /* size of a server's list of authorities */
    CA_BYTES = 80,
    CIPHER_BYTES = 512, /* size of the list of ciphers in a ClientHello */
};

/* Later versions of OpenSSL can compress a Certificate message, so that it could not be checked
 * before it is parsed. The number of the option is part of their ABI; OpenSSL 3.0 ignores it.
 */
#ifndef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
#define SSL_OP_NO_RX_CERTIFICATE_COMPRESSION ((uint64_t)1 << 33)
#endif
#ifndef SSL3_MT_COMPRESSED_CERTIFICATE
#define SSL3_MT_COMPRESSED_CERTIFICATE 25
#endif

struct rp_tls {
    rp_refcount refs;
    rp_allocator alloc;
    SSL_CTX *context;
    BIO_METHOD *method;
    bool connects;     /* a client's */
    char ca[CA_BYTES]; /* see rp_tls_ca() */
};

typedef struct wire {
    rp_tls *tls; /* a reference */
    int fd;
    bool more;               /* see rp_tls_set_more() */
    bool counts_idle;        /* the handshake has succeeded */
    size_t allowance;        /* bytes that may still be read */
    uint64_t idle_records;   /* see rp_tls_idle_records() */
    const char *refusal;     /* see rp_tls_refusal() */
    rp_tls_hello_scan hello; /* a server's */
} wire;

static bool is_again(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static int wire_write(BIO *bio, const char *data, int size)
{
    const wire *w = BIO_get_data(bio);
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (w->more ? MSG_MORE : 0);
    ssize_t n;

    do {
        n = send(w->fd, data, (size_t)size, flags);
    } while (n < 0 && errno == EINTR);
    BIO_clear_retry_flags(bio);
    if (is_again(n)) BIO_set_retry_write(bio);
    return (int)n;
}

static int wire_read(BIO *bio, char *data, int size)
{
    wire *w = BIO_get_data(bio);
    size_t room = (size_t)size < w->allowance ? (size_t)size : w->allowance;
    ssize_t n;

    BIO_clear_retry_flags(bio);
    if (room == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    do {
        n = recv(w->fd, data, room, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    assert(n <= (ssize_t)room);
    if (n > 0) w->allowance -= (size_t)n;
    if (n > 0 && !w->tls->connects &&
        !rp_tls_scan_hello(&w->hello, (const uint8_t *)data, (size_t)n)) {
        w->refusal = "the ClientHello has more than 16 KiB";
        return -1; /* without a retry flag: OpenSSL ends the handshake */
    }
    if (is_again(n)) BIO_set_retry_read(bio);
    if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return (int)n;
}

static long wire_control(BIO *bio, int command, long number, void *pointer)
{
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    return command == BIO_CTRL_FLUSH; /* the BIO has no buffer */
}

static BIO_METHOD *new_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "reprise");

    if (method == NULL) return NULL;
    if (BIO_meth_set_write(method, wire_write) == 1 &&
        BIO_meth_set_read(method, wire_read) == 1 &&
        BIO_meth_set_ctrl(method, wire_control) == 1)
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* Makes OpenSSL refuse a handshake message of the peer. OpenSSL has read the message, but has
 * not parsed it. No function of OpenSSL ends the handshake at this point. So this function
 * overwrites the body in the buffer from which OpenSSL will parse it; the buffer is on the
 * heap, only the callback's parameter is const. A list whose length is all ones is longer than
 * any message, so OpenSSL ends the handshake with a decode error. If a version of OpenSSL
 * should parse a copy instead, the link still breaks, by rp_tls_refusal(), but after the work;
 * the test of this fails then. */
static void refuse_message(wire *w, const void *message, size_t size, const char *why)
{
    w->refusal = why;
    if (size > SSL3_HM_HEADER_LENGTH)
        memset((uint8_t *)message + SSL3_HM_HEADER_LENGTH, 0xff, size - SSL3_HM_HEADER_LENGTH);
}

static void check_message(wire *w, const uint8_t *message, size_t size, bool is_tls13)
{
    const char *why = NULL;

    if (size < SSL3_HM_HEADER_LENGTH) return;
    if (message[0] == SSL3_MT_CERTIFICATE)
        why = rp_tls_check_chain(message + SSL3_HM_HEADER_LENGTH, size - SSL3_HM_HEADER_LENGTH,
                                 is_tls13);
    else if (message[0] == SSL3_MT_COMPRESSED_CERTIFICATE)
        why = "the certificates are compressed";
    if (why != NULL) refuse_message(w, message, size, why);
}

/* OpenSSL calls this for each record and each handshake message. TLS 1.3 encrypts the type of a
 * record, and reports it apart from the header. */
static void on_protocol_message(int is_ours, int version, int type, const void *data,
                                size_t size, SSL *ssl, void *user)
{
    int record_type =
        SSL_version(ssl) >= TLS1_3_VERSION ? SSL3_RT_INNER_CONTENT_TYPE : SSL3_RT_HEADER;
    wire *w = user;

    (void)version;
    if (is_ours || size == 0) return;
    if (type == SSL3_RT_HANDSHAKE)
        check_message(w, data, size, SSL_version(ssl) >= TLS1_3_VERSION);
    if (!w->counts_idle) return;
    if (type != SSL3_RT_HANDSHAKE &&
        (type != record_type || *(const uint8_t *)data == SSL3_RT_APPLICATION_DATA))
        return;
    w->idle_records++;
    w->allowance = 0;
}

/* OpenSSL calls this before it parses the extensions of a ClientHello. Refuses lists that are
 * much longer than those of regular clients. OpenSSL keeps these lists as long as the session.
 * The name of an authority may have 4 bytes in the list, and becomes an object of 200. */
static int check_hello(SSL *ssl, int *alert, void *user)
{
    static const struct {
        unsigned int extension;
        size_t most_bytes;
    } limits[] = {
        {TLSEXT_TYPE_status_request, 64}, /* regular clients send 5 bytes */
        {TLSEXT_TYPE_supported_groups, 512},
        {TLSEXT_TYPE_signature_algorithms, 512},
        {TLSEXT_TYPE_signature_algorithms_cert, 512},
        {TLSEXT_TYPE_application_layer_protocol_negotiation, 512},
        {TLSEXT_TYPE_certificate_authorities, 256},
    };
    wire *w = BIO_get_data(SSL_get_rbio(ssl));
    const unsigned char *data;
    size_t bytes;

    (void)user;
    if (SSL_client_hello_isv2(ssl)) w->refusal = "the ClientHello is of SSL 2";
    if (SSL_client_hello_get0_ciphers(ssl, &data) > CIPHER_BYTES)
        w->refusal = "the ClientHello has too many ciphers";
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (SSL_client_hello_get0_ext(ssl, limits[i].extension, &data, &bytes) == 1 &&
            bytes > limits[i].most_bytes)
            w->refusal = "the ClientHello has an extension that is too long";
    if (w->refusal == NULL) return SSL_CLIENT_HELLO_SUCCESS;
    *alert = SSL_AD_ILLEGAL_PARAMETER;
    return SSL_CLIENT_HELLO_ERROR;
}

/* Chooses "h2" if the client offers it, else "http/1.1". Refuses a client that offers neither.
 */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                           const unsigned char *offered, unsigned int offered_length,
                           void *user)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen = NULL;

    (void)ssl;
    (void)user;
    if (SSL_select_next_proto(&chosen, out_length, ours, sizeof ours - 1, offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* Refuses keys with a passphrase, as there is no terminal. */
static int no_passphrase(char *text, int size, int writing, void *user)
{
    (void)text;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

/* Returns what to do about an error of OpenSSL, or its reason. */
static const char *advise(unsigned long error, const char *what)
{
    const char *why = ERR_reason_error_string(error);

    if (ERR_GET_LIB(error) == ERR_LIB_X509 &&
        ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH)
        return "it is the key of another certificate: name the key that this certificate was "
               "made "
               "for";
    if (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE &&
        strcmp(what, "certificate") == 0)
        return "the file has no certificate in PEM; are the files of the certificate and of "
               "the "
               "key swapped?";
    if (strcmp(what, "key") == 0 && ERR_GET_REASON(error) == ERR_R_UNSUPPORTED)
        return "no private key in PEM was found in the file";
    return why != NULL ? why : "OpenSSL gives no reason";
}

/* Fills in the error from the queue of OpenSSL, and clears the queue. */
static rp_status fail_openssl(rp_error *err, const char *what, const char *path)
{
    unsigned long first = ERR_peek_error();
    rp_status st;

    if (ERR_GET_REASON(first) == ERR_R_MALLOC_FAILURE)
        st = rp_fail(err, RP_NO_RESOURCE, "%s '%s': out of memory", what, path);
    else
        st = rp_fail(err, RP_INVALID, "%s '%s': %s", what, path, advise(first, what));
    ERR_clear_error();
    return st;
}

static rp_status check_readable(const char *what, const char *path, rp_error *err)
{
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return rp_fail(err, RP_NOT_FOUND, "%s '%s': %s", what, path, strerror(errno));
    (void)fclose(file);
    return RP_OK;
}

static rp_status load_own(SSL_CTX *context, const char *certificate, const char *key,
                          rp_error *err)
{
    rp_status st = check_readable("certificate", certificate, err);

    if (st == RP_OK) st = check_readable("key", key, err);
    if (st != RP_OK) return st;
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return fail_openssl(err, "certificate", certificate);
    /* Also checks that the key matches the certificate, if both are of the same type. */
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        return fail_openssl(err, "key", key);
    if (SSL_CTX_check_private_key(context) == 1) return RP_OK;
    ERR_clear_error();
    return rp_fail(err, RP_INVALID,
                   "key '%s' is not that of certificate '%s': they are of different types", key,
                   certificate);
}

/* Loads the authorities that a client trusts. */
static rp_status load_authorities(SSL_CTX *context, const char *ca, rp_error *err)
{
    rp_status st;

    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (ca == NULL) {
        if (SSL_CTX_set_default_verify_paths(context) == 1) return RP_OK;
        return fail_openssl(err, "the system's authorities", "default");
    }
    st = check_readable("CA", ca, err);
    if (st != RP_OK) return st;
    if (SSL_CTX_load_verify_file(context, ca) != 1) return fail_openssl(err, "CA", ca);
    return RP_OK;
}

static rp_status load_client_ca(SSL_CTX *context, const rp_tls_files *files, rp_error *err)
{
    int mode = SSL_VERIFY_PEER;
    STACK_OF(X509_NAME) * names;
    rp_status st;

    if (files->client_ca == NULL && files->require_client_certificate)
        return rp_fail(err, RP_INVALID,
                       "client certificates are required, but no client CA is given");
    if (files->client_ca == NULL) return RP_OK;
    st = check_readable("client CA", files->client_ca, err);
    if (st != RP_OK) return st;
    names = SSL_load_client_CA_file(files->client_ca);
    if (names == NULL || SSL_CTX_load_verify_file(context, files->client_ca) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return fail_openssl(err, "client CA", files->client_ca);
    }
    SSL_CTX_set_client_CA_list(context, names); /* takes ownership of `names` */
    if (files->require_client_certificate) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context, mode, NULL);
    return RP_OK;
}

/* Sets the options that do not depend on the files. False if there is no memory, or OpenSSL
 * lacks these ciphers. */
static bool set_up(SSL_CTX *context)
{
    static const char new_ciphers[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                      "TLS_CHACHA20_POLY1305_SHA256";
    static const char old_ciphers[] =
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
        "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
        "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
    /* The peer chooses among these. OpenSSL's default has finite fields of up to 8192 bits, in
     * which one key exchange takes tens of milliseconds. */
    static const char groups[] = "X25519:P-256:P-384";

    (void)SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE |
                                           SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_NO_TICKET |
                                           SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_verify_depth(context, CHAIN_DEPTH);
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_num_tickets(context, 0) == 1 &&
           SSL_CTX_set1_groups_list(context, groups) == 1 &&
           SSL_CTX_set_ciphersuites(context, new_ciphers) == 1 &&
           SSL_CTX_set_cipher_list(context, old_ciphers) == 1;
}

/* Makes an rp_tls without loading its files. On failure returns NULL, with the status in `*st`.
 */
static rp_tls *make(const rp_allocator *alloc, bool connects, rp_status *st, rp_error *err)
{
    static const unsigned char h2[] = "\x02h2";
    rp_tls *tls = rp_alloc_zero(alloc, sizeof *tls);
    bool ok;

    if (tls == NULL) {
        *st = rp_fail_memory(err, sizeof *tls);
        return NULL;
    }
    tls->alloc = *alloc;
    tls->connects = connects;
    rp_refcount_init(&tls->refs);
    ERR_clear_error();
    tls->method = new_method();
    tls->context = SSL_CTX_new(connects ? TLS_client_method() : TLS_server_method());
    ok = tls->method != NULL && tls->context != NULL && set_up(tls->context);
    if (ok && !connects) {
        (void)SSL_CTX_set_max_cert_list(tls->context, RP_TLS_CHAIN_BYTES);
        SSL_CTX_set_client_hello_cb(tls->context, check_hello, NULL);
        SSL_CTX_set_alpn_select_cb(tls->context, choose_protocol, NULL);
    }
    if (ok && connects) {
        /* For a client this also bounds the request of the server for a certificate, which may
         * have a long list of authorities. */
        (void)SSL_CTX_set_max_cert_list(tls->context, REQUEST_BYTES);
        /* returns 0 on success */
        ok = SSL_CTX_set_alpn_protos(tls->context, h2, sizeof h2 - 1) == 0;
    }
    if (!ok) {
        rp_tls_unref(tls);
        ERR_clear_error();
        *st = rp_fail(err, RP_NO_RESOURCE, "TLS: OpenSSL could not be set up");
        return NULL;
    }
    return tls;
}

rp_status rp_tls_new(const rp_allocator *alloc, const rp_tls_files *files, rp_tls **out,
                     rp_error *err)
{
    rp_status st;
    rp_tls *tls;

    if (files->certificate == NULL || files->key == NULL)
        return rp_fail(err, RP_INVALID, "TLS needs both a certificate and a key");
    tls = make(alloc, false, &st, err);
    if (tls == NULL) return st;
    st = load_own(tls->context, files->certificate, files->key, err);
    if (st == RP_OK) st = load_client_ca(tls->context, files, err);
    if (st != RP_OK) {
        rp_tls_unref(tls);
        return st;
    }
    *out = tls;
    return RP_OK;
}

/* Keeps the path for errors; of a long one, the end. */
static void name_ca(rp_tls *tls, const char *path)
{
    static const char dots[] = "...";
    size_t length = strlen(path);

    if (length < sizeof tls->ca)
        (void)snprintf(tls->ca, sizeof tls->ca, "%s", path);
    else
        (void)snprintf(tls->ca, sizeof tls->ca, "%s%s", dots,
                       path + length - (sizeof tls->ca - sizeof dots));
}

rp_status rp_tls_new_client(const rp_allocator *alloc, const rp_tls_client_files *files,
                            rp_tls **out, rp_error *err)
{
    rp_status st;
    rp_tls *tls;

    if ((files->certificate == NULL) != (files->key == NULL))
        return rp_fail(err, RP_INVALID, "TLS: a certificate and its key go together");
    tls = make(alloc, true, &st, err);
    if (tls == NULL) return st;
    if (files->ca != NULL) name_ca(tls, files->ca);
    st = load_authorities(tls->context, files->ca, err);
    if (st == RP_OK && files->certificate != NULL)
        st = load_own(tls->context, files->certificate, files->key, err);
    if (st != RP_OK) {
        rp_tls_unref(tls);
        return st;
    }
    *out = tls;
    return RP_OK;
}

rp_tls *rp_tls_ref(rp_tls *tls)
{
    rp_refcount_inc(&tls->refs);
    return tls;
}

void rp_tls_unref(rp_tls *tls)
{
    if (tls == NULL || !rp_refcount_dec(&tls->refs)) return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    rp_allocator alloc = tls->alloc;
    rp_release(&alloc, tls, sizeof *tls);
}

SSL *rp_tls_new_session(rp_tls *tls, int fd)
{
    wire *w = rp_alloc_zero(&tls->alloc, sizeof *w);
    BIO *bio = NULL;
    SSL *ssl = NULL;

    if (w == NULL) return NULL;
    ERR_clear_error();
    bio = BIO_new(tls->method);
    ssl = SSL_new(tls->context);
    if (bio == NULL || ssl == NULL) {
        (void)BIO_free(bio);
        SSL_free(ssl);
        ERR_clear_error();
        rp_release(&tls->alloc, w, sizeof *w);
        return NULL;
    }
    *w = (wire){.tls = rp_tls_ref(tls), .fd = fd};
    BIO_set_data(bio, w);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio); /* takes ownership of `bio` */
    SSL_set_msg_callback(ssl, on_protocol_message);
    SSL_set_msg_callback_arg(ssl, w);
    if (tls->connects)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    return ssl;
}

void rp_tls_free_session(SSL *ssl)
{
    wire *w;
    rp_tls *tls;

    if (ssl == NULL) return;
    w = BIO_get_data(SSL_get_rbio(ssl));
    tls = w->tls;
    assert(tls != NULL && SSL_get_SSL_CTX(ssl) == tls->context);
    SSL_free(ssl);
    rp_release(&tls->alloc, w, sizeof *w);
    rp_tls_unref(tls);
}

void rp_tls_set_more(SSL *ssl, bool more)
{
    wire *w = BIO_get_data(SSL_get_rbio(ssl));

    w->more = more;
}

void rp_tls_set_allowance(SSL *ssl, size_t bytes)
{
    wire *w = BIO_get_data(SSL_get_rbio(ssl));

    w->allowance = bytes;
}

void rp_tls_add_allowance(SSL *ssl, size_t bytes)
{
    wire *w = BIO_get_data(SSL_get_rbio(ssl));

    w->allowance += bytes;
}

void rp_tls_count_idle(SSL *ssl)
{
    wire *w = BIO_get_data(SSL_get_rbio(ssl));

    w->counts_idle = true;
}

uint64_t rp_tls_idle_records(const SSL *ssl)
{
    const wire *w = BIO_get_data(SSL_get_rbio(ssl));

    return w->idle_records;
}

const char *rp_tls_ca(const SSL *ssl)
{
    const wire *w = BIO_get_data(SSL_get_rbio(ssl));

    return w->tls->ca[0] != '\0' ? w->tls->ca : NULL;
}

const char *rp_tls_refusal(const SSL *ssl)
{
    const wire *w = BIO_get_data(SSL_get_rbio(ssl));

    return w->refusal;
}

void rp_tls_drop_chain(SSL *ssl)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);

    if (!SSL_is_server(ssl)) return;
    while (sk_X509_num(chain) > 0) X509_free(sk_X509_pop(chain)); /* -1 for NULL */
}
