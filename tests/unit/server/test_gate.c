/* SPDX-License-Identifier: Apache-2.0 */
#include "server/auth/gate.h"

#include <pthread.h>
#include <stdio.h>

#include "support/unit.h"

#define READER "sha256:3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30"
#define BOSS "sha256:a5e7c002443743c5836758c7d1cd8ddefd9fcf2061daa0efaac683fb99966057"

/* rp_gate_check() with each part of its result in a place of its own, or NULL. */
static rp_status check_as(rp_gate *gate, const rp_credentials *shown, rp_role needed,
                          int64_t now_ns, rp_gate_memo *memo, rp_principal *who,
                          rp_refusal *why, rp_error *err)
{
    rp_gate_result result = {.why = why != NULL ? *why : RP_REFUSED_DECODE};
    rp_status st = rp_gate_check(gate, shown, needed, now_ns, memo, &result, err);

    if (who != NULL) *who = result.who;
    if (why != NULL) *why = result.why;
    return st;
}

static const int64_t second_ns = 1000000000;

static rp_auth *auth_of(const rp_allocator *alloc, const char *text, bool certificates)
{
    rp_auth_source source = {text, text != NULL ? strlen(text) : 0, certificates};
    rp_auth *auth = NULL;

    return rp_auth_new(alloc, &source, &auth, NULL) == RP_OK ? auth : NULL;
}

static rp_gate *make(const char *text, bool certificates)
{
    rp_auth *auth = auth_of(rp_allocator_default(), text, certificates);
    rp_gate *gate = NULL;

    assert_non_null(auth);
    assert_ok(rp_gate_new(rp_allocator_default(), auth, &gate));
    return gate;
}

static const char two[] = "read r " READER "\nadmin b " BOSS "\n";

/* A call from `peer` with that header that needs that role. */
static rp_status call(rp_gate *gate, const char *header, const char *peer, rp_role needed,
                      int64_t now_ns, rp_refusal *why)
{
    rp_credentials shown = {.authorization = header, .peer = peer};

    return check_as(gate, &shown, needed, now_ns, NULL, NULL, why, NULL);
}

static void every_role_passes_its_methods_and_none_above(void **state)
{
    static const char text[] = "read r cert:read\nwrite w cert:write\nadmin a cert:admin\n";
    static const char *const names[] = {"nobody", "read", "write", "admin"};
    rp_gate *gate = make(text, true);

    (void)state;
    for (rp_role has = RP_ROLE_NONE; has <= RP_ROLE_ADMIN; has++)
        for (rp_role needed = RP_ROLE_NONE; needed <= RP_ROLE_ADMIN; needed++) {
            rp_credentials shown = {.certificate = names[has], .peer = "1.2.3.4:5"};
            rp_refusal why = RP_REFUSAL_COUNT;
            rp_status st = check_as(gate, &shown, needed, 0, NULL, NULL, &why, NULL);

            assert_int_equal(st, has >= needed ? RP_OK : RP_DENIED);
            assert_int_equal(why, has >= needed ? RP_REFUSAL_COUNT : RP_REFUSED_DENIED);
        }
    rp_gate_free(gate);
}

static void refusals_name_the_missing_role(void **state)
{
    rp_gate *gate = make(two, true);
    rp_credentials nothing = {.peer = "1.2.3.4:5"}, reader = {.authorization = "Bearer reader"},
                   wrong = {.authorization = "Bearer x", .peer = "1.2.3.4:5"},
                   named = {.certificate = "no\x1b"
                                           "body",
                            .peer = "1.2.3.4:5"};
    rp_principal who;
    rp_refusal why;
    rp_error err;

    (void)state;
    assert_fails(check_as(gate, &nothing, RP_ROLE_READ, 0, NULL, &who, &why, &err),
                 RP_UNAUTHENTICATED, &err, "this needs the role read: send 'authorization");
    assert_int_equal(why, RP_REFUSED_UNAUTHENTICATED);
    assert_fails(check_as(gate, &reader, RP_ROLE_ADMIN, 0, NULL, &who, &why, &err), RP_DENIED,
                 &err, "'r' has the role read, and this needs admin");
    assert_string_equal(who.name, "r");
    assert_fails(check_as(gate, &wrong, RP_ROLE_READ, 0, NULL, &who, &why, &err),
                 RP_UNAUTHENTICATED, &err, "not known");
    assert_int_equal(who.role, RP_ROLE_NONE);
    rp_gate_free(gate);

    gate = make("read r cert:read\n", true);
    assert_fails(check_as(gate, &named, RP_ROLE_WRITE, 0, NULL, &who, &why, &err), RP_DENIED,
                 &err,
                 "no role is given to the name of this certificate: the tokens file needs a "
                 "line such as 'write NAME cert:no\\x1bbody'");
    rp_gate_free(gate);
}

