/* SPDX-License-Identifier: Apache-2.0 */
/* Loans let connections exceed the limit of queued bytes, one after another. The budget has two
 * sides, each with its own limit: bytes that peers send, and bytes that are sent to peers
 * (core/queue_budget.h).
 *
 * Peers that stop sending or reading can fill a side for a long time. So a side lends bytes
 * beyond its limit to connections that have no room within the limit. The rules are:
 *   T1  there are two pools: one of `lent_bytes` for loans of any size, and one of lent_bytes /
 *       8 for small loans, which are no larger than lent_bytes / 8. A loan is made or grows if
 *       its pool has enough bytes left. While the pool for any size has no other loan, it can
 *       make one loan of more than `lent_bytes`. By T4 a loan can also grow beyond its pool;
 *   T2  connections wait in a queue. The next loan of a pool goes to the connection that has
 *       waited longest of those that may use the pool. To compare two waits, each wait is
 *       divided by the longest time that its loan is allowed to take (T3). So a connection that
 *       needs a loan for a short time waits a short time. Until the pool has enough bytes for
 *       that connection, no other connection gets a loan from the pool, even if a smaller loan
 *       would fit. The pool for small loans considers only connections that wait for a small
 *       loan;
 *   T3  a connection keeps its loan as long as its peer moves the bytes fast enough. To move
 *       means to send on the one side and to read on the other. The time of a loan begins when
 *       the peer has bytes to move, and has two parts. In the first part the peer need not move
 *       any bytes; this part is a 64th of `longest_ns`, but at least 250 ms. The second part is
 *       a 16th of `longest_ns` plus a second for each MiB of the loan, but at most the rest of
 *       `longest_ns`. When some fraction of the second part has passed, the peer must have
 *       moved at least the same fraction of the bytes. Whatever the pace, a loan may last at
 *       most `longest_ns` from when it was made. A connection that breaks these rules is closed
 *       if another connection waits in the queue for the lent bytes, or waits for its own loan
 *       to grow. If no other connection waits, it may continue;
 *   T4  one loan at a time may grow beyond its pool, up to `lent_bytes`. It is the loan that
 *       has waited longest to grow. So loans that must grow cannot block each other: the
 *       connection with this loan completes it or is closed by T3, and then the next loan may
 *       grow.
 *
 * Apart from the loan that grows by T4, the pool for small loans lends at most 1/8
 * `lent_bytes`, and the pool for any size at most `lent_bytes` or one larger loan (T1). The
 * loan that grows by T4 is at most `lent_bytes`. So all loans together are at most 17/8
 * `lent_bytes`, or 9/8 `lent_bytes` and one larger loan.
 *
 * For example, let `longest_ns` be 30 s. Then a peer that stops blocks a loan for about half a
 * second, and a peer that moves 1 MiB/s keeps its loan for up to 30 s.
 *
 * Each rp_loan belongs to one thread. The functions read no clock: the caller passes the time.
 */
#ifndef RP_SERVER_BOUNDS_LOANS_H
#define RP_SERVER_BOUNDS_LOANS_H

#include <stdint.h>

#include "util/mutex.h"

typedef struct rp_loan rp_loan;

/* The pools of T1. A small loan can come from either pool. */
typedef enum rp_loan_pool {
    RP_LOAN_ANY,
    RP_LOAN_SMALL,
    RP_LOAN_POOLS,
} rp_loan_pool;

/* The loan of a connection, or its wait for a loan. A zeroed rp_loan is neither. */
struct rp_loan {
    size_t bytes;             /* size of the loan, or the size that the connection waits for */
    bool is_made, is_waiting; /* at most one of them is set */
    bool is_growing;          /* the loan is made, and waits to grow */
    rp_loan_pool pool;        /* the pool of the loan, if is_made */
    int64_t since_ns;         /* when the loan was made, or the wait began */
    int64_t paced_ns;         /* time since which the peer has had bytes to move */
    int64_t seen_ns;          /* when rp_loan_ask() was last called */
    int64_t time_ns;          /* how long the loan may take (T3) */
    uint64_t moved;           /* bytes that the peer had moved at paced_ns */
    rp_loan *prev, *next;     /* in the queue, or in the list of loans that wait to grow */
};

typedef struct rp_loan_list {
    rp_loan *first, *last;
} rp_loan_list;

/* The loans of one side, and the connections that wait for a loan. Any thread may use it. */
typedef struct rp_loans {
    rp_mutex lock;                            /* rank RP_RANK_LOANS */
    rp_loan_list line RP_GUARDED_BY(lock);    /* the queue of T2 */
    rp_loan_list growing RP_GUARDED_BY(lock); /* loans that wait to grow */
    const rp_loan *past RP_GUARDED_BY(lock);  /* T4: the loan beyond its pool; NULL: none */
    /* For each pool, the wait that was first in order (T2) when the queue was last searched;
     * NULL: not known. A connection that has waited less than this one must wait, so most uses
     * of rp_loan_ask() need no search. */
    const rp_loan *ahead[RP_LOAN_POOLS] RP_GUARDED_BY(lock);
    size_t lent[RP_LOAN_POOLS] RP_GUARDED_BY(lock); /* bytes of the loans of each pool */
} rp_loans;

typedef struct rp_loan_terms {
    size_t lent_bytes;
    int64_t longest_ns;
} rp_loan_terms;

void rp_loans_init(rp_loans *loans);
void rp_loans_deinit(rp_loans *loans);

/* Asks for a loan of `bytes` (>= 1). If the connection already has a smaller loan, asks that
 * the loan grow to `bytes`. Returns false if the connection has to wait. While it waits, the
 * caller must ask again at least 20 times a second, or call rp_loan_end(). `moved` is the
 * number of bytes that the peer has moved so far. */
RP_NODISCARD bool rp_loan_ask(rp_loans *loans, rp_loan *loan, size_t bytes,
                              const rp_loan_terms *terms, uint64_t moved, int64_t now_ns);
/* Returns a part of a loan, so that the loan is at most `bytes` (>= 1). */
void rp_loan_reduce(rp_loans *loans, rp_loan *loan, size_t bytes);
/* Leaves the queue, or returns the loan. Takes no lock if there is neither a wait nor a loan.
 */
void rp_loan_end(rp_loans *loans, rp_loan *loan);
/* Restarts the measurement of the pace (T3). Must be called while the peer has nothing to move.
 */
void rp_loan_rest(rp_loan *loan, uint64_t moved, int64_t now_ns);
/* Returns whether the connection of the loan is to be closed (T3). */
RP_NODISCARD bool rp_loan_is_behind(rp_loans *loans, const rp_loan *loan,
                                    const rp_loan_terms *terms, uint64_t moved, int64_t now_ns);

#endif
