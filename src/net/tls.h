/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS configuration: a certificate, its key and trusted authorities. Uses OpenSSL with TLS
 * 1.2 and newer. ALPN offers "h2"; a server also offers "http/1.1". An rp_tls is immutable and
 * refcounted: a reload of the files makes a new rp_tls, and open connections keep the old
 * one. */
#ifndef RP_NET_TLS_H
#define RP_NET_TLS_H

#include "reprise/alloc.h"

typedef struct rp_tls rp_tls;

typedef struct rp_tls_files {
    const char *certificate; /* PEM file with the server's certificate chain */
    const char *key;         /* PEM file */
    const char *client_ca;   /* PEM file; NULL: client certificates are not requested */
    bool require_client_certificate;
} rp_tls_files;

/* Reads the files. Errors: RP_NOT_FOUND (the error text names the missing file), RP_INVALID
 * (OpenSSL rejects a file, or the key does not match), RP_NO_RESOURCE. The caller owns `*out`.
 */
RP_NODISCARD rp_status rp_tls_new(const rp_allocator *alloc, const rp_tls_files *files,
                                  rp_tls **out, rp_error *err);

/* The files of a client; each may be NULL. */
typedef struct rp_tls_client_files {
    const char *ca;          /* PEM file with trusted authorities; NULL: the authorities that
                                the system trusts */
    const char *certificate; /* PEM file with the client's certificate chain; needs `key` */
    const char *key;
} rp_tls_client_files;

/* As rp_tls_new(), but for a client: the sessions of this rp_tls take the client's part in the
 * handshake. They accept only a server whose certificate is valid for the name that was passed
 * to rp_link_expect(). */
RP_NODISCARD rp_status rp_tls_new_client(const rp_allocator *alloc,
                                         const rp_tls_client_files *files, rp_tls **out,
                                         rp_error *err);
rp_tls *rp_tls_ref(rp_tls *tls);
void rp_tls_unref(rp_tls *tls); /* NULL is fine */

struct ssl_st;

/* Makes a session over `fd`, which is borrowed. The session holds a reference to `tls`. Returns
 * NULL if there is no memory. */
struct ssl_st *rp_tls_new_session(rp_tls *tls, int fd);
void rp_tls_free_session(struct ssl_st *ssl); /* NULL is fine */

/* Says whether the caller will write again immediately after the next write. If `more` is true,
 * the system is allowed to hold back the bytes of the next write, and to send them together
 * with the bytes of the write after it. */
void rp_tls_set_more(struct ssl_st *ssl, bool more);

/* rp_tls_set_allowance() sets the allowance, the number of bytes that the session may still
 * read from the descriptor. rp_tls_add_allowance() raises it. A read that needs more bytes
 * reports SSL_ERROR_WANT_READ. Without this limit, one SSL_read() would process records without
 * application data as long as they arrive. A session starts with an allowance of 0. */
void rp_tls_set_allowance(struct ssl_st *ssl, size_t bytes);
void rp_tls_add_allowance(struct ssl_st *ssl, size_t bytes);

/* Starts to count records without application data. From now on, each record without
 * application data also sets the allowance to 0. */
void rp_tls_count_idle(struct ssl_st *ssl);
/* Returns the count that rp_tls_count_idle() has started. Each record without application data
 * adds 1, and each handshake message in the record adds another 1. A record without application
 * data contains an alert or handshake messages (KeyUpdate, NewSessionTicket, attempts to
 * renegotiate). */
uint64_t rp_tls_idle_records(const struct ssl_st *ssl);

/* For a session of a client: returns the file with trusted authorities, cut if it is long, or
 * NULL if those of the system are trusted. */
const char *rp_tls_ca(const struct ssl_st *ssl);

/* Returns the reason for which our limits (tls_limits.h) have refused a handshake message of
 * the peer, or NULL. If it is not NULL, the caller must not continue the handshake. */
const char *rp_tls_refusal(const struct ssl_st *ssl);

/* For a session of a server: frees the certificates that the client has sent in addition to its
 * own certificate. OpenSSL needs these certificates only within one step of the handshake, to
 * verify the client's own certificate, but would keep them as long as the session. Does nothing
 * for a session of a client. */
void rp_tls_drop_chain(struct ssl_st *ssl);

#endif
