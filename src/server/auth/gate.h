/* SPDX-License-Identifier: Apache-2.0 */
/* The gate decides whether a peer is allowed to make a call (an RPC or a plain HTTP request),
 * by the credentials that the peer sends with the call.
 *
 * The gate holds the current rp_auth, the valid credentials, which a reload replaces. It also
 * limits guessing: an address may send 10 wrong tokens at once and one more every 6 s. If an
 * address sends more, its calls are refused without a check until enough time has passed. Of an
 * IPv6 address only the first 64 bits count. The gate remembers at most 1,024 guessers,
 * addresses that sent wrong tokens. The table of guessers is divided into sets of eight, and a
 * hash of the address selects the set. When a set is full, a new guesser replaces the guesser
 * of the set whose wrong tokens will all be forgotten first.
 *
 * A connection remembers the last credentials that were accepted on it (rp_gate_memo). A call
 * with remembered credentials is no guess, so it is not refused because of wrong tokens from
 * the same address. After a reload, the new rp_auth checks the remembered credentials again
 * when the peer sends them. If they are no longer valid, the connection forgets them.
 *
 * Any thread may call these functions. The gate has one lock (RP_RANK_GATE, util/mutex.h).
 * rp_gate_check() takes this lock only if the memo has no result of the current rp_auth for the
 * credentials. It holds the lock only while it looks up the guesser. */
#ifndef RP_SERVER_AUTH_GATE_H
#define RP_SERVER_AUTH_GATE_H

#include "server/auth/auth.h"
#include "server/bounds/refusal.h"

typedef struct rp_gate rp_gate;

enum {
    RP_GATE_BURST = 10,    /* wrong tokens that an address may send at once */
    RP_GATE_FORGIVE_S = 6, /* seconds after which one wrong token is forgotten */
    RP_GATE_PEERS = 1024,  /* addresses in the table of guessers */
    RP_GATE_ACCEPTED = 4,  /* credentials that a connection remembers */
};

/* Makes a gate, which the caller owns. Takes the caller's reference to `auth`, even on failure.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_gate_new(const rp_allocator *alloc, rp_auth *auth, rp_gate **out);
void rp_gate_free(rp_gate *gate); /* NULL is fine */

/* Replaces the rp_auth and takes the caller's reference to `auth`. Open calls stay open. The
 * new rp_auth checks the next call of every connection. */
void rp_gate_reload(rp_gate *gate, rp_auth *auth);

/* Credentials that were accepted on a connection. */
typedef struct rp_gate_accepted {
    uint64_t generation; /* generation of the rp_auth that accepted them last (each reload
                            raises the generation by 1); 0: the entry is empty */
    uint8_t digest[32];  /* SHA-256 of the credentials */
    rp_principal who;    /* their identity and role by that rp_auth */
} rp_gate_accepted;

/* The last credentials that were accepted on a connection. With a memo, the check of a call
 * with remembered credentials costs one hash and no lock. Each connection has a memo,
 * zero-initialised, and uses it on one thread at a time. */
typedef struct rp_gate_memo {
    uint64_t open; /* generation of the last rp_auth that required no credentials; 0: none */
    rp_gate_accepted *accepted; /* RP_GATE_ACCEPTED entries, or NULL */
    uint32_t next;              /* index of the entry to replace next */
} rp_gate_memo;

/* Frees what the gate has stored in the memo. */
void rp_gate_memo_deinit(const rp_gate *gate, rp_gate_memo *memo);

typedef struct rp_gate_result {
    rp_principal who; /* always written */
    rp_refusal why;   /* written on refusal: the reason, by which refusals are counted
                         (bounds/refusal.h) */
} rp_gate_result;

/* Checks whether a peer is allowed to make a call that needs the role `needed`. Returns RP_OK
 * if so, RP_UNAUTHENTICATED (no or wrong credentials, or too many wrong tokens before),
 * RP_DENIED (the role is too low) or RP_NO_RESOURCE. The text of the error may be sent to the
 * peer. `memo` is read and updated. `memo` and `result` may be NULL. A call that needs no role
 * is allowed without a check. */
RP_NODISCARD rp_status rp_gate_check(rp_gate *gate, const rp_credentials *shown, rp_role needed,
                                     int64_t now_ns, rp_gate_memo *memo, rp_gate_result *result,
                                     rp_error *err);

/* Returns a keyed hash of the address in "1.2.3.4:80", "[::1]:80" or "unix:/path", never 0. Of
 * an IPv6 address only the first 64 bits count. Any thread may call it. */
uint64_t rp_gate_peer(const rp_gate *gate, const char *peer);
/* Returns a keyed hash of an address (NULL: unknown) and the name of a principal, never 0. Any
 * thread may call it. */
uint64_t rp_gate_client(const rp_gate *gate, const char *peer, const char *name);

#endif
