/* SPDX-License-Identifier: Apache-2.0 */
/* The door: whether a peer may make a call, now.
 *
 * It holds the rp_auth of the moment, so that a reload is one call, and it brakes guessing: an
 * address with too many wrong tokens (10 at once, one more every 6 s) is refused unseen until
 * it has waited. An IPv6 address counts as its network of 64 bits. The brake is a bounded table
 * (1,024 addresses); where it is full, one that is nearer to being forgiven makes room.
 *
 * Any thread. One lock (rank 75), taken where the memo does not help, and held for a look at
 * the brake. */
#ifndef RP_SERVER_AUTH_GATE_H
#define RP_SERVER_AUTH_GATE_H

#include "server/auth/auth.h"
#include "server/bounds/refusal.h"

typedef struct rp_gate rp_gate;

enum {
    RP_GATE_BURST = 10,    /* wrong tokens in a row */
    RP_GATE_FORGIVE_S = 6, /* in which one of them is forgotten */
    RP_GATE_PEERS = 1024,
};

/* Takes the caller's reference to `auth`, in every case. RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_gate_new(const rp_allocator *alloc, rp_auth *auth, rp_gate **out);
void rp_gate_free(rp_gate *gate); /* NULL is fine */

/* Puts a new rp_auth in place; takes the caller's reference. Calls that are open stay open;
 * every memo is stale from now on. */
void rp_gate_reload(rp_gate *gate, rp_auth *auth);

/* What the last check of a connection found: keep one a connection, zeroed at first, and the
 * next call with the same header costs one hash and no look into the table. One thread at a
 * time. */
typedef struct rp_gate_memo {
    uint64_t generation; /* of the rp_auth; 0: nothing yet */
    bool open;           /* nobody needs credentials */
    uint8_t digest[32];  /* of what was shown */
    rp_principal who;
} rp_gate_memo;

/* Lets pass (RP_OK) or refuses: RP_UNAUTHENTICATED (nothing shown, something wrong, or braked),
 * RP_DENIED (known, but the role is too low), RP_NO_RESOURCE. The sentence is fit for the
 * peer. `memo` (may be NULL) is used and written. `*who` (may be NULL) is written in every
 * case, `*why` (may be NULL) on refusal: what to count. A call that needs no role passes
 * unseen. */
RP_NODISCARD rp_status rp_gate_check(rp_gate *gate, const rp_credentials *shown, rp_role needed,
                                     int64_t now_ns, rp_gate_memo *memo, rp_principal *who,
                                     rp_refusal *why, rp_error *err);

#endif
