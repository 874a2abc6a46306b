/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/turns.h"

#include <assert.h>

#include "util/verify.h"

enum {
    FIRST_PART = 64, /* part of the longest time in which nothing has to move */
    LEAST_FIRST_NS = 250000000,
    WHOLE_PART = 16,      /* part of the longest time, for any number of bytes */
    NS_PER_BYTE = 1000,   /* time for each byte: about a MiB a second */
    STALE_NS = 150000000, /* a connection that waits asks more often than that */
    SMALL_PART = 8, /* part of lent_bytes: size of the pool for small loans and of the largest
                       small loan */
};

void rp_turns_init(rp_turns *turns)
{
    rp_mutex_init(&turns->lock, RP_RANK_TURNS);
}

void rp_turns_deinit(rp_turns *turns)
{
    assert(turns->line.first == NULL && turns->growing.first == NULL && turns->past == NULL);
    assert(turns->lent[RP_TURN_ANY] == 0 && turns->lent[RP_TURN_SMALL] == 0);
    rp_mutex_deinit(&turns->lock);
}

static int64_t first_ns(const rp_turn_terms *terms)
{
    int64_t ns = terms->longest_ns / FIRST_PART;

    return ns > LEAST_FIRST_NS ? ns : LEAST_FIRST_NS;
}

static int64_t longest_ns(const rp_turn_terms *terms)
{
    return terms->longest_ns > first_ns(terms) ? terms->longest_ns : first_ns(terms);
}

/* The time that a loan of `bytes` may take (T3). */
static int64_t time_of(const rp_turn_terms *terms, size_t bytes)
{
    int64_t longest = longest_ns(terms);
    int64_t least = first_ns(terms) + terms->longest_ns / WHOLE_PART;
    double ns = (double)least + (double)bytes * NS_PER_BYTE;

    return ns < (double)longest ? (int64_t)ns : longest;
}

static bool is_stale(const rp_turn *turn, int64_t now_ns)
{
    return now_ns - turn->seen_ns > STALE_NS;
}

static size_t pool_bytes(rp_turn_pool pool, const rp_turn_terms *terms)
{
    return pool == RP_TURN_SMALL ? terms->lent_bytes / SMALL_PART : terms->lent_bytes;
}

/* T1: whether a waiting turn may get a loan from this pool. */
static bool may_use(const rp_turn *turn, rp_turn_pool pool, const rp_turn_terms *terms)
{
    return pool == RP_TURN_ANY || turn->bytes <= pool_bytes(pool, terms);
}

/* T1: whether a loan of `bytes` fits into the pool, for a turn that has `own` bytes of it
 * already. */
static bool fits(const rp_turns *turns, rp_turn_pool pool, size_t own, size_t bytes,
                 const rp_turn_terms *terms) RP_REQUIRES(turns->lock)
{
    size_t others = turns->lent[pool] - own, all = pool_bytes(pool, terms);

    assert(turns->lent[pool] >= own);
    if (pool == RP_TURN_ANY && others == 0) return true;
    return others < all && bytes <= all - others;
}

/* T2: whether `a` has waited longer than `b`, measured in units of their times. */
static bool is_before(const rp_turn *a, const rp_turn *b, int64_t now_ns)
{
    return (double)(now_ns - a->since_ns) * (double)b->time_ns >
           (double)(now_ns - b->since_ns) * (double)a->time_ns;
}

static bool is_next(rp_turns *turns, rp_turn_pool pool, const rp_turn *turn,
                    const rp_turn_terms *terms, int64_t now_ns) RP_REQUIRES(turns->lock)
{
    const rp_turn *ahead = turns->ahead[pool];

    if (ahead != NULL && may_use(ahead, pool, terms) && !is_stale(ahead, now_ns) &&
        is_before(ahead, turn, now_ns))
        return false;
    ahead = turn;
    for (const rp_turn *other = turns->line.first; other != NULL; other = other->next)
        if (may_use(other, pool, terms) && !is_stale(other, now_ns) &&
            is_before(other, ahead, now_ns))
            ahead = other;
    turns->ahead[pool] = ahead;
    return ahead == turn;
}

static void append(rp_turn_list *list, rp_turn *turn)
{
    turn->prev = list->last;
    turn->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = turn;
    list->last = turn;
}

static void take_out(rp_turn_list *list, rp_turn *turn)
{
    assert(turn->prev != NULL || list->first == turn);
    assert(turn->next != NULL || list->last == turn);
    *(turn->prev != NULL ? &turn->prev->next : &list->first) = turn->next;
    *(turn->next != NULL ? &turn->next->prev : &list->last) = turn->prev;
}

static void line_up(rp_turns *turns, rp_turn *turn) RP_REQUIRES(turns->lock)
{
    assert(!turn->has_loan && !turn->is_waiting);
    turn->is_waiting = true;
    append(&turns->line, turn);
}

