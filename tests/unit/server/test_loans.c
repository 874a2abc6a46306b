/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/loans.h"

#include "support/unit.h"
#include "util/rng.h"

#define SECOND INT64_C(1000000000)

enum { MIB = 1 << 20, POLL_NS = 50000000 };

static const rp_loan_terms terms = {.lent_bytes = 8 * MIB, .longest_ns = 32 * SECOND};
static const int64_t start_ns = 1000 * SECOND;

/* Asks for the same again. */
static bool ask(rp_loans *loans, rp_loan *loan, size_t bytes, int64_t now_ns)
{
    return rp_loan_ask(loans, loan, bytes, &terms, 0, now_ns);
}

static size_t lent(rp_loans *loans)
{
    rp_mutex_lock(&loans->lock);
    size_t bytes = loans->lent[RP_LOAN_ANY] + loans->lent[RP_LOAN_SMALL];
    rp_mutex_unlock(&loans->lock);
    return bytes;
}

/* T1. */
static void loans_have_a_bound(void **state)
{
    rp_loan some[3] = {{0}}, large = {0};
    rp_loans loans = {0};

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &some[0], 4 * MIB, start_ns));
    assert_true(ask(&loans, &some[1], 4 * MIB, start_ns));
    assert_false(ask(&loans, &some[2], 2 * MIB, start_ns));
    assert_int_equal(lent(&loans), 8 * MIB);
    rp_loan_end(&loans, &some[2]);
    assert_false(ask(&loans, &large, 20 * MIB, start_ns));
    rp_loan_end(&loans, &some[0]);
    assert_false(ask(&loans, &large, 20 * MIB, start_ns));
    rp_loan_end(&loans, &some[1]);
    assert_true(ask(&loans, &large, 20 * MIB, start_ns)); /* there is no other */
    rp_loan_end(&loans, &large);
    assert_int_equal(lent(&loans), 0);
    rp_loans_deinit(&loans);
}

/* A connection begins another message in its loan. */
static void a_loan_may_grow_within_the_bound(void **state)
{
    rp_loan one = {0}, other = {0};
    rp_loans loans = {0};

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &other, 2 * MIB, start_ns));
    assert_true(ask(&loans, &one, 2 * MIB, start_ns));
    assert_true(ask(&loans, &one, 6 * MIB, start_ns));
    assert_true(ask(&loans, &one, 1, start_ns)); /* it has that */
    assert_int_equal(lent(&loans), 8 * MIB);
    rp_loan_end(&loans, &other);
    assert_true(ask(&loans, &one, 8 * MIB, start_ns));
    assert_false(ask(&loans, &one, 8 * MIB + 1, start_ns)); /* although there is no other */
    rp_loan_reduce(&loans, &one, 3 * MIB);
    assert_int_equal(lent(&loans), 3 * MIB);
    rp_loan_reduce(&loans, &one, 4 * MIB);
    assert_int_equal(lent(&loans), 3 * MIB);
    rp_loan_end(&loans, &one);
    assert_int_equal(lent(&loans), 0);
    rp_loans_deinit(&loans);
}

/* T2: of those that want as much, the one that has waited longest is next, whoever asks. */
static void the_first_in_the_queue_is_next(void **state)
{
    enum { WAITING = 4 };
    rp_loan holder = {0}, waiting[WAITING] = {{0}};
    rp_loans loans = {0};
    int64_t now_ns = start_ns;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, now_ns));
    for (int i = 0; i < WAITING; i++)
        assert_false(ask(&loans, &waiting[i], 8 * MIB, now_ns += 1000));
    for (int served = 0; served < WAITING; served++) {
        rp_loan_end(&loans, served == 0 ? &holder : &waiting[served - 1]);
        now_ns += POLL_NS;
        for (int i = WAITING - 1; i > served; i--)
            assert_false(ask(&loans, &waiting[i], 8 * MIB, now_ns));
        assert_true(ask(&loans, &waiting[served], 8 * MIB, now_ns));
    }
    rp_loan_end(&loans, &waiting[WAITING - 1]);
    rp_loans_deinit(&loans);
}

/* T2: a message that takes less time need not wait as long; but a large one is not passed for
 * ever. */
