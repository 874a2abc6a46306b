/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/loans.h"

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

void rp_loans_init(rp_loans *loans)
{
    rp_mutex_init(&loans->lock, RP_RANK_LOANS);
}

void rp_loans_deinit(rp_loans *loans)
{
    assert(loans->line.first == NULL && loans->growing.first == NULL && loans->past == NULL);
    assert(loans->lent[RP_LOAN_ANY] == 0 && loans->lent[RP_LOAN_SMALL] == 0);
    rp_mutex_deinit(&loans->lock);
}

static int64_t first_ns(const rp_loan_terms *terms)
{
    int64_t ns = terms->longest_ns / FIRST_PART;

    return ns > LEAST_FIRST_NS ? ns : LEAST_FIRST_NS;
}

static int64_t longest_ns(const rp_loan_terms *terms)
{
    return terms->longest_ns > first_ns(terms) ? terms->longest_ns : first_ns(terms);
}

/* The time that a loan of `bytes` may take (T3). */
static int64_t time_of(const rp_loan_terms *terms, size_t bytes)
{
    int64_t longest = longest_ns(terms);
    int64_t least = first_ns(terms) + terms->longest_ns / WHOLE_PART;
    double ns = (double)least + (double)bytes * NS_PER_BYTE;

    return ns < (double)longest ? (int64_t)ns : longest;
}

static bool is_stale(const rp_loan *loan, int64_t now_ns)
{
    return now_ns - loan->seen_ns > STALE_NS;
}

static size_t pool_bytes(rp_loan_pool pool, const rp_loan_terms *terms)
{
    return pool == RP_LOAN_SMALL ? terms->lent_bytes / SMALL_PART : terms->lent_bytes;
}

/* T1: whether a loan may come from this pool. */
static bool may_use(const rp_loan *loan, rp_loan_pool pool, const rp_loan_terms *terms)
{
    return pool == RP_LOAN_ANY || loan->bytes <= pool_bytes(pool, terms);
}

/* T1: whether a loan of `bytes` fits into the pool, for a loan that has `own` bytes of it
 * already. */
static bool fits(const rp_loans *loans, rp_loan_pool pool, size_t own, size_t bytes,
                 const rp_loan_terms *terms) RP_REQUIRES(loans->lock)
{
    size_t others = loans->lent[pool] - own, all = pool_bytes(pool, terms);

    assert(loans->lent[pool] >= own);
    if (pool == RP_LOAN_ANY && others == 0) return true;
    return others < all && bytes <= all - others;
}

/* T2: whether `a` has waited longer than `b`, measured in units of their times. */
static bool is_before(const rp_loan *a, const rp_loan *b, int64_t now_ns)
{
    return (double)(now_ns - a->since_ns) * (double)b->time_ns >
           (double)(now_ns - b->since_ns) * (double)a->time_ns;
}

static bool is_next(rp_loans *loans, rp_loan_pool pool, const rp_loan *loan,
                    const rp_loan_terms *terms, int64_t now_ns) RP_REQUIRES(loans->lock)
{
    const rp_loan *ahead = loans->ahead[pool];

    if (ahead != NULL && may_use(ahead, pool, terms) && !is_stale(ahead, now_ns) &&
        is_before(ahead, loan, now_ns))
        return false;
    ahead = loan;
    for (const rp_loan *other = loans->line.first; other != NULL; other = other->next)
        if (may_use(other, pool, terms) && !is_stale(other, now_ns) &&
            is_before(other, ahead, now_ns))
            ahead = other;
    loans->ahead[pool] = ahead;
    return ahead == loan;
}

static void append(rp_loan_list *list, rp_loan *loan)
{
    loan->prev = list->last;
    loan->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = loan;
    list->last = loan;
}

static void take_out(rp_loan_list *list, rp_loan *loan)
{
    assert(loan->prev != NULL || list->first == loan);
    assert(loan->next != NULL || list->last == loan);
    *(loan->prev != NULL ? &loan->prev->next : &list->first) = loan->next;
    *(loan->next != NULL ? &loan->next->prev : &list->last) = loan->prev;
}

static void line_up(rp_loans *loans, rp_loan *loan) RP_REQUIRES(loans->lock)
{
    assert(!loan->is_made && !loan->is_waiting);
    loan->is_waiting = true;
    append(&loans->line, loan);
}

static void step_out(rp_loans *loans, rp_loan *loan) RP_REQUIRES(loans->lock)
{
    assert(loan->is_waiting);
    take_out(&loans->line, loan);
    loan->is_waiting = false;
    for (int pool = 0; pool < RP_LOAN_POOLS; pool++)
        if (loans->ahead[pool] == loan) loans->ahead[pool] = NULL;
}