static void an_open_gate_lets_every_call_pass(void **state)
{
    rp_gate *gate = make(NULL, false);
    rp_gate_memo memo = {0};
    rp_credentials shown = {.authorization = "Bearer nonsense", .peer = "1.2.3.4:5"};

    (void)state;
    for (int i = 0; i < 3 * RP_GATE_BURST; i++)
        assert_ok(check_as(gate, &shown, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL));
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

static void guessing_is_rate_limited_after_a_burst(void **state)
{
    rp_gate *gate = make(two, false);
    const char *peer = "10.0.0.1:1000";
    rp_refusal why;

    (void)state;
    for (int i = 0; i < RP_GATE_BURST; i++) {
        assert_int_equal(call(gate, "Bearer guess", peer, RP_ROLE_READ, 0, &why),
                         RP_UNAUTHENTICATED);
        assert_int_equal(why, RP_REFUSED_UNAUTHENTICATED);
    }
    /* from now on even the right one is refused unseen, from whatever port */
    assert_int_equal(call(gate, "Bearer boss", "10.0.0.1:2000", RP_ROLE_READ, 0, &why),
                     RP_UNAUTHENTICATED);
    assert_int_equal(why, RP_REFUSED_AUTH_BRAKE);
    /* but not from elsewhere, and not what needs no role */
    assert_ok(call(gate, "Bearer boss", "10.0.0.2:1000", RP_ROLE_READ, 0, &why));
    assert_ok(call(gate, "Bearer guess", peer, RP_ROLE_NONE, 0, &why));
    rp_gate_free(gate);
}

static void a_rate_limited_address_is_admitted_again_in_time(void **state)
{
    rp_gate *gate = make(two, false);
    const char *peer = "10.0.0.1:1000";
    int64_t forgiven_ns = RP_GATE_FORGIVE_S * second_ns;

    (void)state;
    for (int i = 0; i < RP_GATE_BURST; i++)
        assert_int_equal(call(gate, "Bearer guess", peer, RP_ROLE_READ, 0, NULL),
                         RP_UNAUTHENTICATED);
    assert_int_equal(call(gate, "Bearer boss", peer, RP_ROLE_READ, forgiven_ns - 1, NULL),
                     RP_UNAUTHENTICATED);
    assert_ok(call(gate, "Bearer boss", peer, RP_ROLE_READ, forgiven_ns, NULL));
    assert_ok(call(gate, "Bearer boss", peer, RP_ROLE_READ, forgiven_ns, NULL));
    assert_int_equal(call(gate, "Bearer guess", peer, RP_ROLE_READ, forgiven_ns, NULL),
                     RP_UNAUTHENTICATED);
    assert_int_equal(call(gate, "Bearer boss", peer, RP_ROLE_READ, forgiven_ns, NULL),
                     RP_UNAUTHENTICATED);
    rp_gate_free(gate);
}

static void a_call_without_a_token_is_not_a_guess(void **state)
{
    rp_gate *gate = make(two, false);

    (void)state;
    for (int i = 0; i < 10 * RP_GATE_BURST; i++)
        assert_int_equal(
            call(gate, i % 2 == 0 ? NULL : "", "10.0.0.1:1", RP_ROLE_READ, 0, NULL),
            RP_UNAUTHENTICATED);
    assert_ok(call(gate, "Bearer boss", "10.0.0.1:1", RP_ROLE_ADMIN, 0, NULL));
    rp_gate_free(gate);
}

/* Fills the budget of `guilty`, and tells whether `other` is braked with it. */
static bool are_one(const char *guilty, const char *other)
{
    rp_gate *gate = make(two, false);
    rp_status st;

    for (int i = 0; i < RP_GATE_BURST; i++)
        assert_int_equal(call(gate, "Bearer guess", guilty, RP_ROLE_READ, 0, NULL),
                         RP_UNAUTHENTICATED);
    st = call(gate, "Bearer boss", other, RP_ROLE_READ, 0, NULL);
    rp_gate_free(gate);
    return st != RP_OK;
}

static void addresses_are_grouped_by_network(void **state)
{
    (void)state;
    assert_true(are_one("10.0.0.1:1", "10.0.0.1:65535"));
    assert_false(are_one("10.0.0.1:1", "10.0.0.11:1"));
    assert_true(are_one("[2001:db8:1:2:3:4:5:6]:1", "[2001:db8:1:2::9]:2")); /* one network */
    assert_false(are_one("[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1"));
    assert_true(are_one("[fe80::1%eth0]:1", "[fe80::2%eth1]:1"));
    assert_true(are_one("unix:", "unix:/run/x"));
    assert_false(are_one("unix:", "10.0.0.1:1"));
    assert_true(are_one("", ""));
    assert_false(are_one("[nonsense", "10.0.0.1:1"));
}

static void many_guessers_do_not_evict_a_frequent_one(void **state)
{
    rp_gate *gate = make(two, false);
    char peer[32];

    (void)state;
    for (int i = 0; i < RP_GATE_BURST; i++)
        (void)call(gate, "Bearer guess", "10.9.9.9:1", RP_ROLE_READ, 0, NULL);
    for (int i = 0; i < 20 * RP_GATE_PEERS; i++) { /* one guess each */
        (void)snprintf(peer, sizeof peer, "10.1.%d.%d:1", i / 256, i % 256);
        assert_int_equal(call(gate, "Bearer guess", peer, RP_ROLE_READ, 0, NULL),
                         RP_UNAUTHENTICATED);
    }
    assert_int_equal(call(gate, "Bearer boss", "10.9.9.9:1", RP_ROLE_READ, 0, NULL),
                     RP_UNAUTHENTICATED);
    rp_gate_free(gate);
}

static void a_memo_matches_only_the_same_header(void **state)
{
    rp_gate *gate = make(two, false);
    rp_gate_memo memo = {0};
    rp_credentials boss = {.authorization = "Bearer boss", .peer = "10.0.0.1:1"},
                   guess = {.authorization = "Bearer guess", .peer = "10.0.0.1:1"},
                   nothing = {.peer = "10.0.0.1:1"};
    rp_principal who;

    (void)state;
    assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, &who, NULL, NULL));
    assert_string_equal(who.name, "b");
    for (int i = 0; i < RP_GATE_BURST; i++)
        assert_int_equal(check_as(gate, &guess, RP_ROLE_READ, 0, &memo, &who, NULL, NULL),
                         RP_UNAUTHENTICATED);
    /* known already, so the brake does not concern it */
    assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, &who, NULL, NULL));
    assert_string_equal(who.name, "b");
    assert_int_equal(check_as(gate, &nothing, RP_ROLE_READ, 0, &memo, &who, NULL, NULL),
                     RP_UNAUTHENTICATED);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