static void waits_are_weighted_by_the_requested_size(void **state)
{
    rp_loan holder = {0}, large = {0}, small = {0};
    rp_loans loans = {0};
    int64_t now_ns = start_ns;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, now_ns));
    assert_false(ask(&loans, &large, 8 * MIB, now_ns));
    now_ns += SECOND;
    assert_false(ask(&loans, &small, 2 * MIB, now_ns));
    now_ns += SECOND; /* large has waited twice as long, and takes three times as long */
    assert_false(ask(&loans, &small, 2 * MIB, now_ns));
    rp_loan_end(&loans, &holder);
    assert_false(ask(&loans, &large, 8 * MIB, now_ns));
    assert_true(ask(&loans, &small, 2 * MIB, now_ns));
    rp_loan_end(&loans, &small);

    now_ns += 4 * SECOND;
    assert_true(ask(&loans, &holder, 8 * MIB, now_ns)); /* nobody has asked for so long */
    assert_false(ask(&loans, &large, 8 * MIB, now_ns));
    assert_false(ask(&loans, &small, 2 * MIB, now_ns));
    now_ns += SECOND / 10;
    rp_loan_end(&loans, &holder);
    assert_false(ask(&loans, &small, 2 * MIB, now_ns));
    assert_true(ask(&loans, &large, 8 * MIB, now_ns));
    rp_loan_end(&loans, &large);
    rp_loan_end(&loans, &small);
    rp_loans_deinit(&loans);
}

/* A connection whose thread is busy does not hold the others up. */
static void a_waiter_that_does_not_poll_is_overtaken(void **state)
{
    rp_loan holder = {0}, first = {0}, second = {0};
    rp_loans loans = {0};

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, start_ns));
    assert_false(ask(&loans, &first, 2 * MIB, start_ns));
    assert_false(ask(&loans, &second, 2 * MIB, start_ns + 1));
    rp_loan_end(&loans, &holder);
    assert_false(ask(&loans, &second, 2 * MIB, start_ns + POLL_NS));
    assert_true(ask(&loans, &second, 2 * MIB, start_ns + SECOND));
    assert_true(ask(&loans, &first, 2 * MIB, start_ns + SECOND)); /* there is room for both */
    rp_loan_end(&loans, &first);
    rp_loan_end(&loans, &second);
    rp_loans_deinit(&loans);
}

static const rp_loan *ahead(rp_loans *loans)
{
    rp_mutex_lock(&loans->lock);
    const rp_loan *loan = loans->ahead[RP_LOAN_ANY];
    rp_mutex_unlock(&loans->lock);
    return loan;
}

/* Those that wait are compared with the one that is ahead of all, wherever it stands in the
 * line; it is forgotten when it leaves. */
static void the_foremost_waiter_is_remembered(void **state)
{
    enum { WAITING = 100, FRONT = 70 };
    rp_loan holder = {0}, waiting[WAITING] = {{0}};
    rp_loans loans = {0};
    int64_t now_ns = start_ns;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 7 * MIB, now_ns));
    for (int i = 0; i < WAITING; i++) /* they have no room beside it */
        assert_false(ask(&loans, &waiting[i], i == FRONT ? 2 * MIB : 4 * MIB, now_ns + i));
    now_ns += SECOND / 10;
    for (int i = 0; i < WAITING; i++)
        assert_false(ask(&loans, &waiting[i], i == FRONT ? 2 * MIB : 4 * MIB, now_ns));
    rp_loan_reduce(&loans, &holder, MIB); /* now any of them has */
    for (int i = 0; i < WAITING; i++)
        if (i != FRONT) {
            assert_false(ask(&loans, &waiting[i], 4 * MIB, now_ns));
            assert_ptr_equal(ahead(&loans), &waiting[FRONT]);
        }
    rp_loan_end(&loans, &waiting[FRONT]); /* it goes without a loan */
    assert_null(ahead(&loans));
    assert_false(ask(&loans, &waiting[1], 4 * MIB, now_ns));
    assert_ptr_equal(ahead(&loans), &waiting[0]);
    assert_true(ask(&loans, &waiting[0], 4 * MIB, now_ns));
    for (int i = 0; i < WAITING; i++) rp_loan_end(&loans, &waiting[i]);
    assert_null(ahead(&loans));
    rp_loan_end(&loans, &holder);
    rp_loans_deinit(&loans);
}

