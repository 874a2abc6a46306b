/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS configuration: a certificate, its key and trusted authorities. Uses OpenSSL, TLS 1.2
 * and newer; ALPN offers "h2" and, for a server, "http/1.1". A rp_tls is immutable and
 * reference counted: a reload makes a new one, and open connections keep theirs. */
#ifndef RP_NET_TLS_H
#define RP_NET_TLS_H

#include "reprise/alloc.h"

typedef struct rp_tls rp_tls;

typedef struct rp_tls_files {
    const char *certificate; /* PEM, the server's chain */
    const char *key;         /* PEM */
    const char *client_ca;   /* PEM; NULL: client certificates are not requested */
    bool require_client_certificate;
} rp_tls_files;

/* Reads the files. RP_NOT_FOUND (names the file), RP_INVALID (OpenSSL rejects a file, or the
 * key does not match), RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_tls_new(const rp_allocator *alloc, const rp_tls_files *files,
                                  rp_tls **out, rp_error *err);

/* The files of a client; each may be NULL. */
typedef struct rp_tls_client_files {
    const char *ca;          /* PEM: trusted authorities; NULL: those of the system */
    const char *certificate; /* PEM, the client's chain; needs the key */
    const char *key;
} rp_tls_client_files;

/* As rp_tls_new(), for a client. Its sessions take the client's part in the handshake, and
 * accept only a server whose certificate is for the name that was passed to rp_link_expect().
 */
RP_NODISCARD rp_status rp_tls_new_client(const rp_allocator *alloc,
                                         const rp_tls_client_files *files, rp_tls **out,
                                         rp_error *err);
rp_tls *rp_tls_ref(rp_tls *tls);
void rp_tls_unref(rp_tls *tls); /* NULL is fine */

struct ssl_st;

/* Makes a session over `fd`, which is borrowed. The session holds a reference to `tls`. NULL:
 * no memory. */
struct ssl_st *rp_tls_new_session(rp_tls *tls, int fd);
void rp_tls_free_session(struct ssl_st *ssl); /* NULL is fine */

/* Tells the session whether another write will follow the next one without delay. If so, the
 * system may hold back the bytes of the next write to send them with those that follow. */
void rp_tls_set_more(struct ssl_st *ssl, bool more);

/* Set or raise the allowance: the number of bytes that the session may still read from the
 * descriptor. A read that needs more reports SSL_ERROR_WANT_READ. OpenSSL handles records
 * without application data inside SSL_read() and would continue for as long as they arrive; the
 * allowance makes it return. A session starts with 0. */
void rp_tls_set_allowance(struct ssl_st *ssl, size_t bytes);
void rp_tls_add_allowance(struct ssl_st *ssl, size_t bytes);

/* Starts to count records without application data. Each one also sets the allowance to 0. */
void rp_tls_count_idle(struct ssl_st *ssl);
/* Returns a count that starts with rp_tls_count_idle(). Each record without application data
 * adds 1: it contains an alert or handshake messages (KeyUpdate, NewSessionTicket, attempts to
 * renegotiate). Each handshake message in such a record adds another 1. */
uint64_t rp_tls_idle_records(const struct ssl_st *ssl);

/* Returns the reason for which a handshake message of the peer was refused by our limits
 * (tls_limits.h), or NULL. The handshake must not continue then. */
const char *rp_tls_refusal(const struct ssl_st *ssl);

/* Frees the certificates that a client has sent besides its own. OpenSSL needs them only to
 * verify that one, within one step of the handshake, but would keep them as long as the
 * session. Does nothing for a session of a client. */
void rp_tls_drop_chain(struct ssl_st *ssl);

#endif
