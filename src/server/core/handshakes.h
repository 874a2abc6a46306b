/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of TLS handshakes of a worker.
 *
 * A step of a handshake can take a millisecond of arithmetic, while a client's hello costs the
 * client nothing. So a turn of the loop makes at most RP_TURN_HANDSHAKES steps and then serves
 * open connections. The other handshakes are queued in the order in which they became ready.
 * The time that a handshake is queued does not count towards the limit handshake_ms.
 *
 * Invariants:
 *   H1  a turn makes at most RP_TURN_HANDSHAKES steps;
 *   H2  is_queued is set exactly while a handshake is in the list, and the timer is armed while
 *       the list is not empty.
 *
 * All functions belong to the worker's thread. */
#ifndef RP_SERVER_CORE_HANDSHAKES_H
#define RP_SERVER_CORE_HANDSHAKES_H

#include "net/link.h"
#include "net/loop.h"

enum { RP_TURN_HANDSHAKES = 2 }; /* steps of TLS handshakes that one turn of a loop makes */

/* The handshake of a connection; a part of rp_connection. */
typedef struct rp_handshake rp_handshake;
struct rp_handshake {
    rp_handshake *prev, *next;
    const rp_link *link;
    rp_watch *watch;
    int64_t queued_ns; /* when it was queued */
    bool is_queued;
};

typedef struct rp_handshakes {
    rp_loop *loop;
    rp_handshake *first, *last;
    rp_timer timer;
    size_t steps; /* made in this turn */
    /* Makes the next step of a handshake that has left the queue after `waited_ns`, or closes
     * its connection if the peer has gone. */
    void (*step)(rp_handshake *handshake, int64_t waited_ns);
} rp_handshakes;

void rp_handshakes_init(rp_handshakes *handshakes, rp_loop *loop,
                        void (*step)(rp_handshake *handshake, int64_t waited_ns));
/* Whether a handshake whose descriptor has become ready may make a step now. If not, it is
 * queued, its descriptor is not watched for reading, and `step` is called in a later turn. */
RP_NODISCARD bool rp_handshake_may_step(rp_handshakes *handshakes, rp_handshake *handshake);
/* Removes a handshake from the queue, if it is there. */
void rp_handshake_forget(rp_handshakes *handshakes, rp_handshake *handshake);
/* Call it at the end of each turn of the loop. */
void rp_handshakes_end_turn(rp_handshakes *handshakes);

#endif