/* One that was ahead and does not ask any more is passed. */
static void the_foremost_waiter_is_overtaken_if_it_does_not_poll(void **state)
{
    rp_loan holder = {0}, first = {0}, second = {0};
    rp_loans loans = {0};

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, start_ns));
    assert_false(ask(&loans, &first, 4 * MIB, start_ns));
    rp_loan_end(&loans, &holder);
    assert_false(ask(&loans, &second, 4 * MIB, start_ns + POLL_NS));
    assert_ptr_equal(ahead(&loans), &first);
    assert_true(ask(&loans, &second, 4 * MIB, start_ns + SECOND));
    assert_true(ask(&loans, &first, 4 * MIB, start_ns + SECOND));
    rp_loan_end(&loans, &first);
    rp_loan_end(&loans, &second);
    rp_loans_deinit(&loans);
}

/* T3: the pace does not count while there is nothing to move, the longest time does. */
static void an_idle_holder_is_not_slow_but_its_loan_ends(void **state)
{
    rp_loan holder = {0}, waiting = {0};
    rp_loans loans = {0};
    int64_t t = 0, rested_ns = 10 * SECOND;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, start_ns));
    for (; t <= rested_ns; t += POLL_NS) {
        assert_false(ask(&loans, &waiting, 2 * MIB, start_ns + t));
        rp_loan_rest(&holder, 7, start_ns + t);
        assert_false(rp_loan_is_behind(&loans, &holder, &terms, 7, start_ns + t));
    }
    for (; t < 100 * SECOND; t += POLL_NS) {
        assert_false(ask(&loans, &waiting, 2 * MIB, start_ns + t));
        if (rp_loan_is_behind(&loans, &holder, &terms, 7, start_ns + t)) break;
    }
    assert_int_equal(t, rested_ns + 11 * (int64_t)POLL_NS); /* a 64th of 32 s, and a look */
    for (; t <= terms.longest_ns + POLL_NS; t += POLL_NS) {
        assert_false(ask(&loans, &waiting, 2 * MIB, start_ns + t));
        rp_loan_rest(&holder, 7, start_ns + t);
        assert_int_equal(rp_loan_is_behind(&loans, &holder, &terms, 7, start_ns + t),
                         t > terms.longest_ns);
    }
    rp_loan_end(&loans, &holder);
    rp_loan_end(&loans, &waiting);
    rp_loans_deinit(&loans);
}

/* Looks 20 times a second for 100 s while a peer moves `per_second` bytes of a loan, and
 * another connection waits for `wanted`. Returns after how many milliseconds the peer is
 * behind; 0 if never. */
static int64_t behind_after_ms(size_t bytes, size_t per_second, size_t wanted)
{
    rp_loan holder = {0}, waiting = {0};
    rp_loans loans = {0};
    int64_t ms = 0;

    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, bytes, start_ns));
    for (int64_t t = 0; t < 100 * SECOND && ms == 0; t += POLL_NS) {
        uint64_t moved = (uint64_t)((double)t * (double)per_second / 1e9);
        if (wanted > 0 && rp_loan_ask(&loans, &waiting, wanted, &terms, 0, start_ns + t))
            rp_loan_end(&loans, &waiting);
        if (rp_loan_is_behind(&loans, &holder, &terms, moved < bytes ? moved : bytes,
                              start_ns + t))
            ms = t / 1000000;
        if (moved >= bytes) break; /* then it ends its loan */
    }
    rp_loan_end(&loans, &holder);
    rp_loan_end(&loans, &waiting);
    rp_loans_deinit(&loans);
    return ms;
}

/* T3. */
static void a_holder_without_progress_is_behind(void **state)
{
    (void)state;
    assert_int_equal(behind_after_ms(MIB, 0, 8 * MIB), 550); /* a 64th of 32 s, and a look */
    assert_int_equal(behind_after_ms(8 * MIB, 0, 2 * MIB), 550);
    assert_int_equal(behind_after_ms(MIB, 0, 0), 0);       /* nobody waits, */
    assert_int_equal(behind_after_ms(MIB, 0, 7 * MIB), 0); /* or there is room */
}

