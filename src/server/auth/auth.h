/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: bearer tokens, kept as their SHA-256, and names of client certificates.
 * docs/security.md has the format of the tokens file and the rules.
 *
 * Immutable and counted: a reload makes a new one. Every call is safe from any thread. */
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

/* Where credentials come from. */
typedef struct rp_auth_source {
    const char
        *tokens; /* the text of a tokens file, borrowed for the call; NULL: there is none */
    size_t token_bytes;
    bool certificates; /* client certificates are asked for and checked */
} rp_auth_source;

/* Makes one from text: a pure function of it. With neither tokens nor certificates everybody is
 * an administrator. Returns owned.
 * RP_INVALID (names line and column; also a file without a single entry), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_auth_new(const rp_allocator *alloc, const rp_auth_source *source,
                                   rp_auth **out, rp_error *err);

/* The same from a file; `path` NULL: there is none. Further: RP_NOT_FOUND, RP_DENIED (may not
 * be read), RP_UNAVAILABLE (an error while reading). */
RP_NODISCARD rp_status rp_auth_load(const rp_allocator *alloc, const char *path,
                                    bool certificates, rp_auth **out, rp_error *err);

rp_auth *rp_auth_ref(rp_auth *auth);
void rp_auth_unref(rp_auth *auth); /* NULL is fine */

/* True if there are no credentials at all, so that everybody is an administrator: a server then
 * belongs on loopback addresses. */
bool rp_auth_is_open(const rp_auth *auth);

/* What a peer has shown. Strings end in a zero. */
typedef struct rp_credentials {
    const char *authorization; /* the value of the header; NULL or "": none */
    const char *certificate;   /* common name of a certificate that was verified; NULL or "":
                                  none, which is what a certificate without one counts as */
    const char *peer;          /* address as rp_listener_accept() writes it, for the brake */
} rp_credentials;

/* Who that is. */
typedef struct rp_principal {
    rp_role role;
    char name[RP_AUTH_MAX_NAME_BYTES + 1]; /* as in the file; "" if nobody is known by name */
} rp_principal;

/* Tells who somebody is. RP_OK, perhaps with the role none (nothing was shown), or
 * RP_UNAUTHENTICATED: something was shown and is wrong, `*out` has the role none. A token
 * that is sent must be right, even beside a good certificate; with both, the higher role
 * counts. Takes the same time whichever entry matches, or none. */
RP_NODISCARD rp_status rp_auth_check(const rp_auth *auth, const rp_credentials *shown,
                                     rp_principal *out, rp_error *err);

#endif
