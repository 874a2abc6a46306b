/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: room past the limit of a side of the budget of queued bytes (queue_budget.h).
 *
 * Peers that do not go on may fill a side for a long time. So a side lends bytes past its limit
 * to connections that have no room within the limit:
 *   T1  there are two pools: `lent_bytes` for all loans, and an eighth of that for small
 *       loans, which are no larger than that eighth. A loan is made if its pool then lends no
 *       more than it has, or if it is the only one of the pool for all. It grows under the
 *       same condition, or by T4;
 *   T2  connections wait in a line. The next loan of a pool goes to the connection that has
 *       waited longest of those that may use the pool, measured in the time that its own loan
 *       may take. A smaller one behind it does not pass it. So small loans wait for each other
 *       only, whatever the number and the pace of large ones;
 *   T3  a connection has its loan for as long as its peer moves the bytes fast enough: after a
 *       64th of `longest_ns` at the pace that moves all of them within a 16th of `longest_ns`
 *       and a second for each MiB, and within `longest_ns` in any case. A connection that is
 *       slower is to be closed, but only while another one waits for its bytes, in the line or
 *       for its own loan to grow. The pace is measured from when the peer has bytes to move;
 *       `longest_ns` from the loan;
 *   T4  one loan at a time may grow past what its pool has, to `lent_bytes`: while there is
 *       none, the next is the one that has waited longest to grow. So loans that have to grow
 *       cannot block each other: its connection goes on, ends its turn or is closed by T3, and
 *       the next loan may grow.
 *
 * By T1 the loans beside the one of T4 are at most what the pools have, or a larger one in the
 * pool for all. By T4 that one is at most `lent_bytes`. So all loans are at most 17/8
 * `lent_bytes`, or 9/8 `lent_bytes` and a larger one.
 *
 * A peer that does not go on keeps a loan from others for about half a second, if `longest_ns`
 * is 30 s, and a peer that moves a MiB a second can go on for `longest_ns`.
 *
 * Each rp_turn belongs to one thread. Time comes in as an argument. */
#ifndef RP_SERVER_BOUNDS_TURNS_H
#define RP_SERVER_BOUNDS_TURNS_H

#include <stdint.h>

#include "util/mutex.h"

typedef struct rp_turn rp_turn;

/* T1. A small loan may come from either pool. */
typedef enum rp_turn_pool {
    RP_TURN_ANY,
    RP_TURN_SMALL,
    RP_TURN_POOLS,
} rp_turn_pool;

/* Zero waits for nothing and has no loan. */
struct rp_turn {
    size_t bytes;              /* lent, or waited for */
    bool has_loan, is_waiting; /* at most one of them */
    bool is_growing;           /* has a loan, and waits for it to grow */
    rp_turn_pool pool;         /* of the loan */
    int64_t since_ns;          /* the loan was made, or the wait began */
    int64_t paced_ns;          /* its peer has had bytes to move since then */
    int64_t seen_ns;           /* it asked last */
    int64_t time_ns;           /* the loan may take */
    uint64_t moved;            /* what the peer had moved when the loan was made */
    rp_turn *prev, *next;      /* in the line, or among those that wait to grow */
};

typedef struct rp_turn_list {
    rp_turn *first, *last;
} rp_turn_list;

/* The loans of one side, and the connections that wait for one. Any thread. */
typedef struct rp_turns {
    rp_mutex lock; /* rank RP_RANK_TURNS */
    rp_turn_list line RP_GUARDED_BY(lock);
    rp_turn_list growing RP_GUARDED_BY(lock); /* loans that wait to grow */
    const rp_turn *past RP_GUARDED_BY(lock);  /* T4: may have more than its pool; NULL: none */
    /* By pool: the turn in the line that was ahead when the line was walked last. NULL: not
     * known. Almost all others compare themselves with it alone to know that they wait. */
    const rp_turn *ahead[RP_TURN_POOLS] RP_GUARDED_BY(lock);
    size_t lent[RP_TURN_POOLS] RP_GUARDED_BY(lock); /* bytes of the loans */
} rp_turns;

typedef struct rp_turn_terms {
    size_t lent_bytes;
    int64_t longest_ns;
} rp_turn_terms;

void rp_turns_init(rp_turns *turns);
void rp_turns_deinit(rp_turns *turns);

/* Asks for a loan of `bytes` (>= 1), or to have one that is smaller grow to that. False if it
 * has to wait: then it is in the line and has to ask again, at least 20 times a second, or to
 * end. `moved` is what the peer has moved so far. */
RP_NODISCARD bool rp_turn_ask(rp_turns *turns, rp_turn *turn, size_t bytes,
                              const rp_turn_terms *terms, uint64_t moved, int64_t now_ns);
/* Gives back a part of a loan, so that it has at most `bytes` (>= 1). */
void rp_turn_reduce(rp_turns *turns, rp_turn *turn, size_t bytes);
/* Leaves the line, or gives the loan back. Costs nothing if there is neither. */
void rp_turn_end(rp_turns *turns, rp_turn *turn);
/* Its peer has nothing to move at this time: the pace begins anew. */
void rp_turn_rest(rp_turn *turn, uint64_t moved, int64_t now_ns);
/* T3: whether its connection is to be closed. */
RP_NODISCARD bool rp_turn_is_behind(rp_turns *turns, const rp_turn *turn,
                                    const rp_turn_terms *terms, uint64_t moved, int64_t now_ns);

#endif