static void set_loan(rp_loans *loans, rp_loan *loan, size_t bytes, const rp_loan_terms *terms)
    RP_REQUIRES(loans->lock)
{
    assert(loan->is_made && loans->lent[loan->pool] >= loan->bytes && bytes > 0);
    loans->lent[loan->pool] += bytes - loan->bytes;
    loan->bytes = bytes;
    loan->time_ns = time_of(terms, bytes);
}

static void lend(rp_loans *loans, rp_loan_pool pool, rp_loan *loan, size_t bytes,
                 const rp_loan_terms *terms) RP_REQUIRES(loans->lock)
{
    assert(fits(loans, pool, 0, bytes, terms));
    step_out(loans, loan);
    loan->is_made = true;
    loan->pool = pool;
    loan->bytes = 0;
    set_loan(loans, loan, bytes, terms);
}

static void stop_growing(rp_loans *loans, rp_loan *loan) RP_REQUIRES(loans->lock)
{
    if (!loan->is_growing) return;
    assert(loan->is_made);
    take_out(&loans->growing, loan);
    loan->is_growing = false;
}

/* Whether a loan has grown beyond its pool, so that no other may (T4). */
static bool is_past(const rp_loans *loans, const rp_loan_terms *terms) RP_REQUIRES(loans->lock)
{
    return loans->past != NULL &&
           loans->lent[loans->past->pool] > pool_bytes(loans->past->pool, terms);
}

/* T4: whether a loan that waits to grow may grow beyond its pool. */
static bool may_pass(const rp_loans *loans, const rp_loan *loan, const rp_loan_terms *terms,
                     int64_t now_ns) RP_REQUIRES(loans->lock)
{
    const rp_loan *first = loans->growing.first;

    if (loans->past == loan) return true;
    if (is_past(loans, terms)) return false;
    while (first != loan && is_stale(first, now_ns)) first = first->next;
    return first == loan;
}

#ifndef NDEBUG
static size_t length(const rp_loan_list *list)
{
    size_t count = 0;

    for (const rp_loan *loan = list->first; loan != NULL; loan = loan->next) count++;
    return count;
}

/* Checks that both lists are linked both ways, and that each loan is in the list for its state.
 */
static bool is_valid(const rp_loans *loans) RP_REQUIRES(loans->lock)
{
    const rp_loan *prev = NULL;
    size_t growing = 0, ahead = 0;

    for (const rp_loan *loan = loans->growing.first; loan != NULL; loan = loan->next) {
        if (loan->prev != prev || !loan->is_made || !loan->is_growing) return false;
        growing += loan->bytes;
        prev = loan;
    }
    if (loans->growing.last != prev) return false;
    if (growing > loans->lent[RP_LOAN_ANY] + loans->lent[RP_LOAN_SMALL]) return false;
    prev = NULL;
    for (const rp_loan *loan = loans->line.first; loan != NULL; loan = loan->next) {
        if (loan->prev != prev || loan->is_made || !loan->is_waiting) return false;
        for (int pool = 0; pool < RP_LOAN_POOLS; pool++) ahead += loans->ahead[pool] == loan;
        prev = loan;
    }
    for (int pool = 0; pool < RP_LOAN_POOLS; pool++)
        ahead -= loans->ahead[pool] != NULL; /* each loan in `ahead` is in the queue */
    return loans->line.last == prev && ahead == 0;
}
#endif

static void verify(const rp_loans *loans) RP_REQUIRES(loans->lock)
{
    (void)loans;
    RP_VERIFY(length(&loans->line) + length(&loans->growing), is_valid(loans));
}

/* Lets a loan grow. While the loan waits to grow, its peer has nothing to move, because the
 * server does not read from it. */
static bool grow(rp_loans *loans, rp_loan *loan, size_t bytes, const rp_loan_terms *terms,
                 uint64_t moved, int64_t now_ns) RP_REQUIRES(loans->lock)
{
    bool fits_now = fits(loans, loan->pool, loan->bytes, bytes, terms);

    if (bytes <= loan->bytes || bytes > terms->lent_bytes) {
        stop_growing(loans, loan);
        return bytes <= loan->bytes;
    }
    loan->seen_ns = now_ns;
    if (!loan->is_growing) append(&loans->growing, loan);
    loan->is_growing = true;
    if (!fits_now && !may_pass(loans, loan, terms, now_ns)) {
        rp_loan_rest(loan, moved, now_ns);
        return false;
    }
    if (!fits_now) loans->past = loan;
    stop_growing(loans, loan);
    set_loan(loans, loan, bytes, terms);
    return true;
}

