/* SPDX-License-Identifier: Apache-2.0 */
/* The table of guessers has 128 sets of 8 addresses. A keyed hash gives the set, so that a peer
 * that chooses its addresses cannot choose which guesser it replaces. An address is added with
 * its first wrong token. In a full set the address whose wait ends first is replaced. So
 * replacing a guesser takes seven others in its set whose waits end later.
 *
 * Invariants, whenever mu is free:
 *   G1  an address is in the set that its hash gives, at most once;
 *   G2  `auth` is not NULL, and `generation` increases whenever it is replaced. */
#include "server/auth/gate.h"

#include <arpa/inet.h>
#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>

#include "server/bounds/bucket.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/rng.h"

enum {
    WAYS = 8,
    SETS = RP_GATE_PEERS / WAYS,
    MEMO_BYTES = RP_GATE_ACCEPTED * sizeof(rp_gate_accepted),
};

static const int64_t forgive_ns = (int64_t)RP_GATE_FORGIVE_S * 1000000000;

typedef struct guesser {
    uint64_t peer; /* rp_gate_peer() of the address; 0: free */
    rp_bucket bucket;
} guesser;

/* The result of a check. */
typedef struct finding {
    rp_gate_accepted accepted; /* `who` has the role none if they were not */
    bool open;                 /* no credentials are required */
    rp_refusal why;            /* if they were not accepted */
} finding;

struct rp_gate {
    rp_allocator alloc;
    EVP_MD *sha256;
    uint64_t seed;
    /* Generation of `auth`: raised under the lock, read without it. A thread that still reads
     * the old value decides by the old rp_auth. */
    atomic_uint_fast64_t generation;
    rp_mutex mu;
    rp_auth *auth RP_GUARDED_BY(mu);
    guesser guessers[SETS][WAYS] RP_GUARDED_BY(mu);
};

rp_status rp_gate_new(const rp_allocator *alloc, rp_auth *auth, rp_gate **out)
{
    rp_gate *gate = rp_alloc_zero(alloc, sizeof *gate);

    if (gate == NULL) {
        rp_auth_unref(auth);
        return RP_NO_RESOURCE;
    }
    gate->alloc = *alloc;
    gate->auth = auth;
    gate->seed = rp_system_seed();
    atomic_init(&gate->generation, 1);
    rp_mutex_init(&gate->mu, RP_RANK_GATE);
    gate->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (gate->sha256 == NULL) {
        rp_gate_free(gate);
        return RP_NO_RESOURCE;
    }
    *out = gate;
    return RP_OK;
}

void rp_gate_free(rp_gate *gate)
{
    rp_allocator alloc;

    if (gate == NULL) return;
    alloc = gate->alloc;
    rp_auth_unref(gate->auth);
    EVP_MD_free(gate->sha256);
    rp_mutex_deinit(&gate->mu);
    rp_release(&alloc, gate, sizeof *gate);
}

