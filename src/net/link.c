/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing, plain and under TLS.
 *
 * TLS sends records of at most 16 KiB, and each has a fixed cost. So a write fills each record
 * from as many parts as needed: small parts are copied together, a part that fills a record is
 * encrypted in place. A record that was partly sent stays in OpenSSL. The next write has to
 * pass at least its bytes again, which OpenSSL ignores. This works because a write always
 * starts with the first byte that was not moved.
 *
 * For reading, OpenSSL fills its buffer from the descriptor, some 17 KiB, and decrypts one
 * record of at most 16 KiB at a time. The descriptor is not ready for bytes in that buffer. So
 * the last part of a large read takes only bytes that OpenSSL already has, for which there is
 * always room.
 *
 * The work of one read is bounded by the bytes that OpenSSL may take from the descriptor: twice
 * the data that it returns, and READ_BYTES. A read also ends with the first buffer that has a
 * record without data, and the link breaks after RP_LINK_MOST_IDLE of those. A step of the
 * handshake takes at most HANDSHAKE_BYTES. What is left in the descriptor makes it ready again.
 *
 * OpenSSL has one queue of errors for each thread, and a call may take an old error for its
 * own: so the queue is cleared before and after each call.
 *
 * Invariants:
 *   K1  a broken link stays broken;
 *   K2  `secured` implies ssl != NULL;
 *   K3  idle_records never decreases. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/link.h"
#include "net/loop.h"
#include "reprise/printable.h"

enum {
    RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH,
    READ_BYTES = 64 << 10,
    HANDSHAKE_BYTES = 32 << 10,
};

rp_status rp_link_init(rp_link *link, int fd, rp_tls *tls)
{
    struct ssl_st *ssl = NULL;

    if (tls != NULL) {
        ssl = rp_tls_new_session(tls, fd);
        if (ssl == NULL) return RP_NO_RESOURCE;
    }
    *link =
        (rp_link){.fd = fd, .ssl = ssl, .read_waits = RP_READABLE, .write_waits = RP_WRITABLE};
    return RP_OK;
}

void rp_link_deinit(rp_link *link)
{
    if (link == NULL) return;
    rp_tls_free_session(link->ssl);
    if (link->fd >= 0) (void)close(link->fd);
    *link = (rp_link){.fd = -1};
}

int rp_link_take_fd(rp_link *link)
{
    int fd = link->fd;

    assert(link->ssl == NULL);
    link->fd = -1;
    return fd;
}

static rp_link_result fail(rp_link *link)
{
    link->broken = true;
    return RP_LINK_BROKEN;
}

