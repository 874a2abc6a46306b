/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials and their roles: bearer tokens, stored as their SHA-256, and names of client
 * certificates. docs/security.md has the format of the tokens file and the rules.
 *
 * A rp_auth is immutable and reference counted: a reload makes a new one. Any thread. */
#ifndef RP_SERVER_AUTH_AUTH_H
#define RP_SERVER_AUTH_AUTH_H

#include "reprise/alloc.h"
#include "server/auth/method.h"

typedef struct rp_auth rp_auth;

enum {
    RP_AUTH_MAX_FILE_BYTES = 1 << 20,
    RP_AUTH_MAX_LINE_BYTES = 512,
    RP_AUTH_MAX_ENTRIES = 1024,
    RP_AUTH_MAX_NAME_BYTES = 64, /* of a name and of a certificate's common name */
    RP_AUTH_MAX_TOKEN_BYTES = 1024,
};

/* The sources of credentials. */
typedef struct rp_auth_source {
    const char *tokens; /* the text of a tokens file, borrowed for the call; NULL: none */
    size_t token_bytes;
    bool certificates; /* client certificates are requested and verified */
} rp_auth_source;

/* Parses the sources. With neither tokens nor certificates every peer has the role admin.
 * Returns owned.
 * RP_INVALID (names line and column; also a file without a single entry), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_auth_new(const rp_allocator *alloc, const rp_auth_source *source,
                                   rp_auth **out, rp_error *err);

/* As rp_auth_new(), with the tokens of the file `path`; NULL: no tokens. Further errors:
 * RP_NOT_FOUND, RP_DENIED (the file may not be read), RP_UNAVAILABLE (an error while reading).
 */
RP_NODISCARD rp_status rp_auth_load(const rp_allocator *alloc, const char *path,
                                    bool certificates, rp_auth **out, rp_error *err);

rp_auth *rp_auth_ref(rp_auth *auth);
void rp_auth_unref(rp_auth *auth); /* NULL is fine */

/* True if no credentials are configured, so that every peer has the role admin. Such a server
 * should listen on loopback addresses only. */
bool rp_auth_is_open(const rp_auth *auth);

/* The credentials of a peer. */
typedef struct rp_credentials {
    const char *authorization; /* the value of the header; NULL or "": none */
    const char *certificate;   /* common name of a verified certificate; NULL or "": there is no
                                  certificate, or it has no common name */
    const char *peer; /* address as rp_listener_accept() writes it, to count wrong tokens */
} rp_credentials;

/* The identity and role of a peer. */
typedef struct rp_principal {
    rp_role role;
    char name[RP_AUTH_MAX_NAME_BYTES + 1]; /* as in the tokens file; "": unknown */
} rp_principal;

/* Finds the identity of a peer. RP_OK, with the role none in `*out` if the peer has shown no
 * credentials. RP_UNAUTHENTICATED, with the role none, if they are wrong. A token must be
 * right, even if the certificate is accepted; if both are accepted, the higher role counts. The
 * time does not depend on which entry matches, or whether one does. */
RP_NODISCARD rp_status rp_auth_check(const rp_auth *auth, const rp_credentials *shown,
                                     rp_principal *out, rp_error *err);

#endif