/* Waits in the queue, and takes a loan if the loan is next. */
static bool wait_in_line(rp_loans *loans, rp_loan *loan, size_t bytes,
                         const rp_loan_terms *terms, uint64_t moved, int64_t now_ns)
    RP_REQUIRES(loans->lock)
{
    if (!loan->is_waiting) {
        loan->since_ns = now_ns;
        line_up(loans, loan);
    }
    loan->seen_ns = now_ns;
    loan->time_ns = time_of(terms, bytes);
    loan->bytes = bytes;
    for (rp_loan_pool pool = 0; pool < RP_LOAN_POOLS; pool++) {
        if (!may_use(loan, pool, terms) || !fits(loans, pool, 0, bytes, terms) ||
            !is_next(loans, pool, loan, terms, now_ns))
            continue;
        lend(loans, pool, loan, bytes, terms);
        loan->since_ns = now_ns;
        rp_loan_rest(loan, moved, now_ns);
        return true;
    }
    return false;
}

bool rp_loan_ask(rp_loans *loans, rp_loan *loan, size_t bytes, const rp_loan_terms *terms,
                 uint64_t moved, int64_t now_ns)
{
    bool granted;

    assert(bytes > 0);
    assert(!(loan->is_made && loan->is_waiting));
    rp_mutex_lock(&loans->lock);
    granted = loan->is_made ? grow(loans, loan, bytes, terms, moved, now_ns)
                            : wait_in_line(loans, loan, bytes, terms, moved, now_ns);
    verify(loans);
    rp_mutex_unlock(&loans->lock);
    assert(!granted || (loan->is_made && loan->bytes >= bytes));
    return granted;
}

void rp_loan_reduce(rp_loans *loans, rp_loan *loan, size_t bytes)
{
    if (bytes >= loan->bytes) return;
    assert(loan->is_made && bytes > 0);
    rp_mutex_lock(&loans->lock);
    assert(loans->lent[loan->pool] >= loan->bytes);
    stop_growing(loans, loan);
    loans->lent[loan->pool] -= loan->bytes - bytes;
    loan->bytes = bytes;
    verify(loans);
    rp_mutex_unlock(&loans->lock);
}

void rp_loan_end(rp_loans *loans, rp_loan *loan)
{
    if (!loan->is_made && !loan->is_waiting) return;
    rp_mutex_lock(&loans->lock);
    if (loan->is_waiting) {
        step_out(loans, loan);
    } else {
        assert(loans->lent[loan->pool] >= loan->bytes);
        stop_growing(loans, loan);
        loans->lent[loan->pool] -= loan->bytes;
        if (loans->past == loan) loans->past = NULL;
    }
    verify(loans);
    rp_mutex_unlock(&loans->lock);
    *loan = (rp_loan){0};
}

/* Whether a loan in the queue waits for bytes of this pool: it may use the pool, and neither
 * this nor another pool that it may use has room for it. */
static bool waits_for(const rp_loans *loans, const rp_loan *loan, rp_loan_pool pool,
                      const rp_loan_terms *terms) RP_REQUIRES(loans->lock)
{
    if (!may_use(loan, pool, terms)) return false;
    for (rp_loan_pool any = 0; any < RP_LOAN_POOLS; any++)
        if (may_use(loan, any, terms) && fits(loans, any, 0, loan->bytes, terms)) return false;
    return true;
}

/* Whether another connection waits for the bytes of this loan, in the queue or for its own loan
 * to grow. */
static bool is_short(rp_loans *loans, const rp_loan *loan, const rp_loan_terms *terms,
                     int64_t now_ns)
{
    bool found = false;

    rp_mutex_lock(&loans->lock);
    for (const rp_loan *other = loans->line.first; other != NULL && !found; other = other->next)
        found = !is_stale(other, now_ns) && waits_for(loans, other, loan->pool, terms);
    for (const rp_loan *other = loans->growing.first; other != NULL && !found;
         other = other->next)
        found = other != loan && !is_stale(other, now_ns);
    rp_mutex_unlock(&loans->lock);
    return found;
}

void rp_loan_rest(rp_loan *loan, uint64_t moved, int64_t now_ns)
{
    loan->paced_ns = now_ns;
    loan->moved = moved;
}

/* Whether the peer has moved as many bytes as T3 demands by now. */
static bool is_on_pace(const rp_loan *loan, const rp_loan_terms *terms, uint64_t moved,
                       int64_t now_ns)
{
    int64_t first = first_ns(terms), elapsed_ns = now_ns - loan->paced_ns;
    double due = (double)loan->bytes;

    if (elapsed_ns <= first) return true;
    if (elapsed_ns < loan->time_ns)
        due *= (double)(elapsed_ns - first) / (double)(loan->time_ns - first);
    return (double)(moved - loan->moved) >= due;
}

bool rp_loan_is_behind(rp_loans *loans, const rp_loan *loan, const rp_loan_terms *terms,
                       uint64_t moved, int64_t now_ns)
{
    if (!loan->is_made) return false;
    if (now_ns - loan->since_ns <= longest_ns(terms) && is_on_pace(loan, terms, moved, now_ns))
        return false;
    return is_short(loans, loan, terms, now_ns);
}