/* What cannot be told apart must not be remembered as one. */
static void a_memo_distinguishes_header_and_certificate(void **state)
{
    rp_gate *gate = make("admin a cert:x\nread r " READER, true);
    rp_gate_memo memo = {0};
    rp_credentials both = {.authorization = "Bearer reader", .certificate = "x"},
                   header = {.authorization = "Bearer reader"};
    rp_principal who;

    (void)state;
    assert_ok(check_as(gate, &both, RP_ROLE_READ, 0, &memo, &who, NULL, NULL));
    assert_int_equal(who.role, RP_ROLE_ADMIN);
    assert_ok(check_as(gate, &header, RP_ROLE_READ, 0, &memo, &who, NULL, NULL));
    assert_int_equal(who.role, RP_ROLE_READ);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

static void a_reload_makes_every_memo_stale(void **state)
{
    rp_gate *gate = make(two, false);
    rp_gate_memo memo = {0};
    rp_credentials boss = {.authorization = "Bearer boss", .peer = "10.0.0.1:1"};

    (void)state;
    assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL));
    rp_gate_reload(gate, auth_of(rp_allocator_default(), "read b " BOSS, false));
    assert_int_equal(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL),
                     RP_DENIED);
    rp_gate_reload(gate, auth_of(rp_allocator_default(), NULL, false)); /* open */
    assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL));
    rp_gate_reload(gate, auth_of(rp_allocator_default(), "read r " READER, false));
    assert_int_equal(check_as(gate, &boss, RP_ROLE_READ, 0, &memo, NULL, NULL, NULL),
                     RP_UNAUTHENTICATED);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

/* As many wrong tokens as make the gate refuse all others from that address. */
static void guess_too_often(rp_gate *gate, const char *peer)
{
    for (int i = 0; i < RP_GATE_BURST; i++)
        assert_int_equal(call(gate, "Bearer guess", peer, RP_ROLE_READ, 0, NULL),
                         RP_UNAUTHENTICATED);
}

