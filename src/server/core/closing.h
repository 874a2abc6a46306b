/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the calls of closed connections, some in each turn of the loop.
 *
 * Ending a call withdraws its operation from its table, under the table's lock, and frees the
 * call's memory. A connection may have thousands of calls, and many connections may close at
 * once. So a turn ends RP_CLOSING_CALLS calls of closed connections; the next turns end the
 * others, in the order in which the connections were closed.
 *
 * Until a call of a closed connection is ended, its timers and operations may still invoke its
 * callbacks. It starts no new draw (rp_connection_may_queue()), and responses that it sends
 * stay queued in the connection's rp_h2.
 *
 * Invariants:
 *   E1  the timer is armed while the list is not empty;
 *   E2  `last` is the last entry of the list; NULL if the list is empty.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_CLOSING_H
#define RP_SERVER_CORE_CLOSING_H

#include "net/loop.h"
#include "wire/h2/h2.h"

enum { RP_CLOSING_CALLS = 512 }; /* the most calls that one turn ends */

/* A closed connection; a part of rp_connection. */
typedef struct rp_closed rp_closed;
struct rp_closed {
    rp_closed *next;
    rp_h2 *h2;
};

typedef struct rp_closing {
    rp_loop *loop;
    rp_closed *first, *last;
    rp_timer timer;
    size_t ended;                           /* calls that were ended in this turn */
    bool is_urgent;                         /* the worker stops: end all calls at once */
    void (*on_progress)(rp_closed *closed); /* some of its calls have ended, others have not */
    void (*on_done)(rp_closed *closed);     /* all of its calls have ended; may free it */
} rp_closing;

void rp_closing_init(rp_closing *closing, rp_loop *loop, void (*on_progress)(rp_closed *closed),
                     void (*on_done)(rp_closed *closed));
/* Adds a connection from which nothing is read and to which nothing is written any more.
 * Instead of adding it, ends all of its calls now in these cases: the list is empty and this
 * turn may still end all of them; rp_closing_finish() was called before; there is no memory for
 * the timer. */
void rp_closing_add(rp_closing *closing, rp_closed *closed, rp_h2 *h2);
/* Call it at the end of each turn of the loop. */
void rp_closing_end_turn(rp_closing *closing);
/* Ends all calls now, also those of connections that are added later. */
void rp_closing_finish(rp_closing *closing);

#endif
