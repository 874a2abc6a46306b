/* SPDX-License-Identifier: Apache-2.0 */
/* rp_auth holds the credentials that a server accepts from its peers, and the role that each of
 * them gives. Credentials are bearer tokens, stored as SHA-256 hashes, and names of client
 * certificates. docs/security.md has the rules and the format of the tokens file, which lists
 * the credentials.
 *
 * An rp_auth is immutable and reference counted, so any thread may use it. A reload makes a new
 * rp_auth. */
#ifndef RP_SERVER_AUTH_AUTH_H
#define RP_SERVER_AUTH_AUTH_H

#include "reprise/alloc.h"
#include "server/auth/method.h"

typedef struct rp_auth rp_auth;

enum {
    RP_AUTH_MAX_FILE_BYTES = 1 << 20,
    RP_AUTH_MAX_LINE_BYTES = 512,
    RP_AUTH_MAX_ENTRIES = 1024,
    RP_AUTH_MAX_NAME_BYTES = 64, /* of a name in the tokens file or a certificate */
    RP_AUTH_MAX_TOKEN_BYTES = 1024,
};

/* The sources of credentials. */
typedef struct rp_auth_source {
    const char *tokens; /* the text of a tokens file, borrowed for the call; NULL: none */
    size_t token_bytes;
    bool certificates; /* whether the server requests and verifies client certificates */
} rp_auth_source;

/* Parses the sources and makes an rp_auth, which the caller owns. If source->tokens is NULL and
 * source->certificates is false, the server is open: every peer has the role admin. Errors:
 * RP_INVALID (the text is malformed or has no entry; the error text names the line and column),
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_auth_new(const rp_allocator *alloc, const rp_auth_source *source,
                                   rp_auth **out, rp_error *err);

/* As rp_auth_new(), with the tokens in the file `path`. If `path` is NULL, there are no tokens.
 * Further errors: RP_NOT_FOUND, RP_DENIED (the process has no permission to read the file),
 * RP_UNAVAILABLE (an error while reading). */
RP_NODISCARD rp_status rp_auth_load(const rp_allocator *alloc, const char *path,
                                    bool certificates, rp_auth **out, rp_error *err);

rp_auth *rp_auth_ref(rp_auth *auth);
void rp_auth_unref(rp_auth *auth); /* NULL is fine */

/* Returns true if the server is open: no credentials are configured, so every peer has the role
 * admin. An open server should listen on loopback addresses only. */
bool rp_auth_is_open(const rp_auth *auth);

/* The credentials that a peer has sent. */
typedef struct rp_credentials {
    const char *authorization; /* value of the header `authorization`; NULL or "": none */
    const char *certificate;   /* common name of a verified certificate; NULL or "": there is no
                                  certificate, or it has no common name */
    const char *peer;          /* address from rp_listener_accept(). The gate (gate.h) counts
                                  wrong tokens by this address; rp_auth does not use it */
} rp_credentials;

/* The identity and role of a peer. */
typedef struct rp_principal {
    rp_role role;
    char name[RP_AUTH_MAX_NAME_BYTES + 1]; /* as in the tokens file; "": unknown */
} rp_principal;

/* Finds the identity and role of a peer. If the server is open (rp_auth_is_open()), the role is
 * admin, whatever the peer has sent. Otherwise, if the peer has sent no credentials, returns
 * RP_OK with the role none in `*out`. If the credentials are wrong, returns RP_UNAUTHENTICATED
 * with the role none. A wrong token is an error even if the certificate is accepted. If both
 * the token and the certificate are accepted, the peer has the higher of their roles. The
 * duration of the check does not depend on which entry matches, or whether any entry matches.
 */
RP_NODISCARD rp_status rp_auth_check(const rp_auth *auth, const rp_credentials *shown,
                                     rp_principal *out, rp_error *err);

#endif