void rp_gate_reload(rp_gate *gate, rp_auth *auth)
{
    rp_auth *old;

    rp_mutex_lock(&gate->mu);
    old = gate->auth;
    assert(old != NULL && auth != NULL); /* G2 */
    gate->auth = auth;
    atomic_fetch_add_explicit(&gate->generation, 1, memory_order_release);
    rp_mutex_unlock(&gate->mu);
    rp_auth_unref(old);
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *text != '\0'; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

uint64_t rp_gate_peer(const rp_gate *gate, const char *peer)
{
    char address[INET6_ADDRSTRLEN];
    const char *host = peer[0] == '[' ? peer + 1 : peer;
    size_t length = strcspn(host, peer[0] == '[' ? "]%" : ":");
    uint8_t v6[16];
    uint64_t number = 0, state;

    if (length < sizeof address) {
        memcpy(address, host, length);
        address[length] = '\0';
        if (peer[0] == '[' && inet_pton(AF_INET6, address, v6) == 1)
            memcpy(&number, v6, sizeof number);
        else
            number = hash_text(address);
    }
    state = number ^ gate->seed;
    return rp_splitmix64(&state) | 1;
}

uint64_t rp_gate_client(const rp_gate *gate, const char *peer, const char *name)
{
    uint64_t state = rp_gate_peer(gate, peer != NULL ? peer : "") ^ hash_text(name);

    return rp_splitmix64(&state) | 1;
}

/* The guesser with that number, or NULL. */
static guesser *find_locked(rp_gate *gate, uint64_t peer) RP_REQUIRES(gate->mu)
{
    guesser *set = gate->guessers[(peer >> 8) % SETS];

    for (size_t i = 0; i < WAYS; i++)
        if (set[i].peer == peer) return &set[i];
    return NULL;
}

static bool is_shown(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static rp_bucket_rate guess_rate(void)
{
    return (rp_bucket_rate){forgive_ns, RP_GATE_BURST * forgive_ns};
}

/* Returns the current rp_auth, with a reference, and its generation; NULL if the peer has to
 * wait, which it never has to if `was_accepted`. */
static rp_auth *enter(rp_gate *gate, const rp_credentials *shown, int64_t now_ns,
                      bool was_accepted, uint64_t *generation)
{
    rp_bucket_rate rate = guess_rate();
    guesser *g = NULL;
    rp_auth *auth = NULL;

    rp_mutex_lock(&gate->mu);
    if (!was_accepted && is_shown(shown->authorization) && shown->peer != NULL &&
        !rp_auth_is_open(gate->auth))
        g = find_locked(gate, rp_gate_peer(gate, shown->peer));
    if (g == NULL || rp_bucket_can_spend(&g->bucket, &rate, now_ns)) {
        auth = rp_auth_ref(gate->auth);
        *generation = atomic_load_explicit(&gate->generation, memory_order_relaxed);
    }
    rp_mutex_unlock(&gate->mu);
    return auth;
}

static void count_guess(rp_gate *gate, const char *peer, int64_t now_ns)
{
    rp_bucket_rate rate = guess_rate();
    uint64_t number;
    guesser *g;

    if (peer == NULL) return;
    number = rp_gate_peer(gate, peer);
    assert(number != 0);
    rp_mutex_lock(&gate->mu);
    g = find_locked(gate, number);
    if (g == NULL) {
        g = gate->guessers[(number >> 8) % SETS];
        for (guesser *other = g + 1; other < gate->guessers[(number >> 8) % SETS] + WAYS;
             other++)
            if (other->bucket.full_at_ns < g->bucket.full_at_ns) g = other;
        assert(g < gate->guessers[(number >> 8) % SETS] + WAYS); /* G1 */
        *g = (guesser){.peer = number};
    }
    (void)rp_bucket_spend(&g->bucket, &rate, now_ns);
    rp_mutex_unlock(&gate->mu);
}

/* A digest of all credentials. False if it cannot be computed. */
static bool digest_of(const rp_gate *gate, const rp_credentials *shown, uint8_t *digest)
{
    char text[RP_AUTH_MAX_TOKEN_BYTES + RP_AUTH_MAX_NAME_BYTES + 16];
    const char *certificate = shown->certificate != NULL ? shown->certificate : "";
    const char *header = shown->authorization;
    int length = snprintf(text, sizeof text, "%s\n%c%s", certificate,
                          header != NULL ? '+' : '-', header != NULL ? header : "");

    if (length < 0 || (size_t)length >= sizeof text) return false;
    return EVP_Digest(text, (size_t)length, digest, NULL, gate->sha256, NULL) == 1;
}

static bool is_current(const rp_gate *gate, uint64_t generation)
{
    return generation == atomic_load_explicit(&gate->generation, memory_order_acquire);
}

/* The place of these credentials in the memo, or NULL. Takes the same time for all. */
static rp_gate_accepted *recall(rp_gate_memo *memo, const uint8_t *digest)
{
    rp_gate_accepted *found = NULL;

    for (size_t i = 0; memo->accepted != NULL && i < RP_GATE_ACCEPTED; i++) {
        rp_gate_accepted *a = &memo->accepted[i];
        if (CRYPTO_memcmp(a->digest, digest, sizeof a->digest) == 0 && a->generation != 0)
            found = a;
    }
    return found;
}

/* Finds out who the peer is, without the memo. If `was_accepted`, the connection had these
 * credentials accepted before: they are no guess, even if a reload has removed them. */
static rp_status identify(rp_gate *gate, const rp_credentials *shown, int64_t now_ns,
                          bool was_accepted, finding *found, rp_error *err)
{
    rp_auth *auth = enter(gate, shown, now_ns, was_accepted, &found->accepted.generation);
    rp_status st;

    if (auth == NULL) {
        found->why = RP_REFUSED_AUTH_BRAKE;
        return rp_fail(err, RP_UNAUTHENTICATED,
                       "too many wrong tokens came from this address: try again in %d seconds",
                       RP_GATE_FORGIVE_S);
    }
    found->open = rp_auth_is_open(auth);
    st = rp_auth_check(auth, shown, &found->accepted.who, err);
    rp_auth_unref(auth);
    if (st == RP_UNAUTHENTICATED) {
        found->why = RP_REFUSED_UNAUTHENTICATED;
        if (!was_accepted) count_guess(gate, shown->peer, now_ns);
    } else if (st != RP_OK) {
        found->why = RP_REFUSED_MEMORY;
    }
    return st;
}

/* Stores the result of a check in the memo. `place`, if not NULL, has the same credentials. Any
 * token is right for an rp_auth that is open, so such a token may be a guess later. Calls
 * without a role are not remembered, so they do not replace tokens. Without memory nothing is
 * remembered. */
static void remember(const rp_gate *gate, rp_gate_memo *memo, rp_gate_accepted *place,
                     rp_status st, const finding *found)
{
    if (st == RP_OK && found->open) {
        memo->open = found->accepted.generation;
    } else if (st == RP_OK && found->accepted.who.role > RP_ROLE_NONE) {
        if (memo->accepted == NULL) memo->accepted = rp_alloc_zero(&gate->alloc, MEMO_BYTES);
        if (memo->accepted == NULL) return;
        if (place == NULL) {
            place = &memo->accepted[memo->next];
            memo->next = (memo->next + 1) % RP_GATE_ACCEPTED;
        }
        *place = found->accepted;
    } else if ((st == RP_OK || st == RP_UNAUTHENTICATED) && place != NULL) {
        *place = (rp_gate_accepted){0};
    }
}

void rp_gate_memo_deinit(const rp_gate *gate, rp_gate_memo *memo)
{
    rp_release(&gate->alloc, memo->accepted, MEMO_BYTES);
    memo->accepted = NULL;
}

/* Checks whether the role is high enough. */
static rp_status weigh(const rp_credentials *shown, const rp_principal *who, rp_role needed,
                       rp_refusal *why, rp_error *err)
{
    assert(needed > RP_ROLE_NONE);
    if (who->role >= needed) return RP_OK;
    *why = RP_REFUSED_DENIED;
    if (who->role > RP_ROLE_NONE)
        return rp_fail(err, RP_DENIED, "'%s' has the role %s, and this needs %s",
                       who->name[0] != '\0' ? who->name : "certificate",
                       rp_role_name(who->role), rp_role_name(needed));
    if (is_shown(shown->certificate))
        return rp_fail(
            err, RP_DENIED,
            "no role is given to the name of this certificate: the tokens file needs "
            "a line such as '%s NAME cert:%.64s'",
            rp_role_name(needed), shown->certificate);
    *why = RP_REFUSED_UNAUTHENTICATED;
    return rp_fail(err, RP_UNAUTHENTICATED,
                   "this needs the role %s: send 'authorization: Bearer <token>'",
                   rp_role_name(needed));
}

rp_status rp_gate_check(rp_gate *gate, const rp_credentials *shown, rp_role needed,
                        int64_t now_ns, rp_gate_memo *memo, rp_gate_result *result,
                        rp_error *err)
{
    finding found = {.why = RP_REFUSED_DECODE};
    rp_gate_accepted *place = NULL;
    rp_gate_result ignored;
    rp_status st = RP_OK;

    assert(needed >= RP_ROLE_NONE && needed <= RP_ROLE_ADMIN);
    if (result == NULL) result = &ignored;
    result->who = (rp_principal){.role = RP_ROLE_NONE};
    if (needed == RP_ROLE_NONE) return RP_OK;
    if (memo != NULL && is_current(gate, memo->open)) {
        result->who.role = RP_ROLE_ADMIN;
        return RP_OK;
    }
    if (memo != NULL && digest_of(gate, shown, found.accepted.digest))
        place = recall(memo, found.accepted.digest);
    else
        memo = NULL; /* without a digest the memo cannot be used */
    if (place != NULL && is_current(gate, place->generation)) {
        found.accepted.who = place->who;
    } else {
        st = identify(gate, shown, now_ns, place != NULL, &found, err);
        if (memo != NULL) remember(gate, memo, place, st, &found);
    }
    result->who = found.accepted.who;
    if (st == RP_OK) return weigh(shown, &result->who, needed, &result->why, err);
    result->why = found.why;
    return st;
}