static void a_reload_leaves_accepted_tokens_exempt_from_the_brake(void **state)
{
    rp_gate *gate = make(two, false);
    rp_gate_memo memo = {0};
    rp_credentials boss = {.authorization = "Bearer boss", .peer = "10.0.0.1:1"};
    rp_refusal why;

    (void)state;
    assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL));
    guess_too_often(gate, boss.peer);
    for (int i = 0; i < 3; i++) {
        rp_gate_reload(gate, auth_of(rp_allocator_default(), two, false));
        for (int k = 0; k < 3; k++)
            assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL));
    }
    /* another connection from the address has to wait */
    assert_int_equal(call(gate, "Bearer boss", boss.peer, RP_ROLE_READ, 0, &why),
                     RP_UNAUTHENTICATED);
    assert_int_equal(why, RP_REFUSED_AUTH_BRAKE);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

static void a_removed_token_is_checked_once_and_then_is_a_guess(void **state)
{
    rp_gate *gate = make(two, false);
    rp_gate_memo memo = {0};
    rp_credentials boss = {.authorization = "Bearer boss", .peer = "10.0.0.1:1"};
    rp_refusal why;

    (void)state;
    assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL));
    rp_gate_reload(gate, auth_of(rp_allocator_default(), "read r " READER, false));
    for (int i = 0; i < RP_GATE_BURST + 1; i++) { /* the first is not counted */
        assert_int_equal(check_as(gate, &boss, RP_ROLE_READ, 0, &memo, NULL, &why, NULL),
                         RP_UNAUTHENTICATED);
        assert_int_equal(why, RP_REFUSED_UNAUTHENTICATED);
    }
    rp_gate_reload(gate, auth_of(rp_allocator_default(), two, false));
    assert_int_equal(check_as(gate, &boss, RP_ROLE_READ, 0, &memo, NULL, &why, NULL),
                     RP_UNAUTHENTICATED);
    assert_int_equal(why, RP_REFUSED_AUTH_BRAKE);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

/* The tokens t0 to t4. */
static const char five[] =
    "read r0 sha256:512f26ada3c3d634ac3c6b12b7b33cb50bb0963c3f6d9924241619c84ec78ff2\n"
    "read r1 sha256:628b49d96dcde97a430dd4f597705899e09a968f793491e4b704cae33a40dc02\n"
    "read r2 sha256:c44474038d459e40e4714afefa7bf8dae9f9834b22f5e8ec1dd434ecb62b512e\n"
    "read r3 sha256:cece8a9cecfb6c7e7ee4f3346d5e2544138bfb6e33bec6042a17333a4d3180b0\n"
    "read r4 sha256:a2f1a68a3cf7bab14245ba34e6a348b6822aceb4a9ec7ad04a86c2c93ca1a28a\n";

static void a_connection_may_use_several_tokens_in_turn(void **state)
{
    static const char *const headers[] = {"Bearer t0", "Bearer t1", "Bearer t2", "Bearer t3",
                                          "Bearer t4"};
    rp_gate *gate = make(five, false);
    rp_gate_memo memo = {0};
    rp_credentials shown = {.peer = "10.0.0.1:1"};
    rp_principal who;
    rp_refusal why;

    (void)state;
    for (size_t i = 0; i <= RP_GATE_ACCEPTED; i++) {
        shown.authorization = headers[i];
        assert_ok(check_as(gate, &shown, RP_ROLE_READ, 0, &memo, NULL, NULL, NULL));
    }
    shown.authorization = NULL; /* is not remembered instead of one of them */
    assert_int_equal(check_as(gate, &shown, RP_ROLE_READ, 0, &memo, NULL, NULL, NULL),
                     RP_UNAUTHENTICATED);
    guess_too_often(gate, shown.peer);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 1; i <= RP_GATE_ACCEPTED; i++) {
            shown.authorization = headers[i];
            assert_ok(check_as(gate, &shown, RP_ROLE_READ, 0, &memo, &who, NULL, NULL));
            assert_int_equal(who.name[1], '0' + (int)i);
        }
        if (round % 2 == 0) rp_gate_reload(gate, auth_of(rp_allocator_default(), five, false));
    }
    shown.authorization = headers[0]; /* one more than it remembers */
    assert_int_equal(check_as(gate, &shown, RP_ROLE_READ, 0, &memo, NULL, &why, NULL),
                     RP_UNAUTHENTICATED);
    assert_int_equal(why, RP_REFUSED_AUTH_BRAKE);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

