/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the calls of closed connections, a bounded number in each turn (iteration) of the event
 * loop.
 *
 * To end a call, the worker withdraws the call's operation from its table, under the table's
 * lock, and frees the call's memory. A connection can have thousands of calls, and many
 * connections can close at once. So a turn ends at most RP_CLOSING_CALLS calls of closed
 * connections. The next turns end the remaining calls, in the order in which the connections
 * were closed.
 *
 * Until a call of a closed connection has ended, the call's timers and table operations can
 * still invoke its callbacks. The call starts no new draw of samples, since
 * rp_connection_may_queue() returns false. Responses that the call sends stay in the queue of
 * the connection's rp_h2 and are never written.
 *
 * Invariants:
 *   E1  the timer is armed while the list of closed connections is not empty;
 *   E2  `last` is the last entry of the list; NULL if the list is empty.
 *
 * All functions must be called on the worker's thread. */
#ifndef RP_SERVER_CORE_CLOSING_H
#define RP_SERVER_CORE_CLOSING_H

#include "net/loop.h"
#include "wire/h2/h2.h"

enum { RP_CLOSING_CALLS = 512 }; /* the most calls that one turn ends */

/* The list entry of a closed connection, embedded in rp_connection. */
typedef struct rp_closed rp_closed;
struct rp_closed {
    rp_closed *next;
    rp_h2 *h2;
};

typedef struct rp_closing {
    rp_loop *loop;
    rp_closed *first, *last;
    rp_timer timer;
    size_t ended;   /* calls that were ended in this turn */
    bool is_urgent; /* rp_closing_finish() was called: rp_closing_add() ends all calls of a
                       connection at once */
    void (*on_progress)(rp_closed *closed); /* called when some of the connection's calls have
                                               ended, but not all */
    void (*on_done)(rp_closed *closed); /* called when all of the connection's calls have ended;
                                           is allowed to free the connection */
} rp_closing;

void rp_closing_init(rp_closing *closing, rp_loop *loop, void (*on_progress)(rp_closed *closed),
                     void (*on_done)(rp_closed *closed));
/* Adds a closed connection to the list. The caller must no longer read from the connection or
 * write to it. In three cases, all calls of the connection are ended now instead: the list is
 * empty, and with these calls the turn ends at most RP_CLOSING_CALLS; rp_closing_finish() was
 * called before; there is no memory for the timer. */
void rp_closing_add(rp_closing *closing, rp_closed *closed, rp_h2 *h2);
/* Resets the count `ended`, so that the next turn can end RP_CLOSING_CALLS calls. Must be
 * called at the end of each turn of the loop. */
void rp_closing_end_turn(rp_closing *closing);
/* Ends all calls now. From then on, rp_closing_add() ends the calls of a connection at once. */
void rp_closing_finish(rp_closing *closing);

#endif