static void step_out(rp_turns *turns, rp_turn *turn) RP_REQUIRES(turns->lock)
{
    assert(turn->is_waiting);
    take_out(&turns->line, turn);
    turn->is_waiting = false;
    for (int pool = 0; pool < RP_TURN_POOLS; pool++)
        if (turns->ahead[pool] == turn) turns->ahead[pool] = NULL;
}

static void set_loan(rp_turns *turns, rp_turn *turn, size_t bytes, const rp_turn_terms *terms)
    RP_REQUIRES(turns->lock)
{
    assert(turn->has_loan && turns->lent[turn->pool] >= turn->bytes && bytes > 0);
    turns->lent[turn->pool] += bytes - turn->bytes;
    turn->bytes = bytes;
    turn->time_ns = time_of(terms, bytes);
}

static void lend(rp_turns *turns, rp_turn_pool pool, rp_turn *turn, size_t bytes,
                 const rp_turn_terms *terms) RP_REQUIRES(turns->lock)
{
    assert(fits(turns, pool, 0, bytes, terms));
    step_out(turns, turn);
    turn->has_loan = true;
    turn->pool = pool;
    turn->bytes = 0;
    set_loan(turns, turn, bytes, terms);
}

static void stop_growing(rp_turns *turns, rp_turn *turn) RP_REQUIRES(turns->lock)
{
    if (!turn->is_growing) return;
    assert(turn->has_loan);
    take_out(&turns->growing, turn);
    turn->is_growing = false;
}

/* Whether a loan has grown beyond its pool, so that no other may (T4). */
static bool is_past(const rp_turns *turns, const rp_turn_terms *terms) RP_REQUIRES(turns->lock)
{
    return turns->past != NULL &&
           turns->lent[turns->past->pool] > pool_bytes(turns->past->pool, terms);
}

/* T4: whether a turn that waits to grow may grow beyond its pool. */
static bool may_pass(const rp_turns *turns, const rp_turn *turn, const rp_turn_terms *terms,
                     int64_t now_ns) RP_REQUIRES(turns->lock)
{
    const rp_turn *first = turns->growing.first;

    if (turns->past == turn) return true;
    if (is_past(turns, terms)) return false;
    while (first != turn && is_stale(first, now_ns)) first = first->next;
    return first == turn;
}

#ifndef NDEBUG
static size_t length(const rp_turn_list *list)
{
    size_t count = 0;

    for (const rp_turn *turn = list->first; turn != NULL; turn = turn->next) count++;
    return count;
}

/* Checks that both lists are linked both ways, and that each turn is in the list for its state.
 */
static bool is_valid(const rp_turns *turns) RP_REQUIRES(turns->lock)
{
    const rp_turn *prev = NULL;
    size_t growing = 0, ahead = 0;

    for (const rp_turn *turn = turns->growing.first; turn != NULL; turn = turn->next) {
        if (turn->prev != prev || !turn->has_loan || !turn->is_growing) return false;
        growing += turn->bytes;
        prev = turn;
    }
    if (turns->growing.last != prev) return false;
    if (growing > turns->lent[RP_TURN_ANY] + turns->lent[RP_TURN_SMALL]) return false;
    prev = NULL;
    for (const rp_turn *turn = turns->line.first; turn != NULL; turn = turn->next) {
        if (turn->prev != prev || turn->has_loan || !turn->is_waiting) return false;
        for (int pool = 0; pool < RP_TURN_POOLS; pool++) ahead += turns->ahead[pool] == turn;
        prev = turn;
    }
    for (int pool = 0; pool < RP_TURN_POOLS; pool++)
        ahead -= turns->ahead[pool] != NULL; /* each turn in `ahead` is in the queue */
    return turns->line.last == prev && ahead == 0;
}
#endif

static void verify(const rp_turns *turns) RP_REQUIRES(turns->lock)
{
    (void)turns;
    RP_VERIFY(length(&turns->line) + length(&turns->growing), is_valid(turns));
}

/* Lets a loan grow. While the loan waits to grow, its peer has nothing to move, because the
 * server does not read from it. */
static bool grow(rp_turns *turns, rp_turn *turn, size_t bytes, const rp_turn_terms *terms,
                 uint64_t moved, int64_t now_ns) RP_REQUIRES(turns->lock)
{
    bool fits_now = fits(turns, turn->pool, turn->bytes, bytes, terms);

    if (bytes <= turn->bytes || bytes > terms->lent_bytes) {
        stop_growing(turns, turn);
        return bytes <= turn->bytes;
    }
    turn->seen_ns = now_ns;
    if (!turn->is_growing) append(&turns->growing, turn);
    turn->is_growing = true;
    if (!fits_now && !may_pass(turns, turn, terms, now_ns)) {
        rp_turn_rest(turn, moved, now_ns);
        return false;
    }
    if (!fits_now) turns->past = turn;
    stop_growing(turns, turn);
    set_loan(turns, turn, bytes, terms);
    return true;
}