/* Without credentials every token passes, so none of them is known to be right. */
static void tokens_sent_to_an_open_gate_are_guesses_later(void **state)
{
    rp_gate *gate = make(NULL, false);
    rp_gate_memo memo = {0};
    rp_credentials boss = {.authorization = "Bearer boss", .peer = "10.0.0.1:1"};
    rp_refusal why;

    (void)state;
    assert_ok(check_as(gate, &boss, RP_ROLE_ADMIN, 0, &memo, NULL, NULL, NULL));
    rp_gate_reload(gate, auth_of(rp_allocator_default(), two, false));
    guess_too_often(gate, boss.peer);
    assert_int_equal(check_as(gate, &boss, RP_ROLE_READ, 0, &memo, NULL, &why, NULL),
                     RP_UNAUTHENTICATED);
    assert_int_equal(why, RP_REFUSED_AUTH_BRAKE);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

static void a_header_too_long_for_a_memo_is_checked_all_the_same(void **state)
{
    rp_gate *gate = make(two, false);
    static char header[4096] = "Bearer ";
    rp_gate_memo memo = {0};
    rp_credentials shown = {.authorization = header, .peer = "10.0.0.1:1"};

    (void)state;
    memset(header + 7, 'x', sizeof header - 8);
    assert_int_equal(check_as(gate, &shown, RP_ROLE_READ, 0, &memo, NULL, NULL, NULL),
                     RP_UNAUTHENTICATED);
    assert_null(memo.accepted);
    assert_int_equal(memo.next, 0);
    rp_gate_memo_deinit(gate, &memo);
    rp_gate_free(gate);
}

static rp_status make_and_reload(const rp_allocator *alloc)
{
    rp_auth *auth = auth_of(alloc, two, false), *next;
    rp_gate *gate = NULL;
    rp_status st;

    if (auth == NULL) return RP_NO_RESOURCE;
    st = rp_gate_new(alloc, auth, &gate);
    if (st != RP_OK) return st;
    next = auth_of(alloc, two, false);
    st = next != NULL ? RP_OK : RP_NO_RESOURCE;
    if (next != NULL) rp_gate_reload(gate, next);
    rp_gate_free(gate);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(make_and_reload);
    rp_gate_free(NULL);
}

enum { THREADS = 4, CALLS = 2000 };

static void *call_many(void *arg)
{
    rp_gate *gate = arg;
    rp_gate_memo memo = {0};
    rp_credentials boss = {.authorization = "Bearer boss", .peer = "10.0.0.1:1"},
                   guess = {.authorization = "Bearer guess", .peer = "10.0.0.2:1"};
    size_t passed = 0;

    for (int i = 0; i < CALLS; i++) {
        passed += check_as(gate, &boss, RP_ROLE_READ, i, &memo, NULL, NULL, NULL) == RP_OK;
        passed += check_as(gate, &guess, RP_ROLE_READ, i, &memo, NULL, NULL, NULL) == RP_OK;
    }
    rp_gate_memo_deinit(gate, &memo);
    return passed == CALLS ? gate : NULL;
}

static void reloads_and_calls_may_run_at_once(void **state)
{
    rp_gate *gate = make(two, false);
    pthread_t threads[THREADS];
    void *result = NULL;

    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_many, gate), 0);
    for (int i = 0; i < 200; i++)
        rp_gate_reload(gate, auth_of(rp_allocator_default(), two, i % 2 == 0));
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, gate);
    }
    rp_gate_free(gate);
}

RP_TESTS(gate)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_role_passes_its_methods_and_none_above),
        cmocka_unit_test(refusals_name_the_missing_role),
        cmocka_unit_test(an_open_gate_lets_every_call_pass),
        cmocka_unit_test(guessing_is_rate_limited_after_a_burst),
        cmocka_unit_test(a_rate_limited_address_is_admitted_again_in_time),
        cmocka_unit_test(a_call_without_a_token_is_not_a_guess),
        cmocka_unit_test(addresses_are_grouped_by_network),
        cmocka_unit_test(many_guessers_do_not_evict_a_frequent_one),
        cmocka_unit_test(a_memo_matches_only_the_same_header),
        cmocka_unit_test(a_memo_distinguishes_header_and_certificate),
        cmocka_unit_test(a_reload_makes_every_memo_stale),
        cmocka_unit_test(a_reload_leaves_accepted_tokens_exempt_from_the_brake),
        cmocka_unit_test(a_removed_token_is_checked_once_and_then_is_a_guess),
        cmocka_unit_test(a_connection_may_use_several_tokens_in_turn),
        cmocka_unit_test(tokens_sent_to_an_open_gate_are_guesses_later),
        cmocka_unit_test(a_header_too_long_for_a_memo_is_checked_all_the_same),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(reloads_and_calls_may_run_at_once),
    };
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