static void a_holder_with_progress_is_not_behind(void **state)
{
    (void)state;
    assert_int_equal(behind_after_ms(64 << 10, MIB, 8 * MIB), 0);
    assert_int_equal(behind_after_ms(MIB, MIB, 8 * MIB), 0);
    assert_int_equal(behind_after_ms(8 * MIB, MIB, 2 * MIB), 0);
    assert_int_equal(behind_after_ms(24 * MIB, MIB, 2 * MIB), 0);
    assert_in_range(behind_after_ms(MIB, 100 << 10, 8 * MIB), 500, 1000);
    assert_in_range(behind_after_ms(300 << 10, 64 << 10, 8 * MIB), 500, 1500);
}

/* T3: a connection that begins one message after the other goes on for ever. */
static void a_loan_has_a_longest_time(void **state)
{
    rp_loan holder = {0}, waiting = {0};
    rp_loans loans = {0};
    int64_t t = 0;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, start_ns));
    do {
        t += POLL_NS;
        assert_false(ask(&loans, &waiting, 2 * MIB, start_ns + t));
    } while (t < 100 * SECOND &&
             !rp_loan_is_behind(&loans, &holder, &terms, (uint64_t)t / 100, start_ns + t));

    assert_int_equal(t, terms.longest_ns + POLL_NS);
    rp_loan_end(&loans, &holder);
    rp_loan_end(&loans, &waiting);
    rp_loans_deinit(&loans);
}

/* T4: two loans wait for each other's bytes. One grows at once, the other one when the first
 * has ended. A third one that has all it wants and keeps it holds up neither. */
static void one_loan_grows_past_the_bound(void **state)
{
    rp_loan idle = {0}, first = {0}, second = {0}, waiting = {0};
    rp_loans loans = {0};

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &idle, 2 * MIB, start_ns));
    assert_true(ask(&loans, &second, 3 * MIB, start_ns));
    assert_true(ask(&loans, &first, 3 * MIB, start_ns));
    assert_true(ask(&loans, &first, 6 * MIB, start_ns));
    assert_false(ask(&loans, &second, 6 * MIB, start_ns));
    assert_int_equal(lent(&loans), 11 * MIB);
    assert_true(ask(&loans, &first, 8 * MIB, start_ns));
    assert_false(ask(&loans, &first, 8 * MIB + 1, start_ns));
    assert_false(ask(&loans, &waiting, 2 * MIB, start_ns)); /* T1 */
    rp_loan_end(&loans, &first);
    assert_true(ask(&loans, &second, 8 * MIB, start_ns));
    rp_loan_end(&loans, &second);
    rp_loan_end(&loans, &waiting);
    rp_loan_end(&loans, &idle);
    rp_loans_deinit(&loans);
}

/* T4: the next one to grow is the one that has waited longest, if it still asks; and one that
 * has given back what it had past the bound is not in the way. */
static void loans_grow_in_the_order_of_their_waits(void **state)
{
    rp_loan some[4] = {{0}};
    rp_loans loans = {0};
    int64_t now_ns = start_ns;

    (void)state;
    rp_loans_init(&loans);
    for (int i = 0; i < 4; i++) assert_true(ask(&loans, &some[i], 2 * MIB, now_ns));
    assert_true(ask(&loans, &some[3], 3 * MIB, now_ns));
    for (int i = 2; i >= 0; i--) assert_false(ask(&loans, &some[i], 4 * MIB, now_ns));
    rp_loan_reduce(&loans, &some[3], 2 * MIB);
    assert_false(ask(&loans, &some[0], 4 * MIB, now_ns));
    assert_false(ask(&loans, &some[1], 4 * MIB, now_ns));
    assert_true(ask(&loans, &some[2], 4 * MIB, now_ns));
    assert_false(ask(&loans, &some[3], 4 * MIB, now_ns)); /* others have waited before */
    rp_loan_end(&loans, &some[2]);
    assert_true(ask(&loans, &some[1], 4 * MIB, now_ns)); /* there is room */
    now_ns += SECOND;
    assert_true(ask(&loans, &some[3], 4 * MIB, now_ns)); /* some[0] does not ask any more */
    for (int i = 0; i < 4; i++) rp_loan_end(&loans, &some[i]);
    rp_loans_deinit(&loans);
}

