/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the calls of closed connections, some in each turn of the loop.
 *
 * Ending a call withdraws its operation from its table, under the table's lock, and frees what
 * the call holds. A connection may have thousands of calls, and many connections may close at
 * once. So a turn ends RP_CLOSING_CALLS calls of closed connections; the next turns end the
 * others, in the order in which the connections were closed.
 *
 * A call of a closed connection continues until it is ended: its timers and operations may
 * call it. It starts no new draw (rp_connection_may_queue()); what it sends stays in its rp_h2.
 *
 * Invariants:
 *   E1  the timer is armed while the list is not empty;
 *   E2  `last` is the last of the list; NULL if it is empty.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_CLOSING_H
#define RP_SERVER_CORE_CLOSING_H

#include "net/loop.h"
#include "wire/h2/h2.h"

enum { RP_CLOSING_CALLS = 512 }; /* that one turn ends */

/* A closed connection; embedded there. */
typedef struct rp_closed rp_closed;
struct rp_closed {
    rp_closed *next;
    rp_h2 *h2;
};

typedef struct rp_closing {
    rp_loop *loop;
    rp_closed *first, *last;
    rp_timer timer;
    size_t ended;                           /* calls, in this turn */
    bool is_urgent;                         /* end all calls at once: the worker stops */
    void (*on_progress)(rp_closed *closed); /* some of its calls have ended, others have not */
    void (*on_done)(rp_closed *closed);     /* all have: may free it */
} rp_closing;

void rp_closing_init(rp_closing *closing, rp_loop *loop, void (*on_progress)(rp_closed *closed),
                     void (*on_done)(rp_closed *closed));
/* Takes the calls of a connection from which nothing is read and to which nothing is written.
 * Ends as many as the turn allows now. */
void rp_closing_add(rp_closing *closing, rp_closed *closed, rp_h2 *h2);
/* At the end of every turn. */
void rp_closing_end_turn(rp_closing *closing);
/* Ends all calls now, also those of connections that are added later. */
void rp_closing_finish(rp_closing *closing);

#endif