/* Waits in the queue, and takes a loan if the turn is next. */
static bool wait_in_line(rp_turns *turns, rp_turn *turn, size_t bytes,
                         const rp_turn_terms *terms, uint64_t moved, int64_t now_ns)
    RP_REQUIRES(turns->lock)
{
    if (!turn->is_waiting) {
        turn->since_ns = now_ns;
        line_up(turns, turn);
    }
    turn->seen_ns = now_ns;
    turn->time_ns = time_of(terms, bytes);
    turn->bytes = bytes;
    for (rp_turn_pool pool = 0; pool < RP_TURN_POOLS; pool++) {
        if (!may_use(turn, pool, terms) || !fits(turns, pool, 0, bytes, terms) ||
            !is_next(turns, pool, turn, terms, now_ns))
            continue;
        lend(turns, pool, turn, bytes, terms);
        turn->since_ns = now_ns;
        rp_turn_rest(turn, moved, now_ns);
        return true;
    }
    return false;
}

bool rp_turn_ask(rp_turns *turns, rp_turn *turn, size_t bytes, const rp_turn_terms *terms,
                 uint64_t moved, int64_t now_ns)
{
    bool granted;

    assert(bytes > 0);
    assert(!(turn->has_loan && turn->is_waiting));
    rp_mutex_lock(&turns->lock);
    granted = turn->has_loan ? grow(turns, turn, bytes, terms, moved, now_ns)
                             : wait_in_line(turns, turn, bytes, terms, moved, now_ns);
    verify(turns);
    rp_mutex_unlock(&turns->lock);
    assert(!granted || (turn->has_loan && turn->bytes >= bytes));
    return granted;
}

void rp_turn_reduce(rp_turns *turns, rp_turn *turn, size_t bytes)
{
    if (bytes >= turn->bytes) return;
    assert(turn->has_loan && bytes > 0);
    rp_mutex_lock(&turns->lock);
    assert(turns->lent[turn->pool] >= turn->bytes);
    stop_growing(turns, turn);
    turns->lent[turn->pool] -= turn->bytes - bytes;
    turn->bytes = bytes;
    verify(turns);
    rp_mutex_unlock(&turns->lock);
}

void rp_turn_end(rp_turns *turns, rp_turn *turn)
{
    if (!turn->has_loan && !turn->is_waiting) return;
    rp_mutex_lock(&turns->lock);
    if (turn->is_waiting) {
        step_out(turns, turn);
    } else {
        assert(turns->lent[turn->pool] >= turn->bytes);
        stop_growing(turns, turn);
        turns->lent[turn->pool] -= turn->bytes;
        if (turns->past == turn) turns->past = NULL;
    }
    verify(turns);
    rp_mutex_unlock(&turns->lock);
    *turn = (rp_turn){0};
}

/* Whether a turn in the queue waits for bytes of this pool: it may use the pool, and neither
 * this nor another pool that it may use has room for it. */
static bool waits_for(const rp_turns *turns, const rp_turn *turn, rp_turn_pool pool,
                      const rp_turn_terms *terms) RP_REQUIRES(turns->lock)
{
    if (!may_use(turn, pool, terms)) return false;
    for (rp_turn_pool any = 0; any < RP_TURN_POOLS; any++)
        if (may_use(turn, any, terms) && fits(turns, any, 0, turn->bytes, terms)) return false;
    return true;
}

/* Whether another connection waits for the bytes of this loan, in the queue or for its own loan
 * to grow. */
static bool is_short(rp_turns *turns, const rp_turn *loan, const rp_turn_terms *terms,
                     int64_t now_ns)
{
    bool found = false;

    rp_mutex_lock(&turns->lock);
    for (const rp_turn *other = turns->line.first; other != NULL && !found; other = other->next)
        found = !is_stale(other, now_ns) && waits_for(turns, other, loan->pool, terms);
    for (const rp_turn *other = turns->growing.first; other != NULL && !found;
         other = other->next)
        found = other != loan && !is_stale(other, now_ns);
    rp_mutex_unlock(&turns->lock);
    return found;
}

void rp_turn_rest(rp_turn *turn, uint64_t moved, int64_t now_ns)
{
    turn->paced_ns = now_ns;
    turn->moved = moved;
}

/* Whether the peer has moved as many bytes as T3 demands by now. */
static bool is_on_pace(const rp_turn *turn, const rp_turn_terms *terms, uint64_t moved,
                       int64_t now_ns)
{
    int64_t first = first_ns(terms), elapsed_ns = now_ns - turn->paced_ns;
    double due = (double)turn->bytes;

    if (elapsed_ns <= first) return true;
    if (elapsed_ns < turn->time_ns)
        due *= (double)(elapsed_ns - first) / (double)(turn->time_ns - first);
    return (double)(moved - turn->moved) >= due;
}

bool rp_turn_is_behind(rp_turns *turns, const rp_turn *turn, const rp_turn_terms *terms,
                       uint64_t moved, int64_t now_ns)
{
    if (!turn->has_loan) return false;
    if (now_ns - turn->since_ns <= longest_ns(terms) && is_on_pace(turn, terms, moved, now_ns))
        return false;
    return is_short(turns, turn, terms, now_ns);
}