/* T2: a connection with a small message waits for other small ones only, however many large
 * ones wait, and as slow as they may be. */
static void small_loans_do_not_wait_for_large_ones(void **state)
{
    enum { LARGE = 8 };
    rp_loan holder = {0}, large[LARGE] = {{0}}, small[3] = {{0}};
    rp_loans loans = {0};
    int64_t now_ns = start_ns + 20 * SECOND;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, start_ns));
    for (int i = 0; i < LARGE; i++) assert_false(ask(&loans, &large[i], 8 * MIB, start_ns));
    for (int i = 0; i < LARGE; i++) assert_false(ask(&loans, &large[i], 8 * MIB, now_ns));
    assert_true(ask(&loans, &small[0], MIB, now_ns));
    assert_false(ask(&loans, &small[1], 1, now_ns)); /* no small one is left, */
    assert_false(ask(&loans, &small[2], MIB, now_ns + 1));
    assert_int_equal(lent(&loans), 9 * MIB);
    rp_loan_end(&loans, &small[0]);
    assert_false(ask(&loans, &small[2], MIB, now_ns + 2)); /* and they have a line */
    assert_true(ask(&loans, &small[1], 1, now_ns + 2));
    rp_loan_end(&loans, &small[1]);
    assert_true(ask(&loans, &small[2], MIB, now_ns + 2));
    for (int i = 0; i < LARGE; i++) rp_loan_end(&loans, &large[i]);
    rp_loan_end(&loans, &holder);
    rp_loan_end(&loans, &small[2]);
    rp_loans_deinit(&loans);
}

/* T3: no large loan can have the bytes of the pool for small ones. */
static void small_loans_are_not_closed_for_large_ones(void **state)
{
    rp_loan holder = {0}, small = {0}, large = {0}, other = {0};
    rp_loans loans = {0};
    int64_t now_ns = start_ns + SECOND;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &holder, 8 * MIB, start_ns));
    assert_true(ask(&loans, &small, MIB, start_ns));
    assert_false(ask(&loans, &large, 2 * MIB, now_ns));
    assert_false(rp_loan_is_behind(&loans, &small, &terms, 0, now_ns));
    assert_true(rp_loan_is_behind(&loans, &holder, &terms, 0, now_ns));
    rp_loan_end(&loans, &large);
    assert_false(ask(&loans, &other, MIB, now_ns));
    assert_true(rp_loan_is_behind(&loans, &small, &terms, 0, now_ns));
    assert_true(rp_loan_is_behind(&loans, &holder, &terms, 0, now_ns));
    rp_loan_end(&loans, &holder);
    rp_loan_end(&loans, &small);
    rp_loan_end(&loans, &other);
    rp_loans_deinit(&loans);
}

enum { CONNECTIONS = 12, GROWTHS = 3, ROUNDS_MAX = 200 };

/* A connection that sends a random number of messages at once, each begun before the last one
 * has arrived, and ends its loan when all have. */
typedef struct sender {
    rp_loan loan;
    size_t wanted[GROWTHS]; /* bytes of the loan after each message is begun */
    int step, steps, stays; /* rounds that it keeps its loan for at the end */
    bool is_done;
} sender;

static void init_sender(sender *s, rp_rng *rng)
{
    size_t all = 0, most = 8 * (size_t)MIB;

    *s = (sender){.steps = 1 + (int)rp_rng_below(rng, GROWTHS),
                  .stays = (int)rp_rng_below(rng, 4)};
    for (int i = 0; i < s->steps; i++) {
        size_t more = (most - all) / (size_t)(s->steps - i);

        all += 1 + rp_rng_below(rng, rp_rng_below(rng, 2) == 0 && more > MIB ? MIB : more);
        s->wanted[i] = all;
    }
}

/* Asks once, in a random order, as long as there is one that is not done. Returns the number of
 * rounds that all of them took. */