/* Translates the result of a system call that moves bytes. */
static rp_link_result plain_result(rp_link *link, ssize_t n, size_t *moved)
{
    if (n > 0) {
        *moved = (size_t)n;
        return RP_LINK_OK;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return RP_LINK_AGAIN;
    return fail(link);
}

static rp_link_result plain_read(rp_link *link, const struct iovec *parts, int part_count,
                                 size_t *moved)
{
    ssize_t n;

    do {
        n = readv(link->fd, parts, part_count < IOV_MAX ? part_count : IOV_MAX);
    } while (n < 0 && errno == EINTR);
    return n == 0 ? RP_LINK_END : plain_result(link, n, moved);
}

static rp_link_result plain_write(rp_link *link, const struct iovec *parts, int part_count,
                                  bool more, size_t *moved)
{
    struct msghdr message = {.msg_iov = (struct iovec *)parts, /* sendmsg() only reads it */
                             .msg_iovlen = (size_t)part_count};
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    ssize_t n;

    if (part_count > IOV_MAX) {
        message.msg_iovlen = IOV_MAX;
        more = true;
    }
    if (more) flags |= MSG_MORE;
    do {
        n = sendmsg(link->fd, &message, flags);
    } while (n < 0 && errno == EINTR);
    return n == 0 ? RP_LINK_OK : plain_result(link, n, moved);
}

rp_link_result rp_link_peek(rp_link *link, void *data, size_t size, size_t *moved)
{
    ssize_t n;

    assert(link->ssl == NULL);
    *moved = 0;
    do {
        n = recv(link->fd, data, size, MSG_PEEK | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n == 0 ? RP_LINK_END : plain_result(link, n, moved);
}

/* Translates the result of a call of OpenSSL that has failed. */
static rp_link_result tls_result(rp_link *link, int returned, uint32_t *waits)
{
    int why = SSL_get_error(link->ssl, returned);

    link->tls_error = ERR_peek_error();
    ERR_clear_error();
    switch (why) {
    case SSL_ERROR_WANT_READ: *waits = RP_READABLE; return RP_LINK_AGAIN;
    case SSL_ERROR_WANT_WRITE: *waits = RP_WRITABLE; return RP_LINK_AGAIN;
    case SSL_ERROR_ZERO_RETURN: return RP_LINK_END;
    default: return fail(link);
    }
}

rp_status rp_link_expect(rp_link *link, const char *name)
{
    X509_VERIFY_PARAM *wanted;
    bool is_number, ok;

    if (link->ssl == NULL) return RP_OK;
    wanted = SSL_get0_param(link->ssl);
    ERR_clear_error();
    is_number = X509_VERIFY_PARAM_set1_ip_asc(wanted, name) == 1;
    ERR_clear_error();
    if (is_number) return RP_OK; /* SNI has no addresses, only names: RFC 6066 */
    ok = name[0] != '\0' && SSL_set1_host(link->ssl, name) == 1 &&
         SSL_set_tlsext_host_name(link->ssl, name) == 1;
    ERR_clear_error();
    return ok ? RP_OK : RP_INVALID;
}

/* Returns true if no trusted certificate has signed the peer's, or none that is known. */
static bool is_untrusted(long verified)
{
    switch (verified) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: return true;
    default: return false;
    }
}

/* If the server has sent an alert about the client's certificate, writes what it means. A
 * decrypt error: the CA of the certificate has the name of the server's, and another key. */
static bool explain_alert(const rp_link *link, char *text, size_t size)
{
    const char *why = ERR_reason_error_string(link->tls_error);
    int reason = ERR_GET_REASON(link->tls_error);

    if (link->ssl == NULL || SSL_is_server(link->ssl) ||
        ERR_GET_LIB(link->tls_error) != ERR_LIB_SSL)
        return false;
    if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
        (void)snprintf(text, size,
                       "TLS: the server asks for a client certificate, and none was sent: "
                       "certificate required");
    else if ((reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
              reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR) &&
             why != NULL && SSL_get_certificate(link->ssl) != NULL)
        (void)snprintf(text, size,
                       "TLS: the server does not accept the client's certificate, whose CA is "
                       "not in the server's client CA file: %s",
                       why);
    else
        return false;
    return true;
}

void rp_link_why(const rp_link *link, char *text, size_t size)
{
    const char *why = link->tls_error != 0 ? ERR_reason_error_string(link->tls_error) : NULL;
    long verified = link->ssl != NULL ? SSL_get_verify_result(link->ssl) : X509_V_OK;
    const char *ca = is_untrusted(verified) ? rp_tls_ca(link->ssl) : NULL;

    if (link->ssl != NULL && rp_tls_refusal(link->ssl) != NULL)
        (void)snprintf(text, size, "TLS: %s", rp_tls_refusal(link->ssl));
    else if (verified == X509_V_OK && explain_alert(link, text, size))
        return;
    else if (ca != NULL)
        (void)snprintf(text, size,
                       "the server's certificate is not signed by what '%s' holds: %s", ca,
                       X509_verify_cert_error_string(verified));
    else if (verified != X509_V_OK)
        (void)snprintf(text, size, "the server's certificate: %s",
                       X509_verify_cert_error_string(verified));
    else
        (void)snprintf(text, size, "%s%s", why != NULL ? "TLS: " : "", why != NULL ? why : "");
}

bool rp_link_is_refused(const rp_link *link)
{
    if (link->ssl == NULL) return false;
    if (rp_tls_refusal(link->ssl) != NULL) return true;
    if (SSL_get_verify_result(link->ssl) != X509_V_OK) return true;
    /* A peer that stops closes the connection as well. */
    return link->tls_error != 0 && ERR_GET_LIB(link->tls_error) == ERR_LIB_SSL &&
           ERR_GET_REASON(link->tls_error) != SSL_R_UNEXPECTED_EOF_WHILE_READING;
}

rp_link_result rp_link_handshake(rp_link *link)
{
    rp_link_result result;
    int returned;

    if (link->ssl == NULL || link->secured) return RP_LINK_OK;
    if (link->broken) return RP_LINK_BROKEN;
    ERR_clear_error();
    rp_tls_set_allowance(link->ssl, HANDSHAKE_BYTES);
    returned = SSL_do_handshake(link->ssl);
    rp_tls_drop_chain(link->ssl);
    if (rp_tls_refusal(link->ssl) != NULL) {
        ERR_clear_error();
        return fail(link);
    }
    if (returned == 1) {
        link->secured = true;
        rp_tls_count_idle(link->ssl);
        link->read_waits = RP_READABLE;
        link->write_waits = RP_WRITABLE;
        return RP_LINK_OK;
    }
    result = tls_result(link, returned, &link->read_waits);
    link->write_waits = link->read_waits;
    return result == RP_LINK_END ? fail(link) : result;
}

enum { TLS_ALERT = 0x15, TLS_MAJOR = 3 };

void rp_link_say_tls(rp_link *link)
{
    /* A fatal alert of TLS 1.2, protocol_version: OpenSSL sends none to such peers. */
    static const uint8_t alert[] = {TLS_ALERT, TLS_MAJOR, 3, 0, 2, 2, 70};

    if (link->ssl == NULL || link->secured || ERR_GET_LIB(link->tls_error) != ERR_LIB_SSL ||
        ERR_GET_REASON(link->tls_error) != SSL_R_WRONG_VERSION_NUMBER)
        return;
    (void)!send(link->fd, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool rp_link_is_alert(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == TLS_ALERT && data[1] == TLS_MAJOR;
}

static size_t room_of(const struct iovec *parts, int part_count)
{
    size_t room = 0;

    for (int i = 0; i < part_count; i++) room += parts[i].iov_len;
    return room;
}

static rp_link_result tls_read(rp_link *link, const struct iovec *parts, int part_count,
                               size_t *moved)
{
    size_t room = room_of(parts, part_count);
    rp_link_result result = RP_LINK_OK;

    link->read_waits = RP_READABLE;
    rp_tls_set_allowance(link->ssl, READ_BYTES);
    for (int i = 0; i < part_count && result == RP_LINK_OK; i++) {
        size_t filled = 0, n;
        while (filled < parts[i].iov_len && result == RP_LINK_OK) {
            if (*moved > 0 && room - *moved < RP_LINK_ROOM) rp_tls_set_allowance(link->ssl, 0);
            ERR_clear_error();
            int returned = SSL_read_ex(link->ssl, (char *)parts[i].iov_base + filled,
                                       parts[i].iov_len - filled, &n);
            if (returned <= 0) {
                result = tls_result(link, returned, &link->read_waits);
            } else {
                filled += n;
                *moved += n;
                if (rp_tls_idle_records(link->ssl) == link->idle_records)
                    rp_tls_add_allowance(link->ssl, 2 * n);
            }
        }
    }
    assert(*moved <= room);
    assert(rp_tls_idle_records(link->ssl) >= link->idle_records); /* K3 */
    link->idle_records = rp_tls_idle_records(link->ssl);
    if (link->idle_records > RP_LINK_MOST_IDLE) result = fail(link);
    /* If bytes were moved, the result that has ended this call is left to the next call. */
    return *moved > 0 ? RP_LINK_OK : result;
}

/* The position of the next byte to write, in the parts. */
typedef struct cursor {
    const struct iovec *parts;
    int part_count, part;
    size_t offset; /* in the part */
} cursor;

static void advance(cursor *at, size_t bytes)
{
    at->offset += bytes;
    while (at->part < at->part_count && at->offset >= at->parts[at->part].iov_len) {
        at->offset -= at->parts[at->part].iov_len;
        at->part++;
    }
}

/* Returns the bytes of the next record: in place if one part has enough of them or is the last
 * part, otherwise copied to `room`. */
static const char *next_record(const cursor *at, char *room, size_t *bytes)
{
    cursor from = *at;
    const struct iovec *first = &at->parts[at->part];
    size_t filled = 0;

    if (first->iov_len - at->offset >= RECORD_BYTES || at->part + 1 == at->part_count) {
        *bytes = first->iov_len - at->offset;
        if (*bytes > RECORD_BYTES) *bytes = RECORD_BYTES;
        return (const char *)first->iov_base + at->offset;
    }
    while (filled < RECORD_BYTES && from.part < from.part_count) {
        const struct iovec *part = &from.parts[from.part];
        size_t n = part->iov_len - from.offset;
        if (n > RECORD_BYTES - filled) n = RECORD_BYTES - filled;
        memcpy(room + filled, (const char *)part->iov_base + from.offset, n);
        filled += n;
        advance(&from, n);
    }
    assert(filled > 0 && filled <= RECORD_BYTES);
    *bytes = filled;
    return room;
}

static rp_link_result tls_write(rp_link *link, const struct iovec *parts, int part_count,
                                bool more, size_t *moved)
{
    char room[RECORD_BYTES];
    cursor at = {.parts = parts, .part_count = part_count};

    link->write_waits = RP_WRITABLE;
    for (advance(&at, 0); at.part < part_count;) {
        size_t bytes, n;
        const char *record = next_record(&at, room, &bytes);
        cursor after = at;
        advance(&after, bytes);
        rp_tls_set_more(link->ssl, more || after.part < part_count);
        ERR_clear_error();
        int returned = SSL_write_ex(link->ssl, record, bytes, &n);
        if (returned <= 0) {
            rp_link_result result = tls_result(link, returned, &link->write_waits);
            if (result == RP_LINK_END) result = fail(link);
            return *moved > 0 ? RP_LINK_OK : result;
        }
        assert(n > 0 && n <= bytes);
        *moved += n;
        advance(&at, n);
    }
    return RP_LINK_OK;
}

bool rp_link_is_h2(const rp_link *link)
{
    const unsigned char *name = NULL;
    unsigned int length = 0;

    if (link->ssl == NULL) return false;
    SSL_get0_alpn_selected(link->ssl, &name, &length);
    return length == 2 && memcmp(name, "h2", 2) == 0;
}

/* Copies UTF-8 text. Control characters and bytes that are not UTF-8 become question marks; a
 * character that does not fit is left out. */
static void copy_name(char *name, size_t size, const char *text, size_t length)
{
    size_t out = 0;

    for (size_t i = 0, bytes; i < length; i += bytes) {
        uint32_t c;
        bool is_shown;

        bytes = rp_utf8_next(text + i, length - i, &c);
        is_shown = c != RP_NO_CHARACTER && c >= 0x20 && (c < 0x7f || c >= 0xa0);
        if (out + (is_shown ? bytes : 1) >= size) break;
        if (is_shown)
            memcpy(name + out, text + i, bytes);
        else
            name[out] = '?';
        out += is_shown ? bytes : 1;
    }
    assert(out < size);
    name[out] = '\0';
}

void rp_link_peer_name(const rp_link *link, char *name, size_t size)
{
    X509 *certificate = NULL;
    unsigned char *text = NULL;

    if (size == 0) return;
    name[0] = '\0';
    if (link->secured && SSL_get_verify_result(link->ssl) == X509_V_OK)
        certificate = SSL_get0_peer_certificate(link->ssl);
    if (certificate == NULL) return;
    /* If there are several common names, the last one is the most specific. */
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int last = -1;
    for (int i = -1; (i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) >= 0;)
        last = i;
    if (last < 0) return;
    int length = ASN1_STRING_to_UTF8(
        &text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, last)));
    if (length > 0) copy_name(name, size, (const char *)text, (size_t)length);
    if (length >= 0) OPENSSL_free(text);
    ERR_clear_error();
}

bool rp_link_has_pending(const rp_link *link)
{
    return link->ssl != NULL && SSL_has_pending(link->ssl) == 1;
}

size_t rp_link_waiting(const rp_link *link)
{
    int bytes = 0;

    if (rp_link_has_pending(link)) return RP_LINK_ROOM;
    if (ioctl(link->fd, FIONREAD, &bytes) != 0 || bytes < 0) return 0;
    return (size_t)bytes;
}

/* RP_LINK_OK if bytes can be read and written; continues the handshake if necessary. */
static rp_link_result begin(rp_link *link)
{
    assert(!link->secured || link->ssl != NULL); /* K2 */
    if (link->broken) return RP_LINK_BROKEN;     /* K1 */
    return link->ssl != NULL && !link->secured ? rp_link_handshake(link) : RP_LINK_OK;
}

rp_link_result rp_link_read(rp_link *link, const struct iovec *parts, int part_count,
                            size_t *moved)
{
    rp_link_result result = begin(link);

    *moved = 0;
    assert(room_of(parts, part_count) > 0);
    if (result != RP_LINK_OK) return result;
    if (link->ssl != NULL) return tls_read(link, parts, part_count, moved);
    return plain_read(link, parts, part_count, moved);
}

rp_link_result rp_link_write(rp_link *link, const struct iovec *parts, int part_count,
                             bool more, size_t *moved)
{
    rp_link_result result = begin(link);

    *moved = 0;
    if (result != RP_LINK_OK) return result;
    if (link->ssl != NULL) return tls_write(link, parts, part_count, more, moved);
    return plain_write(link, parts, part_count, more, moved);
}

bool rp_link_await(int fd, int64_t wait_ns)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    const struct timespec wait = {.tv_nsec = (long)wait_ns};

    assert(wait_ns < 1000000000);
    return wait_ns > 0 && ppoll(&watched, 1, &wait, NULL) > 0;
}

bool rp_link_is_readable(int fd)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};

    return poll(&watched, 1, 0) > 0;
}

bool rp_link_is_hung_up(const rp_link *link)
{
    struct pollfd watched = {.fd = link->fd};

    return poll(&watched, 1, 0) > 0 && (watched.revents & (POLLHUP | POLLERR)) != 0;
}

void rp_link_end_writing(rp_link *link)
{
    if (link->secured && !link->broken) {
        ERR_clear_error();
        rp_tls_set_more(link->ssl, false);
        (void)SSL_shutdown(link->ssl); /* a close_notify, if there is room for it */
        ERR_clear_error();
    }
    if (link->fd >= 0) (void)shutdown(link->fd, SHUT_WR);
}