static int rounds_until_done(rp_loans *loans, sender *all, rp_rng *rng, int64_t *now_ns)
{
    int left = CONNECTIONS, rounds = 0;

    for (; left > 0 && rounds < ROUNDS_MAX; rounds++) {
        uint64_t first = rp_rng_below(rng, CONNECTIONS), stride = rp_rng_below(rng, 2) ? 5 : 7;

        *now_ns += POLL_NS;
        for (uint64_t i = 0; i < CONNECTIONS; i++) {
            sender *s = &all[(first + i * stride) % CONNECTIONS];

            if (s->is_done || !ask(loans, &s->loan, s->wanted[s->step], *now_ns)) continue;
            assert_in_range(lent(loans), 1, 2 * terms.lent_bytes + terms.lent_bytes / 8);
            if (s->step + 1 < s->steps) {
                s->step++;
                continue;
            }
            if (s->stays-- > 0) continue;
            rp_loan_end(loans, &s->loan);
            s->is_done = true;
            left--;
        }
    }
    return left == 0 ? rounds : -1;
}

/* T3: while a loan waits to grow, its peer has nothing to move; the loan that it waits for has
 * to go on. One that wants more than there may be has no excuse. */
static void loans_that_wait_to_grow_are_not_behind(void **state)
{
    rp_loan first = {0}, second = {0};
    rp_loans loans = {0};
    int64_t t = 0;

    (void)state;
    rp_loans_init(&loans);
    assert_true(ask(&loans, &first, 4 * MIB, start_ns));
    assert_true(ask(&loans, &second, 4 * MIB, start_ns));
    assert_true(ask(&loans, &first, 5 * MIB, start_ns));
    for (; t <= SECOND / 2 + POLL_NS; t += POLL_NS) {
        assert_false(ask(&loans, &second, 6 * MIB, start_ns + t));
        assert_false(ask(&loans, &first, 9 * MIB, start_ns + t));
        assert_false(rp_loan_is_behind(&loans, &second, &terms, 0, start_ns + t));
        assert_int_equal(rp_loan_is_behind(&loans, &first, &terms, 0, start_ns + t),
                         t > SECOND / 2);
    }
    rp_loan_end(&loans, &first);
    assert_true(ask(&loans, &second, 6 * MIB, start_ns + t));
    rp_loan_end(&loans, &second);
    rp_loans_deinit(&loans);
}

/* T4: connections whose peers go on all come to an end, whatever they begin and in whichever
 * order they ask. */
static void loans_that_grow_do_not_block_each_other(void **state)
{
    enum { SEEDS = 300 };
    int64_t now_ns = start_ns;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sender all[CONNECTIONS];
        rp_loans loans = {0};
        rp_rng rng;

        rp_rng_init(&rng, seed);
        rp_loans_init(&loans);
        for (int i = 0; i < CONNECTIONS; i++) init_sender(&all[i], &rng);
        assert_in_range(rounds_until_done(&loans, all, &rng, &now_ns), 1, ROUNDS_MAX);
        assert_int_equal(lent(&loans), 0);
        rp_loans_deinit(&loans);
    }
}

RP_TESTS(loans)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loans_have_a_bound),
        cmocka_unit_test(a_loan_may_grow_within_the_bound),
        cmocka_unit_test(the_first_in_the_queue_is_next),
        cmocka_unit_test(waits_are_weighted_by_the_requested_size),
        cmocka_unit_test(a_waiter_that_does_not_poll_is_overtaken),
        cmocka_unit_test(the_foremost_waiter_is_remembered),
        cmocka_unit_test(the_foremost_waiter_is_overtaken_if_it_does_not_poll),
        cmocka_unit_test(an_idle_holder_is_not_slow_but_its_loan_ends),
        cmocka_unit_test(a_holder_without_progress_is_behind),
        cmocka_unit_test(a_holder_with_progress_is_not_behind),
        cmocka_unit_test(a_loan_has_a_longest_time),
        cmocka_unit_test(one_loan_grows_past_the_bound),
        cmocka_unit_test(loans_grow_in_the_order_of_their_waits),
        cmocka_unit_test(loans_that_wait_to_grow_are_not_behind),
        cmocka_unit_test(small_loans_do_not_wait_for_large_ones),
        cmocka_unit_test(small_loans_are_not_closed_for_large_ones),
        cmocka_unit_test(loans_that_grow_do_not_block_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
